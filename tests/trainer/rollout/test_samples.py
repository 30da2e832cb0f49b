"""Seeds, the KV cache's size, and samples as the loop sees them."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from simplerl_api.failures import TrainerFailure
from simplerl_trainer.rollout import kv_cache, rollouts
from simplerl_trainer.rollout.protocol import Finished, Request
from simplerl_trainer.rollout.rollouts import Drawing
from simplerl_trainer.rollout.seeds import Stream, seed
from simplerl_trainer.samples import Finish, Prompt

MIB = 2**20


def test_a_samples_seed_never_changes_between_versions() -> None:
    assert seed(42, 3, 5, 7) == 8476827304970067675
    assert seed(42, 3, 5, 7, Stream.EVALUATION) == 3964464231659418012


def test_seeds_differ_and_fit_into_int64() -> None:
    seeds = {
        seed(job, step, prompt, sample, stream)
        for job in (0, 1)
        for step in range(5)
        for prompt in range(40)
        for sample in range(8)
        for stream in Stream
    }
    assert len(seeds) == 2 * 5 * 40 * 8 * 2
    assert all(0 <= s < 2**63 for s in seeds)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(
            {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 128},
            2 * 3 * 2 * 32 * 4,
            id="head_dim from the hidden size",
        ),
        pytest.param(
            {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "head_dim": 64},
            2 * 2 * 4 * 64 * 4,
            id="its own head_dim, every head with keys and values",
        ),
    ],
)
def test_bytes_of_a_token_in_the_kv_cache(config: dict[str, int], expected: int, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert kv_cache.bytes_per_token(str(tmp_path), 4) == expected


@pytest.mark.parametrize(
    ("token_bytes", "seqs", "length", "expected"),
    [
        pytest.param(1536, 256, 24, 64 * MIB, id="a toy takes the least"),
        pytest.param(46080, 32, 512, (32 * 512 + 128) * 46080, id="room for every sequence"),
        pytest.param(46080, 256, 1024, 1024 * MIB, id="no more than a GiB"),
        pytest.param(2**20, 4, 4096, (4096 + 128) * 2**20, id="but always one sequence"),
    ],
)
def test_kv_cache_on_cpu(token_bytes: int, seqs: int, length: int, expected: int) -> None:
    assert kv_cache.on_cpu(token_bytes, seqs, length) == expected


def test_kv_cache_on_cuda_is_what_the_engines_share_leaves() -> None:
    assert kv_cache.on_cuda(140 * 2**30, 0.5, 15 * 2**30) == (70 - 15 - 4) * 2**30
    with pytest.raises(TrainerFailure, match=r"share of 14\.0 GiB .* lower rollout\.enginesPerGpu"):
        kv_cache.on_cuda(140 * 2**30, 0.1, 15 * 2**30)


class Echo:
    """Stands in the pool's place: answers the last request first."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.asked: list[Request] = []

    async def generate(self, requests: Sequence[Request]) -> AsyncIterator[Finished]:
        self.asked += requests
        for r in reversed(requests):
            logprobs = (-0.5,) if r.logprobs else None
            yield Finished(r.id, (r.id,), Finish.STOP, logprobs, self.version)


def drawing(**changes: Any) -> Drawing:
    given = {"job_seed": 42, "step": 3, "samples_per_prompt": 8, "temperature": 0.7, "max_new_tokens": 9}
    return Drawing(**(given | changes))


PROMPTS = [Prompt(row=100 + n, question="?", answer="!", token_ids=(n, n)) for n in range(4)]


async def test_samples_come_with_their_prompt_and_the_first_sixteen_with_log_probabilities() -> None:
    pool = Echo(version=5)
    samples = [s async for s in rollouts.generate(pool, PROMPTS, drawing(weights_version=5))]
    assert [s.id for s in samples] == list(range(31, -1, -1))
    assert all(s.prompt is PROMPTS[s.id // 8] and s.response_ids == (s.id,) for s in samples)
    assert sorted(s.id for s in samples if s.logprobs) == list(range(16))
    assert [r.seed for r in pool.asked] == [seed(42, 3, n // 8, n % 8) for n in range(32)]
    assert {(r.temperature, r.max_new_tokens) for r in pool.asked} == {(0.7, 9)}


async def test_a_sample_from_other_weights_than_asked_for_is_refused() -> None:
    with pytest.raises(TrainerFailure, match="sample 31 of step 3 comes from weights version 4, not 5"):
        [s async for s in rollouts.generate(Echo(version=4), PROMPTS, drawing(weights_version=5))]
