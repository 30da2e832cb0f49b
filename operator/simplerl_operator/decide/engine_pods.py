"""Pods of engines that come and go with spec.rollout.elastic: how many the RayCluster should have, and which go.

The driver says how many engines it wants, and which nodes hold none any more. More pods are asked for at once; a pod
goes only once it is free. KubeRay deletes the pods that it is told by name, and any others where it still has more than
the number of replicas: that falls by exactly as many as are named, and those named stay so while they are there.
"""

from simplerl_operator.decide import trouble
from simplerl_operator.decide.decision import EnginePods, Told
from simplerl_operator.decide.reasons import Reason
from simplerl_operator.observe.observation import Observation
from simplerl_operator.observe.pods import Pod

STAY = (
    "the pods of engines stay as they are: the job is in a queue of Kueue, which would suspend a RayCluster whose "
    "replicas change"
)


def change(seen: Observation) -> EnginePods | None:
    """Another number of pods, where the driver wants one that can be had now."""
    group, wanted = seen.engine_group, seen.wanted_engine_pods
    if group is None or not seen.job.elastic or seen.queue_managed:
        return None
    if seen.progress is None or seen.progress.engines is None or seen.head is not None:
        return None  # nothing is done on what a silent driver said once
    leaving = tuple(pod.name for pod in seen.engine_pods if pod.name in group.leaving)
    if wanted > group.replicas:
        return EnginePods(group=group, replicas=wanted, leaving=leaving)
    waiting_first = sorted(seen.engine_pods, key=lambda pod: (pod.phase != "Pending", pod.name))
    free = [pod.name for pod in waiting_first if pod.name not in leaving and _free(seen, pod)]
    go = free[: group.replicas - wanted]
    return EnginePods(group=group, replicas=group.replicas - len(go), leaving=(*leaving, *go)) if go else None


def told(seen: Observation) -> Told | None:
    """What the condition EnginesScaled says while the job trains; None while the driver has said nothing yet."""
    said = seen.progress.engines if seen.progress is not None else None
    if said is None or not seen.job.elastic or seen.engine_group is None:
        return None
    if seen.queue_managed:
        return False, Reason.QUEUE_MANAGED, STAY
    wanted, replicas = seen.wanted_engine_pods, seen.engine_group.replicas
    run = sum(pod.phase == "Running" and not pod.deleting for pod in seen.engine_pods)
    draw = f"{said.current} of {said.desired} engines draw"
    if run > wanted or replicas > wanted:
        wants = f"{said.current} engines draw, {said.desired} are wanted"
        return False, Reason.ENGINES_LEAVING, f"{wants}: pods that hold none go"
    if run < wanted:
        found = trouble.of_engines(seen)
        missing = f"{run} of {_pods(wanted)} of engines run" + (f": {found[1]}" if found else "")
        return False, Reason.ENGINES_COMING, f"{draw}; {missing}"
    if said.current < said.desired:
        return False, Reason.ENGINES_COMING, f"{draw}; all of their pods run"
    return True, Reason.ENGINES_SCALED, f"{draw}, in {_pods(wanted)}"


def _free(seen: Observation, pod: Pod) -> bool:
    """Whether no engine can be in a pod. A probe that misses a beat says nothing of that. For a pod that ends anyway
    KubeRay makes another, maybe before it hears of fewer: that one goes."""
    if pod.deleting or pod.ended:
        return False
    assert seen.progress is not None
    assert seen.progress.engines is not None
    idle = pod.address is not None and pod.address in seen.progress.engines.idle
    return idle or pod.phase == "Pending"


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"
