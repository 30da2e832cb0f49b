"""What the cluster would say of a job: each fault is a sentence that names the field, its value and what fits."""

from pathlib import Path
from typing import Any

import pytest

from simplerl_api import overrides, validation, yaml12

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tiny() -> dict[str, Any]:
    return yaml12.load_file(ROOT / "examples/tiny.yaml")


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda p: p.name)
def test_every_example_is_valid(example: Path) -> None:
    assert validation.faults(yaml12.load_file(example)) == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["training.stepz=3"], 'unknown field "spec.training.stepz": did you mean steps?'),
        (["rewards[0].math.corect=1"], 'unknown field "spec.rewards[0].math.corect": did you mean correct?'),
        (["rollout.engines=0"], "spec.rollout.engines is 0: it should be greater than or equal to 1"),
        (["training.steps='3'"], "spec.training.steps is '3': it should be a valid integer, without quotes"),
        (
            ["cluster.env=[{name: A, value: 5}]"],
            "spec.cluster.env[0].value is 5: it should be a valid string, in quotes",
        ),
        (["suspend=yes"], "spec.suspend is 'yes': it should be a valid boolean, true or false"),
        (
            ["training.deterministic=true", "rollout.elastic={minEngines: 1, maxEngines: 1}"],
            "spec.training.deterministic is true, which needs engines that stay: leave out that or rollout.elastic",
        ),
        (
            ["placement={colocated: {}}", "rollout.elastic={minEngines: 1, maxEngines: 3}"],
            "spec.rollout.elastic needs placement.disaggregated: the pods of colocated engines hold ranks, and "
            "cannot go",
        ),
        (
            ["cluster.gpus=8", "cluster.gpusPerNode=4", "rollout.elastic={minEngines: 1, maxEngines: 6}"],
            "spec.placement.disaggregated.trainingGpus is 2, which does not fill pods of 4 GPUs, but "
            "with rollout.elastic pods without ranks come and go: use 4",
        ),
        (
            ["cluster.gpusPerNode=4", "rollout.elastic={minEngines: 1, maxEngines: 1}"],
            "spec.placement.disaggregated.trainingGpus is 2, which does not fill pods of 3 GPUs, but "
            "with rollout.elastic pods without ranks come and go: use a cluster.gpus of more than 3",
        ),
        (
            ["cluster.gpus=6", "rollout.elastic={minEngines: 1, maxEngines: 6}"],
            "spec.rollout.elastic.maxEngines is 6, but the 4 GPUs that roll out hold 4 engines, or up to 8 times as "
            "many: use 4, or other cluster.gpus",
        ),
        (
            ["cluster.gpus=6", "rollout.enginesPerGpu=2", "rollout.elastic={minEngines: 1, maxEngines: 4}"],
            "spec.rollout.elastic.maxEngines is 4, but rollout.enginesPerGpu 2 on the 4 GPUs that roll out makes 8: "
            "use 8, or leave enginesPerGpu out",
        ),
        (
            ["cluster.gpus=6", "rollout.elastic={minEngines: 5, maxEngines: 4}"],
            "spec.rollout.elastic.minEngines is 5, more than maxEngines 4: use at most 4",
        ),
        (
            ["cluster.gpus=6", "rollout.engines=1", "rollout.elastic={minEngines: 2, maxEngines: 4}"],
            "spec.rollout.engines is 1, outside of rollout.elastic: use 2 to 4, or leave it out",
        ),
        (
            ["cluster.volumes=[{mountPath: /a, claimName: b}, {mountPath: /a/, claimName: c}]"],
            "spec.cluster.volumes[1].mountPath is /a, as is that of cluster.volumes[0]: give each its own",
        ),
        *(
            (
                [f"cluster.volumes=[{{mountPath: {path}, claimName: b}}]", "model={path: /m, cacheClaimName: c}"],
                f"spec.cluster.volumes[0].mountPath is {path}, where the pods have a folder of their own: choose "
                "another",
            )
            for path in ("/", "/tmp", "/dev/shm", "/etc/simplerl", "/checkpoints", "/hub-cache")
        ),
        (
            [
                "rewards=[{name: own, python: {configMap: {name: code, key: score.py}}}]",
                "cluster.volumes=[{mountPath: /etc/simplerl-rewards/0, configMapName: code}]",
            ],
            "spec.cluster.volumes[0].mountPath is /etc/simplerl-rewards/0, where the pods have a folder of their own: "
            "choose another",
        ),
        (
            ["cluster.workers.resources={requests: {cpu: '1', memory: 2Gi}, limits: {cpu: '1', memory: 1500Mi}}"],
            "spec.cluster.workers.resources.requests.memory is 2Gi, more than its limit of 1500Mi: lower it, or raise "
            "the limit",
        ),
        (
            ["cluster.head.resources={requests: {cpu: '2'}, limits: {cpu: 1500m}}"],
            "spec.cluster.head.resources.requests.cpu is 2, more than its limit of 1500m: lower it, or raise the limit",
        ),
        (
            ["training.steps=0", "evaluation=null"],
            "spec.training.steps is 0, with which a job only evaluates, but there is no evaluation: add it, or train",
        ),
        (["algorithm.kl.placement=reward"], "spec.algorithm.kl.placement is 'reward': it should be 'Reward' or 'Loss'"),
        (["model.path=/models/m"], "spec.model: give exactly one of hub, path, tiny, not path and tiny"),
        (["model={}"], "spec.model: give exactly one of hub, path, tiny, not none of them"),
        (["data.train={}"], "spec.data.train: give exactly one of file, hub, reasoningGym, not none of them"),
        (
            ["rewards=[{name: a}]"],
            "spec.rewards[0]: give exactly one of math, python, model, http, task, not none of them",
        ),
        (
            ["cluster.gpus=5", "cluster.gpusPerNode=2", "placement={colocated: {}}"],
            "spec.cluster.gpus is 5, which is not a multiple of cluster.gpusPerNode 2: use 4 or 6 GPUs, or 1 a node",
        ),
        (
            ["training.trainBatchSize=100"],
            "spec.training.trainBatchSize is 100, which does not divide the 512 samples of a step "
            "(rollout.promptsPerStep 64 x rollout.samplesPerPrompt 8): 64 or 128 would",
        ),
        (
            ["placement.disaggregated.trainingGpus=3"],
            "spec.placement.disaggregated.trainingGpus is 3, which leaves none of cluster.gpus 3 to roll out: "
            "use at most 2",
        ),
        (
            ["cluster.gpus=1", "placement.disaggregated.trainingGpus=1"],
            "spec.cluster.gpus is 1, too few for placement.disaggregated: use at least 2, or colocated",
        ),
        (
            ["rollout.engines=9"],
            "spec.rollout.engines is 9, more than 8 on each of the 1 GPUs that roll out: use at most 8",
        ),
        (
            ["placement.disaggregated.trainingGpus=1", "rollout.engines=1"],
            "spec.rollout.engines is 1, which leaves some of the 2 GPUs that roll out idle: use at least 2, or raise "
            "placement.disaggregated.trainingGpus",
        ),
        (
            ["rollout.engines=3", "rollout.enginesPerGpu=2"],
            "spec.rollout.engines is 3, but rollout.enginesPerGpu 2 on 1 GPUs that roll out makes 2: give one of the "
            "two",
        ),
        (
            ["placement={colocated: {}}", "rollout.tensorParallelSize=2", "cluster.gpus=3", "cluster.gpusPerNode=3"],
            "spec.rollout.tensorParallelSize is 2, which does not divide the 3 GPUs that roll out: use 1",
        ),
        (
            ["placement={colocated: {}}", "rollout.tensorParallelSize=4", "cluster.gpus=8", "cluster.gpusPerNode=2"],
            "spec.rollout.tensorParallelSize is 4, which does not divide cluster.gpusPerNode 2, and an engine lives on "
            "one node: use 1 or 2",
        ),
        (
            ["rollout.tensorParallelSize=3"],
            "spec.rollout.tensorParallelSize is 3: it should be 1, 2, 4 or 8",
        ),
        (
            [
                "placement={colocated: {}}",
                "rollout={tensorParallelSize: 2, engines: 17, sampling: {maxNewTokens: 8}}",
                "cluster.gpus=4",
                "cluster.gpusPerNode=4",
            ],
            "spec.rollout.engines is 17, more than 8 on each of the 2 groups of 2 GPUs that roll out: use at most 16",
        ),
        (
            ["rollout.sampling.topP=0.9"],  # fault 17: TRL#6789, vllm#42259
            "spec.rollout.sampling.topP: rollout.sampling.topP must be 1 (the training log-probabilities are of the "
            "whole distribution, so that a cut one would bias their ratio): leave it out, or cut evaluation.topP",
        ),
        (
            ["rollout.sampling.topK=50"],
            "spec.rollout.sampling.topK: rollout.sampling.topK must be -1 (the training log-probabilities are of the "
            "whole distribution, so that a cut one would bias their ratio): leave it out",
        ),
        (["evaluation.topP=0"], "spec.evaluation.topP is 0: it should be greater than 0"),
        (
            ["rollout.sampling.stop=['']"],
            "spec.rollout.sampling.stop[0] is '': string should have at least 1 character",
        ),
        (
            ["training.maxTokensPerMicroBatch=20"],
            "spec.training.maxTokensPerMicroBatch is 20, too small for one sample of data.maxPromptTokens 16 + "
            "rollout.sampling.maxNewTokens 8: use at least 24",
        ),
        (
            ["training.gradientAccumulationSteps=4"],
            "spec.training: give maxTokensPerMicroBatch or gradientAccumulationSteps, not both: each says how large a "
            "micro-batch is",
        ),
        (
            ["training.maxTokensPerMicroBatch=null", "training.gradientAccumulationSteps=65"],
            "spec.training.gradientAccumulationSteps is 65, more than the 64 samples that each of the 2 training ranks "
            "has of training.trainBatchSize 128: use at most 64",
        ),
        (
            ["training.offload={parameters: true}"],
            "spec.training: offload.parameters needs offload.optimizer: set that too",
        ),
        (
            ["training.offload={optimizer: true, parameters: true}", "training.zeroStage=2"],
            "spec.training: offload.parameters needs zeroStage 3, under which weights are shared out: set zeroStage 3",
        ),
        (
            ["training.offload={optimizer: true}", "training.zeroStage=0"],
            "spec.training: offload.optimizer needs zeroStage 1, 2 or 3: stage 0 keeps everything on the GPU",
        ),
        (
            ["rewards[0]={name: a, model: {path: /m, template: 'Q: {question}'}}"],
            "spec.rewards[0].model: template has no {response} in it: add it, or leave the template out for the chat "
            "template",
        ),
        (
            ["rewards[1]={name: a, model: {path: /m}}", "algorithm.dynamicSampling={maxRounds: 2}"],
            "spec.rewards[1].model scores samples after they are drawn, but algorithm.dynamicSampling needs all scores "
            "while it draws: leave one of the two out",
        ),
        (
            ["rewards[0]={name: a, model: {path: /m}}"],
            "spec.evaluation needs a reward that says whether an answer is right, but rewards has reward models alone: "
            "add one with weight 0, such as math, or leave evaluation out",
        ),
        (
            ["rollout.promptsPerStep=1", "rollout.samplesPerPrompt=1", "training.trainBatchSize=1"],
            "spec.training.trainBatchSize is 1, less than the 2 training ranks: use at least 2",
        ),
        (
            ["algorithm.grpo={}", "algorithm.rloo={}"],
            "spec.algorithm: give at most one of ppo, grpo, rloo, reinforcePlusPlus, not grpo and rloo",
        ),
        (
            ["algorithm.grpo={}", "rollout.samplesPerPrompt=1", "training.trainBatchSize=64"],
            "spec.rollout.samplesPerPrompt is 1, but algorithm.grpo compares the samples of a prompt with each other: "
            "use at least 2",
        ),
        (
            ["algorithm.rloo={}", "rollout.samplesPerPrompt=1", "training.trainBatchSize=64"],
            "spec.rollout.samplesPerPrompt is 1, but algorithm.rloo compares the samples of a prompt with each other: "
            "use at least 2",
        ),
        (
            [
                "algorithm.reinforcePlusPlus={groupBaseline: true}",
                "rollout.samplesPerPrompt=1",
                "training.trainBatchSize=64",
            ],
            "spec.rollout.samplesPerPrompt is 1, but algorithm.reinforcePlusPlus.groupBaseline compares the samples of "
            "a prompt with each other: use at least 2",
        ),
        (
            ["algorithm.kl={coefficient: 0, adaptive: {target: 0.1, horizon: 1000}}"],
            "spec.algorithm.kl: algorithm.kl.adaptive needs a coefficient above 0 to start from: set "
            "algorithm.kl.coefficient",
        ),
        (["algorithm.loss.dualClip=1"], "spec.algorithm.loss.dualClip is 1: it should be greater than 1"),
        (
            ["algorithm.loss.aggregation=Mean"],
            "spec.algorithm.loss.aggregation is 'Mean': it should be 'Token', 'Sequence' or 'Constant'",
        ),
        (
            ["algorithm.maskTruncated=true", "rewards=[{name: sum, math: {}}, {name: judge, model: {path: /m}}]"],
            "spec.rewards[1].model scores the samples that are trained on, but algorithm.maskTruncated leaves some "
            "out: take one of the two",
        ),
        (["algorithm.rewardClip=0"], "spec.algorithm.rewardClip is 0: it should be greater than 0"),
        (
            ["algorithm.overlong={bufferTokens: 9}"],
            "spec.algorithm.overlong.bufferTokens is 9, more than rollout.sampling.maxNewTokens: use at most 8",
        ),
        (
            ["algorithm.overlong={bufferTokens: 4}", "rewards[0].name=overlong"],
            "spec.rewards has one of the name overlong, which algorithm.overlong shows its penalty by: name it "
            "otherwise",
        ),
        (
            ["training.critic.warmupSteps=80"],
            "spec.training.critic.warmupSteps is 80, which leaves none of training.steps 80 to the policy: use at most "
            "79",
        ),
        (
            ["metadata.name=tiny.job"],
            "metadata.name is tiny.job: metadata.name must be at most 44 characters of a-z, 0-9 and -, start with a "
            "letter and end with a letter or digit (its pods and services are named after it)",
        ),
        (
            ["cluster.env=[{name: HOME, value: /root}]"],
            "spec.cluster.env[0].name: the operator sets HOME: leave it out",
        ),
        (
            ["evaluation.temperature=0.001"],
            "spec.evaluation.temperature: evaluation.temperature must be 0 or from 0.01 to 2",
        ),
        (
            ["checkpoint.best=gsm8k"],
            "spec.checkpoint.best is gsm8k, which is no evaluation data set: use one of held-out",
        ),
        (
            ["training.deterministic=true", "rollout.overlap=OneStep"],
            "spec.training.deterministic is true, which needs rollout.overlap None, not OneStep: a resumed run has no "
            "batch that was drawn ahead",
        ),
        (
            ["rewards[0].python={file: /r.py}"],
            "spec.rewards[0]: give exactly one of math, python, model, http, task, not math and python",
        ),
        (
            ["rewards=[{name: a, python: {function: f}}]"],
            "spec.rewards[0].python: give exactly one of file, configMap, not none of them",
        ),
        (
            ["rewards=[{name: a, python: {file: /a.py, configMap: {name: a, key: b}}}]"],
            "spec.rewards[0].python: give exactly one of file, configMap, not file and configMap",
        ),
        (
            ["rewards=[{name: a, python: {file: /a.py, function: a.b}}]"],
            "spec.rewards[0].python.function is 'a.b': string should match pattern '^[A-Za-z_][A-Za-z0-9_]*$'",
        ),
        (
            ["rewards=[{name: a, http: {url: 'judge:80'}}]"],
            r"spec.rewards[0].http.url is 'judge:80': string should match pattern '^https?://[^\s@]+$'",
        ),
        (
            ["rewards=[{name: a, math: {}}, {name: b, math: {}}, {name: a, math: {}}]"],
            "spec.rewards[2].name is a, as is that of rewards[0]: give each its own",
        ),
        (
            ["evaluation.datasets[1]={name: held-out, file: /a.jsonl}"],
            "spec.evaluation.datasets[1].name is held-out, as is that of evaluation.datasets[0]: give each its own",
        ),
        (
            ["rewards[0]={name: own, task: {}}", "data.train={file: /a.jsonl}"],
            "spec.rewards[0].task judges only reasoning-gym's own questions, but data.train is given by file: give a "
            "reasoningGym data set, or another reward",
        ),
        (
            ["rewards[1]={name: own, task: {}}", "evaluation.datasets[1]={name: b, hub: {name: a/b}}"],
            "spec.rewards[1].task judges only reasoning-gym's own questions, but evaluation.datasets[1] is given by "
            "hub: give a reasoningGym data set, or another reward",
        ),
        (
            [
                "model={hub: {name: a/b, tokenSecretRef: {name: s, key: t}}}",
                "data.train={hub: {name: a/c, tokenSecretRef: {name: s, key: u}}}",
            ],
            "spec.data.train.hub.tokenSecretRef is s/u, but model.hub.tokenSecretRef is s/t: give one token that may "
            "read all of the job's hub repositories",
        ),
        (
            ["data.levels={min: 5, max: 3}"],
            "spec.data.levels: data.levels.min must not be greater than data.levels.max",
        ),
        (["data.levels={min: 5}"], "spec.data.levels.max is missing: it must be given"),
        (
            ["model={hub: {name: 'a b'}}"],
            "spec.model.hub.name is 'a b': string should match pattern "
            "'^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$'",
        ),
        (["training.actor.learningRate=.nan"], "spec.training.actor.learningRate is NaN: it should be a finite number"),
        (["training.actor.betas=[0.9, 1]"], "spec.training.actor.betas[1] is 1: it should be less than 1"),
        (
            ["training.actor.betas=[0.9]"],
            "spec.training.actor.betas is [0.9]: list should have at least 2 items, not 1",
        ),
        (
            ["evaluation.datasets[0].name=../held-out"],
            "spec.evaluation.datasets[0].name is '../held-out': string should match pattern '^[^./][^/]*$'",
        ),
        (
            ["data.promptTemplate=qwen_boxed"],
            "spec.data.promptTemplate: data.promptTemplate has no {question} in it: add it, name qwen-boxed or chat, "
            "or leave it out for the tokenizer's own",
        ),
        (["training.steps=2.5"], "spec.training.steps is 2.5: it should be a valid integer"),
        (["algorithm.kl.estimator=k3"], "spec.algorithm.kl.estimator is 'k3': it should be 'K1', 'K2' or 'K3'"),
        (
            ["rollout.sampling.temperature=-1"],
            "spec.rollout.sampling.temperature is -1: it should be greater than or equal to 0.01",
        ),
        (["rollout.sampling.topP=1.5"], "spec.rollout.sampling.topP is 1.5: it should be less than or equal to 1"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_fault_is_a_sentence(tiny: dict[str, Any], settings: list[str], sentence: str) -> None:
    assert validation.faults(overrides.apply(tiny, settings)) == [sentence]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(["algorithm.ppo={}"], id="ppo by name"),
        pytest.param(["algorithm.grpo={}"], id="GRPO beside a critic's optimizer, which it ignores"),
        pytest.param(
            ["algorithm.grpo={normalizeByStd: false}", "algorithm.loss.aggregation=Constant"], id="Dr.GRPO's options"
        ),
        pytest.param(
            ["algorithm.reinforcePlusPlus={}", "rollout.samplesPerPrompt=1", "training.trainBatchSize=64"],
            id="REINFORCE++ of one sample a prompt",
        ),
        pytest.param(["algorithm.overlong={bufferTokens: 8}", "algorithm.maskTruncated=true"], id="DAPO's options"),
        pytest.param(["training.critic.warmupSteps=79"], id="the policy learns in one step"),
        pytest.param(["training.critic.warmupSteps=0", "training.steps=0"], id="no steps at all"),
        pytest.param(["training.steps=1e2", "cluster.gpus=3.0"], id="whole numbers that YAML writes otherwise"),
        pytest.param(["data.promptTemplate=chat"], id="the tokenizer's own template"),
        pytest.param(["data.promptTemplate='Q: {question} A:'"], id="a template of one's own"),
    ],
)
def test_these_are_accepted(tiny: dict[str, Any], settings: list[str]) -> None:
    assert validation.faults(overrides.apply(tiny, settings)) == []


