"""What goes wrong in a job's life, and how it is said on the object."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.operator import documents
from tests.operator.control_plane import OPERATOR_USER, ControlPlane, eventually
from tests.operator.heads import Heads
from tests.operator.kuberay import Cluster, condition
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess

from simplerl_operator.clock import seconds

Parts = tuple[ControlPlane, Heads, str]


@pytest.fixture
def parts(plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str) -> Parts:
    return plane, heads, namespace


def claim(plane: ControlPlane, namespace: str, name: str, mode: str) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}},
    }
    plane.apply(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}", manifest)


def refused(life: Life, reason: str) -> str:
    """The message of a refusal, whose every condition is checked."""
    status = life.reaches("Pending", reason)
    for kind, expected in (("Accepted", "False"), ("Ready", "False"), ("Stalled", "True"), ("Reconciling", "False")):
        assert life.condition(kind)["status"] == expected
    assert "startTime" not in status
    return str(life.condition("Accepted")["message"])


def test_a_missing_claim_is_named_and_the_job_goes_on_when_it_appears(parts: Parts) -> None:
    life = Life(*parts, checkpoint={"claimName": "ckpt"})
    assert refused(life, "ClaimNotFound") == (
        f"there is no PersistentVolumeClaim ckpt in namespace {life.namespace}: create it"
    )
    claim(life.plane, life.namespace, "ckpt", "ReadWriteMany")
    status = life.reaches("Provisioning")
    assert status["plan"]["durable"] is True
    assert life.condition("Accepted")["status"] == "True"


def test_a_claim_that_one_node_can_mount_is_refused_for_several(parts: Parts) -> None:
    claim(parts[0], parts[2], "ckpt", "ReadWriteOnce")
    life = Life(*parts, checkpoint={"claimName": "ckpt"})
    assert refused(life, "CheckpointNotShared") == (
        "checkpoint.claimName is ckpt, a claim of access mode ReadWriteOnce, but the job has 3 worker pods that must "
        "all write it: use a ReadWriteMany claim, or one worker pod"
    )


def test_missing_volumes_are_named_and_secrets_are_not_read(parts: Parts) -> None:
    plane, _, namespace = parts
    core = f"/api/v1/namespaces/{namespace}"
    volumes = [{"mountPath": "/code", "configMapName": "code"}, {"mountPath": "/keys", "secretName": "keys"}]
    life = Life(*parts, cluster={**documents.TINY["cluster"], "volumes": volumes})
    assert refused(life, "ConfigMapNotFound") == f"there is no ConfigMap code in namespace {namespace}: create it"
    plane.apply(f"{core}/configmaps/code", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}})
    assert refused(life, "SecretNotFound") == f"there is no Secret keys in namespace {namespace}: create it"
    assert plane.find(f"{core}/secrets/keys") is None, "the question for it must not make it"
    plane.apply(f"{core}/secrets/keys", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}})
    life.reaches("Provisioning")


def test_reward_code_that_cannot_work_is_named_before_there_are_pods(parts: Parts) -> None:
    plane, _, namespace = parts
    path = f"/api/v1/namespaces/{namespace}/configmaps/rewards"

    def write(**data: str) -> None:
        plane.apply(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rewards"}, "data": data})

    code = {"configMap": {"name": "rewards", "key": "score.py"}}
    life = Life(*parts, rewards=[{"name": "own", "python": code}])
    assert refused(life, "ConfigMapNotFound") == f"there is no ConfigMap rewards in namespace {namespace}: create it"
    write(other="x")
    named = "rewards[0].python.configMap: score.py of ConfigMap rewards"
    assert refused(life, "InvalidRewardCode") == f"{named} is not among that ConfigMap's keys: add it"
    write(**{"score.py": "def grade(response): return 1.0"})
    sentence = f"{named} defines no function score (it defines grade): add it, or name another one"
    eventually("the code's fault", lambda: life.condition("Accepted")["message"] == sentence)
    write(**{"score.py": "def score(response): return 1.0"})
    life.reaches("Provisioning")


def test_missing_tokens_are_named(parts: Parts) -> None:
    hub = {"name": "org/m", "tokenSecretRef": {"name": "hub", "key": "token"}}
    life = Life(*parts, model={"hub": hub, "cacheClaimName": "cache"})
    assert refused(life, "ClaimNotFound") == (
        f"there is no PersistentVolumeClaim cache in namespace {life.namespace}: create it"
    )
    claim(life.plane, life.namespace, "cache", "ReadWriteMany")
    assert refused(life, "SecretNotFound") == f"there is no Secret hub in namespace {life.namespace}: create it"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hub"}, "stringData": {"token": "hf_secret"}}
    life.plane.apply(f"/api/v1/namespaces/{life.namespace}/secrets/hub", secret)
    life.reaches("Provisioning")
    job = json.dumps(life.plane.find(life.path))
    assert "hf_secret" not in job


def test_an_impossible_plan_is_refused_with_what_would_fit_and_stays_editable(parts: Parts) -> None:
    life = Life(*parts, training={"steps": 3, "trainBatchSize": 128, "maxTokensPerMicroBatch": 100})
    assert refused(life, "InvalidSpec") == (
        "spec.training.maxTokensPerMicroBatch is 100, too small for one sample of data.maxPromptTokens 1024 + "
        "rollout.sampling.maxNewTokens 8: use at least 1032"
    )
    life.plane.merge(life.path, {"spec": {"training": {"maxTokensPerMicroBatch": 2048}}})
    life.reaches("Provisioning")


def test_what_the_api_server_says_to_the_pod_template_is_passed_on(parts: Parts) -> None:
    # 13 (trainer#3671): what is wrong with a pod template stays in a controller's log
    workers = {"tolerations": [{"key": "gpu", "operater": "Exists"}]}
    life = Life(*parts, cluster={**documents.TINY["cluster"], "workers": workers})
    message = refused(life, "ClusterRejected")
    assert 'unknown field "spec.workerGroupSpecs[0].template.spec.tolerations[0].operater"' in message


def test_a_quota_on_ray_clusters_is_passed_on(parts: Parts) -> None:
    plane, _, namespace = parts
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"count/rayclusters.ray.io": "0"}},
    }
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/none"
    plane.apply(path, quota)
    none = {"count/rayclusters.ray.io": "0"}
    plane.merge(path + "/status", {"status": {"hard": none, "used": none}})
    life = Life(*parts)
    assert "exceeded quota: none, requested: count/rayclusters.ray.io=1" in refused(life, "ClusterRejected")


TROUBLES: list[tuple[str, Callable[[Cluster, list[str]], None], str, str]] = [
    (
        "an image that does not exist",
        lambda cluster, pods: cluster.waiting(pods[0], "ErrImagePull", "not found"),
        "ImagePullFailed",
        "head pod {cluster}-head: image registry.example/trainer:1 cannot be pulled: not found",
    ),
    (
        "a node that is not there",
        lambda cluster, pods: cluster.unschedulable(pods[2], "0/3 nodes are available: 3 Insufficient cpu."),
        "Unschedulable",
        "3 of 4 pods are placed; worker pod {cluster}-workers-worker-1: 0/3 nodes are available: 3 Insufficient cpu.",
    ),
    (
        "a container that cannot be made",
        lambda cluster, pods: cluster.waiting(pods[3], "CreateContainerConfigError", 'secret "x" not found'),
        "ContainerConfigError",
        'worker pod {cluster}-workers-worker-2: container ray-worker: CreateContainerConfigError: secret "x" not found',
    ),
]


@pytest.mark.parametrize(("make", "reason", "message"), [t[1:] for t in TROUBLES], ids=[t[0] for t in TROUBLES])
def test_trouble_of_the_pods_is_on_the_object_within_seconds(
    parts: Parts, make: Callable[[Cluster, list[str]], None], reason: str, message: str
) -> None:
    # 10, 11 (kuberay#1990, #2188): a pull that fails and pods without a node look like any start
    life = Life(*parts)
    cluster = life.cluster()
    pods = cluster.make_pods()
    for pod in pods:
        cluster.set_pod(pod, conditions=[condition("PodScheduled", "True")])
    make(cluster, pods)
    life.reaches("Provisioning", reason, seconds=10)
    assert life.condition("ClusterReady")["message"] == message.format(cluster=cluster.name)
    assert life.condition("ClusterReady")["reason"] == reason
    assert [e["type"] for e in life.events() if e["reason"] == reason] == ["Warning"]


def test_pods_that_quota_forbids_are_told_in_the_api_servers_words(parts: Parts) -> None:
    life = Life(*parts)
    cluster = life.cluster()
    failure = condition("ReplicaFailure", "True", "FailedCreateWorkerPod", "exceeded quota: team-a")
    life.plane.merge(cluster.path + "/status", {"status": {"conditions": [failure]}})
    life.reaches("Provisioning", "PodCreationFailed")
    assert life.condition("Ready")["message"] == "0 of 4 pods are made: exceeded quota: team-a"


def test_a_claim_without_a_volume_is_named_with_what_keeps_it(parts: Parts) -> None:
    plane, _, namespace = parts
    claim(plane, namespace, "ckpt", "ReadWriteMany")
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/ckpt"
    plane.merge(path + "/status", {"status": {"phase": "Pending"}})
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "x-", "namespace": namespace},
        "involvedObject": {"kind": "PersistentVolumeClaim", "name": "ckpt", "namespace": namespace,
                           "uid": plane.find(path)["metadata"]["uid"]},
        "type": "Warning",
        "reason": "ProvisioningFailed",
        "message": 'storageclass.storage.k8s.io "fast" not found',
        "lastTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip
    plane.request("POST", f"/api/v1/namespaces/{namespace}/events", event)
    life = Life(*parts, checkpoint={"claimName": "ckpt"})
    cluster = life.cluster()
    pods = cluster.make_pods()
    said = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    cluster.unschedulable(pods[0], said)
    life.reaches("Provisioning", "VolumePending", seconds=15)
    assert life.condition("Ready")["message"] == (
        'PersistentVolumeClaim ckpt has no volume yet: ckpt: storageclass.storage.k8s.io "fast" not found'
    )
    plane.merge(path + "/status", {"status": {"phase": "Bound"}})
    life.reaches("Provisioning", "Unschedulable", seconds=15)
    assert life.condition("Ready")["message"] == f"0 of 4 pods are placed; head pod {pods[0]}: {said}"


def test_a_cluster_that_kuberay_rejects_surfaces_by_its_event(parts: Parts) -> None:
    # 13 (kuberay#4974): a spec that KubeRay rejects leaves an Event alone
    plane, _, namespace = parts
    life = Life(*parts)
    cluster = life.cluster()
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "x-", "namespace": namespace},
        "involvedObject": {"kind": "RayCluster", "name": cluster.name, "namespace": namespace,
                           "uid": cluster.document["metadata"]["uid"]},
        "type": "Warning",
        "reason": "InvalidRayClusterSpec",
        "message": "The RayCluster spec is invalid: workers",
        "lastTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip
    plane.request("POST", f"/api/v1/namespaces/{namespace}/events", event)
    life.reaches("Provisioning", "ClusterRejected", seconds=25)
    assert "The RayCluster spec is invalid: workers" in life.condition("Ready")["message"]


def test_a_head_that_answers_without_a_token_gets_no_work(parts: Parts) -> None:
    # 28 (kuberay#3987): any pod can submit to the dashboard
    life = Life(*parts)
    cluster = life.cluster()
    life.head.locked = False
    cluster.all_ready()
    life.reaches("Failed", "AuthNotEnforced")
    eventually("the RayCluster to go", lambda: cluster.find() is None)
    assert life.head.submissions == []


def test_pods_without_the_token_mode_get_no_work(parts: Parts) -> None:
    life = Life(*parts)
    cluster = life.cluster()
    for pod in cluster.make_pods(auth=False):
        cluster.ready(pod)
    cluster.head_ready()
    status = life.reaches("Failed", "AuthNotEnforced")
    assert f"RAY_AUTH_MODE of pod {cluster.name}-head is not set" in status["failure"]["message"]


def test_a_dashboard_that_comes_late_is_waited_for(parts: Parts) -> None:
    # 1 (kuberay#1381, #4760): the submitter comes before the dashboard and gives up
    life = Life(*parts)
    life.head.up = False
    life.head.progress = documents.progress(life.cluster_name)
    life.cluster().all_ready()
    life.reaches("Provisioning", "ProvingTokenAuth")
    life.head.up = True
    life.reaches("Starting", "DriverStarting")


def test_a_refused_submission_is_said_and_tried_again(parts: Parts) -> None:
    life = Life(*parts)
    life.head.refuse_submission = "No available agent to submit job, please try again later."
    life.head.progress = documents.progress(life.cluster_name)
    life.cluster().all_ready()
    life.reaches("Starting", "SubmissionRefused")
    assert "No available agent to submit job" in life.condition("Ready")["message"]
    life.head.refuse_submission = ""
    life.reaches("Starting", "DriverStarting")


def test_nothing_waits_for_a_node_longer_than_the_scheduling_deadline(parts: Parts) -> None:
    life = Life(*parts, recovery={"schedulingDeadlineSeconds": 10})
    cluster = life.cluster()
    pods = cluster.make_pods()
    cluster.unschedulable(pods[0], "0/3 nodes are available.")
    status = life.reaches("Failed", "SchedulingDeadlineExceeded", seconds=25)
    assert status["failure"]["message"] == (
        "not all pods had a node within 10 s (spec.recovery.schedulingDeadlineSeconds): "
        f"0 of 4 pods are placed; head pod {cluster.name}-head: 0/3 nodes are available."
    )
    eventually("the RayCluster to go", lambda: cluster.find() is None)


def test_an_image_that_never_comes_ends_the_attempt_at_the_startup_deadline(parts: Parts) -> None:
    life = Life(*parts, recovery={"backoffLimit": 0, "startupDeadlineSeconds": 10})  # 3, 10
    cluster = life.cluster()
    for pod in cluster.make_pods():
        cluster.waiting(pod, "ErrImagePull", "not found")
    status = life.reaches("Failed", "StartupDeadlineExceeded", seconds=25)
    assert status["failure"]["message"] == (
        "training did not begin within 10 s (spec.recovery.startupDeadlineSeconds): "
        f"head pod {cluster.name}-head: image registry.example/trainer:1 cannot be pulled: not found"
    )
    eventually("the RayCluster to go", lambda: cluster.find() is None)


def test_a_driver_that_stands_still_is_ended(parts: Parts) -> None:
    """By the operator's clock: that of the driver's node may be a day off."""
    recovery = {"backoffLimit": 0, "stallTimeoutSeconds": 10}
    life, moving = Life(*parts, recovery=recovery), Life(*parts, name="moving", recovery=recovery)
    cluster = life.training()
    life.head.say(activity="rollout", lastProgress=time.time() + 86400)
    moving.training()

    def ended() -> dict[str, Any] | None:
        moving.head.say(lastProgress=time.time() - 86400)
        assert moving.status["phase"] == "Training"
        status = life.status
        return status if status["phase"] == "Failed" else None

    status = eventually("the one that stands still to be ended", ended, 25)
    assert abs(seconds(moving.status["lastProgressTime"]) - time.time()) < 60
    assert status["failure"]["message"] == "nothing moved in rollout for 10 s (spec.recovery.stallTimeoutSeconds)"
    assert status["failure"]["log"] == "the driver starts"
    eventually("the RayCluster to go", lambda: cluster.find() is None)


def head_ends(cluster: Cluster) -> None:
    cluster.end(f"{cluster.name}-head", 137, "OOMKilled")


def head_goes(cluster: Cluster) -> None:
    cluster.delete_pod(f"{cluster.name}-head")


def worker_ends_and_goes(cluster: Cluster) -> None:
    cluster.end(f"{cluster.name}-workers-worker-1", 137, "OOMKilled")
    cluster.delete_pod(f"{cluster.name}-workers-worker-1")


def worker_fails(cluster: Cluster) -> None:
    """kubelet gives the container's last lines (FallbackToLogsOnError); Ray could have written its token there."""
    secret = cluster.plane.find(f"/api/v1/namespaces/{cluster.namespace}/secrets/{cluster.name.removesuffix('-1')}")
    token = base64.b64decode(secret["data"]["auth_token"]).decode()
    message = f"Traceback\nwith {token}\nRuntimeError: the raylet did not start with {token}\n"
    cluster.end(f"{cluster.name}-workers-worker-1", 1, "Error", message)


