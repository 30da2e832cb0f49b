"""One sync: all ranks send and all engines load, together and within a bounded time."""

from collections.abc import Mapping, Sequence
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer import answers
from simplerl_trainer.weights.buckets import Bucket
from simplerl_trainer.weights.roads import Roads, for_version

_ROAD = FailureReason.WEIGHT_SYNC_FAILED


async def sync(
    ranks: Sequence[Any],
    engines: Mapping[int, Any],
    roads: Roads,
    buckets: Sequence[Bucket],
    version: int,
    seconds: float,
) -> Mapping[int, str]:
    """Brings the ranks' weights into all engines as `version`.

    `ranks` are Ray actors in the order of their numbers, `engines` Ray actors by number: exactly those that `roads`
    serves. Returns the engines that ended meanwhile or did not answer within `seconds` seconds, each with the reason.
    Where there are any the others have no whole weights: the sync must be made again, on new roads without the lost.

    Raises TrainerFailure, which names the rank or engine: LostRank where a rank ends, RolloutOutOfMemory, or
    WeightSyncFailed where one fails though all engines live, does not answer, or has not loaded every parameter.
    """
    if set(engines) != set(roads.receivers):
        raise ValueError(f"the roads serve the engines {sorted(roads.receivers)}, not {sorted(engines)}")
    own, doing = for_version(roads, version), f"syncing weights version {version}"
    loads = {f"engine {e}": a.load.remote(own.receivers[e], buckets, version) for e, a in engines.items()}
    sends = {f"rank {r}": a.send.remote(own.senders[r], buckets) for r, a in enumerate(ranks)}

    def ends(peer: str, error: BaseException) -> bool:
        # the others wait for a rank that ended, up to their own time-outs; all other waits are short
        return peer in sends and not _of_road(answers.named(peer, doing, error, FailureReason.LOST_RANK))

    found = await answers.outcomes(seconds, loads | sends, ends)
    failed = {p: o for p, o in found.items() if isinstance(o, BaseException)}
    for rank in [p for p in failed if p in sends and not isinstance(failed[p], answers.NoAnswer)]:
        failure = answers.named(rank, doing, failed[rank], FailureReason.LOST_RANK)
        if not _of_road(failure):
            raise failure
    lost = {
        e: answers.one_line(failed[peer])
        for e, peer in zip(engines, loads, strict=True)
        if peer in failed and (answers.ended(failed[peer]) or isinstance(failed[peer], answers.NoAnswer))
    }
    if lost:
        return lost
    for peer, error in failed.items():
        if isinstance(error, answers.NoAnswer):
            raise TrainerFailure(_ROAD, f"{peer} did not finish {doing} within {seconds:.0f} s")
        failure = answers.named(peer, doing, error, _ROAD)
        raise failure if isinstance(failure, TrainerFailure) else TrainerFailure(_ROAD, str(failure))
    expected = sum(len(b.parameters) for b in buckets)
    for peer in loads:
        if found[peer] != expected:
            raise TrainerFailure(
                _ROAD, f"{peer} loaded {found[peer]} of {expected} parameters of weights version {version}"
            )
    return {}


def _of_road(failure: BaseException) -> bool:
    """Whether weights did not get through, for which the peer at the other end may be to blame."""
    return isinstance(failure, TrainerFailure) and failure.reason is _ROAD
