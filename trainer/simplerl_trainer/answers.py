"""Waiting for Ray actors: every wait is bounded, and its end names the peer and the reason."""

import asyncio
from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayTaskError

from simplerl_api.failures import FailureReason, TrainerFailure


async def within(
    seconds: float, doing: str, calls: Mapping[str, "ray.ObjectRef[Any]"], lost: FailureReason
) -> list[Any]:
    """The answers of all calls, in order; `calls` names each peer.

    The first call that fails ends the wait: its TrainerFailure is passed on, a peer that died becomes `lost`, and
    peers that have not answered after `seconds` become TimedOut, named.
    """
    if not calls:
        return []
    tasks = {name: asyncio.ensure_future(_await(ref)) for name, ref in calls.items()}
    try:
        done, pending = await asyncio.wait(tasks.values(), timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        failed = [n for n, t in tasks.items() if t in done and t.exception() is not None]
        if failed:
            raise _named(failed[0], doing, tasks[failed[0]].exception(), lost)
        if pending:
            names = ", ".join(n for n, t in tasks.items() if t in pending)
            raise TrainerFailure(FailureReason.TIMED_OUT, f"{names} did not finish {doing} within {seconds:.0f} s")
        return [t.result() for t in tasks.values()]
    finally:
        for task in tasks.values():
            task.cancel()


async def _await(ref: "ray.ObjectRef[Any]") -> Any:
    return await ref


def _named(peer: str, doing: str, error: BaseException | None, lost: FailureReason) -> BaseException:
    if isinstance(error, RayTaskError):
        cause = error.cause if isinstance(error.cause, BaseException) else error
        if isinstance(cause, TrainerFailure):
            return cause
        if isinstance(cause, MemoryError):
            return TrainerFailure(FailureReason.TRAINING_OUT_OF_MEMORY, f"{peer} ran out of memory while {doing}")
        return RuntimeError(f"{peer} failed while {doing}: {error}")
    if isinstance(error, ActorDiedError | ActorUnavailableError):
        return TrainerFailure(lost, f"{peer} ended while {doing}: {_first_line(error)}")
    return error or RuntimeError(f"{peer} failed while {doing}")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