def worker_goes(cluster: Cluster) -> None:
    cluster.delete_pod(f"{cluster.name}-workers-worker-1")


def cluster_goes(cluster: Cluster) -> None:
    cluster.plane.request("DELETE", cluster.path)


def stopped(life: Life) -> None:
    life.head.jobs[life.cluster_name]["status"] = "STOPPED"
    life.head.progress = None


def forgotten(life: Life) -> None:
    life.head.jobs.clear()
    life.head.progress = None


def crashed(life: Life) -> None:
    life.head.jobs[life.cluster_name] |= {"status": "FAILED", "driver_exit_code": 1, "message": "exit code 1"}
    life.head.log = "a\nTraceback\nValueError: no\n"
    life.head.progress = None


LOSSES: list[tuple[str, Callable[[Any], None], str, str, list[dict[str, Any]]]] = [
    (
        "a head that is killed for memory",
        head_ends,
        "HeadLost",
        "head pod {c}-head ended: container ray-head OOMKilled (exit code 137) at its memory limit of 4Gi",
        [{"pod": "{c}-head", "container": "ray-head", "exitCode": 137, "reason": "OOMKilled"}],
    ),
    ("a head that is deleted", head_goes, "HeadLost", "head pod {c}-head was deleted", []),
    (
        "a worker that is killed for memory and then removed",
        worker_ends_and_goes,
        "WorkerLost",
        "worker pod {c}-workers-worker-1 ended: "
        "container ray-worker OOMKilled (exit code 137) at its memory limit of 4Gi",
        [{"pod": "{c}-workers-worker-1", "container": "ray-worker", "exitCode": 137, "reason": "OOMKilled"}],
    ),
    (
        "a worker that ended by itself",
        worker_fails,
        "WorkerLost",
        "worker pod {c}-workers-worker-1 ended: "
        "container ray-worker Error (exit code 1): RuntimeError: the raylet did not start with ***",
        [
            {
                "pod": "{c}-workers-worker-1",
                "container": "ray-worker",
                "exitCode": 1,
                "reason": "Error",
                "log": "Traceback\nwith ***\nRuntimeError: the raylet did not start with ***",
            }
        ],
    ),
    ("a worker that is deleted", worker_goes, "WorkerLost", "worker pod {c}-workers-worker-1 was deleted", []),
    ("a RayCluster that is deleted", cluster_goes, "ClusterLost", "RayCluster {c} was deleted by somebody", []),
]


