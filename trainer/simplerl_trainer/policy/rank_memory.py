"""The GPU memory of a rank: what leaves it for the engines, or while others are trained."""

import torch

from simplerl_api.residence import Residence
from simplerl_trainer.policy.offload import Offloaded
from simplerl_trainer.policy.rank_models import RankModels


class RankMemory:
    """Moves a rank's models as its residence says; nothing moves on CPU."""

    def __init__(self, models: RankModels, residence: Residence, device: torch.device, *, moves: bool) -> None:
        """`moves`: whether there is a GPU to leave."""
        self.trained = [Offloaded(m.tensors, device) for m in models.trained.values()]
        self.frozen = [Offloaded(m.tensors, device) for m in models.frozen]
        self._residence, self._moves = residence, moves

    def leave(self) -> None:
        """Everything leaves, where ranks and engines take turns."""
        if self._moves and self._residence.sleeps:
            for held in (*self.trained, *self.frozen):
                held.leave()

    def come_back(self) -> None:
        """Everything that stays comes back."""
        for held in self.trained:
            held.come_back()
        if not self._residence.frozen_leave:
            self.bring_frozen()

    def bring_frozen(self) -> None:
        """The models that are only run come back."""
        for held in self.frozen:
            held.come_back()

    def send_frozen(self) -> None:
        """They leave while others are trained, where memory is short."""
        if self._moves and self._residence.frozen_leave:
            for held in self.frozen:
                held.leave()

    def at_hand(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor of what is trained where its bytes are, on the GPU or on the host."""
        for held in self.trained:
            tensor = held.at_hand(tensor)
        return tensor
