"""A training rank: its part of actor, critic and reference, and what the driver asks of it.

Every method but ping and parameters is collective: the driver calls it on all ranks and waits for all.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.training import Precision, ZeroStage
from simplerl_trainer.policy import experience, group, model, weights
from simplerl_trainer.policy.experience import Experience
from simplerl_trainer.policy.faults import named
from simplerl_trainer.policy.optimize import Totals, actor_gradients, critic_gradients
from simplerl_trainer.policy.packing import make_pack
from simplerl_trainer.policy.protocol import Annotation, RankSetup, RankWork, Update
from simplerl_trainer.policy.replicated import Replicated
from simplerl_trainer.policy.schedule import learning_rate
from simplerl_trainer.policy.trained import Trained
from simplerl_trainer.weights.buckets import Bucket, Parameter
from simplerl_trainer.weights.road import Sender
from simplerl_trainer.weights.send import send

_STATE = "ranks.json"


class Rank:
    """One rank. Any method raises TrainerFailure when memory runs out or other ranks do not answer in time."""

    def start(self, setup: RankSetup) -> dict[str, str]:
        """Joins the other ranks and loads the models; returns the versions of torch and deepspeed.

        Raises TrainerFailure(INVALID_INPUT) for a model that is not supported.
        """
        self._setup = setup
        with self._named("the start"):
            self._device = group.join(setup)
            self._load_models()
        self._experience: list[list[Experience]] = []
        self._tokens: list[float] = []
        self._optimizer_steps = 0
        self._fresh = False
        import deepspeed  # only after group.join, which chooses its accelerator

        return {"torch": torch.__version__, "deepspeed": deepspeed.__version__}

    def ping(self) -> int:
        """Answers with the rank's number while its process lives."""
        return self._setup.rank

    def parameters(self) -> list[Parameter]:
        """The actor's parameters by their Hugging Face names, as the engines load them."""
        return weights.parameters(self._actor, self._setup.precision)

    def annotate(self, work: RankWork) -> Annotation:
        """Log-probabilities, reference log-probabilities, values and whitened advantages of this rank's samples, under
        the current weights; per-token tensors stay here for `update`."""
        setup, algorithm = self._setup, self._setup.algorithm
        with self._named("annotation"):
            packs = [[make_pack(trajectories, self._device) for trajectories in batch] for batch in work.batches]
            made = experience.collect(
                [pack for batch in packs for pack in batch],
                self._actor,
                self._reference,
                self._critic,
                setup.temperature,
                algorithm,
                decoupled=setup.decoupled,
            )
            sums, maxima = experience.totals(made, algorithm)
            sums |= {f"batch.{i}": float(sum(p.tokens for p in batch)) for i, batch in enumerate(packs)}
            sums, maxima = group.sums(sums, self._device), group.maxima(maxima, self._device)
            if not sums["value.count"]:
                raise ValueError("annotate was called without any sample: give at least one to one of the ranks")
        rest = iter(experience.whitened(made, sums))
        self._experience = [[next(rest) for _ in batch] for batch in packs]
        self._tokens = [sums[f"batch.{i}"] for i in range(len(packs))]
        self._fresh = True
        return Annotation(experience.metrics(sums, maxima, has_reference=self._reference is not None))

    def update(self, batch: int, epoch: int) -> Update:
        """One optimizer step of actor and critic on optimizer batch `batch` of the annotated step, in pass `epoch`."""
        setup, algorithm, totals = self._setup, self._setup.algorithm, Totals()
        made, tokens = self._experience[batch], self._tokens[batch]
        rates = {
            "actor_learning_rate": learning_rate(
                setup.training.actor, self._optimizer_steps, setup.total_optimizer_steps
            ),
            "critic_learning_rate": learning_rate(
                setup.training.critic, self._optimizer_steps, setup.total_optimizer_steps
            ),
        }
        with self._named(f"the update of optimizer batch {batch}, epoch {epoch}"):
            actor_gradients(self._actor, made, tokens, setup.temperature, algorithm, totals)
            actor = self._actor.step(rates["actor_learning_rate"])
            critic_gradients(self._critic, made, tokens, algorithm, totals)
            critic = self._critic.step(rates["critic_learning_rate"])
            sums, maxima = group.sums(totals.sums, self._device), group.maxima(totals.maxima, self._device)
        self._optimizer_steps += 1
        if sums["value_loss"] > 0 and critic.norm == 0:
            # a wrong ZeRO-3 leaf module gives zero gradients without an error
            raise TrainerFailure(
                FailureReason.INTERNAL,
                f"the critic's gradient is 0 though its loss is {sums['value_loss'] / tokens:g}: gradients are lost",
            )
        if not self._fresh:
            del maxima["ratio_first_deviation"]
        self._fresh = False
        metrics = {name: total / tokens for name, total in sums.items()} | maxima | rates
        metrics |= {"actor_grad_norm": actor.norm, "critic_grad_norm": critic.norm}
        return Update(metrics, skipped=not (actor.applied and critic.applied))

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
        """Gives the GPU's memory to the engines; nothing on CPU, and nothing while all fit."""

    def reload(self) -> None:
        """Takes the GPU's memory back."""

    def save(self, folder: str, step: int) -> list[str]:
        """Writes weights, optimizer states and the schedules' position; returns the files, relative to `folder`."""
        path = Path(folder)
        with self._named("the saving of a checkpoint"):
            path.mkdir(parents=True, exist_ok=True)
            self._actor.save(path, "actor")
            self._critic.save(path, "critic")
            if self._setup.rank == 0:
                (path / _STATE).write_text(json.dumps(self._state() | {"step": step}), encoding="utf-8")
        names = [p for part in ("actor", "critic") for p in sorted((path / part).rglob("*")) if p.is_file()]
        return [str(p.relative_to(path)) for p in names] + ([_STATE] if self._setup.rank == 0 else [])

    def load(self, folder: str) -> None:
        """Takes over what `save` wrote.

        Raises TrainerFailure(CHECKPOINT_FAILED) for another number of ranks or ZeRO stage.
        """
        path = Path(folder)
        try:
            saved = json.loads((path / _STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as e:
            raise TrainerFailure(FailureReason.CHECKPOINT_FAILED, f"checkpoint {folder} cannot be read: {e}") from e
        for name in ("ranks", "zero_stage", "precision"):
            if saved[name] != (now := self._state()[name]):
                raise TrainerFailure(
                    FailureReason.CHECKPOINT_FAILED,
                    f"checkpoint {folder} was saved with {name} {saved[name]} and cannot be resumed with {now}: "
                    "keep it as it was, or start from the exported model",
                )
        with self._named("the loading of a checkpoint"):
            self._actor.load(path, "actor")
            self._critic.load(path, "critic")
        self._optimizer_steps = saved["optimizer_steps"]

    def export(self, folder: str) -> None:
        """Writes the actor as a plain Hugging Face folder, from rank 0."""
        setup = self._setup
        with self._named("the export of the model"):
            weights.export(self._actor, setup.precision, setup.model_folder, Path(folder), writes=setup.rank == 0)

    def _named(self, work: str) -> Any:
        return named(self._setup.rank, work, self._setup.timeout)

    def _state(self) -> dict[str, Any]:
        setup = self._setup
        return {
            "ranks": setup.world_size,
            "zero_stage": int(setup.zero_stage),
            "precision": str(setup.precision),
            "optimizer_steps": self._optimizer_steps,
        }

    def _load_models(self) -> None:
        from simplerl_trainer.policy import zero  # imports deepspeed, which reads what group.join sets

        setup, device = self._setup, self._device
        stage, precision, folder = setup.zero_stage, setup.precision, setup.model_folder
        dtype = torch.bfloat16 if precision is Precision.BF16 else torch.float32
        config = model.read_config(folder, setup.max_tokens)
        model.check_weights(folder, config)

        def actor() -> model.Actor:
            return model.load_actor(folder, config, dtype)

        def critic() -> model.Critic:
            return model.load_critic(folder, config, dtype, setup.training.seed)

        def trained(module: torch.nn.Module, optimizer: Any) -> Trained:
            if setup.training.gradient_checkpointing:
                model.checkpoint_layers(module)
            module.train()
            if stage is ZeroStage.REPLICATED:
                return Replicated(module, optimizer, device)
            return zero.Sharded(module, optimizer, stage, precision, model.layer_classes(module), device)

        self._actor = trained(zero.load_partitioned(actor, stage, precision), setup.training.actor)
        self._critic = trained(zero.load_partitioned(critic, stage, precision), setup.training.critic)
        self._reference: Callable[..., Any] | None = None
        if setup.algorithm.kl.coefficient > 0:
            frozen = zero.load_partitioned(actor, stage, precision)
            self._reference = zero.freeze(frozen, stage, precision, model.layer_classes(frozen), device)