@pytest.mark.parametrize(
    ("lose", "reason", "message", "terminations"), [case[1:] for case in LOSSES], ids=[case[0] for case in LOSSES]
)
def test_a_loss_ends_the_attempt_with_its_evidence(
    parts: Parts, lose: Callable[[Cluster], None], reason: str, message: str, terminations: list[dict[str, Any]]
) -> None:
    # 2, 4, 12 (kuberay#1489, #2238; ray#62340): the head is gone, the job RUNNING, the cluster ready
    life = Life(*parts, placement={"colocated": {}})  # every worker holds a rank
    cluster = life.training()
    lose(cluster)
    status = life.reaches("Failed", reason)
    assert status["failure"]["message"] == message.format(c=cluster.name)
    expected = json.loads(json.dumps(terminations).replace("{c}", cluster.name))
    assert status["attempts"][0]["terminations"] == expected
    assert status["failure"]["log"] == "the driver starts"
    eventually("the RayCluster to go", lambda: cluster.find() is None)


ENDINGS = [
    (
        "a Ray job that somebody stops",
        stopped,
        "DriverStopped",
        "the Ray job {c} was stopped by somebody",
        "the driver starts",
    ),
    (
        "a driver without a last word",
        crashed,
        "DriverFailed",
        "the driver ended with exit code 1 without a last word",
        "a\nTraceback\nValueError: no",
    ),
    (
        "a Ray job that is forgotten",
        forgotten,
        "SubmissionLost",
        "Ray no longer knows the job {c} submitted to it",
        "the driver starts",
    ),
]


