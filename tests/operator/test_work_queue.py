"""The work queue: coalescing, one worker a key, back-off, wake-up times."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from simplerl_operator.work_queue import WorkQueue

Handle = Callable[[str], Awaitable[float | None]]


async def settled(queue: "WorkQueue[str]", seconds: float = 0.3) -> None:
    await asyncio.sleep(seconds)
    await queue.stop()


async def test_a_key_that_is_added_many_times_is_handled_once() -> None:
    handled: list[str] = []

    async def handle(key: str) -> None:
        handled.append(key)

    queue = WorkQueue(handle, workers=2)
    for _ in range(100):
        queue.add("a")
    queue.add("b")
    assert queue.depth == 2
    queue.start()
    await settled(queue)
    assert sorted(handled) == ["a", "b"]


async def test_a_key_is_never_handled_by_two_workers_and_news_in_between_is_not_lost() -> None:
    running, most, turns = 0, 0, 0

    async def handle(key: str) -> None:
        nonlocal running, most, turns
        running, turns = running + 1, turns + 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1

    queue = WorkQueue(handle, workers=4)
    queue.start()
    queue.add("a")
    await asyncio.sleep(0.01)
    queue.add("a")
    queue.add("a")
    await settled(queue)
    assert (most, turns) == (1, 2)


async def test_as_many_keys_as_workers_are_handled_at_once() -> None:
    running, most = 0, 0

    async def handle(key: str) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1

    queue = WorkQueue(handle, workers=3)
    queue.start()
    for i in range(10):
        queue.add(str(i))
    await settled(queue)
    assert most == 3


async def test_a_key_that_fails_comes_back_after_a_back_off_that_doubles_and_ends_with_success() -> None:
    times: list[float] = []
    failures = 0

    async def handle(key: str) -> None:
        times.append(asyncio.get_running_loop().time())
        if len(times) <= 3:
            raise ValueError("not yet")

    def failed() -> None:
        nonlocal failures
        failures += 1

    queue = WorkQueue(handle, workers=1, first_backoff=0.05, failed=failed, expected=(ValueError,))
    queue.start()
    queue.add("a")
    await asyncio.sleep(0.6)
    times.append(asyncio.get_running_loop().time())
    queue.add("a")
    await settled(queue, 0.05)
    pauses = [b - a for a, b in itertools.pairwise(times)]
    assert failures == 3
    assert [round(p, 2) >= expected for p, expected in zip(pauses, (0.05, 0.1, 0.2), strict=False)] == [True] * 3


async def test_a_back_off_has_a_bound() -> None:
    turns = 0

    async def handle(key: str) -> None:
        nonlocal turns
        turns += 1
        raise ValueError("never")

    queue = WorkQueue(handle, workers=1, first_backoff=0.01, longest_backoff=0.02, expected=(ValueError,))
    queue.start()
    queue.add("a")
    await settled(queue, 0.5)
    assert turns >= 10
    assert queue.depth <= 1


async def test_a_key_comes_back_when_it_asked_for_it_or_sooner_for_another_reason() -> None:
    turns: list[float] = []

    async def handle(key: str) -> float | None:
        turns.append(asyncio.get_running_loop().time())
        return 0.2 if len(turns) < 3 else None

    queue = WorkQueue(handle, workers=1)
    queue.start()
    queue.add("a")
    await asyncio.sleep(0.05)
    queue.add("a")
    queue.add("a", 60)
    await settled(queue, 0.5)
    assert len(turns) == 3
    assert turns[1] - turns[0] < 0.15
    assert turns[2] - turns[1] >= 0.19


async def test_a_turn_that_takes_too_long_is_given_up() -> None:
    turns = 0

    async def handle(key: str) -> None:
        nonlocal turns
        turns += 1
        if turns == 1:
            await asyncio.sleep(60)

    queue = WorkQueue(handle, workers=1, limit_seconds=0.05, first_backoff=0.01)
    queue.start()
    queue.add("a")
    await settled(queue)
    assert turns == 2


async def test_an_error_that_asks_for_a_pause_gets_it() -> None:
    times: list[float] = []

    async def handle(key: str) -> None:
        times.append(asyncio.get_running_loop().time())
        raise ValueError("in a while")

    queue = WorkQueue(handle, workers=1, first_backoff=0.01, expected=(ValueError,), pause=lambda error: 0.3)
    queue.start()
    queue.add("a")
    await settled(queue, 0.7)
    assert len(times) == 3
    assert min(b - a for a, b in itertools.pairwise(times)) >= 0.29


async def test_the_age_of_the_oldest_is_known() -> None:
    async def handle(key: str) -> None:
        await asyncio.sleep(60)

    queue = WorkQueue(handle, workers=1)
    assert queue.oldest == 0
    queue.start()
    queue.add("busy")
    await asyncio.sleep(0.05)
    assert queue.oldest == 0, "what is being handled does not wait"
    queue.add("a")
    await asyncio.sleep(0.1)
    queue.add("b")
    assert 0.1 <= queue.oldest < 5
    await settled(queue, 0)


async def test_a_worker_outlives_the_faults_of_a_job() -> None:
    handled: list[str] = []

    async def handle(key: str) -> None:
        if key == "bad":
            raise KeyError("a fault of the program")
        handled.append(key)

    queue = WorkQueue(handle, workers=1, first_backoff=30)
    queue.start()
    queue.add("bad")
    queue.add("good")
    await asyncio.sleep(0.1)
    assert queue.alive
    await settled(queue, 0)
    assert handled == ["good"]
    assert not queue.alive


async def test_events_that_come_in_a_burst_are_one_turn() -> None:
    handled: list[str] = []

    async def handle(key: str) -> None:
        handled.append(key)

    queue = WorkQueue(handle, workers=2)
    queue.start()
    for _ in range(5):
        queue.add("a", 0.1)
        await asyncio.sleep(0.01)
    assert handled == []
    await settled(queue)
    assert handled == ["a"]


async def test_a_key_that_waits_already_is_not_added_once_more_by_a_later_event() -> None:
    handled: list[str] = []

    async def handle(key: str) -> None:
        handled.append(key)

    queue = WorkQueue(handle, workers=1)
    queue.add("a")
    queue.add("a", 0.05)
    queue.start()
    await settled(queue)
    assert handled == ["a"]
