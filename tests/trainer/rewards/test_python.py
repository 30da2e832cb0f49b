"""Reward functions of users: what they are given, and what becomes of those that fail."""

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from simplerl_api import validation, yaml12
from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.reference import ConfigMapKeyRef
from simplerl_api.spec.rewards import PythonReward, Reward
from simplerl_trainer.rewards import python, worker, workers
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.outcome import Outcome, Verdict
from simplerl_trainer.rewards.score import Scorer, check
from simplerl_trainer.samples import Score

EXAMPLES = Path(__file__).parents[3] / "examples"
CASE = Case(
    response="so it is 7",
    answer="#### 7",
    prompt="<user>3 + 4<assistant>",
    question="3 + 4",
    record={"question": "3 + 4", "answer": "#### 7", "level": 2},
    truncated=True,
)


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])  # the folders of loaded files are added to it


def written(folder: Path, code: str, name: str = "score.py") -> Path:
    path = folder / name
    path.write_text(code, encoding="utf-8")
    return path


def reward(path: Path, **settings: Any) -> Reward:
    return Reward(name="own", python=PythonReward(file=str(path), **settings))


def called(path: Path, **settings: Any) -> Outcome:
    """What one call in this very process says."""
    function = python.load(str(path), "rewards[0].python.file", PythonReward(file=str(path), **settings))
    return function.call_all([CASE], _text)[0] if function.concurrent else function.call(CASE, _text)


def _text(found: bytes | str, plain: bool) -> str:
    assert isinstance(found, str)
    return found


GIVEN = {
    "all arguments": (
        "def score(\n"
        "    *, prompt: str, question: str, response: str, answer: str, record: dict, truncated: bool\n) -> float:\n"
        "    assert (prompt, question, truncated) == ('<user>3 + 4<assistant>', '3 + 4', True)\n"
        "    assert (answer, record['level']) == ('#### 7', 2)\n"
        "    return float(response.endswith('7'))",
        1.0,
    ),
    "some of them": ("def score(response, answer): return len(response) / len(answer)", 10 / 6),
    "whatever there is": ("def score(**given): return len(given)", 6.0),
    "one of its own with a default": ("def score(response, weight=2.5): return weight", 2.5),
    "an async function": ("async def score(response): return 0.25", 0.25),
    "an object that can be called": (
        "class Judge:\n    def __call__(self, response): return 3\nscore = Judge()",
        3.0,
    ),
    "numpy's float64, which is a float": ("import numpy\ndef score(response): return numpy.float64(0.5)", 0.5),
    "zero, which is a score": ("def score(response): return 0", 0.0),
    "a dataclass in the file": (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: float\n"
        "def score(response): return A(0.5).x",
        0.5,
    ),
}


@pytest.mark.parametrize(("code", "score"), GIVEN.values(), ids=GIVEN)
def test_a_function_is_given_what_it_names(tmp_path: Path, code: str, score: float) -> None:
    assert called(written(tmp_path, code)) == Outcome(score, Verdict.SCORED)


def test_modules_beside_the_file_can_be_imported_and_hide_no_library(tmp_path: Path) -> None:
    written(tmp_path, "VALUE = 0.75", "beside.py")
    written(tmp_path, "raise RuntimeError('hidden')", "json.py")
    assert called(written(tmp_path, "import beside, json\ndef score(response): return beside.VALUE")).score == 0.75


def test_the_function_may_have_another_name(tmp_path: Path) -> None:
    assert called(written(tmp_path, "def grade(answer): return 4"), function="grade").score == 4


