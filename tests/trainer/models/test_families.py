"""Which model folders can be trained."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.models.families import read

CONFIG: dict[str, Any] = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "vocab_size": 151936,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
    "eos_token_id": 151643,
}
TOKENIZER = {"added_tokens": [{"id": 151645, "content": "<|im_end|>"}], "model": {"vocab": {}}}


def write(folder: Path, **files: Any) -> Path:
    """A model folder; a file that is None is left out."""
    folder.mkdir()
    contents = {
        "config.json": CONFIG,
        "tokenizer.json": TOKENIZER,
        "tokenizer_config.json": {"eos_token": "<|im_end|>"},
        "model.safetensors": {},
    } | {name.replace("__", "."): content for name, content in files.items()}
    for name, content in contents.items():
        if content is not None:
            (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def config(**changes: Any) -> dict[str, Any]:
    return {k: v for k, v in (CONFIG | changes).items() if v is not None}


@pytest.mark.parametrize(
    ("kind", "architecture"),
    [("qwen2", "Qwen2ForCausalLM"), ("qwen3", "Qwen3ForCausalLM"), ("llama", "LlamaForCausalLM")],
)
def test_the_families(tmp_path: Path, kind: str, architecture: str) -> None:
    found = read(write(tmp_path / "m", config__json=config(model_type=kind, architectures=[architecture])))
    assert (found.family, found.vocab_size, found.max_position_embeddings, found.tied) == (kind, 151936, 4096, True)


STOPS = {
    "one in each file": ({"eos_token_id": [151645, 7]}, {"eos_token": "<|im_end|>"}, (7, 151643, 151645)),
    # fault 12 (TRL#6357): a pad token that is the end token hid it
    "the pad token is the end token": (
        {"eos_token_id": 151645, "pad_token_id": 151645},
        {"eos_token": "<|im_end|>", "pad_token": "<|im_end|>"},
        (151643, 151645),
    ),
    "the token as an object": ({}, {"eos_token": {"content": "<|im_end|>"}}, (151643, 151645)),
    "no generation_config": (None, {}, (151643,)),
    "a token that the tokenizer lacks": (None, {"eos_token": "</s>"}, (151643,)),
}


@pytest.mark.parametrize(("generation", "tokenizer", "expected"), STOPS.values(), ids=STOPS.keys())
def test_every_end_of_sequence_id_is_found(  # fault 11 (verl#212): of two end ids one was masked
    tmp_path: Path, generation: Any, tokenizer: Any, expected: tuple[int, ...]
) -> None:
    folder = write(tmp_path / "m", generation_config__json=generation, tokenizer_config__json=tokenizer)
    assert read(folder).stop_token_ids == expected


SHARDS = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another family": (
        {"config__json": config(model_type="mixtral", architectures=["MixtralForCausalLM"])},
        "is of family mixtral, which cannot be trained: use Qwen2, Qwen2.5, Qwen3 and Llama",
    ),
    "no family": (
        {"config__json": config(model_type=None)},
        "is of family None, which cannot be trained: use Qwen2, Qwen2.5, Qwen3 and Llama",
    ),
    "a classifier": (
        {"config__json": config(architectures=["Qwen2ForSequenceClassification"])},
        "is a Qwen2ForSequenceClassification, not a language model: use one whose architecture is Qwen2ForCausalLM",
    ),
    "quantized weights": (
        {"config__json": config(quantization_config={"quant_method": "awq"})},
        "holds weights quantized by awq: give the unquantized model",
    ),
    "no config.json": ({"config__json": None}, "has no config.json: give a whole Hugging Face folder"),
    "no tokenizer.json": ({"tokenizer__json": None}, "has no tokenizer.json: give a whole Hugging Face folder"),
    "no weights": (
        {"model__safetensors": None},
        "has no *.safetensors: give a folder whose weights are safetensors",
    ),
    "a shard that is missing": (
        {"model__safetensors__index__json": SHARDS, "model-1__safetensors": {}},
        "lacks model-2.safetensors, which model.safetensors.index.json names: copy the whole model",
    ),
    "a config.json that is not JSON": (
        {"config__json": "{"},
        "has a config.json that cannot be read (Expecting property name enclosed in double quotes: line 1 column 2 "
        "(char 1)): mend or replace it",
    ),
    "a config.json that is a list": ({"config__json": []}, "has a config.json that is not an object: mend or replace"),
    "a family that is a list": (
        {"config__json": config(model_type=["qwen2"])},
        "is of family ['qwen2'], which cannot be trained: use Qwen2, Qwen2.5, Qwen3 and Llama",
    ),
    "an architecture that is a text": (
        {"config__json": config(architectures="Qwen2ForCausalLMs")},
        "is a Qwen2ForCausalLMs, not a language model: use one whose architecture is Qwen2ForCausalLM",
    ),
    "an architecture that is a number": ({"config__json": config(architectures=7)}, "is a 7, not a language model: "),
    "lists without end": (
        {"config__json": "[" * 100_000},
        "has a config.json that cannot be read (maximum recursion depth exceeded",
    ),
    "a config.json without a size": (
        {"config__json": config(vocab_size=None)},
        "has a config.json without a number vocab_size: complete it",
    ),
    "a config.json with a size below 1": (
        {"config__json": config(vocab_size=0)},
        "has a config.json without a number vocab_size: complete it",
    ),
    "an index without its map": (
        {"model__safetensors__index__json": {"weight_map": ["model-1.safetensors"]}},
        "has a model.safetensors.index.json without a weight_map: mend or replace it",
    ),
    "no end of sequence": (
        {"config__json": config(eos_token_id=None), "tokenizer_config__json": None},
        "names no end-of-sequence token: set eos_token_id in its generation_config.json",
    ),
}


@pytest.mark.parametrize(("files", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_a_folder_s_fault_is_a_sentence(tmp_path: Path, files: dict[str, Any], sentence: str) -> None:
    folder = write(tmp_path / "m", **files)
    with pytest.raises(TrainerFailure) as caught:
        read(folder)
    assert caught.value.message.startswith(f"model folder {folder} {sentence}")
    assert caught.value.reason is FailureReason.INVALID_INPUT


NO_FOLDERS: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: None, "model folder FOLDER does not exist: check model.path (in pods, cluster.volumes)"),
    (
        lambda path: path.write_text(""),
        "model.path is FOLDER, a file: give the folder of a model in Hugging Face's layout",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), NO_FOLDERS, ids=["nothing there", "a file"])
def test_what_is_not_a_folder_is_refused(tmp_path: Path, make: Callable[[Path], object], sentence: str) -> None:
    folder = tmp_path / "m"
    make(folder)
    with pytest.raises(TrainerFailure) as caught:
        read(folder)
    assert caught.value.message == sentence.replace("FOLDER", str(folder))
