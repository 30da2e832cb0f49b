"""One process of a group of ranks: runs everything that test_ranks.py looks at and saves what came out.

    python rank_process.py RANK RANKS PORT FOLDER [hang|end|alone]

FOLDER holds the models and trajectories.pt; this writes FOLDER/<RANKS>/<RANK>.pt. With a last argument the ranks wait
3 s for each other, rank 1 does what it says, and rank 0 prints how its work ended.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import torch

from simplerl_api.failures import TrainerFailure
from simplerl_api.spec.algorithm import Algorithm
from simplerl_api.spec.training import Precision, Training, ZeroStage
from simplerl_trainer.policy.optimize import Totals, actor_gradients, critic_gradients
from simplerl_trainer.policy.protocol import RankSetup, RankWork, Trajectory
from simplerl_trainer.policy.rank import Rank
from simplerl_trainer.policy.step_plan import make_step_plan
from simplerl_trainer.weights.buckets import make_buckets

TRAINING = Training.model_validate(
    {
        "steps": 4,
        "actor": {"learningRate": 1e-3, "schedule": {"kind": "CosineWithMin", "warmupFraction": 0.1}},
        "critic": {"learningRate": 1e-2},
        "seed": 5,
    }
)
LOSS_KL = Algorithm.model_validate({"kl": {"coefficient": 0.1, "placement": "Loss", "estimator": "K3"}})
REWARD_KL = Algorithm.model_validate({"kl": {"coefficient": 0.1}})
NO_KL = Algorithm.model_validate({"kl": {"coefficient": 0.0}})
ALGORITHMS = {
    "grpo": {"grpo": {"clipHigh": 0.28}, "loss": {"aggregation": "Sequence", "dualClip": 3.0}},
    "dr-grpo": {
        "grpo": {"normalizeByStd": False},
        "loss": {"aggregation": "Constant", "entropyCoefficient": 0.1},
        "kl": {"coefficient": 0.1, "placement": "Reward"},
    },
    "rloo": {"rloo": {}, "kl": {"coefficient": 0.1}, "rewardClip": 0.5},
    "reinforce++": {"reinforcePlusPlus": {"gamma": 0.95}, "kl": {"coefficient": 0.1}},
    "reinforce++-baseline": {
        "reinforcePlusPlus": {"groupBaseline": True},
        "kl": {"coefficient": 0.1, "placement": "Loss", "estimator": "K2"},
    },
    "ppo": {"ppo": {"gaeLambda": 0.9}, "loss": {"entropyCoefficient": 0.1}, "kl": {"coefficient": 0.1}},
}
"""One case for each algorithm, which together use every option of a rank."""
GOLDEN = Path(__file__).with_name("golden")


def _tuple(x: Any) -> Any:
    return tuple(x) if isinstance(x, list) else x


class Process:
    """Everything that the ranks of one group do, in the same order on each."""

    def __init__(self, rank: int, ranks: int, port: int, folder: Path) -> None:
        self.rank, self.ranks, self.port, self.folder = rank, ranks, port, folder
        file = folder / "trajectories.pt"
        self.trajectories: list[Trajectory] = torch.load(file, weights_only=False) if file.exists() else []

    def start(self, model: str, stage: int, algorithm: Algorithm = REWARD_KL, **changes: Any) -> Rank:
        rank = Rank()
        self.kl_coefficient = algorithm.kl.coefficient
        setup = RankSetup(
            rank=self.rank,
            world_size=self.ranks,
            master_address="127.0.0.1",
            master_port=self.port,
            model_folder=str(self.folder / model),
            algorithm=algorithm,
            training=TRAINING,
            zero_stage=ZeroStage(stage),
            precision=Precision.FP32,
            temperature=0.8,
            optimizer_steps_per_step=2,
            max_tokens=64,
            max_new_tokens=20,
            cpu_only=True,
            timeout=60.0,
        )
        self.versions = rank.start(replace(setup, **changes))
        return rank

    def work(
        self,
        max_tokens: int = 1000,
        score: float | None = None,
        step: int = 1,
        of: Sequence[Trajectory] | None = None,
    ) -> RankWork:
        """Two optimizer batches of eight, the same samples whatever the number of ranks."""
        by_id = {t.sample_id: t for t in of or self.trajectories}
        if score is not None:
            by_id[0] = replace(by_id[0], score=score)
        lengths = {i: len(t.prompt_ids) + len(t.response_ids) for i, t in by_id.items()}
        plan = make_step_plan(lengths, self.ranks, 8, max_tokens, seed=1)
        batches = [[[by_id[i] for i in pack] for pack in batch[self.rank]] for batch in plan]
        return RankWork(batches, step, kl_coefficient=self.kl_coefficient)

    def weights(self, rank: Rank) -> dict[str, torch.Tensor]:
        found = {}
        buckets = make_buckets(rank.parameters(), limit=20_000)
        for bucket, flat in zip(buckets, rank.gather(buckets), strict=True):
            parts = flat.split([p.numel for p in bucket.parameters])
            found |= {p.name: part.view(p.shape).clone() for p, part in zip(bucket.parameters, parts, strict=True)}
        return found

    def gradients(self, model: str, stage: int, max_tokens: int, algorithm: Algorithm) -> dict[str, Any]:
        """Gradients of the first optimizer batch as DeepSpeed or the all-reduce leaves them, and the losses."""
        rank = self.start(model, stage, algorithm)
        annotation = rank.annotate(self.work(max_tokens))
        made, tokens, totals = rank._annotated.batches[0], rank._annotated.tokens[0], Totals()
        actor_gradients(rank._actor, made, 0.8, algorithm, self.kl_coefficient, totals)
        whole = {f"actor.{n}": g for n, g in self._whole(rank._actor, stage).items()}
        if rank._critic is not None:
            critic_gradients(rank._critic, made, tokens, algorithm.chosen(), totals)
            whole |= {f"critic.{n}": g for n, g in self._whole(rank._critic, stage).items()}
        return {
            "annotation": annotation.metrics,
            "advantages": annotation.advantages,
            "gradients": whole,
            "packs": len(made),
            "ratio": (totals.maxima["ratio_max"], totals.maxima["ratio_first_deviation"]),
        }

    def replay(self, algorithm: Algorithm) -> dict[str, dict[str, float]]:
        """The metrics of two steps of recorded rollouts, of two optimizer steps and of one."""
        rank = self.start("qwen2-tied", 0, algorithm)
        recorded = json.loads((GOLDEN / "rollouts.json").read_text(encoding="utf-8"))
        trajectories = [Trajectory(**{k: _tuple(v) for k, v in row.items()}) for row in recorded]
        found: dict[str, dict[str, float]] = {}
        for step, batches in ((1, (0, 1)), (2, (0,))):
            annotation = rank.annotate(self.work(of=trajectories, step=step))
            found[f"annotation {step}"] = annotation.metrics
            found[f"advantages {step}"] = {str(i): a for i, a in annotation.advantages.items()}
            found |= {f"update {step}.{batch}": rank.update(batch, 0).metrics for batch in batches}
        return found

    def warm_up(self) -> dict[str, Any]:
        """Two steps, of which the critic has the first one for itself."""
        critic = TRAINING.critic.model_copy(update={"warmup_steps": 1})
        rank = self.start("qwen2-tied", 0, training=TRAINING.model_copy(update={"critic": critic}))
        found = {"start": self.both(rank)}
        for step in (1, 2):
            rank.annotate(self.work(step=step))
            found[f"updates {step}"] = [rank.update(batch, 0) for batch in (0, 1)]
            found[f"after {step}"] = self.both(rank)
        return found

    def _whole(self, trained: Any, stage: int) -> dict[str, torch.Tensor]:
        from deepspeed.utils import safe_get_full_grad

        found = {}
        for name, p in trained.module.named_parameters():
            gradient = p.grad.clone() if stage == 0 else safe_get_full_grad(p).clone()
            if stage == 0:
                torch.distributed.all_reduce(gradient)
            found[name] = gradient
        return found

    def life(self, model: str, stage: int, **changes: Any) -> dict[str, Any]:
        """A step, a checkpoint, another step; then a new rank resumes and takes that other step again."""
        folder = self.folder / f"checkpoint-{model}-{self.ranks}-{stage}-{changes.get('precision', 'FP32')}"
        rank = self.start(model, stage, **changes)
        before = self.weights(rank)
        first = rank.annotate(self.work()).metrics
        updates = [rank.update(b, 0) for b in (0, 1)]
        folder.mkdir(exist_ok=True)
        files = rank.save(str(folder))
        torch.distributed.barrier()
        after = self.weights(rank)
        rank.export(str(folder) + "-model", {})
        second = rank.annotate(self.work(step=2)).metrics
        more = [rank.update(0, 0), rank.update(0, 1)]
        again = self.start(model, stage, **changes)
        again.load(str(folder))
        loaded = self.weights(again)
        resumed = again.annotate(self.work(step=2)).metrics
        resumed_more = [again.update(0, 0), again.update(0, 1)]
        torch.distributed.barrier()
        return {
            "before": before,
            "first": first,
            "updates": updates,
            "files": files,
            "after": after,
            "second": second,
            "more": more,
            "loaded": loaded,
            "resumed": resumed,
            "resumed_more": resumed_more,
        }

    def not_finite(self, stage: int, precision: Precision) -> dict[str, Any]:
        """Gradients of nan in the actor alone, in the critic alone and in both, then a sound step of the same rank."""
        rank = self.start("qwen2-tied", stage, precision=precision)
        before = self.both(rank)
        rank.annotate(self.work())
        actor, critic = rank._annotated.batches
        if self.rank == 0:
            actor[0].advantages.fill_(nan)
            critic[0].returns.fill_(nan)
        bad = [rank.update(0, 0), rank.update(1, 0)]
        rank.annotate(self.work(score=nan))
        bad.append(rank.update(0, 0))
        between = self.both(rank)
        rank.annotate(self.work())
        good = rank.update(0, 0)
        return {"before": before, "bad": bad, "between": between, "good": good, "after": self.both(rank)}

    def both(self, rank: Rank) -> dict[str, torch.Tensor]:
        """The weights of actor and critic."""
        critic = dict(rank._critic.module.named_parameters())
        with rank._critic.gathered(list(critic.values())):
            return self.weights(rank) | {f"critic.{n}": p.detach().clone() for n, p in critic.items()}

    def refused(self) -> str:
        """What a rank says of a checkpoint of another model."""
        folder = self.folder / f"checkpoint-qwen2-tied-{self.ranks}-3-FP32"
        try:
            self.start("qwen3-tied", 1).load(str(folder))
        except TrainerFailure as e:
            return e.message
        return "it was loaded"

    def misfit(self, stage: int, **change: Any) -> str:
        """What a rank says of a folder whose weights do not fit its config.json."""
        original = self.folder / "llama-untied"
        name = f"misfit-{self.ranks}-{self.rank}-{stage}-{'-'.join(change)}"
        shutil.copytree(original, self.folder / name, dirs_exist_ok=True)
        config = json.loads((original / "config.json").read_text())
        (self.folder / name / "config.json").write_text(json.dumps(config | change))
        try:
            self.start(name, stage)
        except TrainerFailure as e:
            return e.message
        return "it was loaded"

    def everything(self) -> dict[str, Any]:
        from simplerl_trainer.policy import zero_settings

        found: dict[str, Any] = {}
        for stage in (0, 1, 2, 3):
            for max_tokens in (45, 1000):
                found[f"gradients {stage} {max_tokens}"] = self.gradients("qwen2-tied", stage, max_tokens, REWARD_KL)
        resident, zero_settings._RESIDENT_BYTES = zero_settings._RESIDENT_BYTES, 0
        found["gradients 3 partitioned"] = self.gradients("qwen2-tied", 3, 45, REWARD_KL)
        found["life 3 partitioned"] = self.life("llama-untied", 3)
        zero_settings._RESIDENT_BYTES = resident
        for stage in (0, 3):
            found[f"gradients {stage} loss"] = self.gradients("llama-untied", stage, 45, LOSS_KL)
            found[f"gradients {stage} none"] = self.gradients("qwen3-tied", stage, 45, NO_KL)
        for name, settings in ALGORITHMS.items():
            algorithm = Algorithm.model_validate(settings)
            found[f"gradients {name} 0 1000"] = self.gradients("qwen2-tied", 0, 1000, algorithm)
            for stage in (0, 3) if name != "grpo" else (0, 1, 2, 3):
                found[f"gradients {name} {stage} 45"] = self.gradients("qwen2-tied", stage, 45, algorithm)
            found[f"golden {name}"] = self.replay(algorithm)
        found["warm-up"] = self.warm_up()
        checkpointed = TRAINING.model_copy(update={"gradient_checkpointing": True})
        for stage in (0, 1, 2, 3):
            found[f"life {stage}"] = self.life("qwen2-tied", stage)
            found[f"not finite {stage}"] = self.not_finite(stage, Precision.FP32)
            found[f"life {stage} BF16"] = self.life("qwen2-untied", stage, precision=Precision.BF16)
            found[f"not finite {stage} BF16"] = self.not_finite(stage, Precision.BF16)
        found["life 3 checkpointed"] = self.life("qwen3-tied", 3, training=checkpointed)
        for stage in (1, 3):
            found[f"misfit {stage} lacks"] = self.misfit(stage, num_hidden_layers=3)
            found[f"misfit {stage} more"] = self.misfit(stage, num_hidden_layers=1)
            found[f"misfit {stage} size"] = self.misfit(stage, intermediate_size=48)
        found["refused"] = self.refused()
        found["versions"] = self.versions
        return found


def deserted(process: Process, how: str) -> None:
    """What rank 0 says when rank 1 hangs, ends or never comes."""
    started = time.monotonic()
    try:
        rank = process.start("qwen2-tied", 3, timeout=3.0)
        if process.rank == 1 and how == "hang":
            time.sleep(30)
        if process.rank == 1:
            os._exit(1)
        started = time.monotonic()
        rank.annotate(process.work())
        print("it went on", flush=True)
    except TrainerFailure as e:
        print(json.dumps([e.reason, e.message, time.monotonic() - started]), flush=True)
    os._exit(0)  # the group cannot be left in order any more


def main() -> None:
    torch.set_num_threads(1)
    if len(sys.argv) > 5:
        deserted(Process(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])), sys.argv[5])
    rank, ranks, port = (int(x) for x in sys.argv[1:4])
    folder = Path(sys.argv[4])
    found = Process(rank, ranks, port, folder).everything()
    (folder / str(ranks)).mkdir(exist_ok=True)
    torch.save(found, folder / str(ranks) / f"{rank}.pt")
    print(json.dumps(found["versions"]))


if __name__ == "__main__":
    main()
