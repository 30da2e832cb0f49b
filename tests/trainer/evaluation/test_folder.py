"""The folder of an evaluation: gone on with, never mixed, never half-read after a kill."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api.failures import TrainerFailure
from simplerl_trainer.evaluation import comparison, folder
from simplerl_trainer.evaluation.records import File, Record

SETTINGS: dict[str, Any] = {"--n-samples": 1, "--temperature": 0.0, "--template": None}
MODELS, SETS = {"m": "sha256:1"}, {"gsm8k": "sha256:2"}
RECORD = Record(
    id=0,
    question="What is 3 + 4?",
    answer="7",
    response="It is \\boxed{7}.\u2028",
    tokens=9,
    finish="Stop",
    verdict="equal",
    extracted="7",
    why="",
    level="",
    subject="",
)


def test_the_same_evaluation_goes_on_and_others_join(tmp_path: Path) -> None:
    folder.enter(tmp_path / "e", SETTINGS, MODELS, SETS)
    folder.enter(tmp_path / "e", SETTINGS, MODELS, SETS)
    folder.enter(tmp_path / "e", SETTINGS, {"n": "sha256:3"}, {"math500": "sha256:4"})
    document = json.loads((tmp_path / "e/evaluation.json").read_text())
    assert document["models"] == MODELS | {"n": "sha256:3"}
    assert document["sets"] == SETS | {"math500": "sha256:4"}


@pytest.mark.parametrize(
    ("settings", "models", "sets", "sentence"),
    [
        pytest.param({"--temperature": 1.0}, {}, {}, "was drawn with --temperature 0.0, not 1.0", id="temperature"),
        pytest.param({"--template": "chat"}, {}, {}, "was drawn with --template absent, not chat", id="template"),
        pytest.param({}, {"m": "sha256:9"}, {}, "holds samples of another m than --model-path gives", id="model"),
        pytest.param({}, {}, {"gsm8k": "sha256:9"}, "holds samples of another gsm8k than --data gives", id="data"),
    ],
)
def test_another_evaluation_is_refused(
    tmp_path: Path, settings: dict[str, Any], models: dict[str, str], sets: dict[str, str], sentence: str
) -> None:
    folder.enter(tmp_path, SETTINGS, MODELS, SETS)
    before = (tmp_path / "evaluation.json").read_bytes()
    with pytest.raises(TrainerFailure) as caught:
        folder.enter(tmp_path, SETTINGS | settings, MODELS | models, SETS | sets)
    assert caught.value.message == f"--output {tmp_path} {sentence}: choose another folder, or remove that one"
    assert (tmp_path / "evaluation.json").read_bytes() == before


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(None, "holds something that is no evaluation: choose another folder", id="other files"),
        pytest.param("{", "cannot be read by this version (", id="not JSON"),
        pytest.param('{"format": 0}', "cannot be read by this version (", id="another format"),
        pytest.param("[" * 100_000, "cannot be read by this version (RecursionError", id="lists without end"),
        pytest.param(
            '{"format": 1, "settings": [], "models": {}, "sets": {}}',
            "cannot be read by this version (ValueError('settings is no object'))",
            id="a list of settings",
        ),
    ],
)
def test_a_folder_of_something_else_is_refused(tmp_path: Path, content: str | None, sentence: str) -> None:
    (tmp_path / ("x" if content is None else "evaluation.json")).write_text(content or "")
    with pytest.raises(TrainerFailure) as caught:
        folder.enter(tmp_path, SETTINGS, MODELS, SETS)
    assert sentence in caught.value.message


@pytest.mark.parametrize(
    ("content", "seconds"),
    [
        (None, 0.0), ("", 0.0), ("[]", 0.0), ("[" * 100_000, 0.0), ('{"seconds": "x", "tokensPerSecond": 1}', 0.0),
        ('{"seconds": 2.5, "tokensPerSecond": 10}', 2.5),
    ],
    ids=["none", "empty", "a list", "lists without end", "a text", "whole"],
)  # fmt: skip
def test_figures_that_cannot_be_read_are_written_anew(tmp_path: Path, content: str | None, seconds: float) -> None:
    (tmp_path / "m").mkdir()
    if content is not None:
        folder.figures(tmp_path, "m", "d").write_text(content)
    assert folder.speed(tmp_path, "m", "d")[0] == seconds


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainerFailure, match="cannot be written"):
        folder.enter(tmp_path / "file/e", SETTINGS, MODELS, SETS)


def test_records_come_back_whatever_their_text(tmp_path: Path) -> None:
    records = [RECORD, replace(RECORD, id=1, response="a\nb\r\u0085\ud800")]
    file = File(tmp_path / "m/d.jsonl")
    file.add(records)
    file.close()
    assert list(File(tmp_path / "m/d.jsonl").records.values()) == records
    assert (tmp_path / "m/d.jsonl").read_bytes().count(b"\n") == 2, "a line for each"


@given(st.integers(min_value=0, max_value=600))
def test_a_kill_in_the_middle_of_a_line_costs_that_line_alone(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "d.jsonl"
    file = File(path)
    file.add([replace(RECORD, id=i) for i in range(3)])
    file.close()
    whole = path.read_bytes()
    line = len(whole) // 3
    cut = min(cut, len(whole))
    path.write_bytes(whole[:cut])
    again = File(path)
    assert list(again.records) == list(range(cut // line))
    again.add([replace(RECORD, id=i) for i in range(cut // line, 3)])
    again.close()
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("{", id="not JSON"),
        pytest.param('{"id": 0}', id="half a sample"),
        pytest.param("[]", id="a list"),
        pytest.param("[" * 100_000, id="lists without end"),
        pytest.param(json.dumps(asdict(RECORD) | {"id": [0]}), id="an id that is a list"),
        pytest.param(json.dumps(asdict(RECORD) | {"tokens": "9"}), id="tokens that are a text"),
        pytest.param(json.dumps(asdict(RECORD) | {"verdict": None}), id="no verdict"),
    ],
)
def test_a_line_that_is_no_sample_is_named(tmp_path: Path, line: str) -> None:
    file = File(tmp_path / "d.jsonl")
    file.add([RECORD])
    file.close()
    with (tmp_path / "d.jsonl").open("a") as f:
        f.write(f"{line}\n")
    with pytest.raises(TrainerFailure, match=r"d\.jsonl line 2 is no sample \(.*\): remove the line or the file"):
        File(tmp_path / "d.jsonl")


def test_two_evaluations_are_compared_sample_by_sample(tmp_path: Path) -> None:
    for name, changes in {"a": {}, "b": {1: {"response": "7"}, 2: {"response": "8", "verdict": "different"}}}.items():
        file = File(folder.samples(tmp_path / name, "m", "gsm8k"))
        file.add([replace(RECORD, id=i, **changes.get(i, {})) for i in range(4)])
        file.close()
    (found,) = comparison.compare(tmp_path / "a", tmp_path / "b", [("m", "gsm8k"), ("m", "other")])
    assert (found.common, found.responses, found.verdicts) == (4, [1, 2], [2])
    with pytest.raises(TrainerFailure, match="holds none of these models and data sets"):
        comparison.compare(tmp_path / "a", tmp_path / "none", [("m", "gsm8k")])