@pytest.mark.parametrize(("end", "reason", "message", "log"), [e[1:] for e in ENDINGS], ids=[e[0] for e in ENDINGS])
def test_rays_word_counts_where_the_driver_is_silent(
    parts: Parts, end: Callable[[Life], None], reason: str, message: str, log: str
) -> None:
    # 7 (kuberay#4921): a stream of logs that closes ends a job, or is taken for its end
    life = Life(*parts)
    life.training()
    end(life)
    status = life.reaches("Failed", reason)
    assert status["failure"]["message"] == message.format(c=life.cluster_name)
    assert status["failure"]["log"] == log


def test_one_missed_poll_is_no_news(parts: Parts) -> None:
    # 6 (kuberay#1583): one poll that failed is the job's last word
    life = Life(*parts)
    life.training()
    life.head.jobs[life.cluster_name]["status"] = "RUNNING"
    since, document = life.plane.audit_length(), life.head.progress
    life.head.progress, life.head.polls = None, 0
    eventually("a missed poll", lambda: life.head.polls >= 2)
    assert document is not None
    life.head.progress = {**document, "step": 9, "sequence": 99}
    eventually("step 9", lambda: life.status["training"]["step"] == 9)
    assert len(life.plane.writes(OPERATOR_USER, life.namespace, since)) == 1


