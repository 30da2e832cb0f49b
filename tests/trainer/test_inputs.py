"""What a run reads before its first step, and what it says when a later attempt reads something else."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from simplerl_api import overrides, yaml12
from simplerl_api.failures import TrainerFailure
from simplerl_api.run import Run
from simplerl_trainer import fingerprints, hub, inputs, local
from simplerl_trainer.models import tiny_shape
from simplerl_trainer.models.arithmetic_tokenizer import EOS, make_tokenizer, save_tokenizer
from simplerl_trainer.progress.log import Log

TINY = Path(__file__).parents[2] / "examples/tiny.yaml"
FIRST, SECOND = "1" * 40, "2" * 40


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder whose weights nobody loads here."""
    folder = tmp_path / "model"
    folder.mkdir()
    save_tokenizer(folder)
    config = {
        "model_type": tiny_shape.FAMILY, "architectures": ["LlamaForCausalLM"], **tiny_shape.SHAPE,
        "eos_token_id": make_tokenizer().token_to_id(EOS),
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    save_file({"a": torch.zeros(20)}, folder / "model.safetensors")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of questions and code."""
    questions = [{"question": f"{i} + 1", "answer": str(i + 1), "level": f"Level {i % 6}"} for i in range(12)]
    questions[11]["question"] += " + 0 + 0 + 0"
    questions += [{"question": "9 + 9", "answer": "18", "level": "?"}]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))
    (tmp_path / "test.jsonl").write_text(json.dumps({"question": "3  + 1", "answer": "4"}) + "\n")
    (tmp_path / "score.py").write_text("def score(response): return 1.0")
    return tmp_path


def run(folder: Path, model: Path, *settings: str) -> Run:
    given = [
        f"model={{path: {model}}}", f"data.train={{file: {folder}/train.jsonl}}",
        f"evaluation.datasets=[{{name: held-out, file: {folder}/test.jsonl}}]",
        f"rewards=[{{name: own, python: {{file: {folder}/score.py}}}}]", *settings,
    ]  # fmt: skip
    return local.prepare(overrides.apply(yaml12.load_file(TINY), given), folder / "run", own_ray=True)


def attempt(made: Run) -> tuple[inputs.Inputs, list[dict[str, Any]]]:
    """What one attempt reads, and its lines in the log."""
    log = Log(Path(made.output) / "driver.log")
    before = fingerprints.read(Path(made.output))
    commits = inputs.commits(made, before)
    asked = inputs.read_questions(made, commits, log)
    folder = Path(made.spec.model.path or "")
    found = inputs.make_inputs(made, asked, folder, log)
    inputs.compare(made, before, asked, commits, folder, log)
    log.close()
    return found, [json.loads(line) for line in log.lines]


def test_the_ids_that_end_a_response_and_those_that_may_be_drawn(folder: Path, model: Path) -> None:
    found, _ = attempt(run(folder, model, "rollout.sampling.stop=['=', '1']"))
    fast = make_tokenizer()
    assert found.stop_token_ids == sorted(fast.token_to_id(text) for text in (EOS, "=", "1"))
    assert found.vocabulary == fast.get_vocab_size() == tiny_shape.SHAPE["vocab_size"]
    config = json.loads((model / "config.json").read_text()) | {"vocab_size": 1000}  # a padded head
    (model / "config.json").write_text(json.dumps(config))
    found, _ = attempt(run(folder, model, "rollout.sampling.stop=['=', '1']"))
    assert found.vocabulary == fast.get_vocab_size()


def test_a_model_that_cannot_be_dealt_out_is_refused(folder: Path, model: Path) -> None:
    config = json.loads((model / "config.json").read_text()) | {"num_attention_heads": 3, "num_key_value_heads": 3}
    (model / "config.json").write_text(json.dumps(config))
    made = run(folder, model, "cluster.gpus=2", "cluster.gpusPerNode=2", "rollout.tensorParallelSize=2",
               "placement={colocated: {}}")  # fmt: skip
    with pytest.raises(TrainerFailure, match="tensorParallelSize is 2, over which the 3 attention heads of"):
        attempt(made)


def test_levels_lengths_and_held_out_questions_are_dropped_and_counted(folder: Path, model: Path) -> None:
    found, lines = attempt(run(folder, model, "data.levels={min: 3, max: 5}", "data.maxPromptTokens=8"))
    assert [p.question for p in found.prompts] == ["4 + 1", "5 + 1", "9 + 1", "10 + 1"]
    sifted, evaluation, training = lines[:3]
    assert sifted["message"] == "training questions sifted by level"
    counts = {k: sifted[k] for k in ("kept", "other_level", "unreadable_level", "unreadable_example")}
    assert counts == {"kept": 6, "other_level": 6, "unreadable_level": 1, "unreadable_example": "'?'"}
    assert (evaluation["dataset"], evaluation["prompts"]) == ("held-out", 1)
    assert (training["prompts"], training["too_long"], training["held_out"]) == (4, 1, 1)


def test_rows_reach_the_prompts(folder: Path, model: Path) -> None:
    found, _ = attempt(run(folder, model))
    assert found.prompts[0].record == {"question": "0 + 1", "answer": "1", "level": "Level 0"}
    assert found.evaluations["held-out"][0].record == {"question": "3  + 1", "answer": "4"}


def test_the_first_start_leaves_the_fingerprints_and_the_same_inputs_are_no_news(folder: Path, model: Path) -> None:
    made = run(folder, model)
    _, lines = attempt(made)
    assert lines[-1]["message"] == "inputs"
    document = json.loads((folder / "run/inputs.json").read_text())
    assert sorted(document) == ["data.train", "evaluation.datasets[0]", "model", "rewards[0].python"]
    assert document["data.train"]["questions"] == "13"
    _, lines = attempt(made)
    assert not [line for line in lines if "inputs" in line["message"]]


def test_an_evaluation_data_set_may_have_keys_of_its_own(folder: Path, model: Path) -> None:
    (folder / "test.jsonl").write_text('{"problem": "3 + 2", "answer": "5"}\n{"problem": "4 + 2", "answer": "6"}\n')
    named = f"evaluation.datasets=[{{name: b, file: {folder}/test.jsonl, fields: {{question: problem}}}}]"
    assert [p.question for p in attempt(run(folder, model, named))[0].evaluations["b"]] == ["3 + 2", "4 + 2"]


def test_a_missing_key_is_looked_for_where_it_is_set(folder: Path, model: Path) -> None:
    (folder / "test.jsonl").write_text('{"problem": "3 + 2", "answer": "5"}\n')
    with pytest.raises(
        TrainerFailure, match=r"has no key question: set data\.fields\.question to the right one of its"
    ):
        attempt(run(folder, model))
    named = f"evaluation.datasets=[{{name: b, file: {folder}/test.jsonl, fields: {{question: query}}}}]"
    with pytest.raises(
        TrainerFailure, match=r"has no key query: set evaluation\.datasets\[0\]\.fields\.question to the"
    ):
        attempt(run(folder / "other", model, named, f"data.train={{file: {folder}/train.jsonl}}"))


def change_questions(folder: Path, model: Path) -> None:
    with (folder / "train.jsonl").open("a") as file:
        file.write('{"question": "8 + 8", "answer": "16"}\n')


CHANGES = {
    "questions": (change_questions, ["data.train"]),
    "an answer of a held-out question": (
        lambda folder, model: (folder / "test.jsonl").write_text('{"question": "3  + 1", "answer": "5"}'),
        ["evaluation.datasets[0]"],
    ),
    "reward code": (
        lambda folder, model: (folder / "score.py").write_text("def score(response): return 2.0"),
        ["rewards[0].python"],
    ),
    "the model's configuration": (
        lambda folder, model: (model / "config.json").write_text((model / "config.json").read_text() + "\n"),
        ["model"],
    ),
    "the size of the model's weights": (
        lambda folder, model: save_file({"a": torch.ones(21)}, model / "model.safetensors"),
        ["model"],
    ),
    "two at once": (
        lambda folder, model: (
            change_questions(folder, model),
            (folder / "score.py").write_text("def score(): return 2"),
        ),
        ["data.train", "rewards[0].python"],
    ),
}


@pytest.mark.parametrize(("change", "fields"), CHANGES.values(), ids=CHANGES)
def test_a_later_attempt_names_what_changed_and_goes_on(
    folder: Path, model: Path, change: Any, fields: list[str]
) -> None:
    made = run(folder, model)
    attempt(made)
    before = (folder / "run/inputs.json").read_text()
    change(folder, model)
    _, lines = attempt(made)
    warning = lines[-1]
    assert (warning["level"], warning["message"]) == ("warning", "inputs differ from those of the first start")
    assert sorted(warning["changed"]) == fields
    assert all(each["first"] != each["now"] for each in warning["changed"].values())
    assert (folder / "run/inputs.json").read_text() == before, "the first start's are kept"


def test_a_revision_is_resolved_once_and_later_attempts_use_its_commit(
    folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = [FIRST]
    checked: list[str] = []
    monkeypatch.setattr(hub, "resolve", lambda found, field: newest[0])
    monkeypatch.setattr(hub, "check_weights", lambda found, commit, field: checked.append(commit))
    made = run(folder, model, "model={hub: {name: org/m}}", f"data.train={{file: {folder}/train.jsonl}}")
    log = Log(Path(made.output) / "driver.log")

    def commits() -> dict[str, str]:
        before = fingerprints.read(Path(made.output))
        found = inputs.commits(made, before)
        asked = inputs.read_questions(made, found, log)
        inputs.compare(made, before, asked, found, model, log)
        return found

    assert commits() == {"model": FIRST}
    newest[0] = SECOND
    checked.clear()
    assert commits() == {"model": FIRST}
    assert not checked, "a later attempt needs no network where the cache holds the model"
    other = made.model_copy(
        update={
            "spec": made.spec.model_copy(update={"model": made.spec.model.model_validate({"hub": {"name": "org/n"}})})
        }
    )
    assert inputs.commits(other, fingerprints.read(Path(made.output))) == {"model": SECOND}, "another repository"
    log.close()


def test_damaged_fingerprints_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "inputs.json").write_text('{"model": ')
    with pytest.raises(
        TrainerFailure, match=rf"{tmp_path}/inputs\.json is not JSON \(.*\): remove it, and the inputs of"
    ):
        fingerprints.read(tmp_path)


def test_answers_are_asked_for_where_a_reward_judges_them(folder: Path, model: Path) -> None:
    (folder / "train.jsonl").write_text('{"question": "tell a joke"}\n')
    made = run(folder, model)
    assert attempt(made)[0].prompts[0].answer == ""
    judged = made.spec.model_copy(update={"rewards": [*made.spec.rewards, *_math()]})
    with pytest.raises(
        TrainerFailure, match=r"train\.jsonl line 1 has neither the key gt_answer nor answer: set data\."
    ):
        attempt(made.model_copy(update={"spec": judged}))


def _math() -> list[Any]:
    from simplerl_api.spec.rewards import MathReward, Reward

    return [Reward(name="math", math=MathReward())]
