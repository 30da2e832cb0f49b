"""`kubectl simplerl doctor`: each link that may break, and the advice."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.operator import documents

from kubectl_simplerl import advice, doctor, head_links, link, object_links
from kubectl_simplerl.advice import Case
from kubectl_simplerl.head_links import HeadSight
from kubectl_simplerl.link import Link, State
from kubectl_simplerl.object_links import Objects

NOW = 1_800_000_000.0
SINCE = "2027-01-15T07:50:00Z"
"""Ten minutes before."""


def condition(kind: str, status: str, reason: str, message: str = "a sentence") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


def job(*conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    document = documents.job("tiny", "team")
    document["metadata"] |= {"uid": "0a1b2c3d", "generation": 2, "creationTimestamp": SINCE, "resourceVersion": "7"}
    status = {"observedGeneration": 2, "phase": "Training", "attempt": 1, **status}
    return {**document, "status": {**status, "conditions": list(conditions)}}


def lease(renewed: str, holder: str = "a") -> dict[str, Any]:
    metadata = {"name": "simplerl-operator", "namespace": "simplerl-system"}
    return {"metadata": metadata, "spec": {"holderIdentity": holder, "renewTime": renewed}}


def objects(document: dict[str, Any], **fields: Any) -> Objects:
    return Objects(job=document, now=NOW, **{"leases": [lease("2027-01-15T07:59:58Z")], **fields})


def raycluster(created: str = SINCE, **status: Any) -> dict[str, Any]:
    metadata = {"name": "tiny-0a1b2-1", "namespace": "team", "uid": "c", "creationTimestamp": created}
    return {"metadata": metadata, "spec": {}, "status": status}


FAILURE = {"reason": "NonFinite", "message": "three steps in a row", "log": "1\n2\n3\n4"}


@pytest.mark.parametrize(
    ("rule", "seen", "state", "sentence"),
    [
        (
            object_links.accepted,
            objects(job(condition("Stalled", "True", "InvalidSpec", "training.steps is 0: use at least 1"))),
            "broken", "InvalidSpec: training.steps is 0: use at least 1",
        ),
        (object_links.accepted, objects(job(condition("Accepted", "True", "Valid"))), "ok", "it is there and accepted"),
        (object_links.operator, objects(job()), "ok", "it has looked at generation 2"),
        (
            object_links.operator, objects(job(), leases=[lease("2027-01-15T07:55:00Z")]), "broken",
            "no operator is at work: Lease simplerl-operator in namespace simplerl-system was renewed 5m ago; look at "
            "its pod and its log: kubectl -n simplerl-system logs deployment/simplerl-operator",
        ),
        (
            object_links.operator, objects(job(observedGeneration=None), leases=[]), "broken",
            "no operator is at work, since nobody holds its Lease: install the chart simplerl-operator, or scale its "
            "Deployment to 1",
        ),
        (
            object_links.operator, objects(job(observedGeneration=1)), "broken",
            "it has looked at generation 1, and the job is at generation 2: does the operator look after namespace "
            "team (the chart's value namespaces)? Its log says more: kubectl logs -A -l "
            "app.kubernetes.io/name=simplerl-operator",
        ),
        (
            object_links.operator, objects(job(), leases=None, refusals={"leases": "leases is forbidden"}), "not seen",
            "it has looked at generation 2; leases is forbidden",
        ),
        (
            object_links.standing, objects(job(phase="Failed", failure=FAILURE)), "broken",
            "attempt 1 failed for good, NonFinite: three steps in a row; its last lines: 2 | 3 | 4; docs/operator.md "
            "has a row for each reason",
        ),
        (
            object_links.standing, objects(job(condition("Ready", "False", "Queued", "no quota"), phase="Queued")),
            "broken", "its queue holds it back: Queued: no quota",
        ),
        (
            object_links.standing, objects(job(phase="Suspended")), "waits",
            "the job is Suspended: kubectl simplerl resume tiny lets it go on",
        ),
        (
            object_links.standing, objects(job(phase="Succeeded")), "waits",
            "the job has succeeded: nothing is left to look at",
        ),
        (
            object_links.cluster,
            objects(job(condition("Ready", "False", "x", "soon"), cluster={"name": "tiny-0a1b2-1"})), "broken",
            "there is no RayCluster tiny-0a1b2-1: the operator's Ready condition says 'soon'",
        ),
        (
            object_links.cluster, objects(job(), ray_cluster=raycluster()), "broken",
            "KubeRay has not looked at RayCluster tiny-0a1b2-1 for 10m: is it installed and at work (kubectl get pods "
            "-A -l app.kubernetes.io/name=kuberay-operator)?",
        ),
        (
            object_links.cluster,
            objects(job(), ray_cluster=raycluster(conditions=[condition("ReplicaFailure", "True", "x", "quota")])),
            "broken", "KubeRay cannot make pods of RayCluster tiny-0a1b2-1: quota",
        ),
    ],
)  # fmt: skip
def test_a_link_of_the_api_server(rule: Callable[[Objects], Link], seen: Objects, state: str, sentence: str) -> None:
    found = rule(seen)
    assert (found.state, found.sentence) == (state, sentence)


RUNNING = job(cluster={"submissionId": "s", "readyWorkers": 2}, plan={"gpusPerNode": 8})
NODES = [{"is_head_node": i == 0, "state": "ALIVE", "node_ip": f"10.0.0.{i}", "resources_total": {}} for i in range(3)]
WELL = HeadSight(
    without=401, given=200, nodes=NODES, ray_job={"status": "RUNNING"},
    progress={
        "step": 3, "totalSteps": 60, "activity": "rollout", "lastProgress": NOW - 5,
        "engines": {"current": 2, "desired": 2},
    },
)  # fmt: skip


def said(**changes: Any) -> HeadSight:
    return replace(WELL, progress={**(WELL.progress or {}), **changes})


@pytest.mark.parametrize(
    ("seen", "name", "sentence"),
    [
        (
            HeadSight(ports="no head pod of job tiny runs: it is Starting"), "ports",
            "no head pod of job tiny runs: it is Starting: does a NetworkPolicy, or the missing right to create "
            "pods/portforward, bar the way?",
        ),
        (
            replace(WELL, without=200), "lock",
            "the dashboard answers without a token, so that every pod that reaches it can run code there: install "
            "KubeRay 1.6 or newer, which knows authOptions",
        ),
        (
            replace(WELL, given=403), "lock",
            "the dashboard answers 403 to the job's token: its Secret was changed after the pods had started",
        ),
        (
            replace(WELL, given=500), "lock",
            "the dashboard answers 401 without a token and 500 with it: 401 and 200 are expected",
        ),
        (
            replace(WELL, nodes=[*NODES[:2], {**NODES[2], "state": "DEAD", "state_message": "gone"}]), "Ray nodes",
            "1 of 2 workers have joined Ray; node 10.0.0.2 is dead: gone; kubectl logs of the others' pods says why",
        ),
        (
            replace(WELL, nodes=[*NODES[:2], {**NODES[2], "resources_total": {"GPU": 7.0}}]), "Ray nodes",
            "node 10.0.0.2 has 7 GPUs, the plan 8: look at nvidia-smi there",
        ),
        (
            replace(WELL, ray_job={"status": "FAILED", "message": "exit code 1"}), "Ray job",
            "Ray job s is FAILED: exit code 1; kubectl simplerl logs shows its log",
        ),
        (
            replace(WELL, progress=None, progress_fault="u does not answer: timed out"), "driver",
            "u does not answer: timed out: the driver is silent; kubectl simplerl logs shows its log",
        ),
        (
            said(lastProgress=NOW - 301), "driver",
            "nothing has moved for 5m1s in step 4 (rollout); after recovery.stallTimeoutSeconds 600 the attempt is "
            "ended: kubectl simplerl logs --ranks shows where it stands",
        ),
        (
            said(engines={"current": 1, "desired": 2}), "engines",
            "1 of 2 engines live: kubectl simplerl logs has a line 'engine lost' for each",
        ),
        (
            said(nonFinite=["kl"]), "engines",
            "metrics of the newest step are not finite: kl; lower training.actor.learningRate, or look at the data",
        ),
    ],
)  # fmt: skip
def test_the_walk_ends_at_a_broken_link_of_the_head(seen: HeadSight, name: str, sentence: str) -> None:
    walked = doctor.of_head(seen, RUNNING, NOW)
    assert walked[-1] == Link(name, State.BROKEN, sentence)
    assert not any(one.ends for one in walked[:-1])


def test_all_links_of_the_head_hold_and_without_the_token_the_status_is_judged() -> None:
    assert {one.state for one in doctor.of_head(WELL, RUNNING, NOW)} == {"ok"}
    blind = HeadSight(without=401, token="secrets is forbidden")
    states = [str(one.state) for one in doctor.of_head(blind, RUNNING, NOW)]
    assert states == ["ok", "not seen", "not seen", "not seen", "not seen", "not seen"]
    assert head_links.engines(said(engines={"current": 1, "desired": 2}), {}, elastic=True).state == "ok"
    assert [one.state for one in link.filled([])] == [State.NOT_REACHED] * len(link.CHAIN)


DISAGGREGATED = {"placement": "Disaggregated", "gpus": 8, "ranks": 4, "engines": 4, "tensorParallelSize": 1}
COLOCATED = {**DISAGGREGATED, "placement": "Colocated", "ranks": 8, "engines": 8}
SLOW = {"rollout": 8.0, "update": 2.0, "total": 10.0}


@pytest.mark.parametrize(
    ("case", "sentences"),
    [
        (
            {"split": SLOW, "plan": DISAGGREGATED},
            ["rollout takes 80% of a step: set rollout.overlap to OneStep, which draws the next step's samples while "
             "this one trains"],
        ),
        (
            {"split": SLOW, "plan": DISAGGREGATED, "spec": {"rollout": {"overlap": "OneStep"}}},
            ["rollout takes 80% of a step: lower placement.disaggregated.trainingGpus, now 4, so that more GPUs "
             "roll out"],
        ),
        (
            {"split": SLOW, "plan": COLOCATED},
            ["rollout takes 80% of a step: one engine a GPU; where the model is small, set rollout.enginesPerGpu to 2"],
        ),
        ({"split": {"rollout": 4.0, "update": 6.0, "total": 10.0}, "plan": COLOCATED}, []),
        (
            {"split": {"update": 6.0, "total": 10.0}, "spec": {
                "training": {"gradientCheckpointing": True, "offload": {"optimizer": True}}}},
            ["update takes 60% of a step: set training.offload.optimizer and training.gradientCheckpointing to false, "
             "as far as memory allows"],
        ),
        (
            {"split": {"sync": 3.0, "evaluate": 3.0, "total": 10.0}},
            ["sync takes 30% of a step: raise rollout.promptsPerStep, so that one sync serves more samples",
             "evaluate takes 30% of a step: raise evaluation.everySteps"],
        ),
        (
            {"metrics": {"engines_lost": 2, "mismatch_mean": 0.2, "truncated": 0.9}},
            ["engines_lost is 2: the log's lines 'engine lost' say why; where it was memory, lower "
             "rollout.gpuMemoryUtilization",
             "mismatch_mean is 0.2, over 0.05 nats a token: engines and ranks do not compute one model; compare "
             "rollout's and training's precision"],
        ),
        (
            {"metrics": {"truncated": 0.25, "zero_variance_groups": 0.6}},
            ["truncated is 25%: raise rollout.sampling.maxNewTokens, or set algorithm.overlong",
             "zero_variance_groups is 60%: set algorithm.dynamicSampling, or take prompts that are neither too easy "
             "nor too hard"],
        ),
        ({"metrics": {"zero_variance_groups": 0.6}, "spec": {"algorithm": {"dynamicSampling": {}}}}, []),
    ],
)  # fmt: skip
def test_advice(case: dict[str, Any], sentences: list[str]) -> None:
    assert advice.sentences(Case(**{"split": {}, "metrics": {}, "spec": {}, "plan": {}, **case})) == sentences
