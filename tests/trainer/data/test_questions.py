"""Questions from files and from reasoning-gym."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import Fields, Levels, Questions, ReasoningGym
from simplerl_trainer.data import levels
from simplerl_trainer.data.questions import Question, digest, load

FIELDS = Fields()
SUMS = {
    "min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2, "operators": ["+"],
    "allow_parentheses": False, "allow_negation": False, "format_style": "simple",
}  # fmt: skip


def from_file(path: Path, fields: Fields = FIELDS) -> list[Question]:
    return list(load(Questions(file=str(path)), fields, "data.train"))


def write(folder: Path, data: bytes, name: str = "q.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


READ = {
    "plain lines": (b'{"question": "a", "answer": "1"}\n{"question": "b", "answer": "2"}\n', [("a", "1"), ("b", "2")]),
    "no line break at the end": (b'{"question": "a", "answer": "1"}', [("a", "1")]),
    "CRLF": (b'{"question": "a", "answer": "1"}\r\n{"question": "b", "answer": "2"}\r\n', [("a", "1"), ("b", "2")]),
    "a byte order mark": (b'\xef\xbb\xbf{"question": "a", "answer": "1"}\n', [("a", "1")]),
    "empty lines": (b'\n{"question": "a", "answer": "1"}\n\n  \n', [("a", "1")]),
    "U+2028 in a text": ('{"question": "a\u2028b", "answer": "1"}\n'.encode(), [("a\u2028b", "1")]),
    "U+0085 in a text": ('{"question": "a\u0085b", "answer": "1"}\n'.encode(), [("a\u0085b", "1")]),
    "other scripts": ('{"question": "三加四是多少？", "answer": "7"}\n'.encode(), [("三加四是多少？", "7")]),
    "numbers as they were written": (b'{"question": "a", "answer": 0.50}\n', [("a", "0.50")]),
    "large numbers": (b'{"question": "a", "answer": 1e400}\n', [("a", "1e400")]),
    "a worked solution stays whole": (
        b'{"question": "a", "answer": "48/2 = <<48/2=24>>24\\n#### 72"}\n',
        [("a", "48/2 = <<48/2=24>>24\n#### 72")],
    ),
    "simpleRL-reason's value stands before its solution": (
        b'{"input": "<|im_start|>...", "question": "a", "answer": "so it is $1$", "gt_answer": "1", "level": 3}',
        [("a", "1")],
    ),
    "gt_answer in some records alone": (
        b'{"question": "a", "answer": "x", "gt_answer": "1"}\n{"question": "b", "answer": "2"}\n',
        [("a", "1"), ("b", "2")],
    ),
    "other keys are left out": (b'{"question": "a", "answer": "1", "level": 3}\n', [("a", "1")]),
}


@pytest.mark.parametrize(("data", "expected"), READ.values(), ids=READ.keys())
def test_lines_are_read(tmp_path: Path, data: bytes, expected: list[tuple[str, str]]) -> None:
    assert from_file(write(tmp_path, data)) == [Question(*pair) for pair in expected]


def test_an_array_is_read(tmp_path: Path) -> None:
    records = [{"input": "a", "gt_answer": "1"}, {"input": "b\n", "gt_answer": 2}]
    path = write(tmp_path, b"\xef\xbb\xbf" + json.dumps(records, indent=2).encode(), "q.json")
    fields = Fields(question="input", answer="gt_answer")
    assert from_file(path, fields) == [Question("a", "1"), Question("b\n", "2")]


@settings(deadline=None)  # a busy disk
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), min_size=1, max_size=5))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    lines = [json.dumps({"question": t, "answer": "1"}, ensure_ascii=False) for t in texts]
    path = write(tmp_path_factory.mktemp("q"), "\n".join(lines).encode())
    assert [q.question for q in from_file(path)] == texts


REFUSED = {
    "a missing key": (
        "q.jsonl",
        b'{"question": "a", "answer": "1"}\n{"query": "b", "answer": "2"}\n',
        "{path} line 2 has no key question: set data.fields.question to the right one of its keys (answer, query)",
    ),
    "an empty list as an answer": (
        "q.jsonl",
        b'{"question": "a", "answer": []}',
        "{path} line 1 holds a list under answer: give a text or a number",
    ),
    "a list as a question": (
        "q.jsonl",
        b'{"question": ["a"], "answer": "1"}',
        "{path} line 1 holds a list under question: give a text or a number",
    ),
    "a list of lists as an answer": (
        "q.jsonl",
        b'{"question": "a", "answer": [["1"]]}',
        "{path} line 1 holds a list under answer: give a text or a number",
    ),
    "null as an answer": (
        "q.jsonl",
        b'{"question": "a", "answer": null}',
        "{path} line 1 holds null under answer: give a text or a number",
    ),
    "an empty question": (
        "q.jsonl",
        b'{"question": " ", "answer": "1"}',
        "{path} line 1 holds an empty text under question: give one, or leave the record out",
    ),
    "a line that is not an object": (
        "q.jsonl",
        b'\n"a"\n',
        "{path} line 2 holds a text: give an object with question and an answer",
    ),
    "a line that is not JSON": (
        "q.jsonl",
        b'{"question": "a"',
        "{path} line 1 is not JSON (Expecting ',' delimiter at character 17): correct it",
    ),
    "a key that stands twice": (
        "q.jsonl",
        b'{"question": "a", "answer": "1"}\n{"question": "a", "answer": "1", "answer": "2"}',
        '{path} line 2 holds the key "answer" twice: leave one of the two out',
    ),
    "a key that stands twice further down": (
        "q.jsonl",
        b'{"question": "a", "answer": "1", "notes": [{"b": 1, "b": 1}]}',
        '{path} line 1 holds the key "b" twice: leave one of the two out',
    ),
    "a key that stands twice in an item": (
        "q.json",
        b'[{"question": "a", "answer": "1"},\n {"question": "a", "question": "b", "answer": "1"}]',
        '{path} item 2 holds the key "question" twice: leave one of the two out',
    ),
    "a key that stands twice in place of the array": (
        "q.json",
        b'{"a": 1, "a": 2}',
        '{path} holds the key "a" twice: leave one of the two out',
    ),
    "bytes that are not UTF-8": (
        "q.jsonl",
        b'{"question": "a", "answer": "1"}\n{"question": "\xe9", "answer": "1"}',
        "{path} line 2 is not UTF-8 (byte 15 is 0xe9): convert the file",
    ),
    "half a surrogate pair": (
        "q.jsonl",
        b'{"question": "a\\ud83d", "answer": "1"}',
        "{path} line 1 holds half a surrogate pair under question (at character 2): remove it",
    ),
    "an object in place of the array": (
        "q.json",
        b'{"question": "a", "answer": "1"}',
        "{path} holds an object: a .json file must hold one array of objects",
    ),
    "an array whose item lacks the key": (
        "q.json",
        b'[{"question": "a", "answer": "1"}, {"question": "b"}]',
        "{path} item 2 has neither the key gt_answer nor answer: set data.fields.answer to the right one of its keys "
        "(question)",
    ),
    "nothing in the file": ("q.jsonl", b"\n\n", "data.train.file {path} holds no question: give at least one"),
    "another kind of file": (
        "q.csv",
        b"a,1",
        "data.train.file is {path}: give a .jsonl file with an object on each line, a .json file of one array, a "
        ".parquet file, or a folder of them",
    ),
}


@pytest.mark.parametrize(("name", "data", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_a_fault_is_a_sentence(tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    path = write(tmp_path, data, name)
    with pytest.raises(TrainerFailure) as caught:
        from_file(path)
    assert caught.value.message == sentence.format(path=path)
    assert caught.value.reason is FailureReason.INVALID_INPUT


def test_a_named_key_of_answers_stands_before_gt_answer(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"question": "a", "answer": "1", "gt_answer": "2", "target": "3"}')
    assert [from_file(path, Fields(answer=key))[0].answer for key in ("answer", "target")] == ["1", "3"]


def test_a_record_is_kept_whole_with_numbers_as_numbers(tmp_path: Path) -> None:
    row = {"question": "a", "answer": 0.5, "level": 3, "tags": ["x", {"n": 1e3}], "none": None}
    assert from_file(write(tmp_path, json.dumps(row).encode()))[0].record == row


def test_answers_may_be_absent_where_no_reward_needs_them_but_not_where_their_key_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"question": "a", "hint": "1"}')
    questions = Questions(file=str(path))
    assert load(questions, FIELDS, "data.train", answers=False) == [Question("a", "")]
    with pytest.raises(TrainerFailure, match=r"line 1 has no key target: set data\.fields\.answer to the right one of"):
        load(questions, Fields(answer="target"), "data.train", answers=False)


def parquet(path: Path, **columns: list[Any]) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_is_read(tmp_path: Path) -> None:
    path = parquet(tmp_path / "q.parquet", question=["a\u2028", "b"], answer=["1", "2"], level=[3, 4])
    found = from_file(path)
    assert found == [Question("a\u2028", "1"), Question("b", "2")]
    assert found[1].record == {"question": "b", "answer": "2", "level": 4}
    numbers = parquet(tmp_path / "n.parquet", question=["a", "b"], answer=[7, 8])
    assert [q.answer for q in from_file(numbers)] == ["7", "8"]


def test_the_parts_of_an_answer_are_one_list(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"question": "a", "answer": ["$1$", "2"]}\n{"question": "b", "answer": ["3"]}\n')
    assert [q.answer for q in from_file(path)] == ["$1$, 2", "3"]


PARQUET_REFUSED = {
    "a null": ({"question": ["a", None], "answer": ["1", "2"]}, "row 2 holds null under question: give a text or a"),
    "a list": ({"question": ["a"], "answer": [[["1"]]]}, "row 1 holds a list under answer: give a text or a number"),
    "a bool": ({"question": ["a"], "answer": [True]}, "row 1 holds true under answer: give a text or a number"),
    "another column": ({"query": ["a"]}, "row 1 has no key question: set data.fields.question to the right one of its"),
}


@pytest.mark.parametrize(("columns", "sentence"), PARQUET_REFUSED.values(), ids=PARQUET_REFUSED)
def test_a_fault_in_parquet_is_a_sentence(tmp_path: Path, columns: dict[str, list[Any]], sentence: str) -> None:
    path = parquet(tmp_path / "q.parquet", **columns)
    with pytest.raises(TrainerFailure) as caught:
        from_file(path)
    assert caught.value.message.startswith(f"{path} {sentence}")


def test_a_file_that_is_not_parquet_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, b"PAR0", "q.parquet")
    with pytest.raises(TrainerFailure) as caught:
        from_file(path)
    assert caught.value.message.startswith(f"{path} is not Parquet (")
    assert caught.value.message.endswith("): correct it")


def test_a_folder_is_its_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    parquet(tmp_path / "b.parquet", question=["b"], answer=["2"])
    write(tmp_path, b'[{"question": "c", "answer": "3"}]', "c.json")
    write(tmp_path, b'{"question": "a", "answer": "1"}', "a.jsonl")
    write(tmp_path, b"not read", "README.md")
    write(tmp_path, b"a mounted ConfigMap's own", "..data.json")
    assert [q.question for q in from_file(tmp_path)] == ["a", "b", "c"]


def test_a_folder_without_questions_is_named(tmp_path: Path) -> None:
    write(tmp_path, b"", "README.md")
    with pytest.raises(TrainerFailure) as caught:
        from_file(tmp_path)
    assert caught.value.message == (
        f"data.train.file is {tmp_path}, a folder without any .jsonl, .json or .parquet file: check it "
        "(in pods, cluster.volumes)"
    )


LEVELS: list[tuple[Any, int | None]] = [
    (5, 5), (5.0, 5), ("5", 5), ("Level 5", 5), (" level 05 ", 5), ("LEVEL3", 3), (0, 0), ("5.0", 5), ("Level ?", None),
    ("", None), (None, None), (True, None), (2.5, None), (-1, None), ("five", None), ("5 6", None), (math.nan, None),
    (math.inf, None), ([5], None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "number"), LEVELS)
def test_the_number_of_a_level(value: Any, number: int | None) -> None:
    assert levels.level(value) == number


def with_levels(*found: Any) -> list[Question]:
    return [Question(f"q{i}", "1", {} if v is ... else {"level": v}) for i, v in enumerate(found)]


def test_levels_are_kept_dropped_and_counted() -> None:
    questions = with_levels(1, "Level 3", "4", 5, "Level ?", ..., 9)
    found = levels.sift(questions, Levels(min=3, max=5), "level", "data.train")
    assert [q.question for q in found.questions] == ["q1", "q2", "q3"]
    assert (found.other_level, found.unreadable_level, found.unreadable_example) == (2, 2, "'Level ?'")
    assert levels.sift(questions, None, "level", "data.train").questions == questions


NONE_LEFT = {
    "other levels alone": ((1, 2, 2), "the levels are 1, 2"),
    "no level that can be read": (("hard", "easy"), "level is 'hard' in the first"),
    "no level": ((...,), "level is 'absent' in the first"),
}


@pytest.mark.parametrize(("found", "seen"), NONE_LEFT.values(), ids=NONE_LEFT)
def test_no_question_of_the_levels_is_a_sentence(found: tuple[Any, ...], seen: str) -> None:
    with pytest.raises(TrainerFailure) as caught:
        levels.sift(with_levels(*found), Levels(min=3, max=5), "level", "data.train")
    assert caught.value.message == (
        f"none of the {len(found)} questions of data.train has a level from 3 to 5 under level ({seen}): correct "
        "data.levels or data.fields.level"
    )


def test_the_digest_is_that_of_questions_and_answers_in_their_order() -> None:
    one = [Question("a", "1"), Question("b", "2")]
    assert digest(one) == digest([Question("a", "1", {"level": 1}), Question("b", "2")])
    others = [one[::-1], one[:1], [Question("a", "12"), Question("b", "")], [Question("a1", ""), Question("b", "2")]]
    assert len({digest(q) for q in [one, *others]}) == 5


def test_a_missing_file_is_named() -> None:
    sentence = "evaluation.datasets[0].file is /no/q.jsonl, which does not exist: check it (in pods, cluster.volumes)"
    with pytest.raises(TrainerFailure) as caught:
        load(Questions(file="/no/q.jsonl"), FIELDS, "evaluation.datasets[0]")
    assert caught.value.message == sentence


def test_reasoning_gym_makes_the_demo_s_questions() -> None:
    gym = ReasoningGym(dataset="basic_arithmetic", size=3, seed=1, config=SUMS)
    found = load(Questions(reasoning_gym=gym), FIELDS, "data.train")
    assert found == [
        Question("Calculate 4 + 1.", "5"), Question("Calculate 1 + 5.", "6"), Question("Calculate 5 + 9.", "14"),
    ]  # fmt: skip


GYM_REFUSED = {
    "an unknown generator": (
        ReasoningGym(dataset="basic_arithmetics"),
        "data.train.reasoningGym.dataset is basic_arithmetics, which reasoning-gym does not have: did you mean "
        "basic_arithmetic",
    ),
    "an unknown setting": (
        ReasoningGym(dataset="basic_arithmetic", config={"max_term": 2}),
        "data.train.reasoningGym.config.max_term is not a setting of basic_arithmetic: did you mean max_terms?",
    ),
    "the size among the settings": (
        ReasoningGym(dataset="basic_arithmetic", config={"size": 2}),
        "data.train.reasoningGym.config holds size: give it as data.train.reasoningGym.size",
    ),
    "settings that do not go together": (
        ReasoningGym(dataset="basic_arithmetic", config={"min_terms": 5, "max_terms": 2}),
        "data.train.reasoningGym.config does not suit basic_arithmetic: max_terms must be >= min_terms",
    ),
    "a setting of the wrong kind": (
        ReasoningGym(dataset="basic_arithmetic", config={"min_terms": "two"}),
        "data.train.reasoningGym.config does not suit basic_arithmetic: '>' not supported",
    ),
}


@pytest.mark.parametrize(("gym", "sentence"), GYM_REFUSED.values(), ids=GYM_REFUSED.keys())
def test_a_generator_s_fault_is_a_sentence(gym: ReasoningGym, sentence: str) -> None:
    with pytest.raises(TrainerFailure) as caught:
        load(Questions(reasoning_gym=gym), FIELDS, "data.train")
    assert caught.value.message.startswith(sentence)
    assert caught.value.reason is FailureReason.INVALID_INPUT


def test_answers_that_only_their_scorer_can_judge_need_a_reward_that_asks_it() -> None:
    questions = Questions(reasoning_gym=ReasoningGym(dataset="propositional_logic", size=2))
    with pytest.raises(TrainerFailure) as caught:
        load(questions, FIELDS, "data.train")
    assert caught.value.message == (
        "data.train.reasoningGym.dataset is propositional_logic, whose answers only its own scorer can judge: choose "
        "another one, or the reward task"
    )
    found = load(questions, FIELDS, "data.train", answers=False)
    assert [(q.answer, q.gym, q.record["answer"]) for q in found] == [("", questions.reasoning_gym, None)] * 2