def test_a_spec_changed_after_the_start_is_refused_and_moves_nothing(parts: Parts) -> None:
    life = Life(*parts)
    cluster = life.training()
    before = cluster.find()["metadata"]["resourceVersion"]
    with pytest.raises(Exception, match=r"spec\.training is fixed once the job has started"):
        life.plane.merge(life.path, {"spec": {"training": {"steps": 61}}})
    assert cluster.find()["metadata"]["resourceVersion"] == before


def test_a_refusal_that_lasts_is_written_once(parts: Parts) -> None:
    life = Life(*parts)
    life.head.refuse_submission = "No available agent to submit job, please try again later."
    life.cluster().all_ready()
    life.reaches("Starting", "SubmissionRefused")
    eventually("the Event", lambda: "SubmissionRefused" in [e["reason"] for e in life.events()])
    since = life.plane.audit_length()
    time.sleep(6)
    assert life.plane.writes(OPERATOR_USER, life.namespace, since) == []


def test_a_volume_that_cannot_be_mounted_is_told_and_old_words_of_the_scheduler_are_not(parts: Parts) -> None:
    plane, _, namespace = parts
    life = Life(*parts)
    cluster = life.cluster()
    pods = cluster.make_pods()
    uid = plane.find(cluster.pod_path(pods[0]))["metadata"]["uid"]
    for pod in pods:
        cluster.set_pod(pod, phase="Pending", conditions=[condition("PodScheduled", "True")])
    for i, (reason, message) in enumerate((("FailedMount", "no such share"), ("FailedScheduling", "no room"))):
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "x-", "namespace": namespace},
            "involvedObject": {"kind": "Pod", "name": pods[0], "namespace": namespace, "uid": uid},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "lastTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + i)),
        }
        plane.request("POST", f"/api/v1/namespaces/{namespace}/events", event)
    life.reaches("Provisioning", "PodsNotStarting", seconds=25)
    assert life.condition("Ready")["message"] == f"{pods[0]}: no such share"
