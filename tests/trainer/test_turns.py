"""Who has the GPU when. Fault 22 (NeMo-RL#191): an engine that wakes whole beside the ranks runs out of memory."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from simplerl_trainer import launch
from simplerl_trainer.turns import Turns


def recorded(calls: list[str], *, sleeps: bool) -> Any:
    """A fleet whose ranks and engines only say what they are asked to do."""

    def call(name: str) -> Callable[..., Awaitable[None]]:
        async def said(*arguments: Any) -> None:
            calls.append(" ".join([name, *(",".join(a) if isinstance(a, list) else str(a) for a in arguments)]))

        return said

    return SimpleNamespace(
        ranks=SimpleNamespace(
            residence=SimpleNamespace(sleeps=sleeps), offload=call("ranks leave"), reload=call("ranks return")
        ),
        sync=call("sync"),
        pool=SimpleNamespace(sleep=call("engines sleep"), wake=call("engines wake"), engines={0: None}),
        engines=SimpleNamespace(desired=1),
        idle=lambda: [],
    )


def turns(calls: list[str], *, sleeps: bool, rolling_out: bool) -> Turns:
    reporter: Any = SimpleNamespace(engines=lambda living, desired, idle: None)
    made = Turns(recorded(calls, sleeps=sleeps), reporter, asyncio.Event())
    made.rolling_out = rolling_out
    return made


@pytest.mark.parametrize(
    ("sleeps", "rolling_out", "said"),
    [
        pytest.param(
            True,
            False,
            ["engines wake weights", "sync 7", "ranks leave", "engines wake kv_cache"],
            id="the cache comes back when the ranks have left",
        ),
        pytest.param(
            True,
            True,
            ["engines sleep", "ranks return", "engines wake weights", "sync 7", "ranks leave", "engines wake kv_cache"],
            id="from one rollout to the next",
        ),
        pytest.param(False, True, ["sync 7"], id="nobody sleeps where all fits"),
    ],
)
def test_turning_to_rollout(sleeps: bool, rolling_out: bool, said: list[str]) -> None:
    calls: list[str] = []
    made = turns(calls, sleeps=sleeps, rolling_out=rolling_out)
    asyncio.run(made.to_rollout(7))
    assert calls == said
    assert (made.version, made.rolling_out) == (7, True)


def test_turning_to_training_twice_asks_once() -> None:
    calls: list[str] = []
    made = turns(calls, sleeps=True, rolling_out=True)
    for _ in range(2):
        asyncio.run(made.to_training())
    assert calls == ["engines sleep", "ranks return"]


@pytest.mark.parametrize(
    ("share_gpus", "sleeps", "said"),
    [
        pytest.param(
            True,
            True,
            ["engines load", "engines sleep", "ranks load"],
            id="engines stay asleep where they take turns with the ranks",
        ),
        pytest.param(
            True,
            False,
            ["engines load", "engines sleep", "ranks load", "engines wake weights", "engines wake kv_cache"],
            id="they wake where all fits",
        ),
        pytest.param(False, False, ["ranks load", "engines load"], id="with GPUs of their own, at once"),
    ],
)
def test_loading_the_models(share_gpus: bool, sleeps: bool, said: list[str]) -> None:
    calls: list[str] = []
    fleet = recorded(calls, sleeps=sleeps)
    ranks = fleet.ranks

    async def load_ranks(setups: list[Any]) -> dict[str, str]:
        calls.append("ranks load")
        return {"deepspeed": "1"}

    async def load_engines() -> list[dict[str, str]]:
        calls.append("engines load")
        return [{"vllm": "2"}]

    ranks.start = load_ranks
    versions = asyncio.run(launch.load_models(ranks, [], fleet.pool, load_engines, share_gpus=share_gpus))
    assert versions == {"deepspeed": "1", "vllm": "2"}
    assert calls == said
