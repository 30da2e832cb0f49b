"""DeepSpeed's settings, and what is asserted of an engine that was made with them."""

from typing import Any

import deepspeed
import pytest
import torch
from torch import nn

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.training import Offload, Precision, ZeroStage
from simplerl_trainer.policy import zero, zero_settings

GIB = 2**30


def settings(stage: int = 3, parameters: int = 10**9, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"cuda": True, "resident": False} | more
    return zero_settings.configuration(parameters, ZeroStage(stage), Precision.BF16, ["Layer"], **given)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_sums_are_float32_and_boundaries_ours(stage: int) -> None:
    found = settings(stage)
    assert found["data_types"] == {"grad_accum_dtype": "fp32"}
    assert found["communication_data_type"] == "fp32"
    assert found["gradient_accumulation_steps"] == 1
    assert found["zero_optimization"]["stage"] == stage
    assert found["zero_optimization"]["memory_efficient_linear"] is False, "it would replace torch's own for ever"


def test_stage_3_gathers_a_decoder_layer_as_one() -> None:
    assert settings(3)["zero_optimization"]["leaf_module"] == {"classes": ["Layer"]}
    assert "leaf_module" not in settings(2)["zero_optimization"]


def test_weights_that_are_small_for_the_gpu_stay_whole() -> None:
    found = settings(3, resident=True)["zero_optimization"]
    assert found["stage3_param_persistence_threshold"] == found["stage3_model_persistence_threshold"] == 10**9
    assert min(found["stage3_max_live_parameters"], found["stage3_max_reuse_distance"]) >= 10**9
    assert settings(3)["zero_optimization"]["stage3_param_persistence_threshold"] == 100_000
    assert settings(3, parameters=50_000)["zero_optimization"]["stage3_param_persistence_threshold"] == 5_000


@pytest.mark.parametrize(
    ("parameters", "gpu", "resident"),
    [
        pytest.param(10**8, None, True, id="small, CPU"),
        pytest.param(10**9, None, False, id="large, CPU"),
        pytest.param(5 * 10**8, 141 * GIB, True, id="half a billion on an H200"),
        pytest.param(7 * 10**9, 141 * GIB, False, id="seven billion on an H200"),
        pytest.param(15 * 10**8, 24 * GIB, False, id="one and a half on a small card"),
    ],
)
def test_which_weights_are_small(parameters: int, gpu: int | None, resident: bool) -> None:
    assert zero_settings.resident(parameters, Precision.BF16, gpu) is resident


def test_what_is_offloaded_is_on_the_host_and_in_page_locked_memory_for_a_gpu() -> None:
    host = {"device": "cpu", "pin_memory": True}
    found = settings(3, resident=True, offload=Offload(optimizer=True, parameters=True))
    assert found["zero_optimization"]["offload_optimizer"] == host
    assert found["zero_optimization"]["offload_param"] == host
    assert found["zero_optimization"]["stage3_param_persistence_threshold"] == 100_000, "nothing stays whole"
    assert found["zero_force_ds_cpu_optimizer"] is False, "torch's AdamW needs no compiler"
    assert "offload_param" not in settings(2, offload=Offload(optimizer=True))["zero_optimization"]
    loading = zero_settings.minimal(
        ZeroStage.PARAMETERS, Precision.BF16, cuda=True, offload=Offload(optimizer=True, parameters=True)
    )
    assert loading["zero_optimization"]["offload_param"] == host, "weights are read to where they live"


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)


def test_a_leaf_above_the_decoder_layers_is_refused() -> None:  # all gradients would be 0, without an error
    whole = nn.Sequential(Layer(), Layer())
    deepspeed.utils.set_z3_leaf_modules(whole, [nn.Sequential])
    sentence = "DeepSpeed gathers Sequential as one, not the decoder layers Layer: gradients would be lost"
    with pytest.raises(TrainerFailure, match=sentence) as caught:
        zero.check_engine(whole, ZeroStage.PARAMETERS, ["Layer"])
    assert caught.value.reason is FailureReason.INTERNAL


def test_a_leaf_that_was_not_taken_is_refused() -> None:
    with pytest.raises(TrainerFailure, match="DeepSpeed gathers nothing as one"):
        zero.check_engine(nn.Sequential(Layer()), ZeroStage.PARAMETERS, ["Layer"])


def test_decoder_layers_are_right_and_other_stages_have_no_leaves() -> None:
    layers = nn.Sequential(Layer(), Layer())
    zero.check_engine(layers, ZeroStage.GRADIENTS, ["Layer"])
    deepspeed.utils.set_z3_leaf_modules(layers, [Layer])
    zero.check_engine(layers, ZeroStage.PARAMETERS, ["Layer"])


def test_a_linear_map_that_was_replaced_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return x @ weight.T

    monkeypatch.setattr(nn.functional, "linear", other)
    with pytest.raises(TrainerFailure, match="DeepSpeed has replaced torch's linear map"):
        zero.check_engine(nn.Sequential(), ZeroStage.OPTIMIZER, ["Layer"])
