"""One process of a group of ranks: runs what test_scale.py looks at and saves what came out.

    python scale_process.py RANK RANKS PORT FOLDER

FOLDER holds qwen2-tied, judge and trajectories.pt; this writes FOLDER/scale-<RANK>.pt.
"""

import sys
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import torch
from rank_process import TRAINING, Process

from simplerl_api.failures import TrainerFailure
from simplerl_api.memory import MemoryEstimate, MemoryPart, Phase
from simplerl_api.residence import Sharding
from simplerl_api.spec.algorithm import Algorithm, Grpo
from simplerl_api.spec.training import Offload, Precision, ZeroStage
from simplerl_trainer.policy import model
from simplerl_trainer.policy.protocol import JudgeSetup, MemoryNeeds, RankWork, Trajectory
from simplerl_trainer.policy.rank import Rank
from simplerl_trainer.policy.step_plan import make_step_plan

MODEL = "qwen2-tied"
GPU = 1000
"""Bytes of a GPU on which the estimate below makes ranks sleep and frozen models leave."""


def sharding(stage: ZeroStage, trained: int) -> Sharding:
    """A rank that needs so many bytes for what is trained, and half as many for a frozen model."""
    parts = (
        MemoryPart(phase=Phase.TRAINING, name="actor: weights", bytes=trained),
        MemoryPart(phase=Phase.TRAINING, name="frozen reference: weights", bytes=trained // 2),
    )
    plain = MemoryEstimate(parts=parts, gradient_checkpointing=False)
    checkpointed = plain.model_copy(update={"gradient_checkpointing": True})
    return Sharding(zero_stage=stage, plain=plain, checkpointed=checkpointed)


def needs(stage: ZeroStage) -> MemoryNeeds:
    return MemoryNeeds([sharding(stage, 800)], engines_share=0.9)


class Scale(Process):
    """What the ranks of the group do, in the same order on each."""

    def steps(self, stage: int, moving: bool = False, **changes: Any) -> dict[str, Any]:
        """Two steps; where it is `moving` the ranks leave and come back wherever a run may ask for it."""
        if moving:
            changes |= {"memory": needs(ZeroStage(stage)), "gpu_bytes": GPU}
        rank = self.start(MODEL, stage, **changes)
        metrics, left = [], []
        for _ in range(2):
            left.append(self._away(rank, moving))
            metrics.append(rank.annotate(self.work(45)).metrics)
            metrics.append(rank.update(0, 0).metrics)
            left.append(self._away(rank, moving))
            metrics.append(rank.update(1, 0).metrics)
        return {
            "metrics": metrics, "weights": self.weights(rank), "left": left, "residence": rank.residence(),
        }  # fmt: skip

    def _away(self, rank: Rank, moving: bool) -> int:
        """Bytes that stay on the device while the rank is away."""
        held = [*rank._memory.trained, *rank._memory.frozen]
        rank.offload()
        rank.offload()
        assert any(h.is_out for h in held) == moving
        storages = {s.data_ptr(): s for h in held for t in h._find() if (s := t.untyped_storage()).resizable()}
        stays = sum(s.nbytes() for s in storages.values())
        rank.reload()
        rank.reload()
        assert not any(h.is_out for h in rank._memory.trained)
        return stays

    def not_finite(self, stage: int, offload: Offload, precision: Precision) -> dict[str, Any]:
        training = TRAINING.model_copy(update={"offload": offload})
        rank = self.start(MODEL, stage, training=training, precision=precision)
        before = self.weights(rank)
        rank.annotate(self.work(score=nan))
        bad = rank.update(0, 0)
        between = self.weights(rank)
        rank.annotate(self.work())
        return {"before": before, "bad": bad, "between": between, "good": rank.update(0, 0)}

    def judged(self, stage: int, moving: bool = False) -> dict[str, Any]:
        """A step with a reward model, and one with its scores in the samples' own."""
        judge = JudgeSetup("j", str(self.folder / "judge"), "rewards[0].model.path", 0.5, -1.0)
        changes = {"memory": needs(ZeroStage(stage)), "gpu_bytes": GPU} if moving else {}
        rank = self.start(MODEL, stage, judges=(judge,), judge_tokens=40, **changes)
        asked = self._mapped(self.work(45), lambda t: replace(t, texts=(text(t),)))
        found = rank.annotate(asked)
        updated = rank.update(0, 0)

        def scored(t: Trajectory) -> Trajectory:
            return replace(t, score=t.score + 0.5 * (found.judged[t.sample_id][0] if text(t) else -1.0))

        other = self.start(MODEL, stage)
        plain = other.annotate(self._mapped(self.work(45), scored))
        return {
            "judged": found.judged, "annotation": found.metrics, "plain": plain.metrics,
            "update": updated.metrics, "plain update": other.update(0, 0).metrics,
        }  # fmt: skip

    def accumulated(self, micro_batches: int) -> dict[str, float]:
        """An update whose batches are cut by number of micro-batches."""
        by_id = {t.sample_id: t for t in self.trajectories}
        lengths = {i: len(t.prompt_ids) + len(t.response_ids) for i, t in by_id.items()}
        plan = make_step_plan(lengths, self.ranks, 8, None, 1, micro_batches)
        rank = self.start(MODEL, 3)
        rank.annotate(replace(self.work(), batches=[[[by_id[i] for i in p] for p in b[self.rank]] for b in plan]))
        return rank.update(0, 0).metrics

    def chosen(self, gpu_bytes: int) -> dict[str, Any]:
        """An update of ranks that choose their stage. Rank 0 has the larger GPU; rank 1 alone shares its own with an
        engine that takes nearly nothing of it."""
        may = MemoryNeeds([sharding(ZeroStage(s), 1200 // s) for s in (1, 2, 3)], engines_share=0.01 * self.rank)
        rank = self.start(MODEL, 3, memory=may, gpu_bytes=gpu_bytes + 5000 * (self.rank == 0))
        rank.annotate(self.work())
        shared = any(hasattr(p, "ds_id") for p in rank._actor.module.parameters())
        return {"residence": rank.residence(), "shared": shared, "metrics": rank.update(0, 0).metrics}

    def lost(self, algorithm: Algorithm) -> str:
        """What a rank says where ZeRO-3 gathers the whole body as one, which gives zero gradients without an error."""
        layers, model.layer_classes = model.layer_classes, lambda _: ["Qwen2Model"]
        record, torch.Tensor.record_stream = torch.Tensor.record_stream, lambda *_: None  # which CUDA alone accepts
        try:
            rank = self.start(MODEL, 3, algorithm, precision=Precision.BF16)
            rank.annotate(self.work())
            return f"it went on: {rank.update(0, 0).metrics['actor_grad_norm']}"
        except TrainerFailure as e:
            return e.message
        finally:
            model.layer_classes, torch.Tensor.record_stream = layers, record

    def _mapped(self, work: RankWork, change: Any) -> RankWork:
        return replace(work, batches=[[[change(t) for t in pack] for pack in batch] for batch in work.batches])

    def all_cases(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for stage, precision in ((0, "BF16"), (1, "BF16"), (2, "FP32"), (3, "FP32"), (3, "BF16")):
            changes = {"precision": Precision(precision)}
            found[f"steps {stage} {precision}"] = self.steps(stage, **changes)
            found[f"steps {stage} {precision} moving"] = self.steps(stage, moving=True, **changes)
            for name, offload in (
                ("optimizer", Offload(optimizer=True)),
                ("all", Offload(optimizer=True, parameters=True)),
            ):
                if stage == 0 or (name == "all" and stage < 3):
                    continue
                training = TRAINING.model_copy(update={"offload": offload})
                found[f"steps {stage} {precision} {name}"] = self.steps(stage, training=training, **changes)
        for stage, precision in ((1, "BF16"), (2, "FP32"), (3, "BF16")):
            case = self.not_finite(stage, Offload(optimizer=True), Precision(precision))
            found[f"not finite {stage} {precision}"] = case
        for stage in (0, 3):
            found[f"judged {stage}"] = self.judged(stage)
        found["judged 3 moving"] = self.judged(3, moving=True)
        for stage, precision, offload in (
            (1, Precision.BF16, Offload(optimizer=True)),
            (3, Precision.FP32, Offload(optimizer=True, parameters=True)),
        ):
            training = TRAINING.model_copy(update={"offload": offload})
            found[f"life {stage}"] = self.life(MODEL, stage, training=training, precision=precision)
        found["lost ppo"] = self.lost(Algorithm())
        found["lost grpo"] = self.lost(Algorithm(grpo=Grpo()))
        found |= {f"chosen {gpu_bytes}": self.chosen(gpu_bytes) for gpu_bytes in (2000, 1965, 700)}
        found["accumulated"] = {n: self.accumulated(n) for n in (1, 3)}
        return found


def text(t: Trajectory) -> tuple[int, ...]:
    """What the reward model reads of a sample; of one it can read nothing."""
    return () if t.sample_id == 3 else t.prompt_ids + t.response_ids


def main() -> None:
    torch.set_num_threads(1)
    rank, ranks, port = (int(x) for x in sys.argv[1:4])
    folder = Path(sys.argv[4])
    torch.save(Scale(rank, ranks, port, folder).all_cases(), folder / f"scale-{rank}.pt")


if __name__ == "__main__":
    main()
