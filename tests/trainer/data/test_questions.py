"""Questions from files and from reasoning-gym."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.data import Fields, Questions, ReasoningGym
from simplerl_trainer.data.questions import Question, load

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
    "a list as an answer": (
        "q.jsonl",
        b'{"question": "a", "answer": ["1"]}',
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
        "{path} line 2 holds a text: give an object with question and answer",
    ),
    "a line that is not JSON": (
        "q.jsonl",
        b'{"question": "a"',
        "{path} line 1 is not JSON (Expecting ',' delimiter at character 17): correct it",
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
        "{path} item 2 has no key answer: set data.fields.answer to the right one of its keys (question)",
    ),
    "nothing in the file": ("q.jsonl", b"\n\n", "data.train.file {path} holds no question: give at least one"),
    "another kind of file": (
        "q.csv",
        b"a,1",
        "data.train.file is {path}: give a .jsonl file with an object on each line, or a .json file of one array",
    ),
}


@pytest.mark.parametrize(("name", "data", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_a_fault_is_a_sentence(tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    path = write(tmp_path, data, name)
    with pytest.raises(TrainerFailure) as caught:
        from_file(path)
    assert caught.value.message == sentence.format(path=path)
    assert caught.value.reason is FailureReason.INVALID_INPUT


def test_a_missing_file_is_named() -> None:
    sentence = "evaluation.datasets[0].file is /no/q.jsonl, which does not exist: check cluster.volumes and the path"
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
