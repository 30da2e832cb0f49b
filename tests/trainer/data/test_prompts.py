"""Templates, the tokenizer without torch, and what becomes of questions."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import processors

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.data.prompts import key, make_prompts
from simplerl_trainer.data.questions import Question
from simplerl_trainer.data.templates import choose
from simplerl_trainer.data.tokenizer import Tokenizer
from simplerl_trainer.models.arithmetic_tokenizer import make_tokenizer, save_tokenizer

CHATML = (
    "{%- for message in messages %}\n"
    "    {%- if loop.first and message['role'] != 'system' %}\n"
    "        {{- '<|im_start|>system\\nBe brief.<|im_end|>\\n' }}\n"
    "    {%- endif %}\n"
    "    {{- '<|im_start|>' + message.role + '\\n' + message['content'] | trim + '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n"
)
LLAMA = (
    "{{- bos_token }}{%- if tools %}{{- raise_exception('no tools') }}{%- endif %}"
    "{%- for message in messages %}{%- if message.role == 'skip' %}{% continue %}{% endif %}"
    "{{- message.role + ': ' + message.content | tojson + eos_token }}{%- endfor %}"
    "{%- if add_generation_prompt %}{% generation %}{{- 'assistant:' }}{% endgeneration %}{%- endif %}"
)


def tokenizer(folder: Path, chat: str | None = None, in_config: bool = False, bos: bool = False) -> Tokenizer:
    save_tokenizer(folder)
    config = json.loads((folder / "tokenizer_config.json").read_text()) | {"tokenizer_class": "TokenizersBackend"}
    if bos:  # as Llama's: the tokenizer itself puts the token in front
        fast = make_tokenizer()
        fast.add_special_tokens(["<bos>"])
        fast.post_processor = processors.TemplateProcessing(
            single="<bos> $A", special_tokens=[("<bos>", fast.token_to_id("<bos>"))]
        )
        fast.save(str(folder / "tokenizer.json"))
        config["bos_token"] = {"__type": "AddedToken", "content": "<bos>", "special": True}
    if chat and in_config:
        config["chat_template"] = chat
    elif chat:
        (folder / "chat_template.jinja").write_text(chat)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return Tokenizer(folder)


def test_qwen_boxed_is_simplerl_s_prompt(tmp_path: Path) -> None:
    template = choose("qwen-boxed", tokenizer(tmp_path))
    assert template.render("1 + 1 = {question}?") == (
        "<|im_start|>system\nPlease reason step by step, and put your final answer within \\boxed{}.<|im_end|>\n"
        "<|im_start|>user\n1 + 1 = {question}?<|im_end|>\n<|im_start|>assistant"
    )


def test_a_literal_keeps_its_other_braces(tmp_path: Path) -> None:
    assert choose("{a} {question} {question}", tokenizer(tmp_path)).render("x{y}") == "{a} x{y} x{y}"


def test_absent_means_the_bare_question_where_there_is_no_chat_template(tmp_path: Path) -> None:
    assert choose(None, tokenizer(tmp_path)).render("1 + 1") == "1 + 1"


@pytest.mark.parametrize("named", [None, "chat"])
@pytest.mark.parametrize("in_config", [False, True])
def test_the_chat_template_begins_the_answer(tmp_path: Path, named: str | None, in_config: bool) -> None:
    template = choose(named, tokenizer(tmp_path, CHATML, in_config))
    assert template.render(" 1 + 1 ") == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n1 + 1<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(("chat", "bos"), [(CHATML, False), (LLAMA, True)], ids=["ChatML", "Llama"])
def test_texts_and_ids_are_those_of_transformers(tmp_path: Path, chat: str, bos: bool) -> None:
    from transformers import AutoTokenizer

    ours, theirs = tokenizer(tmp_path, chat, bos=bos), AutoTokenizer.from_pretrained(tmp_path)
    question = 'Calculate 23 + 34. "é" \u2028 数'
    messages = [{"role": "user", "content": question}]
    text = ours.chat_prompt(question)
    assert text == theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = theirs.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert ours.encode([text], chat=True) == [tuple(ids)]
    assert ours.encode([question], chat=False) == [tuple(theirs(question)["input_ids"])]
    assert ours.decode([ids]) == [theirs.decode(ids, skip_special_tokens=True)]


def test_a_begin_token_stands_once(tmp_path: Path) -> None:
    # fault 42 (NeMo-RL#855, open-r1#462): two begin-of-sequence tokens
    made = tokenizer(tmp_path, LLAMA, bos=True)
    begin = make_tokenizer().get_vocab_size()
    for ids in made.encode(["7", "<bos>7"], chat=False) + made.encode([made.chat_prompt("7")], chat=True):
        assert ids.count(begin) == 1
        assert ids[0] == begin


REFUSED = {
    "a literal without the question": (
        "Solve: question",
        None,
        "data.promptTemplate is 'Solve: question', which has no {question} in it: add it, or name qwen-boxed or chat",
    ),
    "chat without a chat template": (
        "chat",
        None,
        "data.promptTemplate is chat, but model folder {folder} has no chat template: "
        "give a literal text with {question} in it",
    ),
    "a chat template that fails": (
        "chat",
        "{{ raise_exception('a system message is needed') }}",
        "the chat template of model folder {folder} fails (a system message is needed): give a literal text",
    ),
    "a chat template that cannot be computed": (
        "chat",
        "{{ messages[0].content + 1 }}",
        'the chat template of model folder {folder} fails (can only concatenate str (not "int") to str): give a '
        "literal text",
    ),
    "a chat template with a fault": (
        "chat",
        "{% if %}",
        "the chat template of model folder {folder} fails (Expected an expression, got 'end of statement block'): "
        "give a literal text",
    ),
}


@pytest.mark.parametrize(("named", "chat", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_a_template_s_fault_is_a_sentence(tmp_path: Path, named: str, chat: str | None, sentence: str) -> None:
    with pytest.raises(TrainerFailure) as caught:
        choose(named, tokenizer(tmp_path, chat)).render("1")
    assert caught.value.message == sentence.replace("{folder}", str(tmp_path))
    assert caught.value.reason is FailureReason.INVALID_INPUT


@pytest.mark.parametrize("template", [3, [{"name": "default", "template": 3}]], ids=["a number", "a named number"])
def test_a_chat_template_that_is_no_text_is_named(tmp_path: Path, template: object) -> None:
    tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    with pytest.raises(TrainerFailure, match=r"a chat_template in tokenizer_config.json that is no text: mend it"):
        Tokenizer(tmp_path)


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainerFailure, match=rf"model folder {tmp_path} has no usable tokenizer\.json"):
        Tokenizer(tmp_path)


QUESTIONS = [Question("1 + 1", "2"), Question("2 +  2", "4"), Question("3", "3"), Question("x" * 11, "1")]


def test_prompts_keep_their_order_and_what_is_dropped_is_counted(tmp_path: Path) -> None:
    # fault 43 (verl#1015, Trinity-RFT#287): one prompt that was too long ended the training
    made = tokenizer(tmp_path)
    found = make_prompts(QUESTIONS, choose("Q {question}", made), made, 8, {key("2 + 2"), key("4")})
    assert [(p.row, p.question, p.answer) for p in found.prompts] == [(0, "1 + 1", "2"), (2, "3", "3")]
    assert (found.too_long, found.held_out, found.example) == (1, 1, "Q 1 + 1")
    assert len(found.unasked) == 1
    assert found.unasked[0].row not in {p.row for p in found.prompts}
    assert made.decode([found.prompts[0].token_ids]) == ["Q 1 + 1"]


def test_nothing_left_is_a_sentence(tmp_path: Path) -> None:
    made = tokenizer(tmp_path)
    with pytest.raises(TrainerFailure) as caught:
        make_prompts(QUESTIONS, choose("Q {question}", made), made, 2, {key("3")})
    assert caught.value.message == (
        "none of the 4 questions of data.train is left: 1 also stand in an evaluation data set and 3 make prompts over "
        "data.maxPromptTokens 2, the shortest of 6 tokens: give other questions or a larger limit"
    )


def test_inputs_need_no_torch() -> None:
    rooms = (
        "data.questions, data.levels, data.prompts, data.templates, data.cursor, inputs, models.families, "
        "models.folder, rewards.score, rewards.process"
    )
    imports = "; ".join(f"import simplerl_trainer.{room}" for room in rooms.split(", "))
    heavy = {"torch", "vllm", "deepspeed", "sympy", "datasets"}
    code = f"import sys; {imports}; sys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
