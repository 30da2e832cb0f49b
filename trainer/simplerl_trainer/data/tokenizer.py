"""The tokenizer of a Hugging Face folder, without torch: transformers' own classes import it, which costs seconds."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer as FastTokenizer

from simplerl_api.failures import FailureReason, TrainerFailure


class Tokenizer:
    """Texts to ids and back, and the chat template."""

    def __init__(self, folder: Path) -> None:
        """Reads tokenizer.json, tokenizer_config.json and chat_template.jinja.

        Raises TrainerFailure(INVALID_INPUT) with a sentence that names the folder and the file.
        """
        self._folder = folder
        try:
            self._fast = FastTokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as e:
            raise _invalid(f"model folder {folder} has no usable tokenizer.json ({e}): give a fast tokenizer") from e
        self._fast.no_truncation()
        self._fast.no_padding()
        config = _read_config(folder)
        self._special = {name: _token(value) for name, value in config.items() if name.endswith("_token")}
        self._chat = _chat_template(folder, config)
        self._compiled: Template | None = None

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def has_chat_template(self) -> bool:
        return self._chat is not None

    @property
    def vocabulary(self) -> int:
        """One more than the largest id, added tokens included; a model may have more rows than that."""
        return max(self._fast.get_vocab(with_added_tokens=True).values()) + 1

    def encode(self, texts: Sequence[str], *, chat: bool) -> list[tuple[int, ...]]:
        """The ids of each text. A begin-of-sequence token that the tokenizer adds stands once, also where the text has
        it already; a chat template's text (`chat`) holds all its special tokens itself."""
        bos = self._special.get("bos_token")
        doubled = [chat or (bos is not None and text.startswith(bos)) for text in texts]
        plain = self._fast.encode_batch([t for t, d in zip(texts, doubled, strict=True) if d], add_special_tokens=False)
        whole = self._fast.encode_batch([t for t, d in zip(texts, doubled, strict=True) if not d])
        found = {True: iter(plain), False: iter(whole)}
        return [tuple(next(found[d]).ids) for d in doubled]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The text of each sequence, special tokens left out."""
        return self._fast.decode_batch([list(i) for i in ids], skip_special_tokens=True)

    def chat_prompt(self, question: str) -> str:
        """The chat template's text for one user message, up to where the assistant's answer begins.

        Raises TrainerFailure(INVALID_INPUT) where the template does not take the message.
        """
        return self._render([{"role": "user", "content": question}], answers=True)

    def conversation(self, question: str, response: str) -> str:
        """The chat template's text for one user message and the assistant's answer to it, as reward models read it.

        Raises TrainerFailure(INVALID_INPUT) where the template does not take the messages.
        """
        messages = [{"role": "user", "content": question}, {"role": "assistant", "content": response}]
        return self._render(messages, answers=False)

    def _render(self, messages: Sequence[dict[str, str]], *, answers: bool) -> str:
        assert self._chat is not None, "callers look whether there is a chat template"
        try:
            if self._compiled is None:
                self._compiled = _environment().from_string(self._chat)
            return self._compiled.render(
                messages=messages, tools=None, documents=None, add_generation_prompt=answers, **self._special
            )
        except Exception as e:  # the folder's own code, which may raise anything
            raise _invalid(f"the chat template of model folder {self._folder} fails ({e}): give a literal text") from e


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    if not path.exists():
        return {}
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as e:
        raise _invalid(f"model folder {folder} has a tokenizer_config.json that is not JSON ({e}): mend it") from e
    return config if isinstance(config, dict) else {}


def _token(value: Any) -> str | None:
    """A special token, which stands as a text or as an object with its content."""
    return value.get("content") if isinstance(value, dict) else value


def _chat_template(folder: Path, config: dict[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.exists():
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as e:
            raise _invalid(f"model folder {folder} has a chat_template.jinja that is not UTF-8 ({e}): mend it") from e
    template = config.get("chat_template")
    if isinstance(template, list):  # several, each with a name
        named = [t for t in template if isinstance(t, dict) and t.get("name") == "default"]
        template = named[0].get("template") if named else None
    if template is not None and not isinstance(template, str):
        raise _invalid(f"model folder {folder} has a chat_template in tokenizer_config.json that is no text: mend it")
    return template


class _Generation(Extension):
    """`{% generation %}` marks the assistant's part for masks; here its body is plain text."""

    tags = {"generation"}  # noqa: RUF012  jinja2 reads the class's attribute

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    # what chat templates count on (https://huggingface.co/docs/transformers/chat_templating_writing)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = lambda value, **kwargs: json.dumps(value, **{"ensure_ascii": False, **kwargs})
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
