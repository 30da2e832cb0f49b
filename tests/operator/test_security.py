"""What keeps jobs apart and their secrets in, against a real API server."""

from tests.operator.control_plane import ControlPlane
from tests.operator.heads import Heads
from tests.operator.life import Life
from tests.operator.operator_process import OperatorProcess


def test_each_job_has_a_network_policy_of_its_own(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    # anchors 28: any pod could submit to the dashboard
    life = Life(plane, heads, namespace)
    life.cluster()
    name = life.cluster_name.removesuffix("-1")
    policy = plane.find(f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/{name}")
    assert policy["metadata"]["ownerReferences"][0]["uid"] == life.uid
    own = {"matchLabels": {"simplerl.io/job-uid": life.uid}}
    assert policy["spec"]["podSelector"] == own
    operator_namespace = {"matchLabels": {"kubernetes.io/metadata.name": "simplerl-system"}}
    assert [rule["from"] for rule in policy["spec"]["ingress"]] == [
        [{"podSelector": own}],
        [{"namespaceSelector": operator_namespace}],
        [{"podSelector": {}}],
    ]
