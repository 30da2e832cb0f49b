"""Actor, critic and reference: a causal language model of a supported family, over packs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.utils import logging

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.policy import attention
from simplerl_trainer.policy.logprobs import chunk_size, token_logprobs, token_logprobs_and_entropies
from simplerl_trainer.policy.packing import Pack
from simplerl_trainer.policy.reward_model import RewardModel

FAMILIES = {"qwen2": "Qwen2 and Qwen2.5", "qwen3": "Qwen3", "llama": "Llama"}
"""Supported families by the `model_type` of their config.json."""


class Head(nn.Module):
    """The output embedding. One call gathers its weight once under ZeRO-3, however many chunks the logits take."""

    def __init__(self, weight: nn.Parameter, vocabulary: int | None = None) -> None:
        """`vocabulary`: rows that stand for ids of the tokenizer; the others are never sampled, so that they have no
        part in any softmax. None: all."""
        super().__init__()
        self.weight = weight
        self._vocabulary = vocabulary

    def forward(
        self, hidden: torch.Tensor, targets: torch.Tensor, temperature: float, entropies: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Log-probabilities of `targets` [R] after `hidden` [R, H]; with `entropies` also those."""
        weight = self.weight if self._vocabulary is None else self.weight[: self._vocabulary]
        chunk = chunk_size(weight.shape[0])
        if entropies:
            return token_logprobs_and_entropies(hidden, weight, targets, temperature, chunk)
        return token_logprobs(hidden, weight, targets, temperature, chunk), None


class Actor(nn.Module):
    """The policy; the frozen reference is one too. Parameters bear their Hugging Face names after `causal.`."""

    def __init__(self, causal: PreTrainedModel, vocabulary: int | None = None) -> None:
        super().__init__()
        padded = vocabulary is not None and vocabulary < causal.config.vocab_size
        causal.lm_head = Head(causal.lm_head.weight, vocabulary if padded else None)
        self.causal = causal

    def forward(
        self, pack: Pack, temperature: float, entropies: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Log-probabilities [R] of the pack's response tokens in nats, and their entropies [R] where wanted."""
        hidden = _hidden(self.causal.model, pack)
        return self.causal.lm_head(hidden, pack.targets, temperature, entropies)


class ValueHead(nn.Module):
    """A linear map to one number, in at least float32."""

    def __init__(self, size: int, seed: int) -> None:
        super().__init__()
        # hidden states are normed, so values start with a standard deviation of about size^-1/2
        start = torch.randn(1, size, generator=torch.Generator().manual_seed(seed)) / (size + 1)
        self.weight = nn.Parameter(start)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """[R, H] -> [R]"""
        at_least = torch.promote_types(hidden.dtype, torch.float32)
        return nn.functional.linear(hidden.to(at_least), self.weight.to(at_least))[:, 0]


class Critic(nn.Module):
    """The body of a language model with a value head."""

    def __init__(self, body: PreTrainedModel, head: ValueHead) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, pack: Pack) -> torch.Tensor:
        """Values [R] of the states in which the pack's response tokens were chosen."""
        return self.head(_hidden(self.body, pack))


def _hidden(body: nn.Module, pack: Pack) -> torch.Tensor:
    """[R, H]: hidden states of the positions that predict a response's token."""
    out = body(input_ids=pack.ids, position_ids=pack.positions, use_cache=False, layout=pack.layout)
    return out.last_hidden_state[0].index_select(0, pack.predicts)


def read_config(folder: str, max_tokens: int, field: str = "model") -> PreTrainedConfig:
    """The configuration of the model in a Hugging Face folder, which the spec's `field` names.

    Raises TrainerFailure(INVALID_INPUT) naming a family that is not supported, a folder that cannot be read, or a
    context that is shorter than `max_tokens`.
    """
    path = Path(folder) / "config.json"
    try:
        family = json.loads(path.read_text(encoding="utf-8")).get("model_type")
    except (OSError, ValueError) as e:
        raise TrainerFailure(
            FailureReason.INVALID_INPUT, f"{field}: {path} cannot be read ({e}): give a Hugging Face folder"
        ) from e
    if family not in FAMILIES:
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"{field}: {folder} is of family {family}, which is not supported: use one of "
            + ", ".join(FAMILIES.values()),
        )
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as e:  # each number's validator has an error of its own
        said = " ".join(str(e).split())
        raise TrainerFailure(FailureReason.INVALID_INPUT, f"{field}: {path} cannot be used ({said}): mend it") from e
    window = getattr(config, "sliding_window", None)
    if (
        window is not None
        and window < max_tokens
        and "sliding_attention" in (getattr(config, "layer_types", None) or ())
    ):
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"{field}: {folder} attends to a sliding window of {window} tokens, less than the {max_tokens} tokens of "
            "the longest prompt and response, which is not supported: shorten them, or use another model",
        )
    if config.max_position_embeddings < max_tokens:
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"{field}: {folder} takes {config.max_position_embeddings} tokens, less than data.maxPromptTokens + "
            f"rollout.sampling.maxNewTokens = {max_tokens}: shorten them, or use another model",
        )
    config.attention_dropout = 0.0
    return config


