"""Jobs as users write them, and what drivers say of them."""

import copy
import time
from typing import Any

TINY: dict[str, Any] = {
    "model": {"tiny": {}},
    "data": {"train": {"reasoningGym": {"dataset": "basic_arithmetic", "config": {"min_terms": 2}}}},
    "rewards": [{"name": "sum", "math": {}}],
    "rollout": {"promptsPerStep": 64, "samplesPerPrompt": 8, "sampling": {"maxNewTokens": 8}},
    "training": {"steps": 60, "trainBatchSize": 128, "maxTokensPerMicroBatch": 4096},
    "placement": {"disaggregated": {"trainingGpus": 2}},
    "cluster": {"gpus": 3, "gpusPerNode": 1, "cpuOnly": True},
    "recovery": {"backoffLimit": 0, "startupDeadlineSeconds": 600, "stallTimeoutSeconds": 600},
}


def spec(**sections: Any) -> dict[str, Any]:
    """The tiny spec with whole sections replaced; None leaves one out."""
    out = {**copy.deepcopy(TINY), **sections}
    return {name: section for name, section in out.items() if section is not None}


def job(name: str, namespace: str, **sections: Any) -> dict[str, Any]:
    return {
        "apiVersion": "simplerl.io/v1alpha1",
        "kind": "SimpleRLJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec(**sections),
    }


def progress(submission: str, **changes: Any) -> dict[str, Any]:
    """A driver's document."""
    return {
        "schemaVersion": 1,
        "submissionId": submission,
        "sequence": 1,
        "state": "Starting",
        "step": 0,
        "totalSteps": 60,
        "metrics": {},
        "evaluations": [],
        "log": ["the driver starts"],
        "lastProgress": time.time(),
        **changes,
    }


def evaluation(dataset: str, first: float, last: float, step: int) -> dict[str, Any]:
    best = {"step": step, "accuracy": max(first, last)}
    return {
        "dataset": dataset,
        "first": {"step": 0, "accuracy": first},
        "best": best,
        "last": {"step": step, "accuracy": last},
    }
