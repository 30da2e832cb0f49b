"""A process that asks a hub as a driver or node does: a JSON list of questions in, a JSON list of answers out.

The hub's clients read their environment when they are imported, so that each environment needs a process of its own.
"""

import asyncio
import json
import os
import sys
from typing import Any

import ray

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import Fields, Questions
from simplerl_api.spec.hub import HubModel
from simplerl_trainer import answers, hub, site
from simplerl_trainer.actors import NodeActor
from simplerl_trainer.data import questions


def answer(question: dict[str, Any]) -> Any:
    kind = question.pop("ask")
    if kind == "model":
        weights, commit = question.pop("weights", True), question.pop("commit", None)
        model = HubModel.model_validate(question)
        commit = commit or hub.resolve(model, "model.hub")
        hub.check_weights(model, commit, "model.hub")
        folder = hub.model_folder(model, commit, "model.hub", weights=weights)
        return {"commit": commit, "files": sorted(f.name for f in folder.iterdir()), "folder": str(folder)}
    if kind == "node":
        return node(HubModel.model_validate(question))
    dataset = Questions.model_validate({"hub": question})
    assert dataset.hub is not None
    commit = hub.resolve(dataset.hub, "data.train.hub")
    found = questions.load(dataset, Fields(), "data.train", commit=commit)
    return {"commit": commit, "questions": [[q.question, q.answer, q.record] for q in found]}


def node(model: HubModel) -> Any:
    """As a worker's node does: in an actor of a Ray that knows nothing of this process's environment."""
    commit = hub.resolve(model, "model.hub")
    told = {name: os.environ.pop(name) for name in hub.PASSED_ON if name in os.environ}
    ray.init(address="local", num_cpus=1, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
    os.environ |= told
    options = site.node_options({"num_cpus": 0, "runtime_env": {"env_vars": {"HF_HUB_OFFLINE": "1"}}})
    actor = ray.remote(NodeActor).options(**options).remote()
    try:
        calls = {"node 0": actor.download.remote(model, commit, "model.hub")}
        (folder,) = asyncio.run(answers.within(120, "downloading the model", calls, FailureReason.INTERNAL))
        return {"files": sorted(os.listdir(folder)), "variables": options["runtime_env"]["env_vars"]}
    finally:
        ray.shutdown()


def main() -> None:
    answers = []
    for question in json.load(sys.stdin):
        try:
            answers.append(answer(question))
        except TrainerFailure as e:
            answers.append({"fault": e.message})
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
