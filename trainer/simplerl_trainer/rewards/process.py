"""A reward process: `python -m simplerl_trainer.rewards.process`, started and killed by the driver (see workers)."""

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from tokenizers import Tokenizer

from simplerl_trainer.rewards import math, python, task
from simplerl_trainer.rewards.messages import Case, Ready, Setup, encode, receive, unpack
from simplerl_trainer.rewards.outcome import Outcome

FLUSH_SECONDS = 0.02
"""What is known is held back for at most so long while the next cases are plain."""
_PR_SET_PDEATHSIG = 1

Text = Callable[[bytes | str, bool], str]
"""The text of token ids, or a text itself; the flag says whether special tokens are left out."""


def main() -> None:
    """Scores batches of cases until its input ends."""
    inward, outward = _streams()
    _die_with_parent()
    setup: Setup = receive(inward)
    resource.setrlimit(resource.RLIMIT_DATA, (setup.memory_limit, setup.memory_limit))
    text = _decoder(setup.tokenizer_file)
    try:
        ready, judge_all = _judge(setup, text)
    except python.Unusable as e:
        _send(outward, Ready(fault=str(e)))
        return
    _send(outward, ready)
    while (batch := receive(inward)) is not None:
        for part in judge_all(batch):
            _send(outward, part)


def _judge(setup: Setup, text: Text) -> tuple[Ready, Callable[[Sequence[Case]], Iterator[list[Outcome]]]]:
    reward = setup.reward
    if (rules := reward.math) is not None:
        math.warm_up()
        return Ready(), lambda cases: one_by_one(
            cases,
            lambda case: math.quick_outcome(text(case.response, True), case.answer, rules, case.tolerance),
            lambda case: math.outcome(text(case.response, True), case.answer, rules, case.tolerance),
        )
    if reward.python is not None:
        function = python.load(setup.code, f"{setup.field}.python.{reward.python.tag}", reward.python)
        if function.concurrent:
            return Ready(concurrent=True), lambda cases: iter([function.call_all(cases, text)])
        return Ready(), lambda cases: one_by_one(cases, _never_quick, lambda case: function.call(case, text))
    scorers = task.Scorers()
    return Ready(), lambda cases: one_by_one(
        cases, _never_quick, lambda case: scorers.score(text(case.response, True), case)
    )


def one_by_one(
    cases: Sequence[Case], quick: Callable[[Case], Outcome | None], slow: Callable[[Case], Outcome]
) -> Iterator[list[Outcome]]:
    """All cases scored, in their order and in parts: what is known is handed over before anything that may hang, so
    that the driver knows which case does."""
    known: list[Outcome] = []
    since = time.monotonic()
    for case in cases:
        if known and time.monotonic() - since > FLUSH_SECONDS:
            yield known
            known, since = [], time.monotonic()
        found = quick(case)
        if found is None:
            if known:
                yield known
                known, since = [], time.monotonic()
            found = slow(case)
        known.append(found)
    if known:
        yield known


def _never_quick(case: Case) -> None:
    return None


def _decoder(tokenizer_file: str) -> Text:
    tokenizer = Tokenizer.from_file(tokenizer_file) if tokenizer_file else None

    def text(found: bytes | str, plain: bool) -> str:
        if isinstance(found, str):
            return found
        assert tokenizer is not None, "token ids came without a tokenizer"
        return tokenizer.decode(unpack(found), skip_special_tokens=plain)

    return text


def _streams() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for messages; what code prints goes to standard error instead, and what it reads from
    standard input is empty."""
    inward, outward = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return inward, outward


def _send(outward: BinaryIO, message: Any) -> None:
    outward.write(encode(message))
    outward.flush()


def _die_with_parent() -> None:
    # a process lost in sympy does not see its input end
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
