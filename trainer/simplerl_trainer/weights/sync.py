"""One sync: all ranks send and all engines load, together and within a bounded time."""

from collections.abc import Mapping, Sequence
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import answers
from simplerl_trainer.weights.buckets import Bucket
from simplerl_trainer.weights.roads import Roads, for_version


async def sync(
    ranks: Sequence[Any],
    engines: Mapping[int, Any],
    roads: Roads,
    buckets: Sequence[Bucket],
    version: int,
    seconds: float,
) -> None:
    """Brings the ranks' weights into all engines as `version`.

    `ranks` are Ray actors in the order of their numbers, `engines` Ray actors by number: exactly those that `roads`
    serves. Raises TrainerFailure(WeightSyncFailed), which names the rank or engine, where one fails, ends, does not
    answer within `seconds` seconds or has not loaded every parameter.
    """
    if set(engines) != set(roads.receivers):
        raise ValueError(f"the roads serve the engines {sorted(roads.receivers)}, not {sorted(engines)}")
    own = for_version(roads, version)
    loads = {f"engine {e}": a.load.remote(own.receivers[e], buckets, version) for e, a in engines.items()}
    sends = {f"rank {r}": a.send.remote(own.senders[r], buckets) for r, a in enumerate(ranks)}
    lost = FailureReason.WEIGHT_SYNC_FAILED
    try:
        results = await answers.within(seconds, f"the sync of weights version {version}", loads | sends, lost)
    except TrainerFailure as failure:
        raise TrainerFailure(lost, failure.message) from failure
    except RuntimeError as failure:
        raise TrainerFailure(lost, str(failure)) from failure
    expected = sum(len(b.parameters) for b in buckets)
    for name, loaded in zip(loads, results, strict=False):
        if loaded != expected:
            raise TrainerFailure(lost, f"{name} loaded {loaded} of {expected} parameters of weights version {version}")
