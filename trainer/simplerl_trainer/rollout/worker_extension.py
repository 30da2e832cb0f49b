"""What vLLM's workers learn (vLLM's worker_extension_cls); called on all of them by collective_rpc.

A worker may be a process of its own, and vLLM takes an error of one, even one that it returns, for the end of the
engine: a failure of a load, which another load can mend, is therefore returned as its sentence.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rollout import fused, shards, shared_names, verify, worker_faults
from simplerl_trainer.weights.buckets import Bucket
from simplerl_trainer.weights.receive import receive
from simplerl_trainer.weights.road import Receiver

worker_faults.keep()  # vLLM imports this module before a worker takes its device or its model


class WorkerExtension:
    """Mixed into vLLM's worker class, whose `model_runner`, `device` and `rank` it uses."""

    model_runner: Any
    device: torch.device
    rank: int
    """Position among the workers of the engine."""

    def draw_below(self, vocabulary: int) -> None:
        """Makes ids from `vocabulary` on impossible to draw: their logits are cut off with those of vLLM's own padding,
        before temperature and log-probabilities. Costs nothing a token, unlike a logits processor."""
        processor = self.model_runner.get_model().logits_processor
        processor.org_vocab_size = min(vocabulary, processor.org_vocab_size)

    def forget_names(self) -> None:
        """Takes away the names of what this worker shares with others in /dev/shm."""
        shared_names.forget()

    def load_from_ranks(
        self, receivers: Sequence[Receiver], buckets: Sequence[Bucket], check_values: bool
    ) -> int | str:
        """Loads every parameter from the ranks by one layerwise reload; returns their number.

        Each worker has a road of its own among `receivers`, and keeps its piece of what comes. `check_values` compares
        checksums of what came with what the model then computes with. Returns why where a parameter is missing,
        unknown, not loaded or different.
        """
        try:
            return self._load_along(receivers[self.rank], buckets, check_values)
        except TrainerFailure as failure:
            return failure.message

    def _load_along(self, receiver: Receiver, buckets: Sequence[Bucket], check_values: bool) -> int:
        model = self.model_runner.get_model()
        _check_names({p.name for b in buckets for p in b.parameters}, fused.wanted(model))
        tied = fused.is_tied(model)  # asked now: while it reloads, vLLM holds the two apart
        held = shards.shards(model) if check_values else {}
        came: dict[str, verify.Arrived] = {}
        dtype = self.model_runner.model_config.dtype

        broken: list[TrainerFailure] = []

        def tensors() -> Iterator[tuple[str, torch.Tensor]]:
            try:
                for parameter, tensor in receive(receiver, buckets, self.device):
                    if check_values:
                        came[parameter.name] = verify.arrived(tensor, held.get(parameter.name), dtype)
                    yield parameter.name, tensor
                    if parameter.name == fused.EMBEDDING and tied:
                        # On CPU the head multiplies with a packed copy, which stays stale unless it is loaded too.
                        yield fused.HEAD, tensor
            except TrainerFailure as failure:
                broken.append(failure)  # raised below: a reload that vLLM does not end itself could not be made again

        not_loaded = {name for name, _ in model.named_parameters()} - self._reload_recorded(model, tensors())
        if broken:
            raise broken[0]
        if not_loaded:
            raise _failed(f"vLLM did not load {_listed(not_loaded)}")
        different = verify.differences(model, came) if check_values else set()
        if different:
            raise _failed(f"vLLM does not compute with what the ranks sent of {_listed(different)}")
        return sum(len(b.parameters) for b in buckets)

    def _reload_recorded(self, model: Any, tensors: Iterator[tuple[str, torch.Tensor]]) -> set[str]:
        """Names of vLLM's parameters that were loaded; its reload_weights only logs those that were not."""
        loaded: set[str] = set()
        load_weights = model.load_weights

        def recording(weights: Iterator[tuple[str, torch.Tensor]]) -> set[str]:
            loaded.update(load_weights(weights))
            return loaded

        model.load_weights = recording
        try:
            self.model_runner.reload_weights(weights_iterator=tensors)
        finally:
            del model.load_weights
        return loaded


def _check_names(given: set[str], wanted: set[str]) -> None:
    if wanted - given:
        raise _failed(f"the ranks do not send {_listed(wanted - given)}, which the engine's model has")
    if given - wanted:
        raise _failed(f"the ranks send {_listed(given - wanted)}, which the engine's model does not have")


def _listed(names: set[str]) -> str:
    first = sorted(names)[:3]
    return ", ".join(first) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _failed(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.WEIGHT_SYNC_FAILED, message)
