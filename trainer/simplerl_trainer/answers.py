"""Waiting for Ray actors: every wait is bounded, and its end names the peer and the reason."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, OutOfMemoryError, RayError, RayTaskError

from simplerl_api.failures import FailureReason, TrainerFailure


class NoAnswer(Exception):
    """A peer did not answer in time."""


Outcome = Any | BaseException
"""What a peer answered, or how its call ended: NoAnswer where it did not."""


async def within(
    seconds: float, doing: str, calls: Mapping[str, "ray.ObjectRef[Any]"], lost: FailureReason
) -> list[Any]:
    """The answers of all calls, in order; `calls` names each peer.

    The first call that fails ends the wait: its TrainerFailure is passed on, a peer that died becomes `lost`, and
    peers that have not answered after `seconds` become TimedOut, named.
    """
    found = await outcomes(seconds, calls, ends=lambda _, __: True)
    failed = {n: o for n, o in found.items() if isinstance(o, BaseException) and not isinstance(o, NoAnswer)}
    for name, error in failed.items():
        raise named(name, doing, error, lost)
    if silent := [n for n, o in found.items() if isinstance(o, NoAnswer)]:
        raise TrainerFailure(
            FailureReason.TIMED_OUT, f"{', '.join(silent)} did not finish {doing} within {seconds:.0f} s"
        )
    return list(found.values())


async def outcomes(
    seconds: float,
    calls: Mapping[str, "ray.ObjectRef[Any]"],
    ends: Callable[[str, BaseException], bool] = lambda _, __: False,
) -> dict[str, Outcome]:
    """How each call ended, by the name of its peer, in the order of the calls.

    A peer that has not answered after `seconds`, or when a failure came of which `ends(peer, failure)` says that it
    ends the wait, has NoAnswer.
    """
    tasks = {asyncio.ensure_future(_await(ref)): name for name, ref in calls.items()}
    bound = asyncio.get_running_loop().time() + seconds
    pending = set(tasks)
    try:
        while pending:
            left = bound - asyncio.get_running_loop().time()
            done, pending = await asyncio.wait(pending, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED)
            errors = ((tasks[t], t.exception()) for t in done)
            if not done or any(error is not None and ends(name, error) for name, error in errors):
                break
        return {name: _outcome(task, seconds) for task, name in tasks.items()}
    finally:
        for task in tasks:
            task.cancel()


def ended(error: object) -> bool:
    """Whether a call failed because its peer's process or node ended, not because of what it did there."""
    return isinstance(error, RayError) and not isinstance(error, RayTaskError)


def named(peer: str, doing: str, error: BaseException, lost: FailureReason) -> BaseException:
    """A call's failure as the driver should see it: `lost` where the peer died."""
    if isinstance(error, RayTaskError):
        cause = error.cause if isinstance(error.cause, BaseException) else error
        if isinstance(cause, TrainerFailure):
            return cause
        if isinstance(cause, MemoryError):
            return TrainerFailure(FailureReason.TRAINING_OUT_OF_MEMORY, f"{peer} ran out of memory while {doing}")
        return RuntimeError(f"{peer} failed while {doing}: {error}")
    if isinstance(error, OutOfMemoryError):  # Ray's monitor was quicker than the kernel
        reason = FailureReason.TRAINING_OUT_OF_MEMORY if lost is FailureReason.LOST_RANK else lost
        remedy = "give it more by cluster.workers.resources"
        return TrainerFailure(reason, f"{peer} was ended while {doing}, since its pod ran out of memory: {remedy}")
    if isinstance(error, ActorDiedError | ActorUnavailableError):
        return TrainerFailure(lost, f"{peer} ended while {doing}: {one_line(error)}")
    return error


_DEATHS = {
    "because its worker process has died": "was killed (for want of memory, perhaps) or crashed",
    "because its node has died": "is gone with its pod",
}
"""What Ray says of an actor's end in paragraphs, of which the first line tells nothing, and what it means."""


def one_line(error: BaseException) -> str:
    """The error in one line: Ray's details fill many."""
    text = str(error)
    end = next((meaning for words, meaning in _DEATHS.items() if words in text), None)
    if end is not None:
        address = re.search(r"^\s*ip: (\S+)$", text, re.MULTILINE)
        return f"its process {f'at {address[1]} ' if address else ''}{end}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


async def _await(ref: "ray.ObjectRef[Any]") -> Any:
    return await ref


def _outcome(task: "asyncio.Task[Any]", seconds: float) -> Outcome:
    if not task.done():
        return NoAnswer(f"no answer within {seconds:.0f} s")
    return task.exception() or task.result()
