"""One of a group of plain data-parallel processes in float64: gradients of every algorithm, by different packs.

    python exact_process.py RANK RANKS PORT FOLDER

FOLDER holds the models and trajectories.pt; this writes FOLDER/exact-<RANKS>-<RANK>.pt. The reference model differs
from the policy, and the policy moves after the annotation, so that KL, ratios and clipping are all at work.
"""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tests.trainer.policy.rank_process import ALGORITHMS
from torch import nn

from simplerl_api.spec.algorithm import Algorithm
from simplerl_api.spec.training import ActorOptimizer
from simplerl_trainer.policy import model
from simplerl_trainer.policy.annotate import annotate
from simplerl_trainer.policy.optimize import Totals, actor_gradients, critic_gradients
from simplerl_trainer.policy.packing import make_pack
from simplerl_trainer.policy.replicated import Replicated
from simplerl_trainer.policy.step_plan import make_step_plan

TEMPERATURE = 0.8
PACKS = (45, 90, 1000)
"""Tokens of a pack: from a sample or two to all of a rank's."""
CPU = torch.device("cpu")


class Exact:
    """The models of one process, and what they give."""

    def __init__(self, rank: int, ranks: int, folder: Path) -> None:
        self.rank, self.ranks, self.folder = rank, ranks, folder
        self.trajectories = torch.load(folder / "trajectories.pt", weights_only=False)

    def load(self, name: str, kind: Any, *more: Any) -> nn.Module:
        folder = str(self.folder / name)
        found: nn.Module = kind(folder, model.read_config(folder, 64), torch.float64, *more)
        return found

    def gradients(self, algorithm: Algorithm, max_tokens: int) -> dict[str, Any]:
        """Gradients of an optimizer step of all trajectories, summed over the processes, and the step's figures."""
        actor = Replicated(self.load("qwen2-tied", model.load_actor), ActorOptimizer(), CPU)
        reference = self.load("llama-untied", model.load_actor)
        critic = None
        if algorithm.has_critic:
            critic = Replicated(self.load("qwen3-tied", model.load_critic, 3), ActorOptimizer(), CPU)
        by_id = {t.sample_id: t for t in self.trajectories}
        lengths = {i: len(t.prompt_ids) + len(t.response_ids) for i, t in by_id.items()}
        plan = make_step_plan(lengths, self.ranks, len(by_id), max_tokens, seed=1)
        packs = [make_pack([by_id[i] for i in ids], CPU) for ids in plan[0][self.rank]]
        made = annotate(
            [packs],
            actor,
            reference,
            critic,
            algorithm,
            temperature=TEMPERATURE,
            kl_coefficient=0.1,
            max_new_tokens=20,
            decoupled=False,
            device=CPU,
        )
        generator = torch.Generator().manual_seed(4)
        with torch.no_grad():
            for p in actor.module.parameters():
                p += 0.02 * torch.randn(p.shape, generator=generator, dtype=p.dtype)
        totals = Totals()
        actor_gradients(actor, made.batches[0], TEMPERATURE, algorithm, 0.1, totals)
        models = {"actor": actor}
        if critic is not None:
            critic_gradients(critic, made.batches[0], made.tokens[0], algorithm.chosen(), totals)
            models["critic"] = critic
        found = {}
        for kind, trained in models.items():
            for name, p in trained.module.named_parameters():
                found[f"{kind}.{name}"] = p.grad
                dist.all_reduce(p.grad)
        return {
            "gradients": found,
            "annotation": made.annotation.metrics,
            "advantages": made.annotation.advantages,
            "clipped": totals.counts["clip_fraction"],
            "packs": len(packs),
        }


def main() -> None:
    torch.set_num_threads(1)
    rank, ranks, port = (int(x) for x in sys.argv[1:4])
    dist.init_process_group(
        "gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks, timeout=timedelta(seconds=300)
    )
    exact = Exact(rank, ranks, Path(sys.argv[4]))
    found = {
        f"{name} {tokens}": exact.gradients(Algorithm.model_validate(settings), tokens)
        for name, settings in ALGORITHMS.items()
        for tokens in PACKS
    }
    torch.save(found, Path(sys.argv[4]) / f"exact-{ranks}-{rank}.pt")


if __name__ == "__main__":
    main()
