"""Which folders hold a reward model that the ranks can run, read from their JSON files alone."""

from dataclasses import dataclass
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.model_shape import ModelShape, shape_of
from simplerl_trainer.models import documents

CLASSIFIERS = {
    "qwen2": "Qwen2ForSequenceClassification",
    "qwen3": "Qwen3ForSequenceClassification",
    "llama": "LlamaForSequenceClassification",
}
"""config.json's model_type and architecture of each supported family."""


@dataclass(frozen=True, slots=True)
class JudgeFolder:
    """What a run must know of a reward model before it is loaded."""

    shape: ModelShape
    longest: int
    """Longest text that it reads, in tokens."""


def read(folder: Path, field: str, *, weights: bool = True) -> JudgeFolder:
    """The facts of a reward model's folder, which the spec's `field` names; `weights` says whether its weights must be
    there.

    Raises TrainerFailure(INVALID_INPUT): not a folder, files missing, another family, no sequence classifier, more
    labels than one.
    """
    if folder.is_file():
        raise _invalid(f"{field} is {folder}, a file: give the folder of a model in Hugging Face's layout")
    if not folder.is_dir():
        raise _invalid(f"{field} is {folder}, which does not exist: check it (in pods, cluster.volumes)")
    config = documents.read(folder, "config.json", f"{field} is {folder}, which")
    kind, architectures = documents.architecture(config)
    if kind not in CLASSIFIERS:
        raise _invalid(
            f"{field} is {folder}, of family {kind}, which is not supported: use Qwen2, Qwen2.5, Qwen3 or Llama"
        )
    if CLASSIFIERS[kind] not in architectures:
        raise _invalid(
            f"{field} is {folder}, a {', '.join(architectures) or 'model of unknown architecture'}, not a "
            f"sequence classifier: give a {CLASSIFIERS[kind]}"
        )
    labels = len(named) if isinstance(named := config.get("id2label"), dict) else config.get("num_labels", 2)
    if labels != 1:
        raise _invalid(f"{field} is {folder}, which has {labels} labels: give a reward model with one")
    for name in ("tokenizer.json", *(["*.safetensors"] if weights else [])):
        if not any(folder.glob(name)):
            raise _invalid(f"{field} is {folder}, which has no {name}: give a whole Hugging Face folder")
    try:
        shape = shape_of(config)
    except ValueError as e:
        raise _invalid(f"{field} is {folder}, whose {e}") from e
    longest = config.get("max_position_embeddings")
    if not isinstance(longest, int):
        raise _invalid(f"{field} is {folder}, whose config.json lacks max_position_embeddings: complete it")
    return JudgeFolder(shape, longest)


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
