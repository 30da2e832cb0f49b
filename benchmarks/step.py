"""Samples a second of whole training steps on one GPU, through the real driver.

    python benchmarks/step.py QUESTIONS.jsonl OUTPUT [--algorithm ppo|grpo] [--steps N] [--set PATH=VALUE ...]

The task: the first 256 questions x 4 samples x 512 new tokens, temperature 1, optimizer batches of 128 samples, one
epoch, on a random model of Qwen2-0.5B's shape (random_model.py). The first step warms up; the table has the others.
`--set` changes a field of the job, for example rollout.enginesPerGpu=1.
"""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

QUESTIONS, SAMPLES, NEW_TOKENS = 256, 4, 512
WARM_UP = 1


def main() -> None:
    """Runs the job and prints its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--model", type=Path, help="A Hugging Face folder; absent: the random model, made on the spot.")
    parser.add_argument("--algorithm", choices=["ppo", "grpo"], default="ppo")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    model = given.model or given.output / "model"
    if not model.exists():
        maker = Path(__file__).with_name("random_model.py")
        subprocess.run([sys.executable, maker, model, given.questions], check=True)
    lines = [line for line in given.questions.read_text(encoding="utf-8").split("\n") if line]
    train = given.output / "questions.jsonl"
    train.write_text("".join(f"{line}\n" for line in lines[:QUESTIONS]), encoding="utf-8")
    file = given.output / f"{given.algorithm}.yaml"
    YAML(typ="safe").dump(job(given.algorithm, given.steps, model, train), file)
    folder = given.output / f"{given.algorithm}-run"
    start = time.monotonic()
    command = [sys.executable, "-m", "simplerl_trainer.cli", "train", file, "--output", folder]
    run = subprocess.Popen([*command, *(w for s in given.set for w in ("--set", s))])
    while run.poll() is None and len(rows(folder)) < given.steps:
        time.sleep(0.5)
    if run.poll() is None:
        run.send_signal(signal.SIGINT)  # the last checkpoint and the export are no part of a step
        run.wait(timeout=120)
    print(f"{given.algorithm}: {time.monotonic() - start:.0f} s in all")
    steps = rows(folder)
    print(table(steps))
    sys.exit(0 if len(steps) == given.steps else run.returncode or 1)


def job(algorithm: str, steps: int, model: Path, train: Path) -> dict[str, Any]:
    """The job's document."""
    kl = 0.01 if algorithm == "ppo" else 0.0  # a reference model for PPO alone, as in the peers' runs
    return {
        "apiVersion": "simplerl.io/v1alpha1",
        "kind": "SimpleRLJob",
        "metadata": {"name": f"step-{algorithm}"},
        "spec": {
            "model": {"path": str(model.resolve())},
            "data": {"train": {"file": str(train.resolve())}, "promptTemplate": "chat", "maxPromptTokens": 256},
            "rewards": [{"name": "parity", "python": {"file": str(Path(__file__).with_name("parity.py").resolve())}}],
            "algorithm": {algorithm: {}, "kl": {"coefficient": kl}},
            "rollout": {
                "enginesPerGpu": 4,
                "gpuMemoryUtilization": 0.4,
                "maxNumSeqs": QUESTIONS * SAMPLES // 4,
                "promptsPerStep": QUESTIONS,
                "samplesPerPrompt": SAMPLES,
                "sampling": {"temperature": 1.0, "maxNewTokens": NEW_TOKENS},
            },
            "training": {
                "steps": steps,
                "zeroStage": 1,
                "trainBatchSize": 128,
                "maxTokensPerMicroBatch": 32768,
                "actor": {"learningRate": 5e-7},
                "critic": {"learningRate": 9e-6},
            },
            "cluster": {"gpus": 1, "gpusPerNode": 1},
            "checkpoint": {"everySteps": 1000},
        },
    }


def rows(folder: Path) -> Sequence[dict[str, Any]]:
    """The lines of a run's metrics.jsonl."""
    file = folder / "metrics.jsonl"
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []  # the last may be half written
    return [json.loads(line) for line in lines]


def table(steps: Sequence[dict[str, Any]]) -> str:
    """Each step's seconds by part, and the mean of those after the warm-up."""
    if not steps:
        return "no step was done"
    parts = [*steps[0]["seconds"]]
    lines = ["| step | " + " | ".join(parts) + " | samples/s | tokens/s |", "|" + " --- |" * (len(parts) + 3)]
    for row in steps:
        lines.append(_line(str(row["step"]), row, parts))
    steady = steps[WARM_UP:]
    if steady:
        mean = {
            "seconds": {p: statistics.fmean(r["seconds"][p] for r in steady) for p in parts},
            **{n: statistics.fmean(r[n] for r in steady) for n in ("samples_per_second", "tokens_per_second")},
        }
        lines.append(_line(f"mean of {len(steady)}", mean, parts))
    return "\n".join(lines)


def _line(name: str, row: dict[str, Any], parts: Sequence[str]) -> str:
    seconds = " | ".join(f"{row['seconds'][p]:.2f}" for p in parts)
    return f"| {name} | {seconds} | {row['samples_per_second']:.1f} | {row['tokens_per_second']:.0f} |"


if __name__ == "__main__":
    main()
