"""The folder of an evaluation, which holds one way of drawing samples, and the models and data sets drawn with it:

evaluation.json           how samples are drawn, and fingerprints of models and data sets
MODEL/DATASET.jsonl       a line for each sample, written as soon as it is judged
MODEL/DATASET.json        its figures
metrics.json              the figures of all, in the order of the table
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure

FILE, METRICS = "evaluation.json", "metrics.json"
_FORMAT = 1


def enter(output: Path, settings: Mapping[str, Any], models: Mapping[str, str], sets: Mapping[str, str]) -> None:
    """Makes the folder, or goes on in it: other models and data sets may join, what is there must be the same.

    `settings` are by the option that sets each; `models` and `sets` are fingerprints by name. Raises
    TrainerFailure(INVALID_INPUT) naming what differs.
    """
    document = {"format": _FORMAT, "settings": dict(settings), "models": dict(models), "sets": dict(sets)}
    file = output / FILE
    if file.exists():
        before = _read(file)
        for option in sorted(before["settings"].keys() | settings.keys()):
            old, new = before["settings"].get(option), settings.get(option)
            if old != new:
                raise _other(output, f"was drawn with {option} {_shown(old)}, not {_shown(new)}")
        for kind, option in (("models", "--model-path"), ("sets", "--data")):
            known, now = before[kind], document[kind]
            if changed := sorted(name for name in known.keys() & now.keys() if known[name] != now[name]):
                raise _other(output, f"holds samples of another {changed[0]} than {option} gives")
            document[kind] = known | now
    elif output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise _invalid(f"--output {output} holds something that is no evaluation: choose another folder")
    try:
        output.mkdir(parents=True, exist_ok=True)
        write(file, document)
    except OSError as e:
        raise _invalid(f"--output {output} cannot be written ({e.strerror}): choose another folder") from e


def samples(output: Path, model: str, dataset: str) -> Path:
    """The file of samples."""
    return output / model / f"{dataset}.jsonl"


def figures(output: Path, model: str, dataset: str) -> Path:
    """The file of figures."""
    return output / model / f"{dataset}.json"


def speed(output: Path, model: str, dataset: str) -> tuple[float, float]:
    """Seconds and tokens a second as the figures of an earlier sitting have them; zeros where they are not to be read,
    since they are written anew."""
    try:
        document = json.loads(figures(output, model, dataset).read_text(encoding="utf-8"))
        return float(document["seconds"]), float(document["tokensPerSecond"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return 0.0, 0.0


def write(file: Path, document: Any) -> None:
    """Writes JSON, whole or not at all."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(file)


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["format"] != _FORMAT:
            raise ValueError(f"format {document['format']}")
        found = {key: document[key] for key in ("settings", "models", "sets")}
        if odd := [key for key, value in found.items() if not isinstance(value, dict)]:
            raise ValueError(f"{odd[0]} is no object")
        return found
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise _invalid(f"{file} cannot be read by this version ({e!r}): choose another --output, or remove it") from e


def _shown(value: Any) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _other(output: Path, what: str) -> TrainerFailure:
    return _invalid(f"--output {output} {what}: choose another folder, or remove that one")


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
