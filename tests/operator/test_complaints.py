"""What users of other operators complain of, and must not meet here. Numbers are those of the list of complaints that
the operator was designed against; others of them stand by the tests of the part that they belong to."""

import time

from tests.operator import documents
from tests.operator.control_plane import ControlPlane, eventually
from tests.operator.heads import Heads
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess


def test_a_head_that_answers_nothing_is_not_polled_for_ever(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    # 5 (kuberay#4914, #4916): the head hangs, and the job is RUNNING for ever
    life = Life(plane, heads, namespace, recovery={"stallTimeoutSeconds": 10})
    cluster = life.training()
    life.head.up, life.head.progress = False, None
    ended = eventually("the end of the attempt", lambda: life.status.get("attempts"), 40)
    assert ended[0]["reason"] == "Stalled"
    eventually("the RayCluster to go", lambda: cluster.find() is None)


def test_a_submission_that_ray_has_already_is_taken_for_ours(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    # 8 (kuberay#2154): a submitter that tries again fails on its own id
    life = Life(plane, heads, namespace)
    life.head.jobs[life.cluster_name] = {"status": "RUNNING", "message": "", "driver_exit_code": None}
    life.head.progress = documents.progress(life.cluster_name)
    life.cluster().all_ready()
    life.reaches("Starting", "DriverStarting", seconds=30)
    assert life.head.submissions == []


def test_a_verdict_is_one_and_stays(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    # 9 (kuberay#2314): Failed and RUNNING at once, and the job runs on after its deadline
    life = Life(plane, heads, namespace)
    cluster = life.training()
    life.head.say(state="Failed", failure={"reason": "InvalidInput", "message": "no such file"})
    life.reaches("Failed", "InvalidInput")
    eventually("the RayCluster to go", lambda: cluster.find() is None)
    life.head.say(state="Training", step=9, failure=None)
    life.head.jobs[life.cluster_name]["status"] = "RUNNING"
    plane.merge(life.path, {"metadata": {"annotations": {"look": "again"}}})
    time.sleep(2)
    life.reaches("Failed", "InvalidInput")
    assert life.condition("Succeeded")["status"] == "False"
    assert life.condition("Ready")["status"] == "False"
    assert cluster.find() is None


def test_nothing_is_made_in_a_namespace_that_goes_and_nothing_holds_it(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    # 14 (kuberay#4767, #4721, #3388): finalizers that hold a namespace, and children made while it is being deleted
    life = Life(plane, heads, namespace, training={"steps": 3, "trainBatchSize": 128, "maxTokensPerMicroBatch": 100})
    life.reaches("Pending", "InvalidSpec")
    plane.request("DELETE", f"/api/v1/namespaces/{namespace}")
    life.plane.merge(life.path, {"spec": {"training": {"maxTokensPerMicroBatch": 2048}}})
    life.reaches("Pending", "ClusterRejected")
    assert "because it is being terminated" in life.condition("Accepted")["message"]
    for made in ("/apis/ray.io/v1/namespaces/{}/rayclusters", "/api/v1/namespaces/{}/secrets"):
        assert plane.request("GET", made.format(namespace))["items"] == []
    plane.request("DELETE", life.path)
    assert plane.find(life.path) is None, "no finalizer keeps it"