# fault 29 (OpenRLHF#1219: a score of 0 taken for a missing one; NeMo-RL#3635: a failed sample dropped): one score each
FAILING = {
    "raises": ("raise KeyError('level')", "line 2: KeyError: 'level'"),
    "raises in a library": ("import json; json.loads('{')", "line 2: JSONDecodeError: Expecting property name"),
    "raises without a word": ("raise ValueError", "line 2: ValueError"),
    "asserts": ("assert response == ''", "line 2: AssertionError"),
    "a text": ("return '1.0'", "score gave a str, not a number: return a float"),
    "None": ("pass", "score gave None, not a number: return a float"),
    "a bool": ("return True", "score gave a bool, not a number: return a float"),
    "a list": ("return [1.0]", "score gave a list, not a number: return a float"),
    "an object": ("return object()", "score gave an object, not a number: return a float"),
    "numpy's float32": ("import numpy; return numpy.float32(1)", "score gave a float32, not a number: return a float"),
    "NaN": ("return float('nan')", "score gave nan, which is not finite"),
    "infinite": ("return -float('inf')", "score gave -inf, which is not finite"),
    "too large for a float": ("return 10 ** 5000", "score gave a number beyond 1e+30: scale it down"),
    "too large for a sum": ("return -1e308", "score gave a number beyond 1e+30: scale it down"),
    "calls sys.exit": ("import sys; sys.exit(3)", "line 2: SystemExit: 3"),
}


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(("body", "why"), FAILING.values(), ids=FAILING)
def test_a_call_that_fails_has_the_documented_score_and_says_why(
    tmp_path: Path, kind: str, body: str, why: str
) -> None:
    found = called(written(tmp_path, f"{kind} score(response):\n    {body}\n"), failed=-1.0)
    assert (found.score, found.verdict) == (-1.0, Verdict.FAILED)
    assert found.why.startswith(why)


def test_a_tensor_is_no_number(tmp_path: Path) -> None:
    found = called(written(tmp_path, "import torch\ndef score(response): return torch.tensor(1.0)"))
    assert found.why == "score gave a Tensor, not a number: return a float"


UNUSABLE = {
    "a syntax error": ("def score(response:\n    return 1", "{path} is not Python ('(' was never closed in line 1): "),
    "no such function": (
        "import os\ndef grade(response): return 1",
        "{path} defines no function score (it defines grade): add it, or name another one",
    ),
    "nothing at all": ("", "{path} defines no function score (it defines nothing): add it, or name another one"),
    "no such function behind a condition": (
        "if False:\n    def score(response): return 1",
        "{path} defines no function score: add it, or name another one",
    ),
    "something else under its name": ("score = 3", "{path} defines score as an int: give a function"),
    "an argument that nobody gives": (
        "def score(completion): return 1",
        "{path} defines score with the parameter completion, which is not one of prompt, question, response, answer, "
        "record, truncated",
    ),
    "an argument that nobody gives, of a decorated function": (
        "import functools\ndef d(f):\n    return functools.wraps(f)(lambda *a, **k: f(*a, **k))\n"
        "@d\ndef score(reply): return 1",
        "{path} defines score with the parameter reply, which is not one of prompt, question, response, answer, record",
    ),
    "arguments by position": (
        "def score(response, /): return 1",
        "{path} defines score with the positional parameter response: it is called by keywords alone",
    ),
    "an import that fails": (
        "import no_such_module\ndef score(response): return 1",
        "{path} cannot be imported (line 1: ModuleNotFoundError: No module named 'no_such_module'): correct it",
    ),
    "an error when it is imported": (
        "def score(response): return 1\nTABLE = {}['a']",
        "{path} cannot be imported (line 2: KeyError: 'a'): correct it",
    ),
    "sys.exit when it is imported": (
        "import sys\nsys.exit(2)\ndef score(response): return 1",
        "{path} cannot be imported (line 2: SystemExit: 2): correct it",
    ),
}


@pytest.mark.parametrize(("code", "sentence"), UNUSABLE.values(), ids=UNUSABLE)
def test_code_that_cannot_be_used_is_a_sentence(tmp_path: Path, code: str, sentence: str) -> None:
    path = written(tmp_path, code)
    with pytest.raises(python.Unusable) as caught:
        called(path)
    assert str(caught.value).startswith(f"rewards[0].python.file: {sentence.format(path=path)}")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    missing, folder, latin = tmp_path / "none.py", tmp_path, tmp_path / "latin.py"
    latin.write_bytes(b"# caf\xe9")
    sentences = {
        missing: f"rewards[0].python.file is {missing}, which does not exist: check it (in pods, cluster.volumes)",
        folder: f"rewards[0].python.file is {folder}, which cannot be read (Is a directory): check its kind and",
        latin: f"rewards[0].python.file is {latin}, which cannot be read (it is not UTF-8): check its kind and",
    }
    for path, sentence in sentences.items():
        with pytest.raises(python.Unusable) as caught:
            called(path)
        assert str(caught.value).startswith(sentence)


