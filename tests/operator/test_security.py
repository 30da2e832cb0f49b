"""What keeps jobs apart and their secrets in, against a real API server."""

import base64
import json

import pytest
from tests.operator import documents
from tests.operator.control_plane import ControlPlane
from tests.operator.heads import Heads
from tests.operator.life import Life
from tests.operator.observations import job
from tests.operator.operator_process import OperatorProcess

from simplerl_api import yaml12
from simplerl_api.run import ENTRYPOINT
from simplerl_operator.build import network_policy, ray_cluster, run
from simplerl_operator.build.network_policy import Reach
from simplerl_operator.redaction import redact


def test_each_job_has_a_network_policy_of_its_own(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    # 28 (kuberay#3987): any pod could submit to the dashboard
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


def test_a_token_in_a_traceback_never_leaves_the_pods(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    life.training()
    core = f"/api/v1/namespaces/{namespace}"
    encoded = plane.find(f"{core}/secrets/{life.cluster_name.removesuffix('-1')}")["data"]["auth_token"]
    token = base64.b64decode(encoded).decode()
    life.head.say(
        state="Failed",
        failure={"reason": "InvalidInput", "message": f"ray said: bad header Authorization: Bearer {token}"},
        log=["Traceback", f"  headers={{'Authorization': 'Bearer {token}'}}", f"secret {encoded}"],
    )
    status = life.reaches("Failed")
    assert status["failure"]["message"] == "ray said: bad header Authorization: Bearer ***"
    assert status["failure"]["log"] == "Traceback\n  headers={'Authorization': 'Bearer ***'}\nsecret ***"
    said = json.dumps([plane.find(life.path), life.events(), plane.find(f"{core}/configmaps/{life.cluster_name}")])
    for place in (said, operator.log.read_text(), json.dumps(life.head.submissions)):
        assert token not in place
        assert encoded not in place


def test_a_token_in_what_ray_says_is_taken_out(
    plane: ControlPlane, heads: Heads, operator: OperatorProcess, namespace: str
) -> None:
    life = Life(plane, heads, namespace)
    cluster = life.training()
    secret = plane.find(f"/api/v1/namespaces/{namespace}/secrets/{life.cluster_name.removesuffix('-1')}")
    token = base64.b64decode(secret["data"]["auth_token"]).decode()
    assert token not in json.dumps(cluster.find()), "the pods get it by reference"
    last = documents.progress(
        life.cluster_name,
        state="Failed",
        failure={"reason": "InvalidInput", "message": f"no model at http://user:{token}@hub/"},
        log=[f"RAY_AUTH_TOKEN={token}", "ValueError: no"],
    )
    life.head.log = json.dumps({"event": "final", "progress": last})
    life.head.jobs[life.cluster_name] |= {"status": "FAILED", "driver_exit_code": 10, "message": f"token {token}"}
    life.head.progress = None
    status = life.reaches("Failed", "InvalidInput")
    assert status["failure"]["log"] == "RAY_AUTH_TOKEN=***\nValueError: no"
    assert status["failure"]["message"] == "no model at http://user:***@hub/"
    assert token not in json.dumps([status, life.events()])


def test_without_a_token_nothing_is_taken_out() -> None:
    assert redact("a b", None) == redact("a b", "") == "a b"


HOSTILE = [
    "$(touch /tmp/x)", "`reboot`", "; rm -rf / #", "a\nb: c", '"}]}', "{{ .Values.image }}", "{namespace}", "%s%n",
    "--head", "\u2028", "'; DROP TABLE jobs; --", "../../etc/passwd", "$HOME", "\x7f", "&anchor *alias",
    "!!python/object:os.system",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_a_users_text_stays_text(text: str) -> None:
    """Wherever the spec takes free text, it ends up as a value of its field and in no command."""
    sections = {
        "model": {"path": f"/models/{text}"},
        "data": {"train": {"file": f"/data/{text}"}, "promptTemplate": text + "{question}"},
        "cluster": {
            **documents.TINY["cluster"],
            "env": [{"name": "TEXT", "value": text}],
            "workers": {"nodeSelector": {"pool": text}},
        },
    }
    hostile = job(**sections)
    assert hostile.faults == ()
    manifest = ray_cluster.ray_cluster(hostile)
    assert yaml12.load(yaml12.dump(manifest)) == manifest, "no text breaks out of its place"
    starts = [manifest["spec"]["headGroupSpec"], *manifest["spec"]["workerGroupSpecs"]]
    assert all(text not in value for start in starts for value in start["rayStartParams"].values())
    for start in starts:
        container = start["template"]["spec"]["containers"][0]
        assert not {"command", "args", "lifecycle"} & set(container) or text not in json.dumps(
            [container.get(part) for part in ("command", "args", "lifecycle")]
        )
        assert {"name": "TEXT", "value": text} in container["env"]
    document = run.config_map(hostile)
    assert json.loads(document["data"]["run.json"])["spec"]["model"]["path"] == f"/models/{text}"
    policy = network_policy.network_policy(hostile, Reach(operator_namespace="simplerl-system"))
    assert text not in json.dumps(policy)
    assert text not in ENTRYPOINT
