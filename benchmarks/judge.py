"""How quick and how right the judge of mathematical answers is, beside math-verify.

    python benchmarks/judge.py DATA

DATA is a folder with eval/gsm8k.jsonl and eval/math500.jsonl. Prints one JSON document, which also lists the gold
answers of all sets in eval/ that cannot be judged.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.trainer.rewards.judge import pairs, test_round_trip

from simplerl_api.spec.rewards import MathReward, Reward
from simplerl_trainer.rewards.judge import judge
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.score import Scorer

Pair = tuple[str, str, bool]
"""A response, a gold answer, whether they are equal."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    worked, table = solutions(arguments.data), own()
    document: dict[str, Any] = {
        "versions": {name: metadata.version(name) for name in ("math-verify", "sympy", "mpmath")},
        "cpus": len(os.sched_getaffinity(0)),
        "processes": arguments.processes,
        "goldAnswers": golds(arguments.data),
    }
    for name, found in (("worked solutions", worked), ("own table", table)):
        document[name] = {"pairs": len(found), "equal": sum(equal for _, _, equal in found)}
        for peer, run in (("simplerl", ours), ("math-verify", theirs)):
            seconds, verdicts = run(found, arguments.processes)
            wrong = Counter((equal, said) for (_, _, equal), said in zip(found, verdicts, strict=True))
            document[name][peer] = {
                "seconds": round(seconds, 3),
                "pairsPerSecond": round(len(found) / seconds),
                "wrong": wrong[True, False] + wrong[False, True],
                "wronglyEqual": wrong[False, True],
                "wronglyDifferent": wrong[True, False],
            }
    print(json.dumps(document, indent=1))


def solutions(data: Path) -> list[Pair]:
    """Half of GSM8K's, half of MATH500's answers against worked solutions, half of those perturbed; no pair twice."""
    gsm8k = [json.loads(line) for line in (data / "eval/gsm8k.jsonl").read_text("utf-8").splitlines()]
    math500 = [json.loads(line) for line in (data / "eval/math500.jsonl").read_text("utf-8").splitlines()]
    found: list[Pair] = []
    for row, other in zip(gsm8k, math500, strict=False):
        solution, _, answer = row["answer"].partition("#### ")
        for said, equal in ((answer, True), (perturbed(answer), False)):
            found.append((f"{solution}So the answer is {said}.", answer, equal))
        for said, equal in ((other["answer"], True), (perturbed(other["answer"]), False)):
            before = other["solution"].rpartition("\\boxed")[0]
            found.append((f"{before}\\boxed{{{said}}}.", other["answer"], equal))
    return list(dict.fromkeys(found))


def golds(data: Path) -> dict[str, Any]:
    """For each evaluation set that is there: its gold texts, and those that cannot be judged."""
    found = {}
    for name, read in test_round_trip.GOLDS.items():
        file = data / f"eval/{name}.jsonl"
        if file.exists():
            texts = [gold for line in file.read_text("utf-8").splitlines() for gold in read(json.loads(line))]
            bad = [g for g in texts if judge("\\boxed{0}", g).verdict in ("bad_gold", "timeout")]
            found[name] = {"texts": len(texts), "notJudged": bad}
    return found


def perturbed(answer: str) -> str:
    """Another answer: its last number is one larger, or its words are others."""
    numbers = list(re.finditer(r"\d+", answer))
    if not numbers:
        return f"{answer} + 1" if "text" not in answer else "\\text{none of these}"
    last = numbers[-1]
    return f"{answer[: last.start()]}{int(last[0]) + 1}{answer[last.end() :]}"


def own() -> list[Pair]:
    """The table of tests/trainer/rewards/judge."""
    found = []
    for name, text in vars(pairs).items():
        for line in text.strip("\n").splitlines() if name.isupper() else ():
            answer, sign, gold = re.split(r"  (==|!=)  ", line)
            found.append((f"We get $\\boxed{{{answer}}}$.", gold, sign == "=="))
    return found


def ours(found: list[Pair], processes: int) -> tuple[float, list[bool]]:
    """Seconds and verdicts of the reward processes of a run."""

    async def run() -> tuple[float, list[bool]]:
        async with Scorer([Reward(name="math", math=MathReward())], None, processes=processes) as scorer:
            await scorer.score_cases([Case("\\boxed{1}", "1")] * 1000)  # both processes have started
            start = time.perf_counter()
            scores = await scorer.score_cases([Case(response, gold) for response, gold, _ in found])
            return time.perf_counter() - start, [s.verdict == "equal" for s in scores]

    return asyncio.run(run())


def theirs(found: list[Pair], processes: int) -> tuple[float, list[bool]]:
    """Seconds and verdicts of math-verify with its defaults, in as many processes."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(verified, [("\\boxed{\\frac{1}{2}}", "0.5", True), ("it is 1/2", "1", False)] * 8, chunksize=2)
        start = time.perf_counter()
        verdicts = pool.map(verified, found, chunksize=16)
        return time.perf_counter() - start, verdicts


def verified(pair: Pair) -> bool:
    import math_verify

    response, gold, _ = pair
    return bool(math_verify.verify(math_verify.parse(f"\\boxed{{{gold}}}"), math_verify.parse(response)))


if __name__ == "__main__":
    main()
