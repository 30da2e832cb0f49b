"""Questions and their answers, read from a file or made by reasoning-gym."""

import dataclasses
import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import Fields, Questions, ReasoningGym


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its answer, both as they stand in the data set: a worked solution stays whole."""

    question: str
    answer: str


class _NumberText(str):
    """A JSON number as it was written: `0.50` stays `0.50`."""

    __slots__ = ()


def load(questions: Questions, fields: Fields, field: str) -> Sequence[Question]:
    """All questions of a data set, in its order.

    `field` is the spec's path of the data set, for messages. Raises TrainerFailure(INVALID_INPUT) with a sentence that
    names the file, its line and the key, or the generator and its setting.
    """
    if questions.file is not None:
        found = list(_read(Path(questions.file), fields, f"{field}.file"))
        source = f"{field}.file {questions.file}"
    elif questions.reasoning_gym is not None:
        found = _generate(questions.reasoning_gym, f"{field}.reasoningGym")
        source = f"{field}.reasoningGym {questions.reasoning_gym.dataset}"
    else:
        raise _invalid(f"{field} names neither a file nor a reasoningGym data set: give one of them")
    if not found:
        raise _invalid(f"{source} holds no question: give at least one")
    return found


def _read(path: Path, fields: Fields, field: str) -> Iterator[Question]:
    lines = {".jsonl": True, ".json": False}.get(path.suffix)
    if lines is None:
        raise _invalid(
            f"{field} is {path}: give a .jsonl file with an object on each line, or a .json file of one array"
        )
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise _invalid(f"{field} is {path}, which does not exist: check cluster.volumes and the path") from None
    except OSError as e:
        raise _invalid(f"{field} is {path}, which cannot be read ({e.strerror}): check its kind and permissions") from e
    for place, record in _json_lines(path, data) if lines else _json_array(path, data):
        yield _question(record, fields, place)


def _json_lines(path: Path, data: bytes) -> Iterator[tuple[str, Any]]:
    # split at \n only: str.splitlines() would also cut at U+2028, which JSON texts may hold as they are
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        place = f"{path} line {number}"
        if text := _decode(line, place).strip(" \t\r"):
            yield place, _parse(text, place)


def _json_array(path: Path, data: bytes) -> Iterator[tuple[str, Any]]:
    records = _parse(_decode(data.removeprefix(b"\xef\xbb\xbf"), str(path)), str(path))
    if not isinstance(records, list):
        raise _invalid(f"{path} holds {_kind(records)}: a .json file must hold one array of objects")
    for number, record in enumerate(records, start=1):
        yield f"{path} item {number}", record


def _decode(data: bytes, place: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise _invalid(f"{place} is not UTF-8 (byte {e.start + 1} is 0x{data[e.start]:02x}): convert the file") from e


def _parse(text: str, place: str) -> Any:
    try:
        return json.loads(text, parse_int=_NumberText, parse_float=_NumberText)
    except json.JSONDecodeError as e:
        where = f"character {e.colno}" if e.lineno == 1 else f"line {e.lineno}, character {e.colno}"
        raise _invalid(f"{place} is not JSON ({e.msg} at {where}): correct it") from e
    except RecursionError as e:
        raise _invalid(f"{place} is nested too deeply to be read: give plain objects") from e


def _question(record: Any, fields: Fields, place: str) -> Question:
    if not isinstance(record, dict):
        raise _invalid(f"{place} holds {_kind(record)}: give an object with {fields.question} and {fields.answer}")
    question = _text(record, fields.question, "data.fields.question", place)
    answer = _text(record, fields.answer, "data.fields.answer", place)
    return Question(question, answer)


def _text(record: dict[str, Any], key: str, field: str, place: str) -> str:
    if key not in record:
        keys = ", ".join(sorted(record)) or "none"
        raise _invalid(f"{place} has no key {key}: set {field} to the right one of its keys ({keys})")
    value = record[key]
    if not isinstance(value, str):
        raise _invalid(f"{place} holds {_kind(value)} under {key}: give a text or a number")
    if not value.strip():
        raise _invalid(f"{place} holds an empty text under {key}: give one, or leave the record out")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as e:
        raise _invalid(
            f"{place} holds half a surrogate pair under {key} (at character {e.start + 1}): remove it"
        ) from e
    return str(value)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _NumberText():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def _generate(gym: ReasoningGym, field: str) -> list[Question]:
    import reasoning_gym  # a second of imports, only where it is used
    from reasoning_gym.factory import DATASETS

    name = gym.dataset
    if name not in DATASETS:
        close = difflib.get_close_matches(name, DATASETS, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "see reasoning-gym's gallery for the names"
        raise _invalid(f"{field}.dataset is {name}, which reasoning-gym does not have: {hint}")
    settings = {f.name for f in dataclasses.fields(DATASETS[name][1])}
    for key in gym.config:
        if key in ("seed", "size"):
            raise _invalid(f"{field}.config holds {key}: give it as {field}.{key}")
        if key not in settings:
            close = difflib.get_close_matches(key, settings, n=1)
            known = f"did you mean {close[0]}?" if close else f"it has {', '.join(sorted(settings - {'seed', 'size'}))}"
            raise _invalid(f"{field}.config.{key} is not a setting of {name}: {known}")
    try:
        data = reasoning_gym.create_dataset(name, size=gym.size, seed=gym.seed, **gym.config)
        records = [data[i] for i in range(gym.size)]
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as e:
        # the generators check their settings with assert, or not at all
        raise _invalid(f"{field}.config does not suit {name}: {e or type(e).__name__}") from e
    if any(record["answer"] is None for record in records):
        raise _invalid(f"{field}.dataset is {name}, whose answers only its own scorer can judge: choose another one")
    return [Question(record["question"], str(record["answer"])) for record in records]


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
