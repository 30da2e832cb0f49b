"""The links that the API server tells of: the job, the operator, where the job stands, its RayCluster and its pods."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kubectl_simplerl import report
from kubectl_simplerl.link import Link, broken, ok, unseen, waits
from simplerl_api.status import Phase
from simplerl_operator import clock
from simplerl_operator.decide import trouble
from simplerl_operator.kubernetes_api import Document
from simplerl_operator.observe import job as jobs
from simplerl_operator.observe import pods as of_pods
from simplerl_operator.observe import ray_cluster
from simplerl_operator.observe.observation import Observation

_LOOK_SECONDS = 30.0
"""An operator that lives has looked at a new job within a second or two; a new pod of it is at work within these."""
_LEASE_SECONDS = 60.0
"""The operator renews its Lease every four seconds; so much more also bears clocks that differ somewhat."""
_KUBERAY_SECONDS = 60.0
"""KubeRay writes a status within seconds; so much more bears one that restarts."""
_LOG_LINES = 3


@dataclass(frozen=True, kw_only=True)
class Objects:
    """What was read of the API server. None: it may not be read, and `refusals` has the API server's words by name."""

    job: Document
    now: float
    leases: Sequence[Document] | None = ()
    ray_cluster: Document | None = None
    pods: Sequence[Document] | None = ()
    refusals: dict[str, str] = field(default_factory=dict)


def accepted(seen: Objects) -> Link:
    job = seen.job
    condition = report.condition(job, "Accepted")
    if report.refused(job):
        stalled = report.condition(job, "Stalled")
        return broken("job", f"{stalled['reason']}: {stalled['message']}")
    if condition.get("status") == "False" and not report.over(job):
        return broken("job", f"{condition['reason']}: {condition['message']}")
    return ok("job", "it is there" + (" and accepted" if condition.get("status") == "True" else ", not judged yet"))


def operator(seen: Objects) -> Link:
    """Whether an operator has looked at the newest spec, and one is still at work."""
    metadata, status = seen.job["metadata"], seen.job.get("status", {})
    generation, observed = metadata.get("generation", 1), status.get("observedGeneration")
    current = observed == generation
    if current and report.over(seen.job):
        return ok("operator", f"it has looked at generation {generation}")
    held = [lease for lease in seen.leases or () if (lease.get("spec") or {}).get("holderIdentity")]
    ages = [seen.now - clock.seconds(lease["spec"]["renewTime"]) for lease in held]
    if ages and min(ages) > _LEASE_SECONDS:
        newest = held[ages.index(min(ages))]["metadata"]
        where = f"Lease {newest['name']} in namespace {newest['namespace']}"
        return broken(
            "operator",
            f"no operator is at work: {where} was renewed "
            f"{clock.duration(min(ages))} ago; look at its pod and its log: "
            f"kubectl -n {newest['namespace']} logs deployment/{newest['name']}",
        )
    if seen.leases is not None and not held:
        return broken(
            "operator",
            "no operator is at work, since nobody holds its Lease: install the chart simplerl-operator, or scale its "
            "Deployment to 1",
        )
    if current:
        if seen.leases is None:
            return unseen("operator", f"it has looked at generation {generation}; {seen.refusals['leases']}")
        return ok("operator", f"it has looked at generation {generation}")
    age = seen.now - clock.seconds(metadata["creationTimestamp"])
    if observed is None and age < _LOOK_SECONDS:
        return waits("operator", f"the job is {clock.duration(age)} old, and no operator has looked at it yet")
    known = "no generation" if observed is None else f"generation {observed}"
    return broken(
        "operator",
        f"it has looked at {known}, and the job is at generation {generation}: does the operator look after namespace "
        f"{metadata['namespace']} (the chart's value namespaces)? Its log says more: kubectl logs -A -l "
        "app.kubernetes.io/name=simplerl-operator",
    )


