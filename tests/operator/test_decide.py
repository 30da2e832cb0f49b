"""The rules as a table: what is seen, and what is done and said."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.operator.observations import (
    CLUSTER,
    NOW,
    OOM_POD,
    all_pods,
    cluster_status,
    job,
    locked,
    pod,
    progress,
    ray_cluster,
    seen,
    started,
    submitted,
)

from simplerl_api.status import Termination
from simplerl_operator.clock import rfc3339
from simplerl_operator.decide.conditions import conditions
from simplerl_operator.decide.decision import Action
from simplerl_operator.decide.rules import decide
from simplerl_operator.observe.observation import Head, Inputs, Lock, Observation
from simplerl_operator.observe.pods import Pod, Waiting
from simplerl_operator.observe.ray_cluster import RayCondition


@dataclass(frozen=True)
class Row:
    """One case of the table."""

    sentence: str
    seen: Observation
    action: str = "Nothing"
    phase: str | None = None
    reason: str = ""
    message: str = ""
    wake: float | None = None


OOM = (Termination(pod="p", container="ray-head", exit_code=137, reason="OOMKilled"),)
PENDING = all_pods(phase="Pending", ready=False)
ACCEPTED_FALSE = {
    "phase": "Pending",
    "conditions": [
        {"type": "Accepted", "status": "False", "reason": "ClaimNotFound", "lastTransitionTime": rfc3339(NOW - 20)}
    ],
}
UNLIMITED: dict[str, Any] = {"startupDeadlineSeconds": 600, "stallTimeoutSeconds": 600}


COLOCATED = job(
    {**submitted(), "plan": {**submitted()["plan"], "placement": "Colocated", "ranks": 3}}, placement={"colocated": {}}
)


TOO_SLOW = "Exception: The current node timed out during startup. This could happen because some of the raylet failed"


def slow(number: int) -> Pod:
    """A worker whose `ray start` gave up."""
    said = Termination(pod="p", container="ray-worker", exit_code=1, reason="Error", log=TOO_SLOW)
    return pod("worker", number, phase="Failed", ready=False, terminations=(said,))


def ready_because(reason: str, message: str) -> list[dict[str, Any]]:
    time = rfc3339(NOW - 5)
    return [{"type": "Ready", "status": "False", "reason": reason, "message": message, "lastTransitionTime": time}]


ROWS = [
    # over
    Row(
        "a job being deleted releases its cluster",
        seen(job=job(started(), deleting=True), cluster=ray_cluster()),
        "Release",
    ),
    Row("a job being deleted makes nothing", seen(job=job(deleting=True)), "Nothing"),
    Row(
        "a job that is over releases its cluster",
        seen(started(completionTime=rfc3339(NOW), phase="Failed"), cluster=ray_cluster()),
        "Release",
        wake=1.0,
    ),
    Row(
        "a job that is over and released rests",
        seen(started(completionTime=rfc3339(NOW), phase="Succeeded")),
        "Nothing",
    ),
    Row(
        "a RayCluster of somebody else is not released",
        seen(started(completionTime=rfc3339(NOW), phase="Failed"), cluster=ray_cluster(owner_uid="x")),
        "Nothing",
    ),
    # before the start
    Row(
        "an invalid spec is refused",
        seen(job=job(rewards=[{"name": "sum"}])),
        phase="Pending",
        reason="InvalidSpec",
        message="spec.rewards[0]: give exactly one of math, python, model, http, task, not none of them",
    ),
    Row(
        "an impossible plan is refused",
        seen(job=job(cluster={"gpus": 3, "gpusPerNode": 2, "cpuOnly": True})),
        phase="Pending",
        reason="InvalidSpec",
        message="spec.cluster.gpus is 3, which is not a multiple of cluster.gpusPerNode 2: "
        "use 2 or 4 GPUs, or 1 a node",
    ),
    Row(
        "a missing claim is refused, and looked for again",
        seen(inputs=Inputs(missing_claim="ckpt")),
        phase="Pending",
        reason="ClaimNotFound",
        message="there is no PersistentVolumeClaim ckpt in namespace team-a: create it",
        wake=2.0,
    ),
    Row(
        "a cache that one node can mount is refused for several",
        seen(inputs=Inputs(unshared_claim=("model.cacheClaimName", "cache", "ReadWriteOnce"))),
        phase="Pending",
        reason="CacheNotShared",
        message="model.cacheClaimName is cache, a claim of access mode ReadWriteOnce, but the job has 3 worker pods "
        "that must all write it: use a ReadWriteMany claim, or one worker pod",
        wake=2.0,
    ),
    Row(
        "reward code that cannot work is refused, and looked at again",
        seen(inputs=Inputs(bad_code="rewards[0].python.configMap: a of ConfigMap b is not Python")),
        phase="Pending",
        reason="InvalidRewardCode",
        message="rewards[0].python.configMap: a of ConfigMap b is not Python",
        wake=2.0,
    ),
    Row(
        "a claim that has been missing for 20 s is looked for again in 20 s",
        seen(ACCEPTED_FALSE, inputs=Inputs(missing_claim="ckpt")),
        phase="Pending",
        reason="ClaimNotFound",
        message="there is no PersistentVolumeClaim ckpt in namespace team-a: create it",
        wake=20.0,
    ),
    Row(
        "a rejected RayCluster is refused in the API server's words",
        seen(inputs=Inputs(rejection="exceeded quota: none")),
        phase="Pending",
        reason="ClusterRejected",
        message="exceeded quota: none",
        wake=2.0,
    ),
    Row(
        "a job that can run starts by a write, and its RayCluster is made in the same turn",
        seen(inputs=Inputs()),
        "CreateCluster",
        "Provisioning",
        "CreatingCluster",
        f"RayCluster {CLUSTER} is being made",
        5.0,
    ),
    # provisioning
    Row(
        "a started job without a cluster makes it",
        seen(started(), cluster=None, pods=()),
        "CreateCluster",
        "Provisioning",
        "CreatingCluster",
        f"RayCluster {CLUSTER} is being made",
        5.0,
    ),
    Row(
        "a refused creation is said and tried again",
        seen(started(), cluster=None, pods=(), refusal="exceeded quota: none"),
        phase="Provisioning",
        reason="ClusterRejected",
        message=f"RayCluster {CLUSTER} cannot be made: exceeded quota: none",
        wake=5.0,
    ),
    Row(
        "a refusal stays said while it is tried again",
        seen(started(conditions=ready_because("ClusterRejected", "no")), cluster=None, pods=()),
        "CreateCluster",
        "Provisioning",
        "ClusterRejected",
        "no",
        5.0,
    ),
    Row(
        "a RayCluster of somebody else ends the job",
        seen(started(), cluster=ray_cluster(owner_uid="x")),
        phase="Failed",
        reason="NameTaken",
        message=f"RayCluster {CLUSTER} is not this job's: delete or rename it, then the job anew",
    ),
    Row(
        "pods that do not exist yet are waited for",
        seen(started(), cluster=ray_cluster(conditions={}, created=rfc3339(NOW - 19)), pods=()),
        phase="Provisioning",
        reason="WaitingForPods",
        message="0 of 4 pods are ready",
        wake=10.0,
    ),
    Row(
        "a RayCluster whose turn at KubeRay has not come is looked at more and more seldom",
        seen(started(), cluster=ray_cluster(conditions={}, created=rfc3339(NOW - 50)), pods=()),
        phase="Provisioning",
        reason="WaitingForPods",
        message="0 of 4 pods are ready",
        wake=25.0,
    ),
    Row(
        "but once a minute",
        seen(started(), cluster=ray_cluster(conditions={}, created=rfc3339(NOW - 300)), pods=()),
        phase="Provisioning",
        reason="WaitingForPods",
        message="0 of 4 pods are ready",
        wake=60.0,
    ),
    Row(
        "pods that are not all ready are counted",
        seen(started(), pods=(*all_pods()[:3], pod("worker", 2, ready=False))),
        phase="Provisioning",
        reason="WaitingForPods",
        message="3 of 4 pods are ready",
        wake=10.0,
    ),
    Row(
        "KubeRay's HeadPodReady is not waited for: it comes of the head pod, and later",
        seen(
            started(), cluster=ray_cluster(conditions={"HeadPodReady": RayCondition("False", "ContainersNotReady", "")})
        ),
        phase="Provisioning",
        reason="ProvingTokenAuth",
        message="all pods are ready; the head's dashboard does not answer yet",
        wake=2.0,
    ),
    Row(
        "quota on pods comes first",
        seen(
            started(), cluster=ray_cluster(conditions={"ReplicaFailure": RayCondition("True", "F", "quota")}), pods=()
        ),
        phase="Provisioning",
        reason="PodCreationFailed",
        message="0 of 4 pods are made: quota",
        wake=10.0,
    ),
    Row(
        "a claim without a volume comes before the scheduler's words about it",
        seen(
            started(),
            pods=all_pods(phase="Pending", ready=False, scheduled=False, unscheduled="unbound PersistentVolumeClaims"),
            pending_claim="PersistentVolumeClaim ckpt has no volume yet",
        ),
        phase="Provisioning",
        reason="VolumePending",
        message="PersistentVolumeClaim ckpt has no volume yet",
        wake=10.0,
    ),
    Row(
        "a container killed for memory is told with its limit",
        seen(
            started(),
            pods=(pod("head", phase="Failed", terminations=OOM, memory={"ray-head": "4Gi"}), *all_pods()[1:]),
        ),
        phase="Failed",
        reason="HeadLost",
        message=(
            f"head pod {CLUSTER}-head ended: container ray-head OOMKilled (exit code 137) at its memory limit of 4Gi"
        ),
    ),
    Row(
        "the back-off of an image pull keeps the words of its error",
        seen(
            started(
                conditions=[
                    {
                        "type": "ClusterReady",
                        "status": "False",
                        "reason": "ImagePullFailed",
                        "message": "head pod h: image x:1 cannot be pulled: not found",
                        "lastTransitionTime": rfc3339(NOW - 5),
                    }
                ]
            ),
            pods=(
                replace(PENDING[0], waiting=(Waiting("ray-head", "ImagePullBackOff", "Back-off", "x:1"),)),
                *PENDING[1:],
            ),
        ),
        phase="Provisioning",
        reason="ImagePullFailed",
        message="head pod h: image x:1 cannot be pulled: not found",
        wake=10.0,
    ),
    Row(
        "a volume that cannot be mounted is told by its Event",
        seen(started(), pods=PENDING, warning=f"{CLUSTER}-head: MountVolume.SetUp failed"),
        phase="Provisioning",
        reason="PodsNotStarting",
        message=f"{CLUSTER}-head: MountVolume.SetUp failed",
        wake=10.0,
    ),
    Row(
        "a RayCluster that KubeRay rejects is told by its Event",
        seen(started(), pods=(), warning="bad"),
        phase="Provisioning",
        reason="ClusterRejected",
        message=f"KubeRay says of RayCluster {CLUSTER}: bad",
        wake=10.0,
    ),
    Row(
        "the startup deadline names what it waited for",
        seen(started(9000, scheduledTime=rfc3339(NOW - 601)), pods=PENDING, warning=f"{CLUSTER}-head: no such share"),
        phase="Failed",
        reason="StartupDeadlineExceeded",
        message="training did not begin within 600 s (spec.recovery.startupDeadlineSeconds): "
        f"{CLUSTER}-head: no such share",
    ),
    Row(
        "the startup deadline stands still while a pod has no node",
        seen(started(9000), pods=(replace(PENDING[0], scheduled=False, unscheduled="no room"), *PENDING[1:])),
        phase="Provisioning",
        reason="Unschedulable",
        message=f"3 of 4 pods are placed; head pod {CLUSTER}-head: no room",
        wake=10.0,
    ),
    Row(
        "the scheduling deadline names what it waited for",
        seen(
            job=job(started(61), recovery={"schedulingDeadlineSeconds": 60}),
            pods=(replace(PENDING[0], scheduled=False, unscheduled="no room"), *PENDING[1:]),
        ),
        phase="Failed",
        reason="SchedulingDeadlineExceeded",
        message="not all pods had a node within 60 s (spec.recovery.schedulingDeadlineSeconds): "
        f"3 of 4 pods are placed; head pod {CLUSTER}-head: no room",
    ),
    Row(
        "one second before the startup deadline it still waits",
        seen(started(9000, scheduledTime=rfc3339(NOW - 599)), pods=PENDING),
        phase="Provisioning",
        reason="WaitingForPods",
        message="0 of 4 pods are ready",
        wake=1.0,
    ),
    Row(
        "a worker whose Ray did not start in its 30 s is made anew, and no loss",
        seen(started(), pods=(*all_pods()[:3], slow(2))),
        phase="Provisioning",
        reason="WaitingForPods",
        message=f"3 of 4 pods are ready; worker pod {CLUSTER}-workers-worker-2 was too slow, and KubeRay makes another",
        wake=10.0,
    ),
    Row(
        "the fourth is one",
        seen(started(), pods=(*all_pods()[:3], slow(2)), lost=(slow(3), slow(4), slow(5))),
        phase="Failed",
        reason="WorkerLost",
        message=f"worker pod {CLUSTER}-workers-worker-2 ended: container ray-worker Error (exit code 1): {TOO_SLOW}",
    ),
    Row(
        "another that ended beside it is one",
        seen(started(), pods=(*all_pods()[:2], slow(1), pod("worker", 2, phase="Failed"))),
        phase="Failed",
        reason="WorkerLost",
        message=f"worker pod {CLUSTER}-workers-worker-1 ended: container ray-worker Error (exit code 1): {TOO_SLOW}",
    ),
    # the lock and the submission
    Row(
        "ready pods are asked for their lock",
        seen(started(), head=Head(silence="http://10.0.0.1:8265/api/version does not answer: refused")),
        phase="Provisioning",
        reason="ProvingTokenAuth",
        message="all pods are ready; the head's dashboard does not answer yet: "
        "http://10.0.0.1:8265/api/version does not answer: refused",
        wake=2.0,
    ),
    Row(
        "an open head gets no work",
        seen(started(), head=Head(lock=Lock.OPEN, silence="u answers without a token")),
        phase="Failed",
        reason="AuthNotEnforced",
        message="the head does not demand the job's token (u answers without a token): "
        "KubeRay 1.6 or newer and Ray 2.52 or newer are needed",
    ),
    Row(
        "a locked head gets the driver, and the status waits for what comes of it",
        seen(started(), head=locked()),
        "Submit",
        wake=0.0,
    ),
    Row(
        "a refused submission is said and tried again",
        seen(started(), head=locked(), refusal="no agent"),
        phase="Starting",
        reason="SubmissionRefused",
        message="the driver cannot be submitted: no agent",
        wake=5.0,
    ),
    Row(
        "a job that Ray knows already is not submitted twice",
        seen(started(scheduledTime=rfc3339(NOW - 30)), head=locked("PENDING")),
        phase="Starting",
        reason="DriverStarting",
        message="the driver prepares the run",
        wake=570.0,
    ),
    Row(
        "a job suspended in the moment of its submission has nothing to drain",
        seen(job=job(started(cluster=cluster_status()), suspend=True), head=locked("PENDING")),
        "Release",
        "Suspending",
        "RemovingPods",
        "the pods are being removed",
        10.0,
    ),
    # following
    Row(
        "a submitted driver that has not been heard yet is starting",
        seen(submitted()),
        phase="Starting",
        reason="DriverStarting",
        message="the driver prepares the run",
        wake=570.0,
    ),
    Row(
        "a driver that trains makes the job train",
        seen(submitted(), progress=progress(state="Training")),
        phase="Training",
        reason="Training",
        message="the trainer is at work",
        wake=599.0,
    ),
    Row(
        "after a restart of the operator a training job goes on training",
        seen(submitted(90000, "Training", lastProgressTime=rfc3339(NOW - 5000))),
        phase="Training",
        reason="Training",
        message="the trainer is at work",
        wake=600.0,
    ),
    Row(
        "figures that are not finite are named",
        seen(submitted(), progress=progress(state="Training", nonFinite=["kl", "entropy"])),
        phase="Training",
        reason="Training",
        message="the newest step has figures that are not finite: entropy, kl",
        wake=599.0,
    ),
    Row(
        "a driver that is silent for a minute is spoken of",
        seen(
            submitted(90000, "Training"),
            progress=progress(state="Training", lastProgress=NOW - 61),
            head=Head(silence="/progress does not answer"),
            silent_since=NOW - 61,
        ),
        phase="Training",
        reason="DriverSilent",
        message="/progress does not answer",
        wake=539.0,
    ),
    Row(
        "a driver that is silent for a moment is not",
        seen(
            submitted(90000, "Training"),
            progress=progress(state="Training", lastProgress=NOW - 5),
            head=Head(silence="/progress does not answer"),
        ),
        phase="Training",
        reason="Training",
        message="the trainer is at work",
        wake=595.0,
    ),
    Row(
        "a time in the status that is yet to come holds for now",
        seen(
            submitted(90000, "Training", lastProgressTime=rfc3339(NOW + 5000)),
            progress=progress(state="Training", lastProgress=NOW - 700),
        ),
        phase="Training",
        reason="Training",
        message="the trainer is at work",
        wake=600.0,
    ),
    Row(
        "a driver that stands still is ended",
        seen(
            submitted(90000, "Training"), progress=progress(state="Training", activity="sync", lastProgress=NOW - 601)
        ),
        phase="Failed",
        reason="Stalled",
        message="nothing moved in sync for 600 s (spec.recovery.stallTimeoutSeconds)",
    ),
    Row(
        "a driver that has been silent for the whole time is ended",
        seen(submitted(90000, "Training"), head=Head(silence="s"), silent_since=NOW - 601),
        phase="Failed",
        reason="Stalled",
        message="nothing moved for 600 s (spec.recovery.stallTimeoutSeconds)",
    ),
    Row(
        "a driver that does not begin to train is ended",
        seen(submitted(601), progress=progress()),
        phase="Failed",
        reason="StartupDeadlineExceeded",
        message="training did not begin within 600 s (spec.recovery.startupDeadlineSeconds): the pods are not ready",
    ),
    # endings
    Row(
        "a driver that succeeded ends the job well",
        seen(submitted(), progress=progress(state="Succeeded", step=60)),
        phase="Succeeded",
        reason="Completed",
        message="all 60 steps are done",
    ),
    Row(
        "a last word counts more than a head that died after it",
        seen(
            submitted(),
            progress=progress(state="Succeeded", step=60),
            pods=(pod("head", phase="Failed"), *all_pods()[1:]),
        ),
        phase="Succeeded",
        reason="Completed",
        message="all 60 steps are done",
    ),
    Row(
        "a driver that failed says why",
        seen(
            submitted(),
            progress=progress(state="Failed", failure={"reason": "LostRank", "message": "rank 1 is gone"}),
        ),
        phase="Failed",
        reason="LostRank",
        message="rank 1 is gone",
    ),
    Row(
        "a driver that lost a rank to the kernel says only that it is gone: why is added",
        seen(
            submitted(),
            progress=progress(state="Failed", failure={"reason": "LostRank", "message": "rank 1 is gone"}),
            pods=(*all_pods()[:3], replace(OOM_POD, memory={"ray-worker": "4Gi"})),
        ),
        phase="Failed",
        reason="LostRank",
        message=(
            f"rank 1 is gone; worker pod {OOM_POD.name} ended: container ray-worker OOMKilled (exit code 137) at its "
            "memory limit of 4Gi"
        ),
    ),
    Row(
        "a last word in the log counts as one",
        seen(submitted(), head=locked("SUCCEEDED", final=progress(state="Succeeded", step=60))),
        phase="Succeeded",
        reason="Completed",
        message="all 60 steps are done",
    ),
    Row(
        "a Ray job that failed without a last word",
        seen(submitted(), head=locked("FAILED", exit_code=1, message="m")),
        phase="Failed",
        reason="DriverFailed",
        message="the driver ended with exit code 1 without a last word",
    ),
    Row(
        "a driver that somebody killed",
        seen(submitted(), head=locked("FAILED", exit_code=-9)),
        phase="Failed",
        reason="DriverFailed",
        message=("the driver was killed (SIGKILL: for want of memory in the head pod, perhaps) without a last word"),
    ),
    Row(
        "a driver that crashed",
        seen(submitted(), head=locked("FAILED", exit_code=-11)),
        phase="Failed",
        reason="DriverFailed",
        message="the driver was killed (signal 11) without a last word",
    ),
    Row(
        "a Ray job that never ran",
        seen(submitted(), head=locked("FAILED", message="Job supervisor\nactor could not start")),
        phase="Failed",
        reason="DriverFailed",
        message="the driver ended without a last word: Job supervisor actor could not start",
    ),
    Row(
        "a Ray job that is unknown",
        seen(submitted(), head=replace(locked(), silence="s")),
        phase="Failed",
        reason="SubmissionLost",
        message=f"Ray no longer knows the job {CLUSTER} submitted to it",
    ),
    # losses
    Row(
        "a cluster that is gone",
        seen(submitted(), cluster=None, pods=()),
        phase="Failed",
        reason="ClusterLost",
        message=f"RayCluster {CLUSTER} was deleted by somebody",
    ),
    Row(
        "a cluster that is going",
        seen(submitted(), cluster=ray_cluster(deleting=True)),
        phase="Failed",
        reason="ClusterLost",
        message=f"RayCluster {CLUSTER} was deleted by somebody",
    ),
    Row(
        "a head that was killed for memory",
        seen(submitted(), pods=(pod("head", phase="Failed", terminations=OOM), *all_pods()[1:])),
        phase="Failed",
        reason="HeadLost",
        message=f"head pod {CLUSTER}-head ended: container ray-head OOMKilled (exit code 137)",
    ),
    Row(
        "a head that was evicted before it was ready",
        seen(started(), pods=(pod("head", phase="Failed", reason="Evicted", message="low on memory"),)),
        phase="Failed",
        reason="HeadLost",
        message=f"head pod {CLUSTER}-head ended: Evicted: low on memory",
    ),
    Row(
        "a head whose end nobody saw",
        seen(submitted(), pods=all_pods()[1:]),
        phase="Failed",
        reason="HeadLost",
        message="the head pod is gone; how it ended was not seen",
    ),
    Row(
        "a worker that is going",
        seen(job=COLOCATED, pods=(*all_pods()[:3], pod("worker", 2, deleting=True))),
        phase="Failed",
        reason="WorkerLost",
        message=f"worker pod {CLUSTER}-workers-worker-2 was deleted",
    ),
    Row(
        "a worker that was replaced while the operator was away",
        seen(job=COLOCATED, pods=(*all_pods()[:3], pod("worker", 2, uid="another"))),
        phase="Failed",
        reason="WorkerLost",
        message="a worker pod is gone; how it ended was not seen",
    ),
    Row(
        "a worker that KubeRay replaces before all were ready is no loss",
        seen(started(cluster=cluster_status()), pods=(*all_pods()[:3], pod("worker", 2, uid="another", ready=False))),
        phase="Provisioning",
        reason="WaitingForPods",
        message="3 of 4 pods are ready",
        wake=10.0,
    ),
    Row(
        "pods that miss a readiness probe while training are no loss",
        seen(submitted(60, "Training"), pods=all_pods(ready=False), progress=progress(state="Training")),
        phase="Training",
        reason="Training",
        message="the trainer is at work",
        wake=599.0,
    ),
]


def engines(spec: int | None, desired: int, phase: str = "Training") -> Observation:
    """A job planned with four engines, of which the spec wants another number."""
    status = submitted(phase=phase)
    rollout = {"promptsPerStep": 64, "samplesPerPrompt": 8, "sampling": {"maxNewTokens": 8}, "engines": spec}
    found = job(
        {**status, "plan": {**status["plan"], "engines": 4}},
        rollout={name: value for name, value in rollout.items() if value is not None},
    )
    return seen(job=found, progress=progress(state="Training", engines={"current": 4, "desired": desired}))


ENGINES = [
    ("fewer are asked for", engines(2, 4), "SetEngines", "False", "AskingDriver"),
    ("fewer are there", engines(2, 2), "Nothing", "True", "EnginesScaled"),
    ("all are wanted again", engines(4, 2), "SetEngines", None, None),
    ("nothing is said of them", engines(None, 4), "Nothing", None, None),
    ("more than there are GPUs for", engines(7, 4), "Nothing", None, None),
]


@pytest.mark.parametrize(
    ("observation", "action", "status", "reason"), [e[1:] for e in ENGINES], ids=[e[0] for e in ENGINES]
)
def test_engines(observation: Observation, action: str, status: str | None, reason: str | None) -> None:
    decision = decide(observation, NOW)
    assert decision.action == Action(action)
    found = {c.type: c for c in conditions(observation.job, decision, NOW)}.get("EnginesScaled")
    assert (found.status if found else None, found.reason if found else None) == (status, reason)


@pytest.mark.parametrize("row", ROWS, ids=[row.sentence for row in ROWS])
def test_the_rules_say(row: Row) -> None:
    decision = decide(row.seen, NOW)
    said = (decision.action, decision.phase, decision.reason, decision.message, decision.wake)
    assert said == (Action(row.action), row.phase, row.reason, row.message, row.wake)


def test_every_reason_of_a_failure_comes_with_the_drivers_last_lines() -> None:
    decision = decide(seen(submitted(), cluster=None, pods=(), progress=progress(log=["a", "b"])), NOW)
    assert decision.log == ("a", "b")
