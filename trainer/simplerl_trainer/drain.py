"""Draining: a run that is asked to end early abandons what it can draw again, and saves its last finished step."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class Drained(Exception):
    """The run ends before its last step, as it was asked to."""


async def unless(asked: asyncio.Event, work: Callable[[], Awaitable[T]]) -> T:
    """What `work` gives. Raises Drained where the drain is asked for first; the work is cancelled then."""
    if asked.is_set():
        raise Drained
    task, waiting = asyncio.ensure_future(work()), asyncio.ensure_future(asked.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Drained
    finally:
        waiting.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
