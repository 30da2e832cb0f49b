"""The engine protocol on real vLLM."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import Qwen2ForCausalLM

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.policy import model
from simplerl_trainer.policy.packing import make_pack
from simplerl_trainer.policy.protocol import Trajectory
from simplerl_trainer.rollout.protocol import EngineSetup, Finished, Request
from simplerl_trainer.rollout.vllm_engine import VllmEngine
from simplerl_trainer.samples import Finish
from simplerl_trainer.weights.road import SharedMemory

VOCABULARY = 250  # of the model's 300 rows: a padded head
SETUP = EngineSetup(
    model_folder="",
    bf16=False,
    cpu_only=True,
    max_model_len=48,
    max_num_seqs=16,
    max_num_batched_tokens=512,
    gpu_memory_share=1.0,
    stop_token_ids=(1,),
    seed=0,
    vocabulary=VOCABULARY,
)
PROMPT = (5, 9, 200, 17)


@pytest.fixture(scope="module")
def folder(qwen2: Callable[..., Path]) -> Path:
    return qwen2(tied=True)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[VllmEngine]:
    engine = VllmEngine()
    versions = engine.start(replace(SETUP, model_folder=str(folder)))
    assert set(versions) == {"vllm", "torch"}
    yield engine
    engine.stop()


def request(n: int, **changes: object) -> Request:
    return replace(Request(n, PROMPT, seed=n, temperature=1.0, max_new_tokens=8, logprobs=False), **changes)


def drawn(engine: VllmEngine, requests: Sequence[Request]) -> dict[int, Finished]:
    engine.submit(requests)
    done: dict[int, Finished] = {}
    deadline = time.monotonic() + 60
    while len(done) < len(requests) and time.monotonic() < deadline:
        done.update((f.id, f) for f in engine.finished(1.0))
    assert set(done) == {r.id for r in requests}
    return done


def hf_logprobs(folder: Path, prompt: Sequence[int], response: Sequence[int], temperature: float) -> torch.Tensor:
    whole = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.tensor([*prompt, *response])
    with torch.no_grad():
        logits = whole(ids[None]).logits[0, len(prompt) - 1 : -1, :VOCABULARY]
    return (logits / temperature).log_softmax(-1).gather(-1, ids[len(prompt) :, None])[:, 0]


def test_every_request_is_finished_once_and_more_than_max_num_seqs_wait_their_turn(engine: VllmEngine) -> None:
    done = drawn(engine, [request(n) for n in range(50)])
    assert all(0 < len(f.token_ids) <= 8 and f.logprobs is None and f.weights_version == 0 for f in done.values())
    assert engine.finished(0.0) == []


def test_the_same_seed_gives_the_same_response_in_another_batch_and_other_seeds_give_others(
    engine: VllmEngine,
) -> None:
    alone = [drawn(engine, [request(0, seed=s)])[0].token_ids for s in range(4)]
    together = drawn(engine, [request(n, seed=n) for n in range(12)])
    assert [together[n].token_ids for n in range(4)] == alone
    assert len({f.token_ids for f in together.values()}) > 8


def test_temperature_zero_takes_the_likeliest_token(engine: VllmEngine, folder: Path) -> None:
    ids = drawn(engine, [request(0, temperature=0.0)])[0].token_ids
    whole = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        logits = whole(torch.tensor([[*PROMPT, *ids]])).logits[0, len(PROMPT) - 1 : -1, :VOCABULARY]
    assert tuple(logits.argmax(-1).tolist()) == ids


def test_top_p_leaves_only_the_likeliest_tokens(engine: VllmEngine) -> None:
    greedy = drawn(engine, [request(0, temperature=0.0)])[0].token_ids
    hot = drawn(engine, [request(n, temperature=2.0, top_p=0.001 if n < 8 else 1.0) for n in range(16)])
    assert {hot[n].token_ids for n in range(8)} == {greedy}
    assert greedy not in {hot[n].token_ids for n in range(8, 16)}


# Fault 13 (OpenRLHF#238, SkyRL#508): a truncated response must not look as if it had stopped.
def test_a_response_ends_with_a_stop_id_which_it_contains_or_at_its_length(engine: VllmEngine) -> None:
    done = drawn(engine, [request(n, max_new_tokens=40, temperature=2.0) for n in range(60)])
    stopped = [f for f in done.values() if f.finish is Finish.STOP]
    cut = [f for f in done.values() if f.finish is Finish.LENGTH]
    assert stopped
    assert cut
    assert all(f.token_ids[-1] == 1 and 1 not in f.token_ids[:-1] for f in stopped)
    assert all(len(f.token_ids) == 40 and 1 not in f.token_ids for f in cut)


# Fault 16 (TRL#4159, OpenRLHF#857): the temperature applied on one side only.
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_engine_and_ranks_agree_on_temperature_and_on_the_ids_that_may_be_drawn(
    engine: VllmEngine, folder: Path, temperature: float
) -> None:
    done = drawn(engine, [request(n, logprobs=True, temperature=temperature) for n in range(16)])
    assert max(i for f in done.values() for i in f.token_ids) < VOCABULARY
    config = model.read_config(str(folder), 48)
    actor = model.load_actor(str(folder), config, torch.float32, VOCABULARY)
    pack = make_pack(
        [Trajectory(n, PROMPT, f.token_ids, 0.0, f.logprobs, group=n) for n, f in done.items()], torch.device("cpu")
    )
    with torch.no_grad():
        logprobs, _ = actor(pack, temperature)
    torch.testing.assert_close(logprobs[pack.probe], pack.probe_logprobs, atol=1e-4, rtol=0)
    with torch.no_grad():
        whole, _ = model.load_actor(str(folder), config, torch.float32)(pack, temperature)
        at_one, _ = actor(pack, 1.0)
    assert (whole - logprobs).abs().max() > 1e-2  # the check can tell
    assert temperature == 1.0 or (at_one - logprobs).abs().max() > 1e-2


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probabilities_are_those_of_hugging_face_after_temperature(
    engine: VllmEngine, folder: Path, temperature: float
) -> None:
    done = drawn(engine, [request(n, logprobs=n < 4, temperature=temperature) for n in range(8)])
    for n, f in done.items():
        if n < 4:
            expected = hf_logprobs(folder, PROMPT, f.token_ids, temperature)
            torch.testing.assert_close(torch.tensor(f.logprobs), expected, atol=1e-4, rtol=0)
        else:
            assert f.logprobs is None


def test_the_model_folders_generation_config_does_not_reach_the_sampling(engine: VllmEngine) -> None:
    first_tokens = {f.token_ids[0] for f in drawn(engine, [request(n) for n in range(30)]).values()}
    assert len(first_tokens) > 3  # its top_k of 1 would leave one


def test_an_aborted_request_does_not_finish_and_the_others_do(engine: VllmEngine) -> None:
    engine.submit([request(n, max_new_tokens=40, seed=7) for n in range(16)])
    engine.abort(list(range(8)))
    done: dict[int, Finished] = {}
    while len(done) < 8:
        got = engine.finished(5.0)
        assert got
        done.update((f.id, f) for f in got)
    assert engine.finished(0.1) == []
    assert set(range(8, 16)) <= set(done)
    assert set(drawn(engine, [request(n) for n in range(8)])) == set(range(8))  # the ids are free again


@pytest.mark.parametrize(
    ("requests", "sentence"),
    [
        pytest.param([request(0, max_new_tokens=45)], "a prompt of 4 tokens and asks for 45", id="it is too long"),
        pytest.param([request(3), request(3)], "request id 3 is in use", id="its id is given twice"),
        pytest.param(
            [request(0, temperature=2.5)], "has temperature 2.5: vLLM draws at 0, or 0.01", id="it is too hot"
        ),
        pytest.param(
            [request(0, temperature=1e-3)], "has temperature 0.001: vLLM", id="vLLM would raise its temperature"
        ),
    ],
)
def test_a_request_is_refused_where(engine: VllmEngine, requests: list[Request], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        engine.submit(requests)
    assert engine.finished(0.0) == []


def test_weights_are_not_loaded_under_open_requests(engine: VllmEngine) -> None:
    engine.submit([request(0, max_new_tokens=40, seed=0)])
    with pytest.raises(
        TrainerFailure, match="cannot load weights version 1 while 1 requests are unfinished"
    ) as failure:
        engine.load([SharedMemory("/dev/shm/simplerl-test-none-", (0,), 1.0)], [], 1)
    assert failure.value.reason is FailureReason.WEIGHT_SYNC_FAILED
    engine.abort([0])


def test_sleep_and_wake_change_nothing_on_cpu(engine: VllmEngine) -> None:
    before = drawn(engine, [request(0)])[0]
    engine.sleep()
    engine.wake(["weights"])
    engine.wake(["kv_cache"])
    assert drawn(engine, [request(0)])[0] == before
