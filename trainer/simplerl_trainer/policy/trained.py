"""What a rank does with a model that it trains, however the model is shared out."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from simplerl_api.spec.training import Optimizer


@dataclass(frozen=True, slots=True)
class OptimizerStep:
    """What an optimizer step did."""

    norm: float
    """Norm of the gradient before it was scaled down; inf or nan where it was not finite."""
    applied: bool
    """False where the gradient was not finite, so that the weights stayed as they were."""


class Trained(Protocol):
    """A model, its gradients and its optimizer, over all ranks. Every call is collective."""

    module: nn.Module

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """The model's forward pass."""

    def backward(self, loss: torch.Tensor, last: bool) -> None:
        """Adds the gradients of this rank's part of the loss; those of all ranks are summed. `last`: no other backward
        pass comes before the step."""

    def step(self, learning_rate: float) -> OptimizerStep:
        """Scales the gradient down to the optimizer's greatest norm and takes one step, unless it is not finite."""

    def gathered(self, parameters: Sequence[nn.Parameter]) -> AbstractContextManager[Any]:
        """Within it these parameters are whole."""

    def save(self, folder: Path, name: str) -> None:
        """Writes the weights and the optimizer's state to folder/name."""

    def load(self, folder: Path, name: str) -> None:
        """Takes over what save wrote."""


def adamw(parameters: Sequence[nn.Parameter], optimizer: Optimizer) -> torch.optim.AdamW:
    """AdamW (https://arxiv.org/abs/1711.05101) of these parameters; weight decay acts on all of them."""
    return torch.optim.AdamW(
        parameters,
        lr=optimizer.learning_rate,
        betas=(optimizer.betas[0], optimizer.betas[1]),
        weight_decay=optimizer.weight_decay,
        fused=True,
    )