def standing(seen: Objects) -> Link:
    """Whether the job is under way."""
    job, status = seen.job, seen.job.get("status", {})
    phase, ready = report.phase(job), report.condition(job, "Ready")
    said = f"{ready.get('reason', '')}: {ready.get('message', '')}"
    if phase == Phase.FAILED:
        return broken("standing", _failed(status))
    if phase == Phase.SUCCEEDED:
        return waits("standing", "the job has succeeded: nothing is left to look at")
    if phase in (Phase.SUSPENDED, Phase.SUSPENDING):
        name = job["metadata"]["name"]
        return waits("standing", f"the job is {phase}: kubectl simplerl resume {name} lets it go on")
    if phase == Phase.QUEUED:
        return broken("standing", f"its queue holds it back: {said}")
    if phase == Phase.RECOVERING:
        retry = f"; the next attempt begins at {status['nextRetryTime']}" if "nextRetryTime" in status else ""
        return broken("standing", f"attempt {status.get('attempt', 1)} is over: {said}{retry}")
    if phase in ("", Phase.PENDING):
        return broken("standing", f"nothing has been made for it: {said}")
    return ok("standing", f"{phase}, attempt {status.get('attempt', 1)}")


def cluster(seen: Objects) -> Link:
    """Whether the RayCluster is there and KubeRay has looked at it."""
    if "RayCluster" in seen.refusals:
        return unseen("RayCluster", seen.refusals["RayCluster"])
    name = _cluster_name(seen.job)
    if seen.ray_cluster is None:
        return broken(
            "RayCluster",
            f"there is no RayCluster {name}: the operator's Ready condition says "
            f"{report.condition(seen.job, 'Ready').get('message', 'nothing')!r}",
        )
    found = ray_cluster.read(seen.ray_cluster)
    if found.replica_failure:
        return broken("RayCluster", f"KubeRay cannot make pods of RayCluster {found.name}: {found.replica_failure}")
    age = seen.now - clock.seconds(found.created)
    if not seen.ray_cluster.get("status") and not seen.pods:
        if age < _KUBERAY_SECONDS:
            return waits(
                "RayCluster", f"RayCluster {found.name} is {clock.duration(age)} old, and KubeRay starts on it"
            )
        return broken(
            "RayCluster",
            f"KubeRay has not looked at RayCluster {found.name} for {clock.duration(age)}: is it installed and at work "
            "(kubectl get pods -A -l app.kubernetes.io/name=kuberay-operator)?",
        )
    return ok("RayCluster", f"RayCluster {found.name} is there")


def pods(seen: Objects) -> Link:
    """Whether all pods are made, placed and ready."""
    if seen.pods is None:
        return unseen("pods", seen.refusals["pods"])
    job = jobs.read(seen.job, str((seen.job.get("status", {}).get("plan") or {}).get("image") or ""))
    there = [of_pods.read(pod) for pod in seen.pods]
    current = tuple(of_pods.ordered(pod for pod in there if pod.attempt == job.cluster_attempt))
    found = None if seen.ray_cluster is None else ray_cluster.read(seen.ray_cluster)
    look = Observation(job=job, cluster=found, pods=current)
    if ended := next((pod for pod in current if pod.ended and not pod.passing), None):
        return broken("pods", f"{ended.role} pod {ended.name} has ended: {ended.story}")
    told = report.condition(seen.job, "ClusterReady")
    if said := trouble.of(look):
        return broken("pods", f"{said[0]}: {said[1]}")
    ready = sum(pod.ready for pod in current)
    # of pods of engines that come and go as many as the attempt starts with are enough
    if look.assembled or ready >= look.wanted_pods:
        return ok("pods", f"{ready} of {look.wanted_pods} are ready")
    # claims and warnings of pods that stand still, which the operator has looked up
    if told.get("status") == "False" and told.get("reason") not in _RISING:
        return broken("pods", f"{told['reason']}: {told['message']}")
    late = next((pod.name for pod in current if not pod.ready), "one that is not made yet")
    return waits("pods", f"{ready} of {look.wanted_pods} are ready; awaited: {late}")


_RISING = ("WaitingForPods", "CreatingCluster", "NotStarted", "ProvingTokenAuth", "AllPodsReady")
"""Reasons of ClusterReady that are no trouble."""


def _cluster_name(job: Document) -> str:
    return str((job.get("status", {}).get("cluster") or {}).get("name") or "of this job")


def _failed(status: Document) -> str:
    failure = status.get("failure") or {}
    text = f"attempt {status.get('attempt', 1)} failed for good, {failure.get('reason', 'for no known reason')}: "
    text += str(failure.get("message", ""))
    if lines := str(failure.get("log", "")).splitlines()[-_LOG_LINES:]:
        text += f"; its last lines: {' | '.join(lines)}"
    return text + "; docs/operator.md has a row for each reason"
