"""Weights into a live engine: every parameter, tied and untied, by both roads."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import Qwen2ForCausalLM

from simplerl_api.failures import TrainerFailure
from simplerl_trainer.rollout import verify
from simplerl_trainer.rollout.protocol import EngineSetup, Finished, Request
from simplerl_trainer.rollout.vllm_engine import VERIFY, VllmEngine
from simplerl_trainer.weights import transport
from simplerl_trainer.weights.buckets import Bucket, Parameter, make_buckets
from simplerl_trainer.weights.road import Broadcast, Receiver, Sender, SharedMemory
from simplerl_trainer.weights.send import send

SETUP = EngineSetup("", False, True, 300, 16, 512, 1.0, (1,), 0)
PROMPTS = [tuple(range(3 + 7 * n, 20 + 8 * n)) for n in range(6)]


@pytest.fixture(autouse=True)
def values_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VERIFY, "1")


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def tied(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def engine(qwen2: Callable[..., Path], tied: bool) -> Iterator[VllmEngine]:
    engine = VllmEngine()
    engine.start(replace(SETUP, model_folder=str(qwen2(tied))))
    yield engine
    engine.stop()


def trained(qwen2: Callable[..., Path], tied: bool, seed: int) -> Qwen2ForCausalLM:
    return Qwen2ForCausalLM.from_pretrained(qwen2(tied, seed), dtype=torch.float32)


def buckets_of(model: Qwen2ForCausalLM, limit: int = 30_000) -> Sequence[Bucket]:
    """Small buckets, so that layers reach over their borders."""
    return make_buckets([Parameter(n, "float32", tuple(p.shape)) for n, p in model.named_parameters()], limit)


def flats(model: Qwen2ForCausalLM, buckets: Sequence[Bucket]) -> Iterator[torch.Tensor]:
    parameters = dict(model.named_parameters())
    for b in buckets:
        yield torch.cat([parameters[p.name].detach().flatten() for p in b.parameters])


def sync(engine: VllmEngine, model: Qwen2ForCausalLM, sender: Sender, receiver: Receiver, version: int) -> int:
    buckets = buckets_of(model)
    assert len(buckets) > 3
    sending = threading.Thread(target=send, args=(sender, flats(model, buckets)))
    sending.start()
    loaded = engine.load(receiver, buckets, version)
    sending.join(timeout=30)
    assert not sending.is_alive()
    return loaded


def shared(name: str) -> tuple[Sender, Receiver]:
    prefix = f"/dev/shm/simplerl-test-load-{name}-"
    return Sender(None, SharedMemory(prefix, (3,), 20.0)), SharedMemory(prefix, (3,), 20.0)


def broadcast(port: int) -> tuple[Sender, Receiver]:
    group = Broadcast("127.0.0.1", port, 0, 2, "gloo", 20.0, None)
    return Sender(group, None), replace(group, rank=1)


def greatest_difference(
    engine: VllmEngine, model: Qwen2ForCausalLM, prompts: Sequence[tuple[int, ...]] = PROMPTS
) -> float:
    """Between the engine's log-probabilities of what it draws and the model's."""
    engine.submit([Request(n, p, n, 1.0, 12, True) for n, p in enumerate(prompts)])
    done: list[Finished] = []
    deadline = time.monotonic() + 30
    while len(done) < len(prompts) and time.monotonic() < deadline:
        done += engine.finished(1.0)
    greatest = 0.0
    for f in done:
        ids = torch.tensor([*prompts[f.id], *f.token_ids])
        start = len(prompts[f.id])
        with torch.no_grad():
            logprobs = model(ids[None]).logits[0, start - 1 : -1].log_softmax(-1).gather(-1, ids[start:, None])[:, 0]
        greatest = max(greatest, (logprobs - torch.tensor(f.logprobs)).abs().max().item())
    return greatest


def test_after_a_sync_the_engine_draws_from_the_ranks_weights(
    engine: VllmEngine, qwen2: Callable[..., Path], tied: bool, free_port: int
) -> None:
    before = trained(qwen2, tied, 0)
    assert greatest_difference(engine, before) < 1e-4
    by_shared_memory, by_broadcast = shared("both"), broadcast(free_port)
    for version, roads in enumerate([by_shared_memory, by_broadcast, by_shared_memory, by_broadcast], start=1):
        after = trained(qwen2, tied, version)
        assert sync(engine, after, *roads, version) == len(list(after.named_parameters()))
        assert engine.version() == version
        assert greatest_difference(engine, after) < 1e-4
        assert greatest_difference(engine, before) > 0.1  # the check can tell
    transport.leave()
    assert not list(Path("/dev/shm").glob("simplerl-test-load-*"))


def test_a_changed_parameter_reaches_the_engine_whichever_it_is(
    engine: VllmEngine, qwen2: Callable[..., Path], tied: bool
) -> None:
    model = trained(qwen2, tied, 9)
    sync(engine, model, *shared("each"), 10)
    for version, (name, parameter) in enumerate(model.named_parameters(), start=11):
        unchanged = greatest_difference(engine, model)
        with torch.no_grad():
            parameter.mul_(1.5)
        stale = greatest_difference(engine, model)
        sync(engine, model, *shared("each"), version)
        assert unchanged < 1e-4 < stale or "k_proj.bias" in name, name  # softmax takes away most of a key's bias
        assert greatest_difference(engine, model) < 1e-4, name


def test_prompts_that_were_cached_under_old_weights_are_computed_again(
    engine: VllmEngine, qwen2: Callable[..., Path], tied: bool
) -> None:
    prompt = tuple(3 + n % 290 for n in range(280))  # two whole blocks of 128 tokens go into the prefix cache
    for seed in (21, 22):
        model = trained(qwen2, tied, seed)
        sync(engine, model, *shared("prefix"), seed)
        assert greatest_difference(engine, model, [prompt] * 3) < 1e-4
        assert greatest_difference(engine, model, [prompt] * 3) < 1e-4


def test_the_check_of_values_finds_a_difference_in_any_parameter(
    engine: VllmEngine, qwen2: Callable[..., Path], tied: bool
) -> None:
    model = trained(qwen2, tied, 30)
    sync(engine, model, *shared("check"), 30)
    held = engine._call(lambda: engine._llm.model_executor.driver_worker.model_runner.get_model())
    came = {n: verify.arrived(p.detach(), torch.float32) for n, p in model.named_parameters()}
    assert verify.differences(held, came) == set()
    for name, parameter in model.named_parameters():
        changed = parameter.detach().clone()
        changed.view(-1)[-1] = torch.nextafter(changed.view(-1)[-1], torch.tensor(10.0))
        wrong = verify.differences(held, {**came, name: verify.arrived(changed, torch.float32)})
        assert name in wrong
        assert wrong <= {name, "lm_head.weight"}


def test_a_parameter_that_is_not_sent_is_named_and_the_engine_is_of_no_use_then(qwen2: Callable[..., Path]) -> None:
    model = trained(qwen2, True, 0)
    parameters = [Parameter(n, "float32", tuple(p.shape)) for n, p in model.named_parameters()]
    lost = make_buckets([p for p in parameters if p.name != "model.layers.1.self_attn.k_proj.weight"])
    engine = VllmEngine()
    engine.start(replace(SETUP, model_folder=str(qwen2(True))))
    sentence = "the ranks do not send model.layers.1.self_attn.k_proj.weight, which the engine's model has"
    with pytest.raises(TrainerFailure, match=sentence):
        engine.load(shared("lost")[1], lost, 1)
    with pytest.raises(TrainerFailure, match=sentence):
        engine.finished(1.0)
    with pytest.raises(TrainerFailure, match=sentence):
        engine.submit([Request(0, (5, 6), 0, 1.0, 4, False)])
    engine.stop()


def test_the_toy_models_generation_config_is_one_that_would_be_noticed(qwen2: Callable[..., Path]) -> None:
    config = json.loads((qwen2(True) / "generation_config.json").read_text(encoding="utf-8"))
    assert config["top_k"] == 1
