"""What is said of a plan that was made without a look at the model."""

import json
from pathlib import Path

import pytest

from simplerl_api import overrides, validation, yaml12
from simplerl_api.plan import make_plan
from simplerl_api.run import Run
from simplerl_trainer.setups import idle_advice

TINY = Path(__file__).parents[2] / "examples/tiny.yaml"
SHAPE = {
    "model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864,
    "num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True,
}  # fmt: skip
GPUS = ["cluster={gpus: 8}", "placement={colocated: {}}", "rollout.enginesPerGpu=null", "rollout.engines=null"]


def advice(folder: Path, layers: int, settings: list[str]) -> str | None:
    (folder / "config.json").write_text(json.dumps(SHAPE | {"num_hidden_layers": layers}), encoding="utf-8")
    spec = validation.parse(overrides.apply(yaml12.load_file(TINY), [*GPUS, *settings])).spec
    run = Run(
        name="small", namespace="local", uid="1", attempt=1, submission_id="small-1", spec=spec,
        plan=make_plan(spec), output="",
    )  # fmt: skip
    return idle_advice(run, folder)


def test_a_small_model_on_one_engine_a_gpu_is_advised_to_have_more(tmp_path: Path) -> None:
    assert advice(tmp_path, 24, []) == (
        "the model has 494,032,768 parameters, and 1 engine on each GPU that rolls out leaves it idle: set "
        "rollout.enginesPerGpu to 4"
    )


@pytest.mark.parametrize(
    ("layers", "settings"),
    [
        pytest.param(80, [], id="a large model"),
        pytest.param(24, ["rollout.enginesPerGpu=1"], id="the spec says one"),
        pytest.param(24, ["rollout.tensorParallelSize=2"], id="an engine spans GPUs"),
        pytest.param(24, ["cluster.cpuOnly=true"], id="on CPU"),
    ],
)
def test_nothing_is_said_of(tmp_path: Path, layers: int, settings: list[str]) -> None:
    assert advice(tmp_path, layers, settings) is None
