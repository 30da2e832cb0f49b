"""Wrong YAML: an error that names the field or the thing, at `kubectl apply` where it can, else soon on the object."""

import json
from pathlib import Path

import pytest
from hack.cluster.errors import ClusterError
from tests.e2e.conftest import Installed
from tests.e2e.watching import Watch, condition

from simplerl_api import overrides, yaml12

ROOT = Path(__file__).parents[2]


def job(name: str, *settings: str) -> str:
    document = yaml12.load_file(ROOT / "examples/tiny.yaml")
    return json.dumps(overrides.apply(document, [f"metadata.name={name}", *settings]))


@pytest.mark.parametrize(
    ("name", "settings", "part"),
    [
        ("misspelt", ["training.stepz=3"], 'unknown field "spec.training.stepz"'),
        ("no-engines", ["rollout.engines=0"], "spec.rollout.engines"),
        ("batch", ["training.trainBatchSize=100"], "training.trainBatchSize must divide"),
        ("gpus", ["cluster.gpus=5", "cluster.gpusPerNode=2"], "cluster.gpus must be a multiple of cluster.gpusPerNode"),
        ("all-train", ["placement.disaggregated.trainingGpus=3"], "trainingGpus must be less than cluster.gpus"),
        ("a" * 45, [], "metadata.name must be at most 44 characters"),
        ("with.dot", [], "metadata.name must be at most 44 characters"),
        ("two-models", ["model.path=/m"], "give exactly one of hub, path, tiny"),
    ],
)
def test_kubectl_apply_refuses(installed: Installed, name: str, settings: list[str], part: str) -> None:
    with pytest.raises(ClusterError) as e:
        installed.cluster.run("applying", "apply", "-f", "-", stdin=job(name, *settings))
    assert part in str(e.value)


@pytest.mark.parametrize(
    ("name", "settings", "kind", "part"),
    [
        ("no-claim", ["checkpoint.claimName=nowhere"], "Accepted", "nowhere"),
        ("no-image", ["cluster.image=simplerl.local/nothing:1"], "Ready", "simplerl.local/nothing:1"),
        ("small-pack", ["training.maxTokensPerMicroBatch=20"], "Accepted", "training.maxTokensPerMicroBatch is 20"),
        (
            "no-file",
            ["data.train={file: /data/none.jsonl}", "evaluation=null"],
            "Succeeded",
            "/data/none.jsonl",
        ),
    ],
)
def test_the_object_says_within_a_minute(
    installed: Installed, name: str, settings: list[str], kind: str, part: str
) -> None:
    installed.cluster.run("applying", "apply", "-f", "-", stdin=job(name, *settings))
    try:
        with Watch(installed.cluster, name) as watch:
            # the pods of a job with a missing file must start before its driver can say so
            seconds = 120 if name == "no-file" else 60
            watch.until(f"a sentence with {part}", lambda j: part in condition(j, kind).get("message", ""), seconds)
    finally:
        installed.cluster.run("removing the job", "delete", "simplerljobs", name, "-n", "default", seconds=90)
