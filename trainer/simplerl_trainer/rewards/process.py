"""A reward process: `python -m simplerl_trainer.rewards.process`, started and killed by the driver (see workers)."""

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from tokenizers import Tokenizer

from simplerl_api.spec.rewards import Reward
from simplerl_trainer.rewards.math import Judgement, judge, quick
from simplerl_trainer.rewards.messages import Case, Judged, Setup, encode, receive, unpack

FLUSH_SECONDS = 0.02
"""What is known is held back for at most so long while the next cases are plain."""
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Judges batches of cases until its input ends."""
    inward, outward = _streams()
    _die_with_parent()
    setup: Setup = receive(inward)
    resource.setrlimit(resource.RLIMIT_DATA, (setup.memory_limit, setup.memory_limit))
    tokenizer = Tokenizer.from_file(setup.tokenizer_file)
    _warm_up(setup.rewards)
    _send(outward, [])  # ready
    while (batch := receive(inward)) is not None:
        for part in judge_all(batch, setup.rewards, tokenizer):
            _send(outward, part)


def judge_all(cases: Sequence[Case], rewards: Sequence[Reward], tokenizer: Tokenizer) -> Iterator[list[Judged]]:
    """All cases judged, in their order and in parts: what is known is handed over before anything that may hang, so
    that the driver knows which case does."""
    known: list[Judged] = []
    since = time.monotonic()
    for case in cases:
        if known and time.monotonic() - since > FLUSH_SECONDS:
            yield known
            known, since = [], time.monotonic()
        response = tokenizer.decode(unpack(case.response_ids), skip_special_tokens=True)
        judgements: list[Judgement] = []
        for reward in rewards:
            assert reward.math is not None, "a reward has exactly one member, and math is the only one"
            found = quick(response, case.gold, reward.math)
            if found is None:
                if known:
                    yield known
                    known, since = [], time.monotonic()
                found = judge(response, case.gold, reward.math)
            judgements.append(found)
        known.append(Judged(tuple(judgements)))
    if known:
        yield known


def _streams() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for messages; what libraries print goes to standard error instead."""
    outward = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return sys.stdin.buffer, outward


def _send(outward: BinaryIO, part: Sequence[Judged]) -> None:
    outward.write(encode(part))
    outward.flush()


def _die_with_parent() -> None:
    # a process lost in sympy does not see its input end
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _warm_up(rewards: Sequence[Reward]) -> None:
    """The first answer of each kind takes up to half a second of imports and grammar tables."""
    for reward in rewards:
        if reward.math is not None:
            for response in ("\\boxed{\\frac{1}{2}+x}", "so it is 1/2", "the answer is $0.5$"):
                judge(response, "\\frac{1}{2}+x", reward.math.model_copy(update={"unboxed": None}))


if __name__ == "__main__":
    main()
