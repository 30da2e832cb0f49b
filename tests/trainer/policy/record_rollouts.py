"""Records the golden rollouts and the metrics that they give: golden/rollouts.json and golden/metrics.json.

    python -m tests.trainer.policy.record_rollouts [metrics]

Rollouts are drawn once from the random tied Qwen2 of conftest.py, with the log-probabilities that they were drawn by;
with `metrics` they are kept, and only the metrics are written anew: after a change that is meant to change them.
"""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch
from tests.trainer.policy.conftest import VOCABULARY, save_model
from tests.trainer.policy.processes import free_port
from tests.trainer.policy.rank_process import ALGORITHMS, GOLDEN, Process
from transformers import AutoModelForCausalLM

from simplerl_api.spec.algorithm import Algorithm
from simplerl_trainer.policy.protocol import Trajectory

TEMPERATURE = 0.8
"""Of rank_process.py."""
PROMPTS, SAMPLES, LONGEST = 4, 4, 12
STOP = 3


def draw(folder: Path) -> list[Trajectory]:
    """Responses to a few prompts; they are right where they hold an even token first."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    generator = torch.Generator().manual_seed(11)
    drawn = []
    for sample in range(PROMPTS * SAMPLES):
        group = sample // SAMPLES
        prompt = [(7 * group + k) % VOCABULARY for k in range(2 + group)]
        ids, logprobs = list(prompt), []
        while len(logprobs) < LONGEST and (not logprobs or ids[-1] != STOP):
            with torch.no_grad():
                row = (model(torch.tensor([ids])).logits[0, -1] / TEMPERATURE).log_softmax(-1)
            token = int(torch.multinomial(row.exp(), 1, generator=generator))
            ids.append(token)
            logprobs.append(round(float(row[token]), 6))
        response = tuple(ids[len(prompt) :])
        score = 1.0 if response[0] % 2 == 0 else -0.5 if len(response) == LONGEST else 0.0
        drawn.append(Trajectory(sample, tuple(prompt), response, score, tuple(logprobs), group=group))
    return drawn


def main() -> None:
    """Writes the golden files."""
    torch.set_num_threads(1)
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        save_model("qwen2 tied", folder / "qwen2-tied")
        if sys.argv[1:] != ["metrics"]:
            rows = [{k: v for k, v in asdict(t).items() if v != ()} for t in draw(folder / "qwen2-tied")]
            lines = ",\n".join(json.dumps(row) for row in rows)
            (GOLDEN / "rollouts.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        ranks = Process(0, 1, free_port(), folder)
        metrics = {name: ranks.replay(Algorithm.model_validate(a)) for name, a in ALGORITHMS.items()}
        text = json.dumps(metrics, indent=1, default=float)
        (GOLDEN / "metrics.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
