"""Attempts: what is tried again, where, when, and what is charged, against a real API server."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.operator import documents
from tests.operator.control_plane import ControlPlane, eventually
from tests.operator.heads import Heads
from tests.operator.kuberay import Cluster
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess

from simplerl_api.run import ENTRYPOINT, Run

Parts = tuple[ControlPlane, Heads, str]
RETRIED = {"backoffLimit": 1, "drainSeconds": 5}
COLOCATED: dict[str, Any] = {"placement": {"colocated": {}}, "rollout": {"promptsPerStep": 64, "samplesPerPrompt": 8}}


@pytest.fixture
def parts(plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str) -> Parts:
    return plane, heads, namespace


def head_ends(cluster: Cluster) -> None:
    cluster.end(f"{cluster.name}-head", 137, "OOMKilled")


def worker_ends(cluster: Cluster) -> None:
    cluster.end(f"{cluster.name}-workers-worker-1", 137, "OOMKilled")


def cluster_goes(cluster: Cluster) -> None:
    cluster.plane.request("DELETE", cluster.path)


def head_preempted(cluster: Cluster) -> None:
    cluster.take(f"{cluster.name}-head", "PreemptionByScheduler", "preempting to accommodate another")


def worker_drained(cluster: Cluster) -> None:
    cluster.take(f"{cluster.name}-workers-worker-0", "EvictionByEvictionAPI", "Eviction API: evicting")


FAULTS: list[tuple[str, Callable[[Cluster], None], str, str, tuple[int, int]]] = [
    (
        "a head killed for memory (2, 4)",
        head_ends,
        "HeadLost",
        "head pod {c}-head ended: container ray-head OOMKilled (exit code 137)",
        (1, 0),
    ),
    (
        "a worker killed for memory",
        worker_ends,
        "WorkerLost",
        "worker pod {c}-workers-worker-1 ended: container ray-worker OOMKilled (exit code 137)",
        (1, 0),
    ),
    ("a RayCluster deleted by somebody", cluster_goes, "ClusterLost", "RayCluster {c} was deleted by somebody", (1, 0)),
    (
        "a head that is preempted (33)",
        head_preempted,
        "Interrupted",
        "the cluster took head pod {c}-head: PreemptionByScheduler: preempting to accommodate another",
        (0, 1),
    ),
    (
        "a worker whose node is drained (33)",
        worker_drained,
        "Interrupted",
        "the cluster took worker pod {c}-workers-worker-0: EvictionByEvictionAPI: Eviction API: evicting",
        (0, 1),
    ),
]


@pytest.mark.parametrize(
    ("fault", "reason", "message", "counts"),
    # all of them are in test_faults_by_phase.py too, as the rules see them
    [pytest.param(*f[1:], id=f[0], marks=[pytest.mark.long] if "worker" in f[0] else []) for f in FAULTS],
)
def test_lost_pods_lead_to_a_new_cluster_once_the_old_pods_are_gone(
    parts: Parts, fault: Callable[[Cluster], None], reason: str, message: str, counts: tuple[int, int]
) -> None:
    life = Life(*parts, recovery=RETRIED, **COLOCATED)
    cluster = life.training()
    life.head.say(step=4, log=["step 4"])
    eventually("step 4", lambda: life.status["training"]["step"] == 4)
    fault(cluster)
    status = life.reaches("Recovering", reason)
    assert (status["failures"], status["interruptions"]) == counts
    assert status["attempts"][-1]["message"].startswith(message.format(c=cluster.name))
    assert status["attempts"][-1]["lastStep"] == 4
    assert life.condition("Reconciling")["status"] == "True"
    assert "failure" not in status
    eventually("the old RayCluster to go", lambda: cluster.find() is None)
    # 18: the next attempt waits for the last old pod
    status = life.reaches("Recovering", "WaitingForOldPods", seconds=30)
    life.attempt = 2
    assert life.plane.find(cluster.path.removesuffix("1") + "2") is None
    cluster.delete_pods()
    second = life.training(attempt=2)
    status = life.status
    assert status["attempt"] == 2
    assert status["cluster"]["submissionId"] == second.name == cluster.name.removesuffix("1") + "2"
    assert "nextRetryTime" not in status
    run = life.plane.find(f"/api/v1/namespaces/{life.namespace}/configmaps/{second.name}")["data"]["run.json"]
    assert Run.model_validate_json(run).attempt == 2
    life.head.say(state="Succeeded", step=60)
    status = life.reaches("Succeeded", "Completed")
    assert [a["number"] for a in status["attempts"]] == [1, 2]


def test_a_driver_that_fails_alone_is_submitted_again_in_the_same_pods(parts: Parts) -> None:
    life = Life(*parts, recovery=RETRIED)
    cluster = life.training()
    life.head.say(state="Failed", step=7, failure={"reason": "LostRank", "message": "rank 1 ended"}, log=["why"])
    status = life.reaches("Recovering", "LostRank")
    assert status["failures"] == 1
    again = f"{cluster.name}-r2"
    eventually("the second submission", lambda: len(life.head.submissions) == 2, 30)
    assert life.head.submissions[1] == {
        "entrypoint": f"{ENTRYPOINT} --attempt 2 --submission {again}",
        "submission_id": again,
        "entrypoint_num_cpus": 0,
    }
    life.head.progress = documents.progress(again, state="Training", step=5, sequence=1)
    status = life.reaches("Training", "Training")
    assert status["attempt"] == 2
    assert status["cluster"]["name"] == cluster.name
    assert status["cluster"]["submissionId"] == again
    assert cluster.find()["metadata"]["uid"] == cluster.document["metadata"]["uid"]
    life.head.say(state="Failed", step=9, failure={"reason": "LostRank", "message": "rank 0 ended"}, log=["again"])
    status = life.reaches("Failed", "LostRank")
    assert status["failure"] == {
        "reason": "LostRank",
        "message": "rank 0 ended (failure 2; spec.recovery.backoffLimit is 1)",
        "log": "again",
    }
    assert (status["failures"], [a["lastStep"] for a in status["attempts"]]) == (2, [7, 9])
    eventually("the RayCluster to go", lambda: cluster.find() is None)


def test_after_running_out_of_memory_the_next_attempts_hold_less_at_once(parts: Parts) -> None:
    life = Life(*parts, recovery={"backoffLimit": 0})
    cluster = life.training()
    life.head.say(state="Failed", step=7, failure={"reason": "RolloutOutOfMemory", "message": "engine 0 is full"})
    status = life.reaches("Recovering", "RolloutOutOfMemory")
    first = {
        "attempt": 2, "reason": "RolloutOutOfMemory", "path": "rollout.maxNumBatchedTokens", "from": 8192, "to": 4096,
    }  # fmt: skip
    assert (status["failures"], status["interruptions"], status["adaptations"]) == (0, 0, [first])
    assert status["attempts"][-1]["message"] == (
        "engine 0 is full; the next attempt has rollout.maxNumBatchedTokens 4096 in place of 8192"
    )
    eventually("the second submission", lambda: len(life.head.submissions) == 2, 30)
    again = f"{cluster.name}-r2"
    adapts = "--adapt rollout.maxNumBatchedTokens=4096"
    assert life.head.submissions[1]["entrypoint"] == f"{ENTRYPOINT} --attempt 2 --submission {again} {adapts}"

    life.head.progress = documents.progress(again, state="Training", step=8, sequence=1)
    life.reaches("Training", "Training")
    life.head.say(state="Failed", failure={"reason": "TrainingOutOfMemory", "message": "rank 0 is full"})
    status = life.reaches("Recovering", "TrainingOutOfMemory")
    assert [a["path"] for a in status["adaptations"]] == [
        "rollout.maxNumBatchedTokens",
        status["adaptations"][1]["path"],
    ]
    tokens = status["adaptations"][1]
    assert (tokens["path"], tokens["to"] * 2) == ("training.maxTokensPerMicroBatch", tokens["from"])
    eventually("the third submission", lambda: len(life.head.submissions) == 3, 30)
    assert life.head.submissions[2]["entrypoint"] == (
        f"{ENTRYPOINT} --attempt 3 --submission {cluster.name}-r3 {adapts}"
        f" --adapt training.maxTokensPerMicroBatch={tokens['to']}"
    )

    # a new RayCluster's own run file has both
    life.head.progress = documents.progress(f"{cluster.name}-r3", state="Training", step=9, sequence=1)
    life.reaches("Training", "Training")
    assert life.status["plan"]["maxTokensPerMicroBatch"] == tokens["from"], "the plan of the RayCluster's start"
    head_preempted(cluster)
    life.reaches("Recovering", "Interrupted")
    cluster.delete_pods()
    life.attempt = 4
    life.training(attempt=4)
    assert life.head.submissions[-1]["entrypoint"] == ENTRYPOINT
    name = life.status["cluster"]["name"]
    run = life.plane.find(f"/api/v1/namespaces/{life.namespace}/configmaps/{name}")["data"]["run.json"]
    taken = Run.model_validate_json(run)
    assert taken.spec.rollout.max_num_batched_tokens == 4096
    assert taken.plan.max_tokens_per_micro_batch == taken.spec.training.max_tokens_per_micro_batch == tokens["to"]
    assert life.status["plan"]["maxTokensPerMicroBatch"] == tokens["to"]
    assert life.plane.find(life.path)["spec"]["rollout"].get("maxNumBatchedTokens", 8192) == 8192, (
        "the user's spec stays the user's"
    )


def test_a_run_that_gets_further_is_not_ended_by_the_sum_of_its_failures(parts: Parts) -> None:
    life = Life(*parts, recovery=RETRIED)
    cluster = life.training()
    ends = {"reason": "LostRank", "message": "rank 1 ended"}
    life.head.say(state="Failed", step=5, checkpoint={"step": 4, "path": "/c/4"}, failure=ends)
    status = life.reaches("Recovering", "LostRank")
    assert (status["failures"], status["failureStep"]) == (1, 4)

    eventually("the second submission", lambda: len(life.head.submissions) == 2, 30)
    saved = {"checkpoint": {"step": 8, "path": "/c/8"}}
    life.head.progress = documents.progress(f"{cluster.name}-r2", state="Training", step=9, sequence=1, **saved)
    life.reaches("Training")
    status = eventually("it to be forgiven", lambda: (s := life.status)["failures"] == 0 and s)
    assert "failureStep" not in status
    life.head.say(state="Failed", failure=ends)
    status = life.reaches("Recovering", "LostRank")
    assert (status["failures"], status["failureStep"], status["attempt"]) == (1, 8, 2)

    eventually("the third submission", lambda: len(life.head.submissions) == 3, 30)
    again = {"state": "Failed", "failure": ends, **saved}
    life.head.progress = documents.progress(f"{cluster.name}-r3", sequence=1, **again)
    status = life.reaches("Failed", "LostRank")
    assert status["failure"]["message"] == "rank 1 ended (failure 2; spec.recovery.backoffLimit is 1)"


def test_an_input_that_cannot_be_used_is_not_tried_again(parts: Parts) -> None:
    life = Life(*parts, recovery=RETRIED)
    life.training()
    life.head.say(state="Failed", failure={"reason": "InvalidInput", "message": "data.train.file is empty"})
    assert life.reaches("Failed", "InvalidInput")["attempt"] == 1


def test_a_pod_of_engines_alone_ends_nothing(parts: Parts) -> None:
    life = Life(*parts, recovery=RETRIED)
    cluster = life.training()
    pod = f"{cluster.name}-workers-worker-2"
    cluster.end(pod, 137, "OOMKilled")
    cluster.delete_pod(pod)
    life.head.say(step=3)
    eventually("step 3", lambda: life.status["training"]["step"] == 3)
    template = cluster.document["spec"]["workerGroupSpecs"][0]["template"]
    cluster.ready(cluster.make_pod("workers-worker-3", template))
    life.head.say(step=4)
    eventually("step 4", lambda: life.status["training"]["step"] == 4)
    status = life.status
    assert (status["phase"], status["attempt"], status["failures"]) == ("Training", 1, 0)


def test_a_pod_on_a_node_that_died_does_not_hold_the_next_attempt_up(parts: Parts) -> None:
    life = Life(*parts, recovery=RETRIED, **COLOCATED)
    cluster = life.loses_its_heads_node()
    life.reaches("Provisioning", seconds=40)
    assert life.status["attempt"] == 2
    assert life.plane.find(cluster.pod_path(f"{cluster.name}-head")) is not None
    cluster.delete_pod(f"{cluster.name}-head")


def test_a_suspended_job_is_drained_and_goes_on_as_another_attempt(parts: Parts) -> None:
    life = Life(*parts, recovery={"backoffLimit": 0, "drainSeconds": 60})
    cluster = life.training()
    life.head.say(step=11)
    eventually("step 11", lambda: life.status["training"]["step"] == 11)
    life.change(suspend=True)
    life.reaches("Suspending", "Draining")
    eventually("the request to drain", lambda: {"drain": True} in life.head.controls)
    assert cluster.find() is not None
    life.head.say(state="Drained", step=12, checkpoint={"step": 12, "path": "/checkpoints/x"})
    life.reaches("Suspending", "RemovingPods")
    eventually("the RayCluster to go", lambda: cluster.find() is None)
    assert life.status["phase"] == "Suspending"  # 16: its pods are still there
    cluster.delete_pods()
    status = life.reaches("Suspended", "Suspended")
    by_type = {c["type"]: c["status"] for c in status["conditions"]}
    assert (by_type["Suspended"], by_type["Ready"], by_type["Reconciling"]) == ("True", "True", "False")
    assert (status["failures"], status["interruptions"]) == (0, 0)
    assert status["checkpoint"]["step"] == 12
    assert "activeSince" not in status
    since = life.plane.audit_length()
    life.plane.merge(life.path, {"metadata": {"annotations": {"look": "again"}}})
    life.change(suspend=False)
    life.training(attempt=2)
    status = life.status
    assert (status["attempt"], status["attempts"][0]["reason"]) == (2, "Suspended")
    # 36: a resumed job says where it is
    assert life.condition("Suspended")["status"] == "False"
    assert since < life.plane.audit_length()


def test_a_driver_that_does_not_drain_is_ended_after_its_time(parts: Parts) -> None:
    life = Life(*parts, recovery={"drainSeconds": 3})
    cluster = life.training()
    life.change(suspend=True)
    eventually("the RayCluster to go", lambda: cluster.find() is None, 20)
    cluster.delete_pods()
    life.reaches("Suspended", "Suspended")


def test_a_job_suspended_before_its_start_makes_nothing(parts: Parts) -> None:
    plane, _, namespace = parts
    life = Life(*parts, suspend=True)
    status = life.reaches("Suspended", "Suspended")
    assert "startTime" not in status
    assert plane.find(f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters")["items"] == []
    life.change(suspend=False)
    life.training()
    assert life.status["attempt"] == 1


def test_a_job_over_goes_after_its_time(parts: Parts) -> None:
    life = Life(*parts, ttlSecondsAfterFinished=3)
    cluster = life.training()
    life.head.say(state="Succeeded", step=60)
    life.reaches("Succeeded")
    eventually("the RayCluster to go", lambda: cluster.find() is None)
    eventually("the job to go", lambda: life.plane.find(life.path) is None, 20)  # 19


def test_the_pods_of_a_failed_job_are_kept_to_look_into_them(parts: Parts) -> None:
    life = Life(*parts, cluster={**documents.TINY["cluster"], "keepAfterFailureSeconds": 6})
    cluster = life.training()
    life.head.say(state="Failed", failure={"reason": "NonFinite", "message": "NaN"})
    life.reaches("Failed", "NonFinite")
    assert cluster.find() is not None
    eventually("the RayCluster to go", lambda: cluster.find() is None, 20)


def test_the_number_of_engines_changes_while_the_job_trains(parts: Parts) -> None:
    rollout = {**documents.TINY["rollout"], "engines": 4}
    life = Life(*parts, rollout=rollout)
    life.training()
    life.head.say(engines={"current": 4, "desired": 4})
    assert life.condition("EnginesScaled") == {}
    life.change(rollout={"engines": 2})
    eventually("the wish", lambda: life.head.controls[-1:] == [{"engines": 2}])
    life.head.say(engines={"current": 4, "desired": 2})
    eventually("the condition", lambda: life.condition("EnginesScaled").get("status") == "True")
    asked = len(life.head.controls)
    with pytest.raises(Exception, match=r"spec\.rollout\.engines is fixed once the job has started, but from 1 to"):
        life.change(rollout={"engines": 5})
    with pytest.raises(Exception, match=r"spec\.rollout\.maxNumSeqs is fixed once the job has started"):
        life.change(rollout={"maxNumSeqs": 5})
    assert len(life.head.controls) == asked
    assert life.status["attempt"] == 1


def test_the_whole_jobs_deadline_ends_it(parts: Parts) -> None:
    life = Life(*parts, activeDeadlineSeconds=10)
    cluster = life.training()
    status = life.reaches("Failed", "DeadlineExceeded", seconds=30)
    assert status["failure"]["message"] == (
        "the job was active for 10 s (spec.activeDeadlineSeconds; queued and suspended time is not counted)"
    )
    eventually("the RayCluster to go", lambda: cluster.find() is None)  # 9