def test_a_missing_section_is_named(tiny: dict[str, Any]) -> None:
    del tiny["spec"]["cluster"]
    assert validation.faults(tiny) == ["spec.cluster is missing: it must be given"]


def test_the_best_of_no_evaluation_is_refused(tiny: dict[str, Any]) -> None:
    del tiny["spec"]["evaluation"]
    assert validation.faults(overrides.apply(tiny, ["checkpoint.best=gsm8k"])) == [
        "spec.checkpoint.best is gsm8k, which is no evaluation data set: give evaluation.datasets, or leave it out"
    ]


def test_a_long_name_is_refused(tiny: dict[str, Any]) -> None:
    tiny["metadata"]["name"] = "a" * 45
    assert len(validation.faults(tiny)) == 1
    tiny["metadata"]["name"] = "a" * 44
    assert validation.faults(tiny) == []


def test_a_document_that_is_not_an_object_is_refused() -> None:
    assert validation.faults([1]) == ["expected an object with apiVersion, kind, metadata and spec, found a list"]


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        (None, "metadata is null: it should be an object"),
        ([1], "metadata is [1]: it should be an object"),
        ({}, "metadata.name is missing: it must be given"),
        ({"generateName": "a-"}, "metadata.name is missing: it must be given"),
        ({"name": 12}, "metadata.name is 12: it should be a valid string, in quotes"),
        ({"name": "a", "lables": {}}, 'unknown field "metadata.lables": did you mean labels?'),
        ({"name": "a", "labels": ["x"]}, 'metadata.labels is ["x"]: it should be an object'),
        ({"name": "a", "labels": {"x": 1}}, "metadata.labels.x is 1: it should be a valid string, in quotes"),
        (
            {"name": "a", "labels": {"x": "y z"}},
            "metadata.labels.x is 'y z': string should match pattern '^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'",
        ),
        (
            {"name": "a", "namespace": "Team A"},
            "metadata.namespace is 'Team A': string should match pattern '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
        ),
    ],
)
def test_metadata_that_the_api_server_refuses_is_named(tiny: dict[str, Any], metadata: Any, sentence: str) -> None:
    assert validation.faults({**tiny, "metadata": metadata}) == [sentence]


def test_an_object_of_the_cluster_is_valid_as_it_is_copied(tiny: dict[str, Any]) -> None:
    copied = {"name": "a", "namespace": "b", "labels": {"kueue.x-k8s.io/queue-name": "q", "empty": ""},
              "annotations": {"note": "any text, with\nlines"}, "uid": "u", "resourceVersion": "7", "generation": 1,
              "creationTimestamp": None, "managedFields": [{}], "finalizers": [], "ownerReferences": []}  # fmt: skip
    assert validation.faults({**tiny, "metadata": copied, "status": {"phase": "Pending"}}) == []
