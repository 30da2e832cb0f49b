"""A job's whole life in a namespace that enforces the restricted Pod Security Standard."""

import json

import pytest
from hack.cluster.errors import ClusterError
from tests.e2e.conftest import Installed
from tests.e2e.drill import Drill

pytestmark = pytest.mark.long
NAMESPACE = "restricted"


def test_a_job_trains_where_pods_are_restricted(installed: Installed) -> None:
    cluster = installed.cluster
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    cluster.apply("making the namespace", namespace)
    plain = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain", "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "plain", "image": installed.operator_image}]},
    }  # fmt: skip
    with pytest.raises(ClusterError, match='violates PodSecurity "restricted'):
        cluster.run("making a plain pod", "apply", "--dry-run=server", "-f", "-", stdin=json.dumps(plain))
    job = Drill(cluster, "restricted", NAMESPACE)
    try:
        job.apply(training={"steps": 3}, checkpoint=None)
        status = job.until("the end", lambda s: s.get("phase") == "Succeeded", 600)
        assert (status["training"]["step"], status.get("failures", 0)) == (3, 0)
    finally:
        cluster.run("removing the namespace", "delete", "namespace", NAMESPACE, seconds=180)
