"""What a rank does with a model that it trains, however the model is shared out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn

from simplerl_api.spec.training import Optimizer
from simplerl_trainer.checkpoints.shards import MOMENTS, Shard


@dataclass(frozen=True, slots=True)
class OptimizerStep:
    """What an optimizer step did."""

    norm: float
    """Norm of the gradient before it was scaled down; inf or nan where it was not finite."""
    applied: bool
    """False where the gradient was not finite, so that the weights stayed as they were."""


AtHand = Callable[[torch.Tensor], torch.Tensor]
"""Gives a tensor where its bytes are: itself, or the host's copy where it is out of the device's memory."""


class Trained(Protocol):
    """A model, its gradients and its optimizer, over all ranks. Every call is collective."""

    module: nn.Module

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """The model's forward pass."""

    def backward(self, loss: torch.Tensor, last: bool) -> None:
        """Adds the gradients of this rank's part of the loss; those of all ranks are summed. `last`: no other backward
        pass comes before the step."""

    def is_finite(self) -> bool:
        """Whether the gradient of all ranks is finite, after the last backward pass."""

    def step(self, learning_rate: float, skip: bool) -> OptimizerStep:
        """Scales the gradient down to the optimizer's greatest norm and takes one step; with `skip`, or where the
        gradient is not finite, the gradient is dropped and the weights stay as they were."""

    def gathered(self, parameters: Sequence[nn.Parameter]) -> AbstractContextManager[Any]:
        """Within it these parameters are whole."""

    def tensors(self) -> Iterator[torch.Tensor]:
        """Everything that it holds: weights, gradients, the optimizer's state, buffers. Not collective."""

    def held(self) -> Sequence[Shard]:
        """The slices of masters and moments that this rank trains; what is copied into them, `publish` takes over."""

    def written(self, at_hand: AtHand) -> Sequence[Shard]:
        """The slices that this rank saves: those of all ranks are the whole model, once. No other rank is asked."""

    def steps(self) -> torch.Tensor:
        """Steps that AdamW has taken, a number; those that were skipped are not counted."""

    def publish(self, steps: int) -> None:
        """Makes the weights on all ranks those of the masters, and lets AdamW go on after `steps` steps."""


def adamw(parameters: Sequence[nn.Parameter], optimizer: Optimizer) -> torch.optim.AdamW:
    """AdamW (https://arxiv.org/abs/1711.05101) of these parameters; weight decay acts on all of them."""
    return torch.optim.AdamW(
        parameters,
        lr=optimizer.learning_rate,
        betas=(optimizer.betas[0], optimizer.betas[1]),
        weight_decay=optimizer.weight_decay,
        fused=True,
    )


def moments(optimizer: torch.optim.Optimizer, master: torch.Tensor) -> dict[str, torch.Tensor]:
    """AdamW's two moment estimates of a tensor; zeros where it has not taken a step yet."""
    state = optimizer.state[master]
    return {key: state[key] if state else torch.zeros(master.shape) for key in MOMENTS}


def make_moments(optimizer: torch.optim.Optimizer, masters: Sequence[torch.Tensor]) -> None:
    """Gives AdamW the moment estimates that its first step would make, where it has none yet."""
    for master in masters:
        state = optimizer.state[master]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=master.device)
            state |= {key: torch.zeros_like(master, requires_grad=False) for key in MOMENTS}


def steps_taken(optimizer: torch.optim.Optimizer, master: torch.Tensor) -> torch.Tensor:
    """Steps that AdamW has taken with a tensor, a number."""
    steps: torch.Tensor = optimizer.state[master].get("step", torch.zeros(()))
    return steps


def go_on_after(optimizer: torch.optim.Optimizer, masters: Sequence[torch.Tensor], steps: int) -> None:
    """Sets the steps that AdamW has taken: they undo the bias of its moments."""
    for master in masters:
        optimizer.state[master]["step"].fill_(steps)
