"""The shape of a job's model, from its config.json wherever that can be read without loading the model."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simplerl_api.failures import TrainerFailure
from simplerl_api.model_shape import ModelShape, shape_of
from simplerl_api.spec.hub import HubModel
from simplerl_api.spec.job import Spec
from simplerl_api.spec.model import Model
from simplerl_trainer import hub
from simplerl_trainer.models import documents, tiny_shape
from simplerl_trainer.models.families import FAMILIES, SUPPORTED


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What config.json says."""

    source: str
    """Where it was read."""
    family: str
    """qwen2, qwen3 or llama."""
    shape: ModelShape

    @property
    def layers(self) -> list[str]:
        """Class names of the decoder layers."""
        return [FAMILIES[self.family].replace("ForCausalLM", "DecoderLayer")]


@dataclass(frozen=True, slots=True)
class UnknownModel:
    """A model that cannot be looked at from here."""

    why: str
    """A sentence."""


def find(model: Model) -> KnownModel | UnknownModel:
    """The shape of the model that a spec names."""
    if model.path is not None:
        return _local(Path(model.path))
    if model.hub is not None:
        return _from_hub(model.hub)
    if model.tiny is not None:
        return _known("model.tiny", {"model_type": tiny_shape.FAMILY, **tiny_shape.SHAPE})
    raise AssertionError("a model has exactly one member")


def parameters(spec: Spec) -> int | None:
    """Parameters of the model, where they decide something and can be known: those that make_plan asks for."""
    rollout = spec.rollout
    if spec.cluster.cpu_only or rollout.engines is not None or rollout.engines_per_gpu is not None:
        return None
    found = find(spec.model)
    return found.shape.parameters if isinstance(found, KnownModel) else None


def _local(folder: Path) -> KnownModel | UnknownModel:
    file = folder / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return UnknownModel(
            f"model.path {folder} is not on this machine, so that its memory is not estimated: run this where it is "
            "mounted, or set model.path to a folder with the model's config.json"
        )
    except (OSError, ValueError, RecursionError) as e:
        return UnknownModel(f"{file} cannot be read ({e}), so that the model's memory is not estimated")
    if not isinstance(config, dict):
        return UnknownModel(f"{file} is not an object, so that the model's memory is not estimated")
    return _known(str(file), config)


def _from_hub(wanted: HubModel) -> KnownModel | UnknownModel:
    """The configuration alone is downloaded."""
    try:
        commit = hub.resolve(wanted, "model.hub")
        return _local(hub.model_folder(wanted, commit, "model.hub", weights=False))
    except TrainerFailure as e:
        return UnknownModel(f"the model's memory is not estimated: {e}")


def _known(source: str, config: dict[str, Any]) -> KnownModel | UnknownModel:
    family, _ = documents.architecture(config)
    if family not in FAMILIES:
        return UnknownModel(f"{source} is of family {family}, which cannot be trained: use {SUPPORTED}")
    try:
        return KnownModel(source, family, shape_of(config))
    except ValueError as e:
        return UnknownModel(f"{source}: {e}")
