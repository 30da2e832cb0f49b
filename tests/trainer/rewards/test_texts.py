"""What a reward model reads: the template, one begin token, nothing that is too long."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import models, pre_tokenizers, processors

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.rewards import Reward
from simplerl_trainer.data.tokenizer import Tokenizer
from simplerl_trainer.rewards import texts
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.outcome import Verdict
from simplerl_trainer.rewards.score import Scorer, combine, with_models
from simplerl_trainer.rewards.texts import JudgeReader
from simplerl_trainer.samples import Finish, Prompt, Sample, Score

WORDS = ["<s>", "user:", "assistant:", "Q", "A", "a", "b", "c", "{response}", "?"]
CHAT = "{{ bos_token }}{% for m in messages %}{{ ' ' + m.role + ': ' + m.content }}{% endfor %}"


def tokenizer(folder: Path, chat: str | None) -> Tokenizer:
    """Of words; it puts <s> in front itself."""
    folder.mkdir(exist_ok=True)
    fast = FastTokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="?"))
    fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast.add_special_tokens(["<s>"])
    fast.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    fast.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<s>"} | ({"chat_template": chat} if chat else {})
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return Tokenizer(folder)


@pytest.mark.parametrize(
    ("template", "question", "response", "read"),
    [
        pytest.param(None, "a", "b", "<s> user: a assistant: b", id="the chat template"),
        pytest.param("Q {question} A {response}", "a", "b", "<s> Q a A b", id="a literal"),
        pytest.param("<s> Q {question} A {response}", "a", "b", "<s> Q a A b", id="a literal with a begin token"),
        pytest.param("{response}", "a", "b c", "<s> b c", id="the response alone"),
        pytest.param(
            "Q {question} A {response}", "{response}", "b", "<s> Q {response} A b", id="a question that looks like one"
        ),
    ],
)
def test_a_begin_token_stands_once(  # NeMo-RL#855, open-r1#462 (42): double BOS
    template: str | None, question: str, response: str, read: str, tmp_path: Path
) -> None:
    reader = JudgeReader(tokenizer(tmp_path, CHAT), template, 100)
    (ids,) = reader.read([question], [response])
    assert " ".join(WORDS[i] for i in ids) == read


def test_a_text_that_is_too_long_is_empty(tmp_path: Path) -> None:
    reader = JudgeReader(tokenizer(tmp_path, None), "{response}", 3)
    assert reader.read(["", "", ""], ["a b", "a b c", "a"]) == [(0, 5, 6), (), (0, 5)]


def test_every_reward_model_reads_every_sample(tmp_path: Path) -> None:
    readers = [JudgeReader(tokenizer(tmp_path, CHAT), t, 100) for t in ("{response}", "{question} {response}")]
    samples = [Sample(i, Prompt(0, q, "", (1,)), (1,), Finish.STOP, 0, None) for i, q in ((7, "a"), (9, "b"))]
    assert texts.read(readers, samples, {9: "c", 7: "b"}) == {
        7: ((0, 6), (0, 5, 6)),
        9: ((0, 7), (0, 6, 7)),
    }


def write(folder: Path, chat: str | None = CHAT, **config: object) -> Path:
    tokenizer(folder, chat)
    whole = {
        "model_type": "qwen2",
        "architectures": ["Qwen2ForSequenceClassification"],
        "id2label": {"0": "LABEL_0"},
        "vocab_size": 10,
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "max_position_embeddings": 32,
    } | config
    (folder / "config.json").write_text(json.dumps({k: v for k, v in whole.items() if v is not None}))
    (folder / "model.safetensors").write_text("")
    return folder


def reward(folder: Path, template: str | None = None) -> Reward:
    return Reward.model_validate({"name": "r", "model": {"path": str(folder), "template": template}})


def test_a_reader_knows_how_long_its_model_reads(tmp_path: Path) -> None:
    folder = write(tmp_path / "m")
    (reader,) = texts.open_readers([Reward.model_validate({"name": "m", "math": {}}), reward(folder)], {1: folder})
    assert (reader.longest, reader.template) == (32, None)


REFUSED = {
    "a language model": (
        {"architectures": ["Qwen2ForCausalLM"]},
        "a Qwen2ForCausalLM, not a sequence classifier: give a Qwen2ForSequenceClassification",
    ),
    "two labels": ({"id2label": {"0": "A", "1": "B"}}, "which has 2 labels: give a reward model with one"),
    "labels not said, which means two": ({"id2label": None}, "which has 2 labels: give a reward model with one"),
    "another family": (
        {"model_type": "deberta-v2"},
        "of family deberta-v2, which is not supported: use Qwen2, Qwen2.5, Qwen3 or Llama",
    ),
    "no length": ({"max_position_embeddings": None}, "whose config.json lacks max_position_embeddings: complete it"),
    "no size": ({"hidden_size": None}, "whose config.json has hidden_size None: give a model folder"),
}


@pytest.mark.parametrize(("config", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_reward_model_is_refused(config: dict[str, object], sentence: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", **config)
    with pytest.raises(TrainerFailure) as caught:
        texts.open_readers([reward(folder)], {0: folder})
    assert caught.value.reason is FailureReason.INVALID_INPUT
    assert caught.value.message.startswith(f"rewards[0].model.path is {folder}, {sentence}")


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("config.json", "which has no config.json: give a whole Hugging Face folder"),
        ("tokenizer.json", "which has no tokenizer.json: give a whole Hugging Face folder"),
        ("model.safetensors", "which has no *.safetensors: give a whole Hugging Face folder"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused(missing: str, sentence: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "m")
    (folder / missing).unlink()
    with pytest.raises(TrainerFailure) as caught:
        texts.open_readers([reward(folder)], {0: folder})
    assert sentence in caught.value.message
    assert "rewards[0].model.path" in caught.value.message


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainerFailure, match=r"rewards\[0\]\.model\.path is /nowhere, which does not exist"):
        texts.open_readers([reward(Path("/nowhere"))], {0: Path("/nowhere")})


def test_a_model_without_a_chat_template_needs_a_template(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", chat=None)
    with pytest.raises(TrainerFailure, match=r"has no chat template: set rewards\[0\]\.model\.template to a text"):
        texts.open_readers([reward(folder)], {0: folder})
    assert len(texts.open_readers([reward(folder, "{response}")], {0: folder})) == 1


MATH = {"name": "m", "math": {}}
JUDGE = {"name": "j", "weight": 0.5, "model": {"path": "/j", "failed": -1.0}}


def test_a_reward_model_s_score_joins_the_others() -> None:
    rewards = [Reward.model_validate(r) for r in (MATH, JUDGE)]
    before = Score(1.0, Verdict.EQUAL, "7", "", {"m": 1.0})
    assert with_models(before, rewards, [3.0]) == Score(2.5, Verdict.EQUAL, "7", "", {"m": 1.0, "j": 3.0})
    assert with_models(before, rewards, [0.0]).parts == {"m": 1.0, "j": 0.0}, "0 is a score"  # OpenRLHF#1219 (29)


def test_a_score_that_is_none_is_counted_and_has_the_documented_value() -> None:
    rewards = [Reward.model_validate(r) for r in (MATH, JUDGE)]
    found = with_models(Score(1.0, Verdict.EQUAL, "7", "odd", {"m": 1.0}, ("m",)), rewards, [float("nan")])
    assert (found.value, found.parts, found.failed) == (0.5, {"m": 1.0, "j": -1.0}, ("m", "j"))
    assert found.why == "odd; j: the text is too long for the reward model, or its score is not finite"


@pytest.mark.parametrize(("number", "verdict"), [(2.0, Verdict.EQUAL), (-2.0, Verdict.DIFFERENT)])
def test_without_a_judge_of_answers_the_value_decides(number: float, verdict: Verdict) -> None:
    rewards = [Reward.model_validate(JUDGE)]
    assert with_models(combine([], []), rewards, [number]).verdict == verdict


async def test_reward_models_take_no_reward_process() -> None:
    async with Scorer([Reward.model_validate(JUDGE)], None) as scorer:
        assert await scorer.score_cases([Case("7", "7"), Case("8", "7")]) == [combine([], [])] * 2
