"""The memory estimate: what each choice of the spec adds or takes away."""

from pathlib import Path
from typing import Any

import pytest

from simplerl_api import memory, validation, yaml12
from simplerl_api.memory import GIB, MemoryEstimate, Phase
from simplerl_api.model_shape import shape_of
from simplerl_api.plan import make_plan

ROOT = Path(__file__).parents[2]
QWEN = {
    "model_type": "qwen2",
    "vocab_size": 151936,
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "tie_word_embeddings": True,
}
"""config.json of Qwen2.5-0.5B."""


def estimate(config: dict[str, Any] | None = None, gpus: int = 1, **training: Any) -> MemoryEstimate:
    document = yaml12.load_file(ROOT / "examples/tiny.yaml")["spec"]
    document["cluster"] = {"gpus": gpus, "gpusPerNode": 8}
    document["placement"] = {"colocated": {}}
    document["data"]["maxPromptTokens"] = 256
    document["rollout"] = {"promptsPerStep": 256, "samplesPerPrompt": 4, "sampling": {"maxNewTokens": 512}}
    document["training"] = {"steps": 1, "trainBatchSize": 256, **training}
    spec = validation.parse_spec(document)
    return memory.estimate(shape_of(config or QWEN), spec, make_plan(spec))


def part(found: MemoryEstimate, name: str) -> int:
    (size,) = [p.bytes for p in found.parts if p.name == name]
    return size


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        pytest.param(QWEN, 494_032_768, id="Qwen2.5-0.5B"),
        pytest.param(
            {
                "model_type": "qwen2",
                "vocab_size": 152064,
                "hidden_size": 3584,
                "intermediate_size": 18944,
                "num_hidden_layers": 28,
                "num_attention_heads": 28,
                "num_key_value_heads": 4,
            },
            7_615_616_512,
            id="Qwen2.5-7B",
        ),
        pytest.param(
            {
                "model_type": "qwen3",
                "vocab_size": 151936,
                "hidden_size": 1024,
                "intermediate_size": 3072,
                "num_hidden_layers": 28,
                "num_attention_heads": 16,
                "num_key_value_heads": 8,
                "head_dim": 128,
                "tie_word_embeddings": True,
            },
            596_049_920,
            id="Qwen3-0.6B",
        ),
        pytest.param(
            {
                "model_type": "llama",
                "vocab_size": 128256,
                "hidden_size": 2048,
                "intermediate_size": 8192,
                "num_hidden_layers": 16,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "tie_word_embeddings": True,
            },
            1_235_814_400,
            id="Llama-3.2-1B",
        ),
    ],
)
def test_parameters_of_a_config(config: dict[str, Any], parameters: int) -> None:
    assert shape_of(config).parameters == parameters


@pytest.mark.parametrize("key", ["hidden_size", "vocab_size", "num_hidden_layers"])
def test_a_config_without_a_number_is_named(key: str) -> None:
    with pytest.raises(ValueError, match=f"config.json has {key} None: give a model folder where it is a number"):
        shape_of({k: v for k, v in QWEN.items() if k != key})


def test_one_rank_holds_sixteen_bytes_a_parameter_and_the_reference() -> None:
    found, count = estimate(), 494_032_768
    assert part(found, "actor: weights") == 2 * count
    assert part(found, "actor: float32 masters") == 4 * count
    assert part(found, "actor: AdamW moments") == 8 * count
    assert part(found, "frozen reference: weights") == 2 * count
    assert part(found, "critic: weights") == 2 * (count + 896), "the head is a vector, and the embedding was tied"


@pytest.mark.parametrize(
    ("stage", "weights", "states"),
    [(0, 1, 1), (1, 1, 8), (2, 1, 8), (3, 8, 8)],
    ids=["replicated", "optimizer", "gradients", "parameters"],
)
def test_eight_ranks_share_out_what_the_stage_says(stage: int, weights: int, states: int) -> None:
    found, count = estimate(gpus=8, zeroStage=stage), 494_032_768
    assert part(found, "actor: weights") == 2 * count // weights
    assert part(found, "actor: AdamW moments") == 8 * (count // states)


def test_offload_moves_states_and_weights_to_the_host() -> None:
    kept, moved = estimate(zeroStage=3), estimate(zeroStage=3, offload={"optimizer": True, "parameters": True})
    assert kept.total(Phase.HOST) == 0
    assert moved.total(Phase.HOST) == kept.total(Phase.TRAINING) - moved.total(Phase.TRAINING)
    assert {p.name for p in moved.parts if p.phase is Phase.HOST} == {
        f"{model}: {what}" for model in ("actor", "critic") for what in ("weights", "float32 masters", "AdamW moments")
    }


def test_checkpointing_keeps_a_hidden_state_a_layer_and_one_layer_whole() -> None:
    plain, checkpointed = (part(estimate(gradientCheckpointing=c), "activations of a pack") for c in (False, True))
    layer, last_norm = memory.layer_activations(shape_of(QWEN), 2, fused=True), 2 * 896 * 2
    assert plain - checkpointed == (23 * layer - 24 * 896 * 2 - last_norm) * 32768


def test_larger_packs_need_more_and_never_more_than_a_rank_has_samples() -> None:
    def activations(tokens: int) -> int:
        return part(estimate(maxTokensPerMicroBatch=tokens), "activations of a pack")

    assert activations(16384) * 2 == activations(32768)
    assert activations(256 * 768) == activations(10_000_000)
    steps = part(estimate(gradientAccumulationSteps=16), "activations of a pack")
    assert steps == activations(16 * 768), "256 samples in 16 micro-batches"


def test_logits_are_bounded() -> None:
    small, large = (part(estimate(maxTokensPerMicroBatch=t), "logits") for t in (16384, 32768))
    assert large - small < 2**26, "only the hidden states under them grow"
    assert large < 3 * GIB


def test_the_estimate_reads_as_a_document() -> None:
    document = estimate().document()
    assert document["parts"][0] == {"phase": "Training", "name": "actor: weights", "bytes": 988065536}
