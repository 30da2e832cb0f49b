"""Weights into a live engine: every parameter, tied and untied, in both types, on one GPU and on two, by both roads."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from transformers import Qwen2ForCausalLM

from simplerl_api.failures import TrainerFailure
from simplerl_trainer.rollout import verify
from simplerl_trainer.rollout.protocol import EngineSetup, Finished, Request
from simplerl_trainer.rollout.vllm_engine import VllmEngine
from simplerl_trainer.weights import transport
from simplerl_trainer.weights.buckets import Bucket, Parameter, make_buckets
from simplerl_trainer.weights.handover import WINDOW
from simplerl_trainer.weights.road import Broadcast, Receiver, Sender, SharedMemory
from simplerl_trainer.weights.send import send
from simplerl_trainer.weights.shared_memory import Writer

VOCABULARY = 250  # of the model's 300 rows: a padded head
SETUP = EngineSetup("", False, True, 300, 16, 512, 1.0, (1,), 0, vocabulary=VOCABULARY, verify_weights=True)
PROMPTS = [tuple(range(3 + 7 * n, 20 + 8 * n)) for n in range(6)]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: a kind of model, and how many workers hold it."""

    tied: bool
    dtype: torch.dtype
    workers: int

    @property
    def name(self) -> str:
        return f"{'tied' if self.tied else 'untied'}-{str(self.dtype).removeprefix('torch.')}-on-{self.workers}"

    @property
    def near(self) -> float:
        """Log-probabilities of the engine and of transformers in float32 differ by less, in nats, where the weights are
        the same."""
        return 1e-4 if self.dtype is torch.float32 else 0.25


ROWS = [Row(tied, dtype, 1) for tied in (True, False) for dtype in (torch.float32, torch.bfloat16)]
TWO = [Row(tied, dtype, 2) for tied in (True, False) for dtype in (torch.float32, torch.bfloat16)]


@pytest.fixture(
    scope="module",
    params=[*ROWS, *(pytest.param(row, marks=pytest.mark.long) for row in TWO)],
    ids=lambda row: row.name,
)
def row(request: pytest.FixtureRequest) -> Row:
    return request.param


@pytest.fixture(scope="module")
def engine(qwen2: Callable[..., Path], row: Row) -> Iterator[VllmEngine]:
    engine = VllmEngine()
    bf16 = row.dtype is torch.bfloat16
    engine.start(replace(SETUP, model_folder=str(qwen2(row.tied)), bf16=bf16, tensor_parallel_size=row.workers))
    yield engine
    engine.stop()


def trained(qwen2: Callable[..., Path], row: Row, seed: int) -> Qwen2ForCausalLM:
    """A model with other weights, as float32 numbers that the row's type holds exactly."""
    return Qwen2ForCausalLM.from_pretrained(qwen2(row.tied, seed), dtype=row.dtype).float()


def buckets_of(model: Qwen2ForCausalLM, row: Row, limit: int = 30_000) -> Sequence[Bucket]:
    """Small buckets, so that layers reach over their borders."""
    dtype = str(row.dtype).removeprefix("torch.")
    return make_buckets([Parameter(n, dtype, tuple(p.shape)) for n, p in model.named_parameters()], limit)


def flats(model: Qwen2ForCausalLM, row: Row, buckets: Sequence[Bucket]) -> Iterator[torch.Tensor]:
    parameters = dict(model.named_parameters())
    for b in buckets:
        yield torch.cat([parameters[p.name].detach().flatten() for p in b.parameters]).to(row.dtype)


Road = tuple[Sequence[Sender], Sequence[Receiver]]
"""What each rank sends, and where each worker of the engine reads."""


def sync(engine: VllmEngine, model: Qwen2ForCausalLM, row: Row, road: Road, version: int) -> int:
    senders, receivers = road
    buckets = buckets_of(model, row)
    assert len(buckets) > 3
    sending = [threading.Thread(target=send, args=(s, flats(model, row, buckets))) for s in senders]
    for thread in sending:
        thread.start()
    loaded = engine.load(receivers, buckets, version)
    for thread in sending:
        thread.join(timeout=30)
        assert not thread.is_alive()
    return loaded


