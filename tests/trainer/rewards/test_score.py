"""Scores from processes that may hang or end."""

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.rewards import MathReward, Reward
from simplerl_trainer.models.arithmetic_tokenizer import EOS, make_tokenizer, save_tokenizer
from simplerl_trainer.rewards.score import Scorer, verdicts
from simplerl_trainer.samples import Finish, Prompt, Sample

TOKENIZER = make_tokenizer()
ENDLESS = ("x^{60}+x^7-3x+1 > 0", "x > 1")
"""sympy takes minutes for the roots of such an inequality."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    save_tokenizer(path)
    return path


def rewards(timeout: float = 5.0, **rules: float) -> list[Reward]:
    return [Reward(name="sum", math=MathReward(timeout_seconds=timeout, **rules))]


def samples(*answers: tuple[str, str]) -> Sequence[Sample]:
    return [
        Sample(i, Prompt(i, "q", gold, (2,)), tuple(TOKENIZER.encode(response + EOS).ids), Finish.STOP, 0, None)
        for i, (response, gold) in enumerate(answers)
    ]


def children() -> set[int]:
    """Reward processes whose parent we are; other tests leave other children, such as Ray's."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                command = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(parent) == os.getpid() and b"simplerl_trainer.rewards.process" in command:
                found.add(int(entry.name))
    return found


async def test_every_sample_gets_its_score_and_special_tokens_are_left_out(folder: Path) -> None:
    async with Scorer(rewards(correct=1.0, wrong=-0.5), str(folder)) as scorer:
        scores = await scorer.score(samples(("57", "57"), ("5 7", "57"), (r"\boxed{\frac{1}{2}}", "0.5"), ("", "1")))
    assert [s.value for s in scores] == [1.0, -0.5, 1.0, -0.5]
    assert [s.verdict for s in scores] == ["equal", "different", "equal", "no_answer"]
    assert scores[0].extracted == "57"
    assert scores[1].why == "expected 57: the answer cannot be read: two numbers stand side by side"


async def test_rewards_add_up_by_their_weights(folder: Path) -> None:
    two = [
        Reward(name="right", weight=2.0, math=MathReward()),
        Reward(name="boxed", weight=0.5, math=MathReward(correct=0.0, wrong=0.0, unboxed=-1.0)),
    ]
    async with Scorer(two, str(folder)) as scorer:
        scores = await scorer.score(samples(("7", "7"), (r"\boxed{7}", "7")))
    assert [s.value for s in scores] == [1.5, 2.0]
    assert scores[0].parts == {"right": 1.0, "boxed": -1.0}


# faults 26 (verl#469, rllm#433, NeMo-Gym#1354, AReaL#1426) and 28 (simpleRL-reason#95): sympy hangs a pool for ever, a
# judge's time-out ends the run
async def test_a_judge_that_hangs_is_killed_and_only_its_sample_times_out(folder: Path) -> None:
    answers = [ENDLESS if i in (3, 40) else (str(i), str(i)) for i in range(60)]
    async with Scorer(rewards(timeout=1.0), str(folder), processes=2) as scorer:
        await scorer.score(samples(*[("1", "1")] * 20))  # both processes have started
        start = time.monotonic()
        scores = await scorer.score(samples(*answers))
        seconds = time.monotonic() - start
    assert [i for i, s in enumerate(scores) if s.verdict == "timeout"] == [3, 40]
    assert verdicts(scores) == {
        "equal": 58, "different": 0, "no_answer": 0, "bad_gold": 0, "scored": 0, "timeout": 2, "failed": 0,
    }  # fmt: skip
    assert (scores[3].value, scores[3].why) == (0.0, "scoring it took longer than 1 s")
    assert seconds < 30  # two time-outs and the start of two processes, on a busy machine


async def test_a_process_that_ends_fails_one_sample_and_is_replaced(folder: Path) -> None:
    async with Scorer(rewards(timeout=60.0), str(folder), processes=1) as scorer:
        await scorer.score(samples(("1", "1")))
        (process,) = children()
        scoring = asyncio.create_task(scorer.score(samples(ENDLESS, *[("1", "1")] * 30)))
        await asyncio.sleep(0.5)  # it is lost in the first sample by now
        os.kill(process, signal.SIGKILL)
        scores = await scoring
        assert children() != {process}
    assert [s.verdict for s in scores] == ["failed"] + ["equal"] * 30
    assert scores[0].why == "its reward process ended with exit code -9"


async def test_leaving_the_context_ends_even_processes_that_hang(folder: Path) -> None:
    async with Scorer(rewards(timeout=60.0), str(folder), processes=1) as scorer:
        await scorer.score(samples(("1", "1")))
        scoring = asyncio.create_task(scorer.score(samples(ENDLESS)))
        await asyncio.sleep(0.5)
        assert len(children()) == 1
        scoring.cancel()
    assert not children()


async def test_short_answers_are_scored_in_few_messages(folder: Path) -> None:
    async with Scorer(rewards(), str(folder)) as scorer:
        batch = samples(*[(str(i % 200), "57") for i in range(512)])
        await scorer.score(batch)
        seconds = []
        for _ in range(5):
            start = time.monotonic()
            await scorer.score(batch)
            seconds.append(time.monotonic() - start)
    assert min(seconds) < 0.2, seconds  # 0.02 s on a quiet machine


async def test_calls_at_once_do_not_mix(folder: Path) -> None:
    async with Scorer(rewards(), str(folder)) as scorer:
        calls = [scorer.score(samples(*[(str(i), str(n)) for i in range(20)])) for n in range(10)]
        results = await asyncio.gather(*calls)
    assert [[s.verdict for s in scores].index("equal") for scores in results] == list(range(10))


async def test_nothing_to_score_needs_no_process(folder: Path) -> None:
    async with Scorer(rewards(), str(folder)) as scorer:
        assert await scorer.score([]) == []
        assert not children()


async def test_processes_that_cannot_start_end_the_run_with_a_sentence(tmp_path: Path) -> None:
    async with Scorer(rewards(), str(tmp_path)) as scorer:
        with pytest.raises(TrainerFailure, match="a reward process ended with exit code 1 at its start") as caught:
            await scorer.score(samples(("1", "1")))
    assert caught.value.reason is FailureReason.INTERNAL