def check_weights(
    folder: str, config: PreTrainedConfig, field: str = "model", kind: Any = AutoModelForCausalLM
) -> None:
    """Compares the tensors of the folder's safetensors files with its config.json, on every rank alike. `kind` of
    model: AutoModelForCausalLM or AutoModelForSequenceClassification.

    transformers would fill a missing tensor at random and ignore one too many. Raises TrainerFailure(INVALID_INPUT)
    naming the tensor.
    """
    with torch.device("meta"):
        wanted = {n: tuple(p.shape) for n, p in kind.from_config(config).named_parameters()}
    saved = _shapes(Path(folder), field)
    if config.tie_word_embeddings:
        saved.pop("lm_head.weight", None)
    misfits = (
        ("lacks", wanted.keys() - saved.keys()),
        ("also holds", saved.keys() - wanted.keys()),
        ("has another size of", {n for n in wanted.keys() & saved.keys() if wanted[n] != saved[n]}),
    )
    for what, names in misfits:
        if names:
            raise TrainerFailure(
                FailureReason.INVALID_INPUT,
                f"{field}: {folder} {what} the tensor {min(names)}: give a folder whose weights fit its config.json",
            )


def _shapes(folder: Path, field: str) -> dict[str, tuple[int, ...]]:
    """Shapes of all tensors in the folder's safetensors files, but for the constants that old Llama files hold."""
    shapes: dict[str, tuple[int, ...]] = {}
    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, framework="pt") as opened:
                shapes |= {n: tuple(opened.get_slice(n).get_shape()) for n in opened.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as e:
            raise TrainerFailure(FailureReason.INVALID_INPUT, f"{field}: {file} cannot be read: {e}") from e
    return {name: shape for name, shape in shapes.items() if not name.endswith("rotary_emb.inv_freq")}


def load_actor(folder: str, config: PreTrainedConfig, dtype: torch.dtype, vocabulary: int | None = None) -> Actor:
    """The language model of a Hugging Face folder whose weights were checked."""
    return Actor(_load(AutoModelForCausalLM, folder, config, dtype), vocabulary)


def load_critic(folder: str, config: PreTrainedConfig, dtype: torch.dtype, seed: int) -> Critic:
    """The body of that language model with a fresh value head."""
    return Critic(_load(AutoModel, folder, config, dtype), ValueHead(config.hidden_size, seed).to(dtype))


def load_reward_model(folder: str, config: PreTrainedConfig, dtype: torch.dtype) -> RewardModel:
    """The sequence classifier of a Hugging Face folder whose weights were checked."""
    return RewardModel(_load(AutoModelForSequenceClassification, folder, config, dtype))


def _load(kind: Any, folder: str, config: PreTrainedConfig, dtype: torch.dtype) -> Any:
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # its report says nothing that check_weights has not
    logging.disable_progress_bar()
    try:
        return kind.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            attn_implementation=attention.NAME,
            trust_remote_code=False,
            local_files_only=True,
            use_safetensors=True,
        )
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def layer_classes(model: nn.Module) -> Sequence[str]:
    """Class names of the decoder layers."""
    match model:
        case Actor():
            body = model.causal.model
        case RewardModel():
            body = model.classifier.model
        case _:
            body = model.body
    assert isinstance(body, nn.Module)
    return sorted({type(layer).__name__ for layer in body.layers})


def checkpoint_layers(model: nn.Module) -> None:
    """Makes the decoder layers recompute their activations in the backward pass."""
    body = model.causal if isinstance(model, Actor) else model.body
    assert isinstance(body, PreTrainedModel)
    body.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
