"""One rank on CUDA: what it computes depends neither on packing nor on the ZeRO stage.

In bfloat16 the attention is FlashAttention 2's, whose backward pass adds in an order of its own: gradients of the same
step differ from run to run, so that norms are compared to a fiftieth, and log-probabilities to bfloat16's rounding. In
float32 it is PyTorch's, and both agree to a ten-thousandth.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.gpu.running import VOCABULARY
from transformers import Qwen2ForCausalLM

from simplerl_api.memory import MemoryEstimate
from simplerl_api.residence import Sharding
from simplerl_api.spec.algorithm import Algorithm
from simplerl_api.spec.training import Precision, Training, ZeroStage
from simplerl_trainer.policy.protocol import MemoryNeeds, RankSetup, RankWork, Trajectory
from simplerl_trainer.policy.rank import Rank
from simplerl_trainer.policy.step_plan import make_step_plan
from simplerl_trainer.weights.buckets import make_buckets

TEMPERATURE = 0.8
LOGPROB_MAX, LOGPROB_MEAN = 0.25, 0.02
"""Nats between a packed row in bfloat16 and a single row in float32."""
RELATIVE = {Precision.BF16: 2e-2, Precision.FP32: 1e-4}
"""Relative difference of gradient norms and means."""


@pytest.fixture(scope="module")
def single_rows(qwen2: Callable[..., Path], trajectories: Sequence[Trajectory]) -> Sequence[Trajectory]:
    """The trajectories with transformers' own log-probabilities in float32, before a rank changes its layers."""
    model = Qwen2ForCausalLM.from_pretrained(qwen2(tied=True), dtype=torch.float32).cuda()
    rows = []
    for t in trajectories:
        ids = torch.tensor([*t.prompt_ids, *t.response_ids], device="cuda")
        with torch.no_grad():
            logits = model(ids[None]).logits[0, len(t.prompt_ids) - 1 : -1] / TEMPERATURE
        logprobs = logits.log_softmax(-1).gather(-1, ids[len(t.prompt_ids) :, None])[:, 0]
        rows.append(replace(t, logprobs=tuple(logprobs.tolist())))
    return rows


@pytest.fixture(scope="module")
def setup(qwen2: Callable[..., Path], single_rows: Sequence[Trajectory]) -> RankSetup:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    return RankSetup(
        rank=0,
        world_size=1,
        master_address="127.0.0.1",
        master_port=port,
        model_folder=str(qwen2(tied=True)),
        algorithm=Algorithm.model_validate({"kl": {"coefficient": 0.1}}),
        training=Training.model_validate(
            {"steps": 4, "actor": {"learningRate": 1e-3}, "critic": {"learningRate": 1e-3}}
        ),
        zero_stage=ZeroStage.OPTIMIZER,
        precision=Precision.BF16,
        temperature=TEMPERATURE,
        optimizer_steps_per_step=2,
        max_tokens=256,
        max_new_tokens=150,
        cpu_only=False,
        timeout=60.0,
        vocabulary=VOCABULARY,
    )


