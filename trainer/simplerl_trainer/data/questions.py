"""Questions and their answers, whatever the kind of their data set."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import Fields, Questions, ReasoningGym
from simplerl_trainer.data import files, gym, hub
from simplerl_trainer.data.files import Record, kind
from simplerl_trainer.data.json_text import NumberText

ANSWERS = ("gt_answer", "answer")
"""Where an answer is looked for when data.fields.answer does not say: simpleRL-reason's files hold the model solution
under `answer` and the value under `gt_answer`."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What the user writes to name the keys of a record, for messages."""

    question: str
    answer: str


KEYS = Keys("data.fields.question", "data.fields.answer")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its answer, both as they stand in the data set: a worked solution stays whole."""

    question: str
    answer: str
    """Empty where the record holds none and no reward needs one."""
    record: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The whole row."""
    gym: ReasoningGym | None = field(default=None, compare=False, repr=False)
    """The generator that made it, if one did."""


def load(
    questions: Questions,
    fields: Fields,
    field: str,
    *,
    answers: bool = True,
    commit: str | None = None,
    keys: Keys = KEYS,
) -> Sequence[Question]:
    """All questions of a data set, in its order.

    `field` is the spec's path of the data set and `keys` those of `fields`, for messages. `answers` says whether each
    question must have one; `commit` is that of a hub's repository. Raises TrainerFailure(INVALID_INPUT) with a sentence
    that names the file, its line and the key, the repository, or the generator and its setting.
    """
    if questions.reasoning_gym is not None:
        found = _generated(questions.reasoning_gym, f"{field}.reasoningGym", answers)
        source = f"{field}.reasoningGym {questions.reasoning_gym.dataset}"
    elif questions.hub is not None:
        assert commit is not None, "a hub's revision is resolved before its data is read"
        found = list(read(hub.records(questions.hub, commit, f"{field}.hub"), fields, answers, keys))
        source = f"{field}.hub {questions.hub.name}"
    else:
        assert questions.file is not None, "a data set has exactly one member"
        found = list(read(files.read(Path(questions.file), f"{field}.file"), fields, answers, keys))
        source = f"{field}.file {questions.file}"
    if not found:
        raise _invalid(f"{source} holds no question: give at least one")
    return found


def digest(questions: Iterable[Question]) -> str:
    """A fingerprint of questions and answers in their order."""
    found = hashlib.sha256()
    for question in questions:
        for text in (question.question, question.answer):
            data = text.encode()
            found.update(len(data).to_bytes(8, "little") + data)
    return f"sha256:{found.hexdigest()}"


def read(records: Iterable[Record], fields: Fields, answers: bool, keys: Keys) -> Iterator[Question]:
    """The question of each record; raises as `load`."""
    for record in records:
        values, place = record.values, record.place
        if not isinstance(values, dict):
            raise _invalid(f"{place} holds {kind(values)}: give an object with {fields.question} and an answer")
        question = _text(values, fields.question, keys.question, place)
        key = fields.answer or next((key for key in ANSWERS if key in values), None)
        if key is not None:
            answer = _text(values, key, keys.answer, place, several=True)
        elif answers:
            raise _invalid(
                f"{place} has neither the key {' nor '.join(ANSWERS)}: set {keys.answer} to the right one of its "
                f"keys ({_keys(values)})"
            )
        else:
            answer = ""
        yield Question(question, answer, files.plain(values))


def _text(record: dict[str, Any], key: str, field: str, place: str, *, several: bool = False) -> str:
    """The text under a key; with `several` also a list of texts, the parts of one answer (OlympiadBench's
    `final_answer`)."""
    if key not in record:
        raise _invalid(f"{place} has no key {key}: set {field} to the right one of its keys ({_keys(record)})")
    value = record[key]
    if isinstance(value, float) and not math.isfinite(value):  # in JSON too, by pandas
        raise _invalid(f"{place} holds {value} under {key}, which is no number: give one, or leave the record out")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = NumberText(value)  # Parquet's numbers
    if several and isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        value = ", ".join(value)
    if not isinstance(value, str):
        raise _invalid(f"{place} holds {kind(value)} under {key}: give a text or a number")
    if not value.strip():
        raise _invalid(f"{place} holds an empty text under {key}: give one, or leave the record out")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as e:
        raise _invalid(
            f"{place} holds half a surrogate pair under {key} (at character {e.start + 1}): remove it"
        ) from e
    return str(value)


def _keys(record: dict[str, Any]) -> str:
    return ", ".join(sorted(map(str, record))) or "none"


def _generated(settings: ReasoningGym, field: str, answers: bool) -> list[Question]:
    entries = gym.generate(settings, field)
    if answers and any(entry["answer"] is None for entry in entries):
        raise _invalid(
            f"{field}.dataset is {settings.dataset}, whose answers only its own scorer can judge: choose another one, "
            "or the reward task"
        )
    return [Question(e["question"], "" if e["answer"] is None else str(e["answer"]), e, settings) for e in entries]


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
