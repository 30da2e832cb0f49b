"""What steps and evaluations leave in the run's folder: lines in metrics.jsonl and evaluations.jsonl, and files of
samples. JSON Lines, UTF-8."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simplerl_trainer.rewards.stream import Scored

METRICS = "metrics.jsonl"
EVALUATIONS = "evaluations.jsonl"
SAMPLES = "samples"


def add_step(output: Path, step: int, metrics: Mapping[str, float], seconds: Mapping[str, float]) -> None:
    """Adds a step's line to metrics.jsonl; figures that are not finite are left out and named under `non_finite`."""
    row: dict[str, Any] = {"step": step, **{name: value for name, value in metrics.items() if math.isfinite(value)}}
    if not_finite := sorted(name for name, value in metrics.items() if not math.isfinite(value)):
        row["non_finite"] = not_finite
    row["seconds"] = dict(seconds)
    with (output / METRICS).open("a", encoding="utf-8", newline="\n") as f:
        f.write(_line(row))


def add_evaluation(output: Path, step: int, dataset: str, figures: Mapping[str, Any]) -> None:
    """Adds a line to evaluations.jsonl: all figures of a data set after a step."""
    with (output / EVALUATIONS).open("a", encoding="utf-8", newline="\n") as f:
        f.write(_line({"step": step, "dataset": dataset, **figures}))


def read_steps(output: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl."""
    file = output / METRICS
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line] if file.exists() else []


def forget_after(output: Path, step: int) -> None:
    """Removes the lines of metrics.jsonl and evaluations.jsonl after `step`: a resumed run writes those steps again,
    and one that begins anew the evaluation before the first step too."""
    for file, last in ((output / METRICS, step), (output / EVALUATIONS, step or -1)):
        if file.exists():
            kept = [line for line in file.read_text(encoding="utf-8").split("\n") if _is_until(line, last)]
            partial = file.with_suffix(".partial")
            partial.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
            partial.replace(file)


def _is_until(line: str, step: int) -> bool:
    try:
        return bool(json.loads(line)["step"] <= step)
    except ValueError:  # empty, or cut short by the end of an earlier attempt
        return False


def write_samples(
    output: Path,
    name: str,
    scored: Sequence[Scored],
    texts: Mapping[int, str],
    advantages: Mapping[int, float] | None = None,
) -> None:
    """Writes samples/NAME.jsonl, for example step-000012 or evaluation-held-out-000020: a line a sample.

    `texts`: each response's text by the sample's id. `advantages`: the mean advantage of each sample's tokens, null in
    the line of a sample that was not trained on; absent where nothing is trained.
    """
    folder = output / SAMPLES
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.jsonl").open("w", encoding="utf-8", newline="\n") as f:
        f.writelines(_rows(scored, texts, advantages))


def _rows(scored: Sequence[Scored], texts: Mapping[int, str], advantages: Mapping[int, float] | None) -> Iterable[str]:
    for s, score in ((pair.sample, pair.score) for pair in scored):
        trained = {} if advantages is None else {"advantage": _finite(advantages.get(s.id))}
        yield _line(
            {
                "id": s.id,
                "question": s.prompt.question,
                "answer": s.prompt.answer,
                "response": texts[s.id],
                "tokens": len(s.response_ids),
                "finish": s.finish.value,
                "score": score.value,
                "verdict": score.verdict,
                "extracted": score.extracted,
                "why": score.why,
                "rewards": score.parts,
                "failed": list(score.failed),
                "weights_version": s.weights_version,
                **trained,
            }
        )


def _finite(x: float | None) -> float | None:
    return x if x is not None and math.isfinite(x) else None


def _line(row: Mapping[str, Any]) -> str:
    # ASCII: U+2028 and the like are ends of lines to some readers
    return json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n"