def shared(name: str, row: Row) -> Road:
    """Each worker reads in a slot of its own, in which a rank lives."""
    slots = [SharedMemory(f"/dev/shm/simplerl-test-load-{name}-slot{n}-", (3,), 20.0) for n in range(row.workers)]
    return [Sender(None, slot) for slot in slots], slots


def broadcast(port: int, row: Row) -> Road:
    """No worker's slot has a rank: rank 0 reaches each of them once."""
    group = Broadcast("127.0.0.1", port, 0, 1 + row.workers, "gloo", 20.0, None)
    return [Sender(group, None)], [replace(group, rank=1 + n) for n in range(row.workers)]


def greatest_difference(
    engine: VllmEngine, model: Qwen2ForCausalLM, prompts: Sequence[tuple[int, ...]] = PROMPTS
) -> float:
    """Between the engine's log-probabilities of what it draws and the model's, of the ids that may be drawn."""
    engine.submit([Request(n, p, n, 1.0, 12, True) for n, p in enumerate(prompts)])
    done: list[Finished] = []
    deadline = time.monotonic() + 30
    while len(done) < len(prompts) and time.monotonic() < deadline:
        done += engine.finished(1.0)
    assert len(done) == len(prompts)
    greatest = 0.0
    for f in done:
        assert max(f.token_ids) < VOCABULARY
        ids = torch.tensor([*prompts[f.id], *f.token_ids])
        start = len(prompts[f.id])
        with torch.no_grad():
            logits = model(ids[None]).logits[0, start - 1 : -1, :VOCABULARY]
        logprobs = logits.log_softmax(-1).gather(-1, ids[start:, None])[:, 0]
        greatest = max(greatest, (logprobs - torch.tensor(f.logprobs)).abs().max().item())
    return greatest


# Faults 19 and 20 (vllm#51665, labs-molt#26, SkyRL#1737): a tied head that stays behind, buckets that change a value.
def test_after_a_sync_the_engine_draws_from_the_ranks_weights(
    engine: VllmEngine, qwen2: Callable[..., Path], row: Row, free_port: int
) -> None:
    before = trained(qwen2, row, 0)
    assert greatest_difference(engine, before) < row.near
    by_shared_memory, by_broadcast = shared("both", row), broadcast(free_port, row)
    for version, road in enumerate([by_shared_memory, by_broadcast, by_shared_memory, by_broadcast], start=1):
        after = trained(qwen2, row, version)
        assert sync(engine, after, row, road, version) == len(list(after.named_parameters()))
        assert engine.version() == version
        assert greatest_difference(engine, after) < row.near
        assert greatest_difference(engine, before) > 1.0  # the check can tell
    transport.leave()
    assert not list(Path("/dev/shm").glob("simplerl-test-load-*"))


def test_a_changed_parameter_reaches_the_engine_whichever_it_is(
    engine: VllmEngine, qwen2: Callable[..., Path], row: Row
) -> None:
    if row.dtype is torch.bfloat16:
        pytest.skip("log-probabilities in bfloat16 are too coarse to tell; the checksums are compared all the same")
    if row.workers > 1:
        pytest.skip("takes long where two processes share few cores; the checksums are compared all the same")
    model = trained(qwen2, row, 9)
    sync(engine, model, row, shared("each", row), 10)
    for version, (name, parameter) in enumerate(model.named_parameters(), start=11):
        unchanged = greatest_difference(engine, model)
        with torch.no_grad():
            parameter.mul_(1.5)
        stale = greatest_difference(engine, model)
        sync(engine, model, row, shared("each", row), version)
        assert unchanged < 1e-4 < stale or "k_proj.bias" in name, name  # softmax takes away most of a key's bias
        assert greatest_difference(engine, model) < 1e-4, name


