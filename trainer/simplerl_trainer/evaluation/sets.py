"""The data sets of an evaluation, as they are named on the command line.

gsm8k                               its file is looked for in --data-folder
gsm8k=test.jsonl                    a file, or a folder of files
mine=hub:owner/name[@config][:split]  a data set of a hub; the split is test where none is named
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import Fields
from simplerl_api.spec.hub import HubQuestions
from simplerl_trainer import hub as hubs
from simplerl_trainer.data import files, hub, known, questions
from simplerl_trainer.data.files import Record
from simplerl_trainer.data.questions import Keys, Question

KEYS = Keys("--question-key", "--answer-key")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HUB = re.compile(r"hub:(?P<name>[^@:]+)(?:@(?P<config>[^@:]+))?(?::(?P<split>.+))?")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the questions of a data set are."""

    name: str
    file: Path | None
    hub: HubQuestions | None


@dataclass(frozen=True, slots=True)
class Set:
    """A data set, read."""

    name: str
    questions: Sequence[Question]

    @property
    def digest(self) -> str:
        return questions.digest(self.questions)


def sources(given: Sequence[str], folder: Path | None) -> list[Source]:
    """The sources that --data names; several bare names may stand in one, with commas between.

    Raises TrainerFailure(INVALID_INPUT) naming what cannot be used.
    """
    words = [w for g in given for w in ([g] if "=" in g else g.split(","))]
    found = [_source(word.strip(), folder) for word in words]
    names = [s.name for s in found]
    if doubled := next((n for n in names if names.count(n) > 1), None):
        raise _invalid(f"--data names {doubled} twice: give each data set a name of its own")
    return found


def read(
    source: Source, limit: int | None = None, question_key: str | None = None, answer_key: str | None = None
) -> Set:
    """The questions of a source, the first `limit` of them; the keys where the command line names them.

    Raises TrainerFailure(INVALID_INPUT) naming the file, its line and the key.
    """
    facts = known.SETS.get(source.name, known.Known(Fields()))
    fields = Fields(question=question_key or facts.fields.question, answer=answer_key or facts.fields.answer)
    found = list(questions.read(_records(source), fields, True, KEYS))[:limit]
    if not found:
        raise _invalid(f"--data {source.name} is {_place(source)}, which holds no question: give at least one")
    return Set(source.name, found)


def _source(word: str, folder: Path | None) -> Source:
    name, named, where = word.partition("=")
    if not _NAME.fullmatch(name):
        raise _invalid(
            f"--data has the name {name!r}: give NAME or NAME=FILE, the name of at most 63 letters, digits, dots, "
            "dashes and underscores"
        )
    if not named:
        return Source(name, _in_folder(name, folder), None)
    if not where.strip():
        raise _invalid(f"--data {word} names no file: write {name}=FILE")
    if where.startswith("hub:"):
        return Source(name, None, _hub(name, where))
    return Source(name, _file(name, Path(where)), None)


def _file(name: str, path: Path) -> Path:
    if not path.exists():
        raise _invalid(f"--data {name} is {path}, which does not exist: give the path of its file")
    if path.is_dir() and not any(f.suffix in files.KINDS for f in path.iterdir()):
        raise _invalid(f"--data {name} is {path}, a folder without a file of {', '.join(files.KINDS)}: name the file")
    return path


def _in_folder(name: str, folder: Path | None) -> Path:
    if folder is None:
        raise _invalid(
            f"--data {name} says nothing of where it is: write {name}=FILE, or give the folder of {name}.jsonl by "
            "--data-folder"
        )
    candidates = [folder / f"{name}{kind}" for kind in files.KINDS]
    candidates += [folder / name / f"test{kind}" for kind in files.KINDS]  # simpleRL-reason's eval/data
    if (path := next((c for c in candidates if c.is_file()), None)) is None:
        there = sorted({f.name for f in folder.iterdir()})[:20] if folder.is_dir() else []
        holds = f"which holds {', '.join(there)}" if there else "which is empty or no folder"
        raise _invalid(f"--data {name} is not in --data-folder {folder}, {holds}: write {name}=FILE")
    return path


def _hub(name: str, where: str) -> HubQuestions:
    parts = _HUB.fullmatch(where)
    try:
        if parts is None:
            raise ValueError(where)
        return HubQuestions(name=parts["name"], config=parts["config"], split=parts["split"] or "test")
    except (ValueError, ValidationError) as e:
        raise _invalid(f"--data {name} is {where}: write hub:OWNER/NAME, hub:OWNER/NAME@CONFIG or …:SPLIT") from e


def _records(source: Source) -> Iterator[Record]:
    field = f"--data {source.name}"
    if source.hub is not None:
        return hub.records(source.hub, hubs.resolve(source.hub, field), field)
    assert source.file is not None, "a source has a file or a hub"
    return files.read(source.file, field)


def _place(source: Source) -> str:
    return f"hub {source.hub.name}" if source.hub else str(source.file)


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
