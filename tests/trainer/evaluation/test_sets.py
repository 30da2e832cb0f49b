"""The data sets of an evaluation: what is found, and the sentences where nothing is."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.data import known
from simplerl_trainer.evaluation import sets
from simplerl_trainer.rewards.judge import Tolerance
from simplerl_trainer.samples import Prompt

DATA = Path(os.environ.get("SIMPLERL_DATA", Path(__file__).parents[4] / "shared/data")) / "eval"
RECORDS: dict[str, dict[str, Any]] = {
    "gsm8k": {"question": "What is 3 + 4?", "answer": "3 + 4 = <<3+4=7>>7\n#### 7"},
    "math500": {"problem": "What is 3 + 4?", "solution": "…", "answer": "7", "subject": "Algebra", "level": 2},
    "minerva_math": {"problem": "What is 3 + 4?", "solution": "It is \\boxed{7}.", "type": "Astronomy"},
    "olympiadbench": {
        "question": "What is 3 + 4?",
        "solution": ["…"],
        "final_answer": ["7"],
        "subfield": "Algebra",
        "error": None,
    },
    "aime24": {"problem": "What is 3 + 4?", "solution": "…", "answer": "007"},
    "amc23": {"problem": "What is 3 + 4?", "answer": 7.0},
}


def write(path: Path, *records: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def read(word: str, folder: Path | None = None, **more: Any) -> sets.Set:
    (source,) = sets.sources([word], folder)
    return sets.read(source, **more)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("gsm8k", "3 + 4 = <<3+4=7>>7\n#### 7"),
        ("math500", "7"),
        ("minerva_math", "It is \\boxed{7}."),
        ("olympiadbench", "7"),
        ("aime24", "007"),
        ("amc23", "7.0"),
    ],
)
def test_a_known_set_is_read_by_its_own_keys(tmp_path: Path, name: str, answer: str) -> None:
    write(tmp_path / f"{name}.jsonl", RECORDS[name])
    found = read(name, tmp_path)
    assert [(q.question, q.answer) for q in found.questions] == [("What is 3 + 4?", answer)]


def test_all_known_sets_are_in_the_table() -> None:
    assert RECORDS.keys() == known.SETS.keys()


TOLERANCES = {
    "exact": ("gsm8k", {}, None),
    "a name that is not known": ("own", {"error": "1e-1"}, None),
    "rounded by its authors": ("minerva_math", {}, Tolerance(relative=1e-2)),
    "no error of its own": ("olympiadbench", {"error": None}, None),
    "an error of its own": ("olympiadbench", {"error": "1e-1"}, Tolerance(absolute=0.1)),
}


@pytest.mark.parametrize(("name", "record", "expected"), TOLERANCES.values(), ids=TOLERANCES)
def test_known_sets_have_tolerances(name: str, record: dict[str, Any], expected: Tolerance | None) -> None:
    (prompt,) = known.tolerated(name, [Prompt(0, "q", "7", (1,), record)])
    assert prompt.tolerance == expected


@pytest.mark.parametrize("error", ["much", -1, "nan", True, [1], 10**400, "1e999"], ids=lambda e: str(e)[:9])
def test_an_error_that_is_no_number_is_a_sentence(error: Any) -> None:
    with pytest.raises(TrainerFailure) as e:
        known.tolerated("olympiadbench", [Prompt(0, "How far?", "7", (1,), {"error": error})])
    assert e.value.message == (
        f"the record of 'How far?' has {str(error)[:60]!r} under error: give a number of at least 0, or leave it out"
    )


@pytest.mark.parametrize(
    ("words", "names"),
    [
        pytest.param(["a", "b"], ["a", "b"], id="two options"),
        pytest.param(["a,b"], ["a", "b"], id="two names in one"),
        pytest.param(["a, b"], ["a", "b"], id="with a blank"),
        pytest.param(["c=hub:owner/name@main:test[:100]"], ["c"], id="a hub's"),
    ],
)
def test_names_become_sources(tmp_path: Path, words: Sequence[str], names: list[str]) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", RECORDS["gsm8k"])
    assert [s.name for s in sets.sources(words, tmp_path)] == names


def test_a_hub_is_read_by_owner_name_configuration_and_split() -> None:
    (whole, short) = sets.sources(["a=hub:openai/gsm8k@main:test[:100]", "b=hub:gsm8k"], None)
    assert whole.hub is not None
    assert (whole.hub.name, whole.hub.config, whole.hub.split) == ("openai/gsm8k", "main", "test[:100]")
    assert short.hub is not None
    assert (short.hub.name, short.hub.config, short.hub.split) == ("gsm8k", None, "test")


@pytest.mark.parametrize("layout", ["gsm8k.jsonl", "gsm8k/test.jsonl"])
def test_files_of_bare_names_lie_in_the_folder(tmp_path: Path, layout: str) -> None:
    write(tmp_path / layout, RECORDS["gsm8k"])
    assert len(read("gsm8k", tmp_path).questions) == 1


def test_only_the_first_questions_are_read_and_the_keys_that_are_named(tmp_path: Path) -> None:
    file = write(tmp_path / "own.jsonl", *({"q": str(i), "a": i} for i in range(5)))
    found = read(f"own={file}", limit=2, question_key="q", answer_key="a")
    assert [(q.question, q.answer) for q in found.questions] == [("0", "0"), ("1", "1")]


FAULTS = {
    "no file": (
        "own={folder}/none.jsonl",
        "--data own is {folder}/none.jsonl, which does not exist: give the path of its",
    ),
    "a bare name without a folder": (
        "gsm8k",
        "--data gsm8k says nothing of where it is: write gsm8k=FILE, or give the folder of gsm8k.jsonl by --data",
    ),
    "wrong keys": (
        "own={folder}/keys.jsonl",
        "{folder}/keys.jsonl line 1 has no key question: set --question-key to the right one of its keys (",
    ),
    "no answer": (
        "own={folder}/no-answer.jsonl",
        "{folder}/no-answer.jsonl line 1 has neither the key gt_answer nor answer: set --answer-key to the right one",
    ),
    "a known set with other keys": (
        "math500={folder}/gsm8k.jsonl",
        "{folder}/gsm8k.jsonl line 1 has no key problem: set --question-key to the right one of its keys (",
    ),
    "an empty file": (
        "own={folder}/empty.jsonl",
        "--data own is {folder}/empty.jsonl, which holds no question: give",
    ),
    "another kind of file": (
        "own={folder}/text.txt",
        "--data own is {folder}/text.txt: give a .jsonl file with an",
    ),
    "a line that is not JSON": ("own={folder}/broken.jsonl", "{folder}/broken.jsonl line 1 is not JSON ("),
    "a name that is a path": (
        "../x={folder}/gsm8k.jsonl",
        "--data has the name '../x': give NAME or NAME=FILE, the name",
    ),
    "a wrong hub": ("own=hub:a b", "--data own is hub:a b: write hub:OWNER/NAME, hub:OWNER/NAME@CONFIG or …:SPLIT"),
}


@pytest.mark.parametrize(("word", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_a_sentence(tmp_path: Path, word: str, sentence: str) -> None:
    write(tmp_path / "keys.jsonl", {"prompt": "a", "gold": "1"})
    write(tmp_path / "no-answer.jsonl", {"question": "a", "gold": "1"})
    write(tmp_path / "gsm8k.jsonl", RECORDS["gsm8k"])
    write(tmp_path / "empty.jsonl")
    (tmp_path / "text.txt").write_text("x")
    (tmp_path / "broken.jsonl").write_text("{")
    with pytest.raises(TrainerFailure) as caught:
        read(word.format(folder=tmp_path))
    assert caught.value.reason is FailureReason.INVALID_INPUT
    assert caught.value.message.startswith(sentence.format(folder=tmp_path))


def test_a_set_that_is_not_in_the_folder_is_named_with_what_is(tmp_path: Path) -> None:
    write(tmp_path / "gsm8k.jsonl", RECORDS["gsm8k"])
    with pytest.raises(TrainerFailure) as caught:
        sets.sources(["aime24"], tmp_path)
    assert caught.value.message == (
        f"--data aime24 is not in --data-folder {tmp_path}, which holds gsm8k.jsonl: write aime24=FILE"
    )


def test_two_sets_of_one_name_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", RECORDS["gsm8k"])
    with pytest.raises(TrainerFailure, match="--data names a twice: give each data set a name of its own"):
        sets.sources([f"a={file}", f"a={file}"], None)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"there is no {DATA}: public data sets are read where they lie")
@pytest.mark.parametrize(
    ("name", "count"),
    [("gsm8k", 1319), ("math500", 500), ("minerva_math", 272), ("olympiadbench", 675), ("aime24", 30), ("amc23", 40)],
)
def test_the_published_files_are_read_whole(name: str, count: int) -> None:
    found = read(name, DATA)
    assert len(found.questions) == count
    assert all(q.question.strip() and q.answer.strip() for q in found.questions)
