"""A training rank: its part of actor, critic (where the algorithm has one) and reference, and what the driver asks.

Every method but ping and parameters is collective: the driver calls it on all ranks and waits for all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.residence import Residence
from simplerl_api.spec.algorithm import Ppo
from simplerl_api.spec.training import Optimizer
from simplerl_trainer.checkpoints.manifest import File
from simplerl_trainer.checkpoints.room import writing
from simplerl_trainer.policy import group, saved, weights
from simplerl_trainer.policy.annotate import annotate
from simplerl_trainer.policy.experience import Experience
from simplerl_trainer.policy.faults import named
from simplerl_trainer.policy.judges import judge
from simplerl_trainer.policy.optimize import Totals, actor_gradients, critic_gradients
from simplerl_trainer.policy.packing import make_pack
from simplerl_trainer.policy.protocol import Annotation, RankSetup, RankWork, Update
from simplerl_trainer.policy.schedule import learning_rate
from simplerl_trainer.policy.trained import Trained
from simplerl_trainer.weights.buckets import Bucket, Parameter
from simplerl_trainer.weights.road import Sender
from simplerl_trainer.weights.send import send


class Rank:
    """One rank. Any method raises TrainerFailure when memory runs out or other ranks do not answer in time."""

    def start(self, setup: RankSetup) -> dict[str, str]:
        """Joins the other ranks and loads the models; returns the versions of torch and deepspeed.

        Raises TrainerFailure(INVALID_INPUT) for a model that is not supported.
        """
        self._setup = setup
        with self._named("the start"):
            self._device = device = group.join(setup)
            from simplerl_trainer.policy import rank_memory, rank_models  # import deepspeed

            self._residence = rank_models.choose_residence(setup, device)
            self._models = models = rank_models.load_models(setup, self._residence, device)
            moves = device.type == "cuda" or setup.gpu_bytes is not None
            self._memory = rank_memory.RankMemory(models, self._residence, device, moves=moves)
        self._actor, self._critic = models.actor, models.critic
        self._optimizer_steps = 0
        import deepspeed  # only after group.join, which chooses its accelerator

        return {"torch": torch.__version__, "deepspeed": deepspeed.__version__}

    def ping(self) -> int:
        """Answers with the rank's number while its process lives."""
        return self._setup.rank

    def residence(self) -> Residence:
        """What stays in the GPU's memory, and when; the same on all ranks."""
        return self._residence

    def parameters(self) -> list[Parameter]:
        """The actor's parameters by their Hugging Face names, as the engines load them."""
        return weights.parameters(self._actor, self._setup.precision)

    def annotate(self, work: RankWork) -> Annotation:
        """Log-probabilities, reference log-probabilities, values and advantages of this rank's samples, under the
        current weights; per-token tensors stay here for `update`."""
        setup = self._setup
        with self._named("annotation"):
            self._memory.bring_frozen()
            work, judged = judge(self._models.judges, work, setup.judge_tokens, self._device)
            self._annotated = annotate(
                [[make_pack(trajectories, self._device) for trajectories in batch] for batch in work.batches],
                self._actor,
                self._models.reference,
                self._critic,
                setup.algorithm,
                temperature=setup.temperature,
                kl_coefficient=work.kl_coefficient,
                max_new_tokens=setup.max_new_tokens,
                decoupled=setup.decoupled,
                device=self._device,
            )
            self._memory.send_frozen()
        self._step, self._kl_coefficient, self._fresh = work.step, work.kl_coefficient, True
        self._optimizer_steps = (work.step - 1) * setup.optimizer_steps_per_step
        return replace(self._annotated.annotation, judged=judged)

    def update(self, batch: int, epoch: int) -> Update:
        """One optimizer step of actor and critic on optimizer batch `batch` of the annotated step, in pass `epoch`.

        Both take it or, where a gradient of either is not finite, neither. In the first training.critic.warmupSteps
        steps only the critic learns.
        """
        setup, algorithm, totals = self._setup, self._setup.algorithm, Totals()
        made, tokens = self._annotated.batches[batch], self._annotated.tokens[batch]
        critic, ppo = self._critic, algorithm.chosen()
        warmup = setup.training.critic.warmup_steps if critic else 0
        learning: dict[str, tuple[Trained, float]] = {}
        with self._named(f"the update of optimizer batch {batch}, epoch {epoch}"):
            if self._step > warmup:
                actor_gradients(self._actor, made, setup.temperature, algorithm, self._kl_coefficient, totals)
                learning["actor"] = self._actor, self._rate(setup.training.actor, warmup)
            if critic:
                assert isinstance(ppo, Ppo), "ppo alone has a critic"
                critic_gradients(critic, made, tokens, ppo, totals)
                learning["critic"] = critic, self._rate(setup.training.critic, 0)
            finite = [trained.is_finite() for trained, _ in learning.values()]  # collective: all of them are asked
            steps = {name: trained.step(rate, skip=not all(finite)) for name, (trained, rate) in learning.items()}
            losses, counts = group.sums(totals.losses, self._device), group.sums(totals.counts, self._device)
            maxima = group.maxima(totals.maxima, self._device)
        self._optimizer_steps += 1
        if critic and losses["value_loss"] > 0 and steps["critic"].norm == 0:
            # a wrong ZeRO-3 leaf module gives zero gradients without an error
            raise TrainerFailure(
                FailureReason.INTERNAL,
                f"the critic's gradient is 0 though its loss is {losses['value_loss']:g}: gradients are lost",
            )
        if self._fresh and "actor" in learning and steps["actor"].norm == 0 and self._must_move(made):
            raise TrainerFailure(
                FailureReason.INTERNAL,
                f"the policy's gradient is 0 in optimizer batch {batch} though its samples have advantages: gradients "
                "are lost",
            )
        if not self._fresh:
            maxima.pop("ratio_first_deviation", None)
        self._fresh = False
        metrics = losses | {name: total / tokens for name, total in counts.items()} | maxima
        for name, (_, rate) in learning.items():
            metrics |= {f"{name}_learning_rate": rate, f"{name}_grad_norm": steps[name].norm}
        return Update(metrics, skipped=not all(s.applied for s in steps.values()))

    def _must_move(self, made: Sequence[Experience]) -> bool:
        """Whether some token of any rank has a gradient while the ratio is 1: one that was not certain and has an
        advantage that counts. Collective."""
        moving = any(bool((e.weights * e.advantages * e.observed.logprobs).any()) for e in made)
        return group.maxima({"moving": float(moving)}, self._device)["moving"] > 0

    def _rate(self, optimizer: Optimizer, warmup: int) -> float:
        """The learning rate of an optimizer that begins after `warmup` steps of the job."""
        setup = self._setup
        before, total = (n * setup.optimizer_steps_per_step for n in (warmup, setup.training.steps))
        return learning_rate(optimizer, self._optimizer_steps - before, total - before)

    def gather(self, buckets: Sequence[Bucket], wanted: bool = True) -> Iterator[torch.Tensor]:
        """The actor's weights: each bucket as one flat tensor, in order; without elements where not `wanted`."""
        with self._named("the gathering of weights"):
            yield from weights.gather(self._actor, buckets, wanted=wanted)

    def send(self, sender: Sender | None, buckets: Sequence[Bucket]) -> None:
        """Sends the actor's weights down this rank's roads; takes part in the gathering where it has none."""
        if sender is not None:
            send(sender, self.gather(buckets))
        else:
            for _ in self.gather(buckets, wanted=False):
                pass

    def offload(self) -> None:
        """Gives the GPU's memory to the engines, where not all fit; nothing on CPU."""
        with self._named("leaving the GPU"):
            self._memory.leave()

    def reload(self) -> None:
        """Takes the GPU's memory back."""
        with self._named("coming back to the GPU"):
            self._memory.come_back()

    def save(self, folder: str) -> dict[str, File]:
        """Writes this rank's part of masters and moments, and from rank 0 the model's configuration and tokenizer;
        returns the files, relative to `folder`. Waits for no other rank.

        Raises TrainerFailure(CHECKPOINT_FAILED) where a file cannot be written.
        """
        setup = self._setup
        with self._named("the saving of a checkpoint"):
            return saved.save(
                Path(folder),
                self._models.trained,
                setup.rank,
                setup.world_size,
                setup.precision,
                setup.model_folder if setup.rank == 0 else None,
                self._memory.at_hand,
            )

    def load(self, folder: str) -> None:
        """Takes over what any number of ranks of any ZeRO stage saved.

        Raises TrainerFailure(CHECKPOINT_FAILED) where it is of another model or cannot be read.
        """
        with self._named("the loading of a checkpoint"):
            saved.load(Path(folder), self._models.trained)

    def export(self, folder: str, notes: Mapping[str, str]) -> None:
        """Writes the actor as a plain Hugging Face folder, from rank 0; `notes` are texts that go with it by their
        file's name.

        Raises TrainerFailure(CHECKPOINT_FAILED) where a file cannot be written.
        """
        setup, path = self._setup, Path(folder)
        with self._named("the export of the model"), writing(f"the model {path} could not be written", path):
            weights.export(self._actor, setup.precision, setup.model_folder, path, notes, self._memory.at_hand)

    def _named(self, work: str) -> Any:
        return named(self._setup.rank, work, self._setup.timeout)
