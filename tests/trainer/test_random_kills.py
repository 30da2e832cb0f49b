"""Engines that are killed at random moments of a whole run: whatever they do then, the run goes on to its end."""

import os
import random
import signal
import time
from pathlib import Path

import psutil
import pytest
from tests.trainer import running

SETTINGS = [
    "cluster.gpus=4", "rollout.engines=2", "rollout.promptsPerStep=16", "training.trainBatchSize=64",
    "rollout.sampling.maxNewTokens=40", "training.steps=120", "checkpoint.everySteps=10", "evaluation.everySteps=2",
    "evaluation.datasets[0].reasoningGym.size=64",
]  # fmt: skip
KILLS = 6


@pytest.mark.long
@pytest.mark.parametrize("overlap", ["None", "OneStep"])
def test_engines_killed_at_random_moments_cost_no_step_and_no_sample(tmp_path: Path, overlap: str) -> None:
    output, killed = tmp_path / "tiny", 0
    seed = random.randrange(10_000)
    moments = random.Random(seed)
    with running.started(output, [*SETTINGS, f"rollout.overlap={overlap}"]) as run:
        running.eventually(lambda: bool(running.metrics(output)), run, seconds=600)
        while run.poll() is None and killed < KILLS:
            time.sleep(moments.uniform(0.0, 15.0))
            engines = [c for c in psutil.Process(run.pid).children(recursive=True) if "EngineActor" in c.name()]
            if engines:
                os.kill(moments.choice(engines).pid, signal.SIGKILL)
                killed += 1
        assert run.wait(timeout=1800) == 0, f"seed {seed}: {running.said(output).read_text(encoding='utf-8')[-3000:]}"
    assert killed, "the run was over before an engine was killed"
    lines = running.metrics(output)
    assert [line["step"] for line in lines] == list(range(1, 121)), f"seed {seed}"
    assert 1 <= lines[-1]["engines_lost"] <= killed
    for step in range(1, 121):
        samples = (output / f"samples/step-{step:06}.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(samples) == 16 * 8, f"seed {seed}, step {step}: none is lost or doubled"
    if overlap == "None":
        assert max(line["mismatch_max"] for line in lines) < 1e-4
