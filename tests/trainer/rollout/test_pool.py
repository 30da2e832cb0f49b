"""The pool's own logic: each request answered exactly once, whichever engines end and when."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.exceptions import RayActorError

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rollout.ledger import shares
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.protocol import Finished, Request
from simplerl_trainer.samples import Finish


@dataclass
class FakeEngine:
    """The engine protocol in memory: a response is a function of its seed; it may end after some responses."""

    luck: random.Random
    lives_for: int | None = None
    error: BaseException | None = None
    silent: bool = False
    queue: list[Request] = field(default_factory=list)
    drawn: int = 0
    most_queued: int = 0

    def _alive(self) -> None:
        if self.error:
            raise self.error
        if self.lives_for is not None and self.drawn >= self.lives_for:
            raise RayActorError

    async def submit(self, requests: Sequence[Request]) -> None:
        await asyncio.sleep(0)
        self._alive()
        self.queue += requests
        self.most_queued = max(self.most_queued, len(self.queue))

    async def finished(self, wait: float) -> list[Finished]:
        for _ in range(self.luck.randrange(4)):
            await asyncio.sleep(0)
        self._alive()
        if self.silent:
            await asyncio.sleep(wait / 100)
            return []
        self.luck.shuffle(self.queue)
        count = self.luck.randint(0, len(self.queue))
        taken, self.queue = self.queue[:count], self.queue[count:]
        self.drawn += len(taken)
        self._alive()  # it may end with what it has drawn
        return [Finished(r.id, (r.seed,), Finish.STOP, None, 0) for r in taken]

    async def abort(self, ids: Sequence[int]) -> None:
        self.queue = [r for r in self.queue if r.id not in ids]

    async def version(self) -> int:
        await asyncio.sleep(60 if self.silent else 0)
        self._alive()
        return 3

    async def sleep(self) -> None:
        self._alive()

    async def wake(self, tags: Sequence[str]) -> None:
        self._alive()


@dataclass
class Method:
    """A method as Ray shows it."""

    call: Callable[..., Awaitable[object]]

    def remote(self, *args: object) -> Awaitable[object]:
        return self.call(*args)


class Actor:
    """An engine as Ray shows it."""

    def __init__(self, engine: FakeEngine) -> None:
        self.submit, self.finished, self.abort = Method(engine.submit), Method(engine.finished), Method(engine.abort)
        self.version, self.sleep, self.wake = Method(engine.version), Method(engine.sleep), Method(engine.wake)


def pool(engines: Sequence[FakeEngine], max_num_seqs: int = 4, stall_seconds: float = 5.0) -> Pool:
    return Pool({n: Actor(e) for n, e in enumerate(engines)}, max_num_seqs, stall_seconds)


def request(n: int) -> Request:
    return Request(n, (1, 2), seed=1000 + n, temperature=1.0, max_new_tokens=4, logprobs=False)


async def collect(of: Pool, count: int) -> list[Finished]:
    return [f async for f in of.generate([request(n) for n in range(count)])]


# Fault 23: TRL#3098, ms-swift#7219, vllm#11953: completions that belong to other prompts, or are alike on all engines.
@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    lives=st.lists(st.one_of(st.none(), st.integers(0, 12)), min_size=1, max_size=4),
    count=st.integers(0, 40),
    max_num_seqs=st.integers(1, 8),
)
def test_each_request_is_answered_exactly_once_or_no_engine_is_left(
    seed: int, lives: list[int | None], count: int, max_num_seqs: int
) -> None:
    engines = [FakeEngine(random.Random(seed + n), lives_for=life) for n, life in enumerate(lives)]
    the_pool = pool(engines, max_num_seqs)
    try:
        answers = asyncio.run(collect(the_pool, count))
    except TrainerFailure as failure:
        assert failure.reason is FailureReason.LOST_ENGINES
        assert None not in lives
        assert not the_pool.engines
    else:
        assert sorted(f.id for f in answers) == list(range(count))
        assert all(f.token_ids == (1000 + f.id,) for f in answers)
    assert all(e.most_queued <= max(1, round(max_num_seqs * 1.25)) for e in engines)


@given(st.dictionaries(st.integers(0, 9), st.integers(0, 20), max_size=6), st.integers(1, 20), st.integers(0, 99))
def test_shares_even_out_the_loads_and_respect_the_limit(loads: dict[int, int], limit: int, waiting: int) -> None:
    given_ = shares(loads, limit, waiting)
    after = {e: loads[e] + given_[e] for e in loads}
    room = sum(max(0, limit - load) for load in loads.values())
    assert sum(given_.values()) == min(waiting, room)
    assert all(after[e] <= max(limit, loads[e]) for e in loads)
    got = [after[e] for e in loads if given_[e]]
    assert not got or max(got) - min(after.values()) <= 1


@pytest.mark.parametrize(
    ("loads", "limit", "waiting", "expected"),
    [
        pytest.param({0: 0, 1: 0}, 300, 512, {0: 256, 1: 256}, id="idle engines share evenly"),
        pytest.param({0: 10, 1: 2}, 12, 6, {0: 0, 1: 6}, id="the least loaded takes it all"),
        pytest.param({0: 4, 1: 4}, 4, 9, {0: 0, 1: 0}, id="full engines take none"),
        pytest.param({}, 4, 9, {}, id="without engines all wait"),
    ],
)
def test_shares(loads: dict[int, int], limit: int, waiting: int, expected: dict[int, int]) -> None:
    assert shares(loads, limit, waiting) == expected


async def test_an_abandoned_rollout_leaves_nothing_behind_for_the_next_one() -> None:
    engines = [FakeEngine(random.Random(n)) for n in range(2)]
    the_pool = pool(engines)
    async with aclosing(the_pool.generate([request(n) for n in range(30)])) as answers:
        async for _ in answers:
            break
    assert not any(e.queue for e in engines)
    assert sorted(f.id for f in await collect(the_pool, 10)) == list(range(10))


async def test_an_engine_that_finishes_nothing_is_named() -> None:
    engines = [FakeEngine(random.Random(0)), FakeEngine(random.Random(1), silent=True)]
    with pytest.raises(TrainerFailure, match=r"engine 1 finished none of its \d+ requests within 0 s") as failure:
        await collect(pool(engines, stall_seconds=0.3), 8)
    assert failure.value.reason is FailureReason.TIMED_OUT


async def test_what_an_engine_raises_ends_the_rollout_under_its_reason() -> None:
    full = TrainerFailure(FailureReason.ROLLOUT_OUT_OF_MEMORY, "the engine ran out of memory")
    with pytest.raises(TrainerFailure) as failure:
        await collect(pool([FakeEngine(random.Random(0), error=full)]), 8)
    assert failure.value.reason is FailureReason.ROLLOUT_OUT_OF_MEMORY


async def test_two_rollouts_at_once_are_refused() -> None:
    the_pool = pool([FakeEngine(random.Random(0))])
    async with aclosing(the_pool.generate([request(n) for n in range(30)])) as answers:
        await anext(answers)
        with pytest.raises(RuntimeError, match="one rollout at a time"):
            await collect(the_pool, 1)


# Fault 37: SkyRL#1691, TRL#5766: an engine's death hangs the run.
ASKED = {
    "idle": lambda p: p.check(),
    "going to sleep": lambda p: p.sleep(),
    "waking": lambda p: p.wake(["weights"]),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
async def test_an_engine_that_ends_outside_of_a_rollout_is_taken_out_and_named(
    ask: Callable[[Pool], Awaitable[None]],
) -> None:
    engines = [FakeEngine(random.Random(n), lives_for=0 if n == 1 else None) for n in range(3)]
    actors = {n: Actor(e) for n, e in enumerate(engines)}
    lost: list[tuple[int, object, str]] = []
    the_pool = Pool(actors, 4, 5.0, lambda *of: lost.append(of))
    await ask(the_pool)
    assert set(the_pool.engines) == {0, 2}
    assert [(engine, actor) for engine, actor, _ in lost] == [(1, actors[1])]
    assert "\n" not in lost[0][2]
    assert (the_pool.lost, the_pool.changes) == (1, 1)
    assert len(await collect(the_pool, 10)) == 10, "the others go on"


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
async def test_the_last_engine_that_ends_outside_of_a_rollout_ends_the_run(
    ask: Callable[[Pool], Awaitable[None]],
) -> None:
    the_pool = pool([FakeEngine(random.Random(0), lives_for=0)])
    with pytest.raises(TrainerFailure, match=r"no rollout engine is left: engine 0 ended last \(") as failure:
        await ask(the_pool)
    assert failure.value.reason is FailureReason.LOST_ENGINES
    with pytest.raises(TrainerFailure, match="no rollout engine is left"):
        await collect(the_pool, 1)


async def test_an_engine_that_does_not_answer_in_time_is_taken_out() -> None:
    the_pool = pool([FakeEngine(random.Random(0)), FakeEngine(random.Random(1), silent=True)], stall_seconds=0.2)
    await the_pool.check()
    assert set(the_pool.engines) == {0}


async def test_engines_join_and_leave_between_rollouts() -> None:
    engines = [FakeEngine(random.Random(n)) for n in range(3)]
    the_pool = pool(engines[:2])
    the_pool.join(7, Actor(engines[2]))
    assert len(await collect(the_pool, 60)) == 60
    assert all(e.drawn for e in engines)
    the_pool.leave(0)
    before = engines[0].drawn
    assert len(await collect(the_pool, 20)) == 20
    assert engines[0].drawn == before
    assert (set(the_pool.engines), the_pool.changes, the_pool.lost) == ({1, 7}, 2, 0)
    async with aclosing(the_pool.generate([request(0)])) as answers:
        task = asyncio.ensure_future(anext(answers))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="engine 1 cannot leave during a rollout"):
            the_pool.leave(1)
        await task