async def test_before_the_first_step_a_function_is_loaded_in_a_process_of_its_own(tmp_path: Path) -> None:
    bad = written(tmp_path, "def grade(response): return 1", "bad.py")
    good = reward(written(tmp_path, "def score(response): return 1"))
    await check([good])
    with pytest.raises(TrainerFailure) as caught:
        await check([good, reward(bad)])
    assert caught.value.reason is FailureReason.INVALID_INPUT
    assert caught.value.message.startswith(
        f"rewards[1].python.file: {bad} defines no function score (it defines grade)"
    )


async def test_code_in_a_config_map_is_for_kubernetes() -> None:
    code = PythonReward(config_map=ConfigMapKeyRef(name="rewards", key="score.py"))
    with pytest.raises(TrainerFailure) as caught:
        await check([Reward(name="own", python=code)])
    assert caught.value.message == (
        "rewards[0].python.configMap is rewards/score.py, which only Kubernetes mounts at "
        "/etc/simplerl-rewards/0/score.py: give python.file on this machine"
    )


ENDING = {
    "ends its process": ("import os\nos._exit(7)", "ended with exit code 7 at its start"),
    "hangs": ("import time\nwhile True: time.sleep(1)", "was not ready after 3 s"),
}


@pytest.mark.parametrize(("code", "what"), ENDING.values(), ids=ENDING)
async def test_an_import_that(tmp_path: Path, code: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "hangs" in what or "ready" in what:
        monkeypatch.setattr(worker, "STARTUP_SECONDS", 3.0)
    path = written(tmp_path, f"{code}\ndef score(response): return 1")
    with pytest.raises(TrainerFailure) as caught:
        await check([reward(path)])
    assert caught.value.reason is FailureReason.INVALID_INPUT
    assert caught.value.message == f"rewards[0].python: the process that imports {path} {what}: mend it"


def cases(count: int) -> list[Case]:
    return [Case(response=str(i), answer="") for i in range(count)]


async def scored(path: Path, count: int, processes: int = 1, **settings: Any) -> list[Score]:
    async with Scorer([reward(path, **settings)], None, processes=processes) as scorer:
        return await scorer.score_cases(cases(count))


MISCHIEF = """
import os, subprocess, sys, time
def score(response):
    print("to stdout", flush=True)
    os.write(1, b"past Python's own stdout")
    match response:
        case "3": time.sleep(600)
        case "5": os._exit(9)
        case "7": os.kill(os.getpid(), 11)
        case "8":
            subprocess.Popen(["sleep", "4242"], stdout=subprocess.DEVNULL)
            time.sleep(600)
        case "9": return len(sys.stdin.read())
        case "10": return bytearray(1 << 40)
    return int(response)
"""


async def test_a_function_that_hangs_ends_its_process_prints_or_reads_fails_no_other_sample(tmp_path: Path) -> None:
    path = written(tmp_path, MISCHIEF)
    found = await scored(path, 12, processes=2, timeout_seconds=2.0, failed=-2.0)
    values = {3: -2.0, 5: -2.0, 7: -2.0, 8: -2.0, 9: 0.0, 10: -2.0}
    assert [s.value for s in found] == [values.get(i, float(i)) for i in range(12)]
    assert {i: found[i].why for i in (3, 5, 7, 8)} == {
        3: "scoring it took longer than 2 s",
        5: "its reward process ended with exit code 9",
        7: "its reward process ended with exit code -11",
        8: "scoring it took longer than 2 s",
    }
    assert found[10].why.startswith("line 14: MemoryError")
    assert [i for i, s in enumerate(found) if s.failed == ("own",)] == [3, 5, 7, 8, 10]
    assert not _running(b"sleep\x004242"), "what a function starts goes with its process"


async def test_the_last_sample_s_process_may_end_as_the_scorer_closes(tmp_path: Path) -> None:
    path = written(tmp_path, "import os\ndef score(response): os._exit(3)\n")
    async with asyncio.timeout(60):
        found = await scored(path, 4, processes=2)
    assert {s.why for s in found} == {"its reward process ended with exit code 3"}


def _running(command: bytes) -> list[str]:
    found = []
    for process in (p for p in Path("/proc").iterdir() if p.name.isdigit()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if command in (process / "cmdline").read_bytes():
                found.append(process.name)
    return found


ASYNC = """
import asyncio, os, time
at_once = most = 0
async def score(response):
    global at_once, most
    at_once += 1
    most = max(most, at_once)
    try:
        match response:
            case "2": await asyncio.sleep(600)
            case "4": time.sleep(600)
            case "6": os._exit(9)
        await asyncio.sleep(0.3)
        return most
    finally:
        at_once -= 1
"""


STUMBLES = """
import os, pathlib
starts = pathlib.Path({folder!r}) / "starts"
number = int(starts.read_text()) + 1 if starts.exists() else 1
starts.write_text(str(number))
if number in {bad}:
    os._exit(1)
def score(response):
    if response == "1":
        os._exit(2)
    return 1
"""


async def test_a_process_s_successor_that_does_not_start_at_once_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "FIRST_PAUSE_SECONDS", 0.01)
    path = written(tmp_path, STUMBLES.format(folder=str(tmp_path), bad=(2, 3)))
    assert [s.value for s in await scored(path, 3)] == [1.0, 0.0, 1.0]
    (tmp_path / "starts").unlink()
    path = written(tmp_path, STUMBLES.format(folder=str(tmp_path), bad=(2, 3, 4)))
    with pytest.raises(TrainerFailure, match="ended with exit code 1 at its start: mend it"):
        await scored(path, 3)


async def test_calls_of_an_async_function_run_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "import asyncio\nasync def score(response):\n    await asyncio.sleep(1)\n    return 1")
    async with Scorer([reward(path)], None, processes=1) as scorer:
        await scorer.score_cases(cases(1))
        start = time.monotonic()
        found = await scorer.score_cases(cases(100))
        seconds = time.monotonic() - start
    assert [s.value for s in found] == [1.0] * 100
    assert seconds < 20


