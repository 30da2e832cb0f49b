"""Which models can be trained, read from a Hugging Face folder's JSON files alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.model_shape import ModelShape, shape_of
from simplerl_trainer.models import documents

FAMILIES = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "llama": "LlamaForCausalLM"}
"""config.json's model_type and architecture of each supported family; Qwen2.5 is of type qwen2."""
SUPPORTED = "Qwen2, Qwen2.5, Qwen3 and Llama"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What a run must know of its model before anything is loaded."""

    family: str
    """qwen2, qwen3 or llama."""
    vocab_size: int
    """Rows of the embedding; the tokenizer may have fewer ids."""
    max_position_embeddings: int
    """Longest sequence that the model was made for, in tokens."""
    tied: bool
    """Whether the output layer is the embedding."""
    stop_token_ids: tuple[int, ...]
    """Every end-of-sequence id that config.json, generation_config.json or the tokenizer names, ascending."""


def read(folder: Path, *, weights: bool = True) -> ModelFolder:
    """The facts of a model folder; `weights` says whether its weights must be there.

    Raises TrainerFailure(INVALID_INPUT) with a sentence that names the folder and the file: not a folder, files
    missing, another family, quantized weights, no end-of-sequence token.
    """
    if folder.is_file():
        raise _invalid(f"model.path is {folder}, a file: give the folder of a model in Hugging Face's layout")
    if not folder.is_dir():
        raise _invalid(f"model folder {folder} does not exist: check model.path (in pods, cluster.volumes)")
    config = _json(folder, "config.json")
    family = _family(folder, config)
    if (quantization := config.get("quantization_config")) is not None:
        method = quantization.get("quant_method", "unknown") if isinstance(quantization, dict) else "unknown"
        raise _invalid(f"model folder {folder} holds weights quantized by {method}: give the unquantized model")
    if weights:
        _check_weights(folder)
    tokenizer = _json(folder, "tokenizer.json")
    stop = _stop_token_ids(folder, config, tokenizer)
    if not stop:
        raise _invalid(
            f"model folder {folder} names no end-of-sequence token: set eos_token_id in its generation_config.json"
        )
    return ModelFolder(
        family=family,
        vocab_size=_number(folder, config, "vocab_size"),
        max_position_embeddings=_number(folder, config, "max_position_embeddings"),
        tied=bool(config.get("tie_word_embeddings", False)),
        stop_token_ids=tuple(sorted(stop)),
    )


def shape(folder: Path) -> ModelShape:
    """The numbers that decide a model's size. Raises TrainerFailure(INVALID_INPUT) naming one that is missing."""
    try:
        return shape_of(_json(folder, "config.json"))
    except ValueError as e:
        raise _invalid(f"model folder {folder} cannot be used: its {e}") from e


def _family(folder: Path, config: dict[str, Any]) -> str:
    kind, architectures = documents.architecture(config)
    if kind not in FAMILIES:
        raise _invalid(f"model folder {folder} is of family {kind}, which cannot be trained: use {SUPPORTED}")
    if architectures and FAMILIES[kind] not in architectures:
        raise _invalid(
            f"model folder {folder} is a {', '.join(architectures)}, not a language model: "
            f"use one whose architecture is {FAMILIES[kind]}"
        )
    return kind


def _check_weights(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        if not any(folder.glob("*.safetensors")):
            raise _invalid(f"model folder {folder} has no *.safetensors: give a folder whose weights are safetensors")
        return
    files = _json(folder, index.name).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(file, str) for file in files.values()):
        raise _invalid(f"model folder {folder} has a {index.name} without a weight_map: mend or replace it")
    missing = sorted(file for file in set(files.values()) if not (folder / file).exists())
    if missing:
        raise _invalid(f"model folder {folder} lacks {missing[0]}, which {index.name} names: copy the whole model")


def _stop_token_ids(folder: Path, config: dict[str, Any], tokenizer: dict[str, Any]) -> set[int]:
    # a model that ends its answers by one id and its texts by another names them in different files
    ids = _ids(config.get("eos_token_id"))
    if (folder / "generation_config.json").exists():
        ids |= _ids(_json(folder, "generation_config.json").get("eos_token_id"))
    if (folder / "tokenizer_config.json").exists():
        token = _json(folder, "tokenizer_config.json").get("eos_token")
        content = token.get("content") if isinstance(token, dict) else token
        added = [t for t in tokenizer.get("added_tokens") or [] if isinstance(t, dict)]
        ids |= {i for t in added if t.get("content") == content for i in _ids(t.get("id"))}
    return ids


def _ids(value: Any) -> set[int]:
    return {i for i in (value if isinstance(value, list) else [value]) if isinstance(i, int)}


def _number(folder: Path, config: dict[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
        raise _invalid(f"model folder {folder} has a config.json without a number {key}: complete it")
    return value


def _json(folder: Path, name: str) -> dict[str, Any]:
    return documents.read(folder, name, f"model folder {folder}")


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
