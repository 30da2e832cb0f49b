"""What an evaluation leaves of each sample: a line of JSON, written as soon as it is judged."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rewards.outcome import Verdict
from simplerl_trainer.rewards.stream import Scored
from simplerl_trainer.samples import Prompt

UNASKED = "Unasked"
"""In the place of a Finish: the question could not be put to the model."""


SUBJECTS = ("subject", "type", "subfield")
"""Where records say what a question is about: those of MATH, of Minerva's and of OlympiadBench."""


@dataclass(frozen=True, slots=True)
class Record:
    """One sample, judged."""

    id: int
    """Position of the question in its set x samples + number of the sample."""
    question: str
    answer: str
    """As it stands in the data set."""
    response: str
    tokens: int
    """Of the response, its end-of-sequence token included."""
    finish: str
    """Stop, Length (cut at the most tokens), or Unasked."""
    verdict: str
    """The judge's word; `failed` where the sample could not be drawn or judged."""
    extracted: str
    """The answer that was read from the response."""
    why: str
    level: str
    """The record's level; empty where it has none."""
    subject: str
    """The part of mathematics that the question belongs to; empty where none is given."""


def judged(scored: Scored, text: str) -> Record:
    """The record of a sample that was drawn and scored; `text` is its response."""
    sample, score = scored.sample, scored.score
    return Record(
        id=sample.id,
        question=sample.prompt.question,
        answer=sample.prompt.answer,
        response=text,
        tokens=len(sample.response_ids),
        finish=sample.finish.value,
        verdict=str(score.verdict),
        extracted=score.extracted,
        why=score.why,
        level=level(sample.prompt),
        subject=subject(sample.prompt),
    )


def unasked(id: int, prompt: Prompt, why: str) -> Record:
    """The record of a sample that cannot be drawn."""
    return Record(
        id=id,
        question=prompt.question,
        answer=prompt.answer,
        response="",
        tokens=0,
        finish=UNASKED,
        verdict=str(Verdict.FAILED),
        extracted="",
        why=why,
        level=level(prompt),
        subject=subject(prompt),
    )


def level(prompt: Prompt) -> str:
    """The question's level: `5`, `"5"` and `"Level 5"` are the same one."""
    found = prompt.record.get("level")
    return "" if found is None else str(found).removeprefix("Level ").strip()


def subject(prompt: Prompt) -> str:
    """The part of mathematics that the question belongs to; empty where its record does not say."""
    found = (prompt.record.get(key) for key in SUBJECTS)
    return next((text for text in found if isinstance(text, str)), "")


class File:
    """The records of one model and data set, in the order in which they were judged."""

    def __init__(self, path: Path) -> None:
        """Takes up what is there; half a line at the end, left by a kill, is cut off."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.records = read(path)
        """By their ids."""
        self._file = path.open("ab")
        self._file.truncate(len(_whole(path)))

    def close(self) -> None:
        self._file.close()

    def add(self, records: Sequence[Record]) -> None:
        """Writes records to the disk's cache: they outlive a kill of this process."""
        # ASCII: U+2028 and the like are ends of lines to some readers
        self._file.write(b"".join(json.dumps(asdict(r)).encode("ascii") + b"\n" for r in records))
        self._file.flush()
        self.records |= {r.id: r for r in records}


def read(path: Path) -> dict[int, Record]:
    """The records of a file by their ids; none where there is none.

    Raises TrainerFailure(INVALID_INPUT) naming a line that cannot be read.
    """
    found = {}
    for number, line in enumerate(_whole(path).split(b"\n")[:-1], start=1):
        try:
            record = _record(line)
        except (ValueError, TypeError, RecursionError) as e:
            raise TrainerFailure(
                FailureReason.INVALID_INPUT, f"{path} line {number} is no sample ({e}): remove the line or the file"
            ) from e
        found[record.id] = record
    return found


def _record(line: bytes) -> Record:
    record = Record(**json.loads(line))
    for field in fields(Record):
        value = getattr(record, field.name)
        if not isinstance(value, int if field.name in ("id", "tokens") else str):
            raise ValueError(f"its {field.name} is {json.dumps(value)[:40]}")
    return record


def _whole(path: Path) -> bytes:
    """The whole lines of a file."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1]