# Fault 18 (vllm#9744, NeMo-RL#4018): keys and values of the old weights are used after a sync.
def test_prompts_that_were_cached_under_old_weights_are_computed_again(
    engine: VllmEngine, qwen2: Callable[..., Path], row: Row
) -> None:
    prompt = tuple(3 + n % 290 for n in range(280))  # two whole blocks of 128 tokens go into the prefix cache
    for seed in (21, 22):
        model = trained(qwen2, row, seed)
        sync(engine, model, row, shared("prefix", row), seed)
        assert greatest_difference(engine, model, [prompt] * 3) < row.near
        assert greatest_difference(engine, model, [prompt] * 3) < row.near


def test_the_check_of_values_finds_a_difference_in_any_parameter(
    engine: VllmEngine, qwen2: Callable[..., Path], row: Row
) -> None:
    if row.workers > 1:
        pytest.skip("the model is in other processes")
    model = trained(qwen2, row, 30)
    sync(engine, model, row, shared("check", row), 30)
    held = engine._call(lambda: engine._llm.model_executor.driver_worker.model_runner.get_model())
    came = {n: verify.arrived(p.detach(), None, row.dtype) for n, p in model.named_parameters()}
    assert verify.differences(held, came) == set()
    for name, parameter in model.named_parameters():
        changed = parameter.detach().to(row.dtype)
        changed.view(-1)[-1] = torch.nextafter(changed.view(-1)[-1], torch.tensor(10.0, dtype=row.dtype))
        wrong = verify.differences(held, {**came, name: verify.arrived(changed, None, row.dtype)})
        assert name in wrong
        assert wrong <= {name, "lm_head.weight"}


def test_a_load_that_was_cut_short_draws_nothing_until_another_one_mends_it(
    engine: VllmEngine, qwen2: Callable[..., Path], row: Row
) -> None:
    model = trained(qwen2, row, 40)
    buckets = buckets_of(model, row)
    for sent in range(WINDOW + 1):  # the senders end after so many buckets
        senders, receivers = shared(f"cut{sent}", row)
        for sender in senders:
            assert isinstance(sender.local, SharedMemory)
            writer = Writer(sender.local)
            for flat in list(flats(model, row, buckets))[:sent]:
                writer.write(flat)
        with pytest.raises(TrainerFailure, match=f"did not write weight bucket {sent} within 1 s"):
            engine.load([replace(r, timeout=1.0) for r in receivers], buckets, 40)
        with pytest.raises(TrainerFailure, match="did not write weight bucket"):
            engine.submit([Request(0, (5, 6), 0, 1.0, 4, False)])
        sync(engine, model, row, shared("mended", row), 41)
        assert greatest_difference(engine, model) < row.near


def test_a_parameter_that_is_not_sent_is_named_and_the_engine_draws_nothing_then(qwen2: Callable[..., Path]) -> None:
    row = ROWS[0]
    model = trained(qwen2, row, 0)
    parameters = [Parameter(n, "float32", tuple(p.shape)) for n, p in model.named_parameters()]
    lost = make_buckets([p for p in parameters if p.name != "model.layers.1.self_attn.k_proj.weight"])
    engine = VllmEngine()
    engine.start(replace(SETUP, model_folder=str(qwen2(True))))
    sentence = "the ranks do not send model.layers.1.self_attn.k_proj.weight, which the engine's model has"
    with pytest.raises(TrainerFailure, match=sentence):
        engine.load(shared("lost", row)[1], lost, 1)
    with pytest.raises(TrainerFailure, match=sentence):
        engine.submit([Request(0, (5, 6), 0, 1.0, 4, False)])
    engine.stop()


def test_the_toy_models_generation_config_is_one_that_would_be_noticed(qwen2: Callable[..., Path]) -> None:
    config = json.loads((qwen2(True) / "generation_config.json").read_text(encoding="utf-8"))
    assert config["top_k"] == 1
