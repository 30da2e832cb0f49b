"""`simplerl plan`: what it says is what the ranks would be given, and what does not fit is a sentence."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.trainer.hub.server import serving
from typer.testing import CliRunner

from simplerl_api import overrides, validation, yaml12
from simplerl_api.plan import make_plan
from simplerl_api.spec.training import ZeroStage
from simplerl_trainer.cli import app
from simplerl_trainer.planning import report

ROOT = Path(__file__).parents[3]
TINY = ROOT / "examples/tiny.yaml"
QWEN_7B = {
    "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 152064, "hidden_size": 3584,
    "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip
"""config.json of Qwen2.5-Math-7B, as far as its size goes: 7,615,616,512 parameters."""
JOB_7B = """
apiVersion: simplerl.io/v1alpha1
kind: SimpleRLJob
metadata: {name: math-7b}
spec:
  model: {path: MODEL}
  data: {train: {file: /data/math.jsonl}}
  rewards: [{name: math, math: {}}]
  training: {steps: 120}
  cluster: {gpus: 32}
"""


@pytest.fixture
def job_7b(tmp_path: Path) -> Path:
    (tmp_path / "qwen").mkdir()
    (tmp_path / "qwen/config.json").write_text(json.dumps(QWEN_7B))
    file = tmp_path / "job.yaml"
    file.write_text(JOB_7B.replace("MODEL", str(tmp_path / "qwen")))
    return file


def plan(file: Path, *settings: str, more: Sequence[str] = ()) -> dict[str, Any]:
    words = ["plan", str(file), "-o", "json", *more, *(w for s in settings for w in ("--set", s))]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.output)
    return document


def test_a_7b_model_on_four_nodes_of_eight(job_7b: Path) -> None:
    found = plan(job_7b)
    assert {k: found["plan"][k] for k in ("nodes", "ranks", "engines", "zeroStage", "precision", "durable")} == {
        "nodes": 4, "ranks": 32, "engines": 32, "zeroStage": 2, "precision": "BF16", "durable": False,
    }  # fmt: skip
    assert len(found["slots"]) == 32
    assert found["slots"][31] == {"index": 31, "node": 3, "gpu": 7, "rank": 31, "engines": [31]}
    assert found["model"]["parameters"] == 7_615_616_512
    assert found["optimizerSteps"] == {"samplesPerStep": 8192, "perStep": 64, "inAll": 7680}
    assert found["memory"]["assumed"]
    assert found["warnings"] == []
    chosen = {c["field"]: c["value"] for c in found["chosen"]}
    assert chosen["training.zeroStage"] == 2
    assert chosen["training.precision"] == "BF16"
    assert chosen["placement"] == "colocated"
    assert "training.steps" not in chosen


@pytest.mark.parametrize(("gib", "stage"), [("288", 1), ("80", 2), ("40", 3)])
def test_the_ranks_share_out_the_least_that_fits(job_7b: Path, gib: str, stage: int) -> None:
    found = plan(job_7b, more=["--gpu-memory", gib])
    (choice,) = (c for c in found["chosen"] if c["field"] == "training.zeroStage")
    assert (found["plan"]["zeroStage"], choice["value"]) == (stage, stage)
    assert choice["why"] == "the least that fits, by the memory below; the ranks reckon with that of their own GPUs"
    assert found["memory"]["residence"]["zeroStage"] == stage
    assert found["deepspeed"]["actor"]["zero_optimization"]["stage"] == stage


def test_what_leaves_a_gpu_needs_the_pod_s_memory(job_7b: Path) -> None:
    small = "cluster.workers.resources={limits: {memory: 100Gi}}"
    found = plan(job_7b, small)
    assert found["memory"]["residence"]["sleeps"]
    copies = next(part for part in found["memory"]["parts"] if part["phase"] == "Host")
    assert copies["name"] == "copies of what leaves the GPU"
    assert [
        w for w in found["warnings"] if re.match(r"^what the ranks of a pod keep in its memory needs \d+ GiB, and", w)
    ]


@pytest.mark.parametrize(
    ("settings", "more", "sentence"),
    [
        pytest.param(
            ["cluster.gpus=1"], [], r"^training needs \d+ GiB of a GPU, which has 73.6 for it: use more GPUs",
            id="a 7B model with a critic on one GPU",
        ),
        pytest.param(
            ["rollout.enginesPerGpu=8"], ["--gpu-memory", "80"],
            r"^the engines' weights and activations need \d+ GiB of a GPU, more than rollout.gpuMemoryUtilization 0.9 "
            r"leaves of it \(72\): use fewer engines a GPU",
            id="eight engines of 14 GiB each",
        ),
        pytest.param(
            ["rollout.maxNumSeqs=4096"], [],
            r"^the KV cache of rollout.maxNumSeqs 4096 longest samples would take \d+ GiB, and there are [\d.]+: fewer",
            id="more sequences than fit",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_warning(job_7b: Path, settings: list[str], more: list[str], sentence: str) -> None:
    found = plan(job_7b, *settings, more=more)
    assert [w for w in found["warnings"] if re.match(sentence, w)], found["warnings"]


def test_a_model_that_is_elsewhere_is_unknown_and_the_rest_is_said(job_7b: Path) -> None:
    found = plan(job_7b, "model.path=/models/elsewhere")
    assert found["memory"] is None
    assert found["deepspeed"] is None
    assert found["plan"]["nodes"] == 4
    assert [c["why"] for c in found["chosen"] if c["field"] == "training.zeroStage"] == [
        "the most: the ranks share less where the model, which is not known here, fits their GPUs"
    ]
    assert found["warnings"] == [
        "model.path /models/elsewhere is not on this machine, so that its memory is not estimated: run this where it "
        "is mounted, or set model.path to a folder with the model's config.json"
    ]


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param("[]", "{file} is not an object, so that the model's memory is not estimated", id="a list"),
        pytest.param("[" * 100_000, "{file} cannot be read (maximum recursion depth exceeded", id="lists without end"),
        pytest.param('{"model_type": ["llama"]}', "{file} is of family ['llama'], which cannot be trained", id="two"),
        pytest.param(
            '{"model_type": "llama", "hidden_size": "9"}',
            "{file}: config.json has hidden_size '9': give a",
            id="a text",
        ),
    ],
)
def test_a_config_json_that_says_nothing_is_a_warning(job_7b: Path, tmp_path: Path, config: str, sentence: str) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/config.json").write_text(config)
    (warning,) = plan(job_7b, f"model.path={tmp_path}/odd")["warnings"]
    assert warning.startswith(sentence.format(file=tmp_path / "odd/config.json"))


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_deepspeed_s_settings_are_the_very_ones_of_the_ranks(tmp_path: Path, stage: int) -> None:
    from simplerl_trainer.models import tiny
    from simplerl_trainer.policy import model, zero

    document = overrides.apply(yaml12.load_file(TINY), [f"training.zeroStage={stage}", "model.tiny.warmupAccuracy=0"])
    spec = validation.parse(document).spec
    assert spec.model.tiny is not None
    tiny.build(tmp_path / "tiny", spec.model.tiny)
    config = model.read_config(str(tmp_path / "tiny"), 24)
    modules = {
        "actor": (model.load_actor(str(tmp_path / "tiny"), config, torch.float32), spec.training.actor),
        "critic": (model.load_critic(str(tmp_path / "tiny"), config, torch.float32, 0), spec.training.critic),
    }
    precision = make_plan(spec).precision
    given = {
        name: zero.configuration(
            module, ZeroStage(stage), precision, model.layer_classes(module), torch.device("cpu"), None,
            max_grad_norm=optimizer.max_grad_norm, offload=spec.training.offload,
        )
        for name, (module, optimizer) in modules.items()
    }  # fmt: skip
    assert report.report(spec, None)["deepspeed"] == given


def test_an_algorithm_without_a_critic_needs_none() -> None:
    by_group = plan(TINY, "algorithm={grpo: {}}")
    assert set(by_group["deepspeed"]) == {"actor"}
    assert not [part for part in by_group["memory"]["parts"] if part["name"].startswith("critic")]
    chosen = {c["field"]: c["value"] for c in by_group["chosen"]}
    assert (chosen["algorithm.kl.placement"], chosen["algorithm.kl.estimator"]) == ("Loss", "K3")


def test_stage_0_is_trained_without_deepspeed() -> None:
    assert plan(TINY, "training.zeroStage=0")["deepspeed"] is None


def test_the_tables_hold_the_same_figures() -> None:
    result = CliRunner().invoke(app, ["plan", str(TINY)], env={"COLUMNS": "140"})
    assert result.exit_code == 0
    for text in ("Disaggregated", "2, ZeRO stage 3, FP32", "4 a step of 512 samples, 320 in all", "leaf_module",
                 "AdamW moments", "training.zeroStage", "2 ranks share the weights"):  # fmt: skip
        assert text in result.output, result.output


def test_an_invalid_job_has_no_plan() -> None:
    result = CliRunner().invoke(app, ["plan", str(TINY), "--set", "rollout.engines=0"])
    assert result.exit_code == 1
    assert result.output == f"{TINY}: spec.rollout.engines is 0: it should be greater than or equal to 1\n"


def test_neither_torch_nor_deepspeed_is_imported() -> None:
    program = (
        "import sys; from typer.testing import CliRunner; from simplerl_trainer.cli import app;"
        f"assert CliRunner().invoke(app, ['plan', {str(TINY)!r}]).exit_code == 0;"
        "print(*sorted({'torch', 'deepspeed', 'vllm', 'ray'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("served", "parameters"),
    [pytest.param(True, 7_615_616_512, id="a hub that answers"), pytest.param(False, None, id="a hub that does not")],
)
def test_the_shape_of_a_hub_s_model_comes_with_its_config_alone(
    job_7b: Path, tmp_path: Path, served: bool, parameters: int | None
) -> None:
    with serving() as hub:
        hub.add("model", "org/m", {"config.json": json.dumps(QWEN_7B).encode(), "model.safetensors": b"w" * 1000})
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
        variables = {"HF_ENDPOINT": hub.url if served else "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hub")}
        done = subprocess.run(
            [sys.executable, "-m", "simplerl_trainer.cli", "plan", job_7b, "-o", "json", "--set", HUB_MODEL],
            capture_output=True, text=True, timeout=120, env=inherited | variables, check=True,
        )  # fmt: skip
        assert not hub.downloads(".safetensors")
    found = json.loads(done.stdout)
    assert found["plan"]["nodes"] == 4
    assert found["model"].get("parameters") == parameters
    if not served:
        (warning,) = found["warnings"]
        assert warning.startswith("the model's memory is not estimated: model.hub.name is org/m")


HUB_MODEL = "model={hub: {name: org/m}}"
