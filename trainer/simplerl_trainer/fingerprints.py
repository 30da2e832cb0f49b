"""What a run was started with: `inputs.json` in its folder. A later attempt goes on with other inputs, but says so."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.hub import HubModel, HubQuestions

FILE = "inputs.json"

Fingerprint = Mapping[str, str]
"""What is known of one input: its source, and a digest or a commit."""


def read(output: Path) -> dict[str, Fingerprint]:
    """The fingerprints of the first start by the spec's path of each input; empty before it.

    Raises TrainerFailure(INVALID_INPUT) where the file was damaged.
    """
    file = output / FILE
    if not file.exists():
        return {}
    try:
        document: dict[str, Fingerprint] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as e:
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"{file} is not JSON ({e}): remove it, and the inputs of now count as the first",
        ) from e
    return document


def write(output: Path, fingerprints: Mapping[str, Fingerprint]) -> None:
    """Leaves the fingerprints of the first start."""
    partial = output / f".{FILE}"
    partial.write_text(json.dumps(fingerprints, indent=1) + "\n", encoding="utf-8")
    partial.replace(output / FILE)


def changed(before: Mapping[str, Fingerprint], now: Mapping[str, Fingerprint]) -> list[str]:
    """The inputs that are not what they were."""
    return sorted(field for field in before.keys() | now.keys() if before.get(field) != now.get(field))


def source(hub: HubModel | HubQuestions) -> str:
    """A hub's repository and revision as the spec names them."""
    return f"hub {hub.name} {hub.revision or 'main'}"


def pinned(before: Mapping[str, Fingerprint], field: str, hub: HubModel | HubQuestions) -> str | None:
    """The commit that a repository had at the first start."""
    known = before.get(field, {})
    return known.get("commit") if known.get("source") == source(hub) else None


def of_folder(folder: Path) -> Fingerprint:
    """Of a model folder: its configuration, and the names and sizes of its files. Its weights are not read."""
    found = hashlib.sha256()
    for file in sorted(f for f in folder.iterdir() if f.is_file()):
        found.update(f"{file.name} {file.stat().st_size}\n".encode())
    found.update((folder / "config.json").read_bytes())
    return {"source": f"folder {folder}", "digest": f"sha256:{found.hexdigest()}"}


def of_file(file: Path) -> Fingerprint:
    """Of a small file, by its bytes."""
    return {"source": f"file {file}", "digest": f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"}
