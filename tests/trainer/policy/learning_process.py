"""Every algorithm learns a small task with a rank of its own, in one process: what test_learning.py looks at.

    python learning_process.py PORT FOLDER

The task: answer a token with one of the same parity, which the random model does in half of the cases. FOLDER holds the
model; this writes FOLDER/learned.json: the share of right answers at the start and at the end, by case.
"""

import json
import sys
from pathlib import Path

import torch
from tests.trainer.policy.rank_process import Process
from torch.nn.functional import linear

from simplerl_api.spec.algorithm import Algorithm
from simplerl_api.spec.training import Training
from simplerl_trainer.policy.attention import make_layout
from simplerl_trainer.policy.protocol import RankWork, Trajectory
from simplerl_trainer.policy.rank import Rank
from simplerl_trainer.policy.step_plan import make_step_plan

TEMPERATURE = 0.8
"""Of rank_process.py."""
STEPS, PROMPTS, SAMPLES, ASKED = 30, 16, 8, 256
KL = {"coefficient": 0.01}
CASES = {
    "ppo": {"ppo": {}, "kl": KL},
    "ppo, KL in the loss, entropy bonus": {
        "ppo": {},
        "kl": {"coefficient": 0.01, "placement": "Loss", "estimator": "K2"},
        "loss": {"entropyCoefficient": 0.001},
    },
    "grpo": {"grpo": {"clipHigh": 0.28}, "kl": KL},
    "Dr.GRPO": {"grpo": {"normalizeByStd": False}, "kl": {"coefficient": 0}, "loss": {"aggregation": "Constant"}},
    "rloo": {"rloo": {}, "kl": KL},
    "reinforcePlusPlus": {"reinforcePlusPlus": {}, "kl": KL},
    "reinforcePlusPlus, group baseline": {"reinforcePlusPlus": {"groupBaseline": True}, "kl": KL},
}


def training(learning_rate: float) -> Training:
    return Training.model_validate(
        {"steps": STEPS, "actor": {"learningRate": learning_rate}, "critic": {"learningRate": 5e-3}}
    )


@torch.no_grad()
def answers(rank: Rank, prompts: list[int], generator: torch.Generator) -> list[int]:
    """A token in answer to each prompt of one token, drawn from the policy."""
    causal = rank._actor.module.causal
    ids = torch.tensor([prompts])
    layout = make_layout([1] * len(prompts), torch.device("cpu"))
    out = causal.model(input_ids=ids, position_ids=torch.zeros_like(ids), use_cache=False, layout=layout)
    logits = linear(out.last_hidden_state[0], causal.lm_head.weight) / TEMPERATURE
    return [int(t) for t in torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]]


def accuracy(rank: Rank, generator: torch.Generator) -> float:
    prompts = [i % 64 for i in range(ASKED)]
    return sum(p % 2 == a % 2 for p, a in zip(prompts, answers(rank, prompts, generator), strict=True)) / ASKED


def learn(process: Process, algorithm: Algorithm, learning_rate: float) -> list[float]:
    """Accuracy before and after."""
    generator = torch.Generator().manual_seed(1)
    rank = process.start("qwen2-tied", 0, algorithm, training=training(learning_rate), max_new_tokens=1)
    first = accuracy(rank, generator)
    for step in range(1, STEPS + 1):
        prompts = [int(p) for p in torch.randperm(64, generator=generator)[:PROMPTS]]
        asked = [p for p in prompts for _ in range(SAMPLES)]
        drawn = {
            i: Trajectory(i, (p,), (a,), float(p % 2 == a % 2), None, group=i // SAMPLES)
            for i, (p, a) in enumerate(zip(asked, answers(rank, asked, generator), strict=True))
        }
        plan = make_step_plan(dict.fromkeys(drawn, 2), 1, len(drawn) // 2, 1000, seed=step)
        batches = [[[drawn[i] for i in pack] for pack in batch[0]] for batch in plan]
        rank.annotate(RankWork(batches, step, algorithm.kl.coefficient))
        for number in range(len(plan)):
            assert not rank.update(number, 0).skipped
    return [first, accuracy(rank, generator)]


def main() -> None:
    torch.set_num_threads(1)
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    process = Process(0, 1, port, folder)
    found = {name: learn(process, Algorithm.model_validate(a), 5e-3) for name, a in CASES.items()}
    for name in ("ppo", "grpo"):
        found[f"{name}, learning rate 0"] = learn(process, Algorithm.model_validate(CASES[name]), 0.0)
    (folder / "learned.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
