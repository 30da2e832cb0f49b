"""Waiting for real actors: answers in order, failures with the reason and the name of the peer."""

import asyncio
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
import ray

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import answers


class Peer:
    """Answers, fails, dies or sleeps."""

    def echo(self, value: int, after: float = 0.0) -> int:
        time.sleep(after)
        return value

    def fail(self) -> None:
        raise TrainerFailure(FailureReason.NON_FINITE, "the loss of pack 3 is nan: lower the learning rate")

    def lack_memory(self) -> None:
        raise MemoryError

    def stumble(self) -> None:
        raise KeyError("layer.7")

    def die(self) -> None:
        os._exit(3)


@pytest.fixture(scope="module")
def peers() -> Iterator[Any]:
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
    ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
    peer = ray.remote(Peer).options(num_cpus=0, max_restarts=0)
    actors = [peer.remote() for _ in range(2)]
    ray.get([a.echo.remote(0) for a in actors], timeout=60)
    yield actors
    ray.shutdown()


def wait(calls: dict[str, Any], seconds: float = 60) -> list[Any]:
    return asyncio.run(answers.within(seconds, "loading the model", calls, FailureReason.LOST_RANK))


def failure_of(calls: dict[str, Any], seconds: float = 60) -> TrainerFailure:
    with pytest.raises(TrainerFailure) as failure:
        wait(calls, seconds)
    return failure.value


def test_answers_stand_in_the_order_of_the_calls(peers: Any) -> None:
    assert wait({"rank 0": peers[0].echo.remote(1, after=0.5), "rank 1": peers[1].echo.remote(2)}) == [1, 2]


def test_a_trainer_failure_passes_through_whole(peers: Any) -> None:
    failure = failure_of({"rank 0": peers[0].echo.remote(1), "rank 1": peers[1].fail.remote()})
    assert failure.reason is FailureReason.NON_FINITE
    assert failure.message == "the loss of pack 3 is nan: lower the learning rate"


def test_a_failure_ends_the_wait_for_the_others(peers: Any) -> None:
    start = time.monotonic()
    failure_of({"rank 0": peers[0].echo.remote(1, after=10), "rank 1": peers[1].fail.remote()})
    assert time.monotonic() - start < 8


def test_a_lack_of_memory_has_a_reason_of_its_own(peers: Any) -> None:
    failure = failure_of({"rank 1": peers[1].lack_memory.remote()})
    assert failure.reason is FailureReason.TRAINING_OUT_OF_MEMORY
    assert failure.message == "rank 1 ran out of memory while loading the model"


def test_another_error_names_the_peer_and_what_it_was_doing(peers: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^rank 1 failed while loading the model: (?s:.*)layer\.7"):
        wait({"rank 1": peers[1].stumble.remote()})


def test_a_peer_that_does_not_answer_is_named(peers: Any) -> None:
    slow = peers[0].echo.remote(1, after=3)
    failure = failure_of({"rank 0": slow, "rank 1": peers[1].echo.remote(2)}, seconds=1)
    assert failure.reason is FailureReason.TIMED_OUT
    assert failure.message == "rank 0 did not finish loading the model within 1 s"
    assert ray.get(slow, timeout=30) == 1, "the call itself goes on"


@pytest.mark.parametrize("lost", [FailureReason.LOST_RANK, FailureReason.LOST_ENGINES])
def test_a_peer_that_dies_ends_the_wait_with_the_reason_of_its_kind(peers: Any, lost: FailureReason) -> None:
    mortal = ray.remote(Peer).options(num_cpus=0, max_restarts=0).remote()
    calls = {"peer 0": peers[0].echo.remote(1), "peer 1": mortal.die.remote()}
    ended = r"ended while updating: its process at [0-9.]+ was killed \(for want of memory, perhaps\) or crashed$"
    with pytest.raises(TrainerFailure, match=rf"^peer 1 {ended}") as failure:
        asyncio.run(answers.within(60, "updating", calls, lost))
    assert failure.value.reason is lost
    with pytest.raises(TrainerFailure, match=r"^peer 1 ended while saving") as failure:
        asyncio.run(answers.within(60, "saving", {"peer 1": mortal.echo.remote(1)}, lost))
    assert failure.value.reason is lost


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        (FailureReason.LOST_RANK, FailureReason.TRAINING_OUT_OF_MEMORY),
        (FailureReason.LOST_ENGINES, FailureReason.LOST_ENGINES),
    ],
)
def test_a_peer_that_ray_ends_for_its_memory_is_said_so_in_one_line(lost: FailureReason, reason: FailureReason) -> None:
    error = ray.exceptions.OutOfMemoryError("1 worker(s) were killed due to the node running low on memory.\nPID 141")
    failure = answers.named("rank 1", "updating", error, lost)
    assert isinstance(failure, TrainerFailure)
    assert (failure.reason, failure.message) == (
        reason, "rank 1 was ended while updating, since its pod ran out of memory: give it more by "
        "cluster.workers.resources",
    )  # fmt: skip


def test_of_a_pod_that_is_gone_one_line_is_told() -> None:
    text = (
        "The actor died unexpectedly before finishing this task.\n\tclass_name: RankActor\n\tip: 10.244.0.7\n"
        "The actor died because its node has died. Node Id: 911a\n\tthe actor's node was terminated unexpectedly"
    )
    assert answers.one_line(ray.exceptions.RayError(text)) == "its process at 10.244.0.7 is gone with its pod"
    assert answers.one_line(ray.exceptions.RayError("first\nsecond")) == "first"
    assert answers.one_line(TimeoutError()) == "TimeoutError"


def test_nothing_asked_is_nothing_answered() -> None:
    assert asyncio.run(answers.within(0.0, "waiting", {}, FailureReason.LOST_RANK)) == []


async def later(value: int, after: float) -> int:
    await asyncio.sleep(after)
    return value


async def fail(after: float) -> int:
    await asyncio.sleep(after)
    raise KeyError("layer.7")


async def test_every_outcome_is_told_apart() -> None:
    found = await answers.outcomes(0.3, {"a": later(1, 0.0), "b": fail(0.1), "c": later(3, 60), "d": later(4, 0.2)})
    assert (found["a"], found["d"]) == (1, 4)
    assert isinstance(found["b"], KeyError)
    assert isinstance(found["c"], answers.NoAnswer)
    assert list(found) == ["a", "b", "c", "d"]


async def test_a_failure_may_end_the_wait_for_the_others() -> None:
    calls = {"rank 0": later(1, 60), "rank 1": fail(0.05), "engine 0": fail(0.0)}
    found = await asyncio.wait_for(answers.outcomes(50, calls, lambda peer, _: peer.startswith("rank")), 5)
    assert isinstance(found["rank 0"], answers.NoAnswer)
    assert {peer for peer, outcome in found.items() if isinstance(outcome, KeyError)} == {"rank 1", "engine 0"}