@pytest.fixture(scope="module")
def trajectories() -> Sequence[Trajectory]:
    made = torch.Generator().manual_seed(3)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(2, VOCABULARY, (count,), generator=made).tolist())

    lengths = [(5 + 3 * (i % 7), 1 + 13 * i % 150) for i in range(32)]
    return [Trajectory(i, ids(p), ids(r), float(i % 3), None, group=i // 4) for i, (p, r) in enumerate(lengths)]


def work(trajectories: Sequence[Trajectory], max_tokens: int) -> RankWork:
    by_id = {t.sample_id: t for t in trajectories}
    lengths = {i: len(t.prompt_ids) + len(t.response_ids) for i, t in by_id.items()}
    plan = make_step_plan(lengths, ranks=1, train_batch_size=16, max_tokens=max_tokens, seed=1)
    return RankWork([[[by_id[i] for i in pack] for pack in batch[0]] for batch in plan], step=1, kl_coefficient=0.1)


def step(setup: RankSetup, trajectories: Sequence[Trajectory], max_tokens: int) -> dict[str, float]:
    """The metrics of a whole step, with the second optimizer step's under `second.`."""
    rank = Rank()
    rank.start(setup)
    found = dict(rank.annotate(work(trajectories, max_tokens)).metrics)
    first, second = (rank.update(batch, 0) for batch in (0, 1))
    assert not first.skipped
    assert not second.skipped
    assert first.metrics["ratio_first_deviation"] == 0
    return found | first.metrics | {f"second.{k}": v for k, v in second.metrics.items()}


@pytest.fixture(scope="module", params=[Precision.BF16, Precision.FP32], ids=str)
def reference(
    request: pytest.FixtureRequest, setup: RankSetup, trajectories: Sequence[Trajectory]
) -> tuple[Precision, dict[str, float]]:
    """Plain data parallelism, everything in one pack."""
    whole = replace(setup, zero_stage=ZeroStage.REPLICATED, precision=request.param)
    return request.param, step(whole, trajectories, 100_000)


@pytest.mark.parametrize(
    ("stage", "max_tokens"),
    [
        pytest.param(ZeroStage.REPLICATED, 300, id="stage 0, small packs"),
        pytest.param(ZeroStage.OPTIMIZER, 100_000, id="stage 1, one pack"),
        pytest.param(ZeroStage.OPTIMIZER, 300, id="stage 1, small packs"),
        pytest.param(ZeroStage.GRADIENTS, 300, id="stage 2, small packs"),
        pytest.param(ZeroStage.PARAMETERS, 100_000, id="stage 3, one pack"),
        pytest.param(ZeroStage.PARAMETERS, 300, id="stage 3, small packs"),
    ],
)
def test_a_step_does_not_depend_on_packing_or_stage(
    stage: ZeroStage,
    max_tokens: int,
    setup: RankSetup,
    trajectories: Sequence[Trajectory],
    reference: tuple[Precision, dict[str, float]],
) -> None:
    precision, expected = reference
    found = step(replace(setup, zero_stage=stage, precision=precision), trajectories, max_tokens)
    norms = ("actor_grad_norm", "critic_grad_norm", "second.actor_grad_norm", "second.critic_grad_norm")
    for name in (*norms, "entropy", "value_loss", "return_mean"):
        assert found[name] == pytest.approx(expected[name], rel=RELATIVE[precision]), name
    assert found["policy_loss"] == pytest.approx(expected["policy_loss"], abs=RELATIVE[precision] / 10)


@pytest.mark.parametrize("name", ["ppo", "grpo", "rloo", "reinforcePlusPlus"])
def test_every_algorithm_takes_a_step(name: str, setup: RankSetup, trajectories: Sequence[Trajectory]) -> None:
    algorithm = Algorithm.model_validate({name: {}, "loss": {"entropyCoefficient": 0.01}, "kl": {"coefficient": 0.1}})
    found = step(replace(setup, algorithm=algorithm), trajectories, 1_000)
    assert 0 < found["actor_grad_norm"] < float("inf")
    assert ("critic_grad_norm" in found) is (name == "ppo")


def test_packed_log_probabilities_are_those_of_single_rows_in_float32(
    setup: RankSetup, single_rows: Sequence[Trajectory]
) -> None:
    rank = Rank()
    rank.start(setup)
    metrics = rank.annotate(work(single_rows, 2_000)).metrics
    assert metrics["mismatch_mean"] < LOGPROB_MEAN
    assert metrics["mismatch_max"] < LOGPROB_MAX


def turning(stage: ZeroStage) -> MemoryNeeds:
    """Engines that want the whole GPU, so that ranks leave it."""
    small = MemoryEstimate(parts=(), gradient_checkpointing=False)
    return MemoryNeeds([Sharding(zero_stage=stage, plain=small, checkpointed=small)], engines_share=1.0)


@pytest.mark.parametrize("stage", [ZeroStage.REPLICATED, ZeroStage.OPTIMIZER, ZeroStage.PARAMETERS])
def test_offload_and_reload_leave_the_weights_as_they_are_and_little_on_the_gpu(
    stage: ZeroStage, setup: RankSetup, trajectories: Sequence[Trajectory]
) -> None:
    turns = replace(setup, zero_stage=stage, memory=turning(stage))
    rank = Rank()
    rank.start(turns)
    buckets = make_buckets(rank.parameters())
    before = [flat.clone() for flat in rank.gather(buckets)]
    metrics = rank.annotate(work(trajectories, 2_000)).metrics
    assert not rank.update(0, 0).skipped
    after = [flat.clone() for flat in rank.gather(buckets)]
    assert not all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    for _ in range(2):
        held = torch.cuda.memory_allocated()
        rank.offload()
        # masters and two moments of actor and critic in float32, at the least
        assert torch.cuda.memory_allocated() < held - 2 * 12 * sum(b.numel for b in buckets)
        rank.reload()
    assert all(torch.equal(a, b) for a, b in zip(after, rank.gather(buckets), strict=True))
    again = rank.annotate(work(trajectories, 2_000)).metrics
    assert again["entropy"] != metrics["entropy"]
    assert not rank.update(0, 0).skipped


@pytest.mark.parametrize(
    ("saved", "resumed"),
    [
        (ZeroStage.REPLICATED, ZeroStage.OPTIMIZER),
        (ZeroStage.OPTIMIZER, ZeroStage.PARAMETERS),
        (ZeroStage.PARAMETERS, ZeroStage.REPLICATED),
    ],
)
def test_what_a_rank_saves_while_it_is_away_from_the_gpu_any_stage_takes_up(
    saved: ZeroStage, resumed: ZeroStage, setup: RankSetup, trajectories: Sequence[Trajectory], tmp_path: Path
) -> None:
    rank = Rank()
    rank.start(replace(setup, zero_stage=saved, memory=turning(saved)))
    rank.annotate(work(trajectories, 2_000))
    assert not rank.update(0, 0).skipped
    (tmp_path / "saved").mkdir()
    rank.offload()
    held = torch.cuda.memory_allocated()
    rank.save(str(tmp_path / "saved"))
    rank.export(str(tmp_path / "model"), {})
    assert torch.cuda.memory_allocated() <= held + 2**20, "nothing comes back for it"
    rank.reload()
    buckets = make_buckets(rank.parameters())
    weights = [flat.clone() for flat in rank.gather(buckets)]

    again = Rank()
    again.start(replace(setup, zero_stage=resumed))
    again.load(str(tmp_path / "saved"))
    assert all(torch.equal(a, b) for a, b in zip(weights, again.gather(buckets), strict=True))
    exported = dict(Qwen2ForCausalLM.from_pretrained(tmp_path / "model", dtype="auto").named_parameters())
    for bucket, flat in zip(buckets, weights, strict=True):
        for p, part in zip(bucket.parameters, flat.split([p.numel for p in bucket.parameters]), strict=True):
            assert torch.equal(exported[p.name].flatten(), part.cpu()), p.name
    found, expected = (
        {**r.annotate(work(trajectories, 2_000)).metrics, **r.update(1, 0).metrics} for r in (again, rank)
    )
    for name in ("entropy", "value_loss", "actor_grad_norm", "critic_grad_norm"):
        assert found[name] == pytest.approx(expected[name], rel=RELATIVE[setup.precision]), name