async def test_an_async_function_that_hangs_or_ends_its_process_fails_no_other_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "CONCURRENT_SLACK_SECONDS", 1.0)
    found = await scored(written(tmp_path, ASYNC), 8, timeout_seconds=1.5, failed=-2.0)
    assert [i for i, s in enumerate(found) if s.failed] == [2, 4, 6]
    assert all(s.value > 0 for i, s in enumerate(found) if i not in (2, 4, 6))
    assert [found[i].why for i in (2, 4, 6)] == [
        "scoring it took longer than 1.5 s",
        "scoring it took longer than 1.5 s",
        "its reward process ended with exit code 9",
    ]


async def test_without_a_judge_of_answers_a_response_is_right_whose_score_is_above_zero(tmp_path: Path) -> None:
    path = written(tmp_path, "def score(response): return int(response) - 1")
    assert [s.verdict for s in await scored(path, 3)] == ["different", "different", "equal"]


async def test_token_ids_become_texts_with_special_tokens_in_the_prompt_alone(tmp_path: Path) -> None:
    from simplerl_trainer.models.arithmetic_tokenizer import EOS, make_tokenizer, save_tokenizer
    from simplerl_trainer.samples import Finish, Prompt, Sample

    save_tokenizer(tmp_path)
    tokenizer = make_tokenizer()
    path = written(
        tmp_path,
        f"def score(prompt, response, truncated, record):\n"
        f"    assert (prompt, response, truncated, record) == ('1 + 1{EOS}', '2', False, {{'level': 1}})\n"
        f"    return 1.5",
    )
    prompt = Prompt(0, "1 + 1", "2", tuple(tokenizer.encode(f"1 + 1{EOS}").ids), {"level": 1})
    sample = Sample(0, prompt, tuple(tokenizer.encode(f"2{EOS}").ids), Finish.STOP, 0, None)
    async with Scorer([reward(path)], str(tmp_path), processes=1) as scorer:
        (found,) = await scorer.score([sample])
    assert (found.value, found.why) == (1.5, "")


async def test_the_process_is_gone_when_a_check_ends(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    path = written(
        tmp_path, f"import os, pathlib\npathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\ndef score(): return 1"
    )
    await check([reward(path)])
    await asyncio.sleep(0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


async def test_the_example_s_function_scores_as_it_says() -> None:
    (own,) = (r for r in validation.parse(yaml12.load_file(EXAMPLES / "tiny-python.yaml")).spec.rewards if r.python)
    assert own.python is not None
    assert own.python.config_map is not None
    path = EXAMPLES / "rewards" / own.python.config_map.key
    given = [Case("24", "24"), Case(" 24.", "24"), Case("24", "24", truncated=True)]
    async with Scorer([reward(path, timeout_seconds=own.python.timeout_seconds)], None, processes=1) as scorer:
        assert [s.value for s in await scorer.score_cases(given)] == [1.0, 0.0, -1.0]
