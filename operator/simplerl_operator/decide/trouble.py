"""Why the pods of an attempt do not come up, in words that name the pod and the thing."""

from collections.abc import Sequence

from simplerl_operator.decide import image_pull
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.observation import Observation
from simplerl_operator.observe.pods import STARTING, Pod

_PULL = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"})


def of(seen: Observation) -> tuple[Reason, str] | None:
    """The first trouble of the pods that the start waits for, the head's before the workers'; None where they are just
    not ready yet."""
    if seen.cluster is not None and seen.cluster.replica_failure is not None:
        made = f"{len(seen.pods)} of {seen.wanted_pods} pods are made"
        return Reason.POD_CREATION_FAILED, f"{made}: {seen.cluster.replica_failure}"
    if found := _not_made(seen.awaited, seen):
        return found
    if seen.pending_claim:
        return Reason.VOLUME_PENDING, seen.pending_claim
    if found := _unscheduled(seen):
        return found
    if seen.warning:
        if not seen.pods:
            return Reason.CLUSTER_REJECTED, f"KubeRay says of RayCluster {seen.job.cluster_name}: {seen.warning}"
        return Reason.PODS_NOT_STARTING, seen.warning
    return None


def of_engines(seen: Observation) -> tuple[Reason, str] | None:
    """The first trouble of pods that come and go."""
    if seen.cluster is not None and seen.cluster.replica_failure is not None:
        return Reason.POD_CREATION_FAILED, seen.cluster.replica_failure
    if found := _not_made(seen.engine_pods, seen):
        return found
    left = next((pod for pod in seen.engine_pods if pod.unscheduled), None)
    return None if left is None else (Reason.UNSCHEDULABLE, f"pod {left.name}: {left.unscheduled}")


def too_few_engines(seen: Observation) -> str:
    """The sentence about pods that come and go where fewer are there than the attempt starts with."""
    ready, least = seen.ready_engine_pods, seen.least_engine_pods
    if ready >= least:
        return ""
    found = of_engines(seen)
    return f"{ready} of at least {least} pods of engines are ready" + (f": {found[1]}" if found else "")


def _not_made(pods: Sequence[Pod], seen: Observation) -> tuple[Reason, str] | None:
    """What keeps containers from being made."""
    return next((found for pod in pods if (found := _image(pod, seen) or _container(pod))), None)


def _image(pod: Pod, seen: Observation) -> tuple[Reason, str] | None:
    for waiting in pod.waiting:
        if waiting.reason in _PULL:
            why = image_pull.cause(waiting.message, waiting.image) or waiting.reason
            message = f"{pod.role} pod {pod.name}: image {waiting.image} cannot be pulled: {why}"
            before = seen.job.condition("ClusterReady")
            # kubelet alternates between the error and its back-off every few seconds: one of the two is told
            if before is not None and before.reason == Reason.IMAGE_PULL_FAILED and waiting.image in before.message:
                message = before.message
            return Reason.IMAGE_PULL_FAILED, message
    return None


def _container(pod: Pod) -> tuple[Reason, str] | None:
    for waiting in pod.waiting:
        if waiting.reason not in STARTING and waiting.reason not in _PULL:
            said = ": ".join(part for part in (waiting.reason, waiting.message) if part)
            return Reason.CONTAINER_CONFIG_ERROR, f"{pod.role} pod {pod.name}: container {waiting.container}: {said}"
    return None


def _unscheduled(seen: Observation) -> tuple[Reason, str] | None:
    left = [pod for pod in seen.awaited if pod.unscheduled]
    if not left:
        return None
    placed = sum(pod.scheduled for pod in seen.pods)
    return (
        Reason.UNSCHEDULABLE,
        f"{placed} of {seen.wanted_pods} pods are placed; {left[0].role} pod {left[0].name}: {left[0].unscheduled}",
    )
