"""Records of a data set from files: JSON Lines, JSON arrays and Parquet."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.data import json_text
from simplerl_trainer.data.json_text import KeyTwice, NumberText

KINDS = (".jsonl", ".json", ".parquet")


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a data set, and where it stands."""

    place: str
    """For messages: the file and its line, item or row."""
    values: Any
    """An object by the documentation, anything by its file."""


def read(path: Path, field: str) -> Iterator[Record]:
    """The records of a file, or of all files of a folder in the order of their names.

    `field` is the spec's path, for messages. Raises TrainerFailure(INVALID_INPUT) naming the file and its line.
    """
    if not path.is_dir():
        yield from _file(path, field)
        return
    # what begins with a dot is Kubernetes' own in mounted ConfigMaps
    files = sorted(f for f in path.iterdir() if f.suffix in KINDS and not f.name.startswith(".") and f.is_file())
    if not files:
        raise _invalid(f"{field} is {path}, a folder without any {_either()} file: check it (in pods, cluster.volumes)")
    for file in files:
        yield from _file(file, field)


def _file(path: Path, field: str) -> Iterator[Record]:
    if path.suffix not in KINDS:
        raise _invalid(
            f"{field} is {path}: give a .jsonl file with an object on each line, a .json file of one array, a .parquet "
            "file, or a folder of them"
        )
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise _invalid(f"{field} is {path}, which does not exist: check it (in pods, cluster.volumes)") from None
    except OSError as e:
        raise _invalid(f"{field} is {path}, which cannot be read ({e.strerror}): check its kind and permissions") from e
    match path.suffix:
        case ".jsonl":
            yield from _json_lines(path, data)
        case ".json":
            yield from _json_array(path, data)
        case _:
            yield from _parquet(path, data)


def _json_lines(path: Path, data: bytes) -> Iterator[Record]:
    # split at \n only: str.splitlines() would also cut at U+2028, which JSON texts may hold as they are
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        place = f"{path} line {number}"
        if text := _decode(line, place).strip(" \t\r"):
            yield Record(place, _parse(text, place))


def _json_array(path: Path, data: bytes) -> Iterator[Record]:
    records = _parse(_decode(data.removeprefix(b"\xef\xbb\xbf"), str(path)), str(path))
    if not isinstance(records, list):
        raise _invalid(f"{path} holds {kind(records)}: a .json file must hold one array of objects")
    for number, record in enumerate(records, start=1):
        yield Record(f"{path} item {number}", record)


def _parquet(path: Path, data: bytes) -> Iterator[Record]:
    import pyarrow  # a third of a second, only where it is used
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(pyarrow.BufferReader(data)).to_pylist()
    except pyarrow.ArrowException as e:
        raise _invalid(f"{path} is not Parquet ({_first_line(e)}): correct it") from e
    for number, row in enumerate(rows, start=1):
        yield Record(f"{path} row {number}", row)


def _decode(data: bytes, place: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise _invalid(f"{place} is not UTF-8 (byte {e.start + 1} is 0x{data[e.start]:02x}): convert the file") from e


def _parse(text: str, place: str) -> Any:
    try:
        return json_text.loads(text)
    except KeyTwice as e:
        raise _invalid(f"{place}{'' if e.item is None else f' item {e.item}'} {e}") from e
    except json.JSONDecodeError as e:
        where = f"character {e.colno}" if e.lineno == 1 else f"line {e.lineno}, character {e.colno}"
        raise _invalid(f"{place} is not JSON ({e.msg} at {where}): correct it") from e
    except RecursionError as e:
        raise _invalid(f"{place} is nested too deeply to be read: give plain objects") from e


def plain(value: Any) -> Any:
    """The value with numbers as numbers; one that Python has not, of thousands of digits or 1e999, stays a text."""
    match value:
        case NumberText():
            return _number(value)
        case dict():
            return {k: plain(v) for k, v in value.items()}
        case list():
            return [plain(v) for v in value]
        case _:
            return value


def _number(text: NumberText) -> int | float | str:
    try:
        number: int | float = json.loads(text)
    except ValueError:
        return str(text)
    return number if isinstance(number, int) or math.isfinite(number) else str(text)


def kind(value: Any) -> str:
    """What a value is, in a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case NumberText() | int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def _either() -> str:
    return f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
