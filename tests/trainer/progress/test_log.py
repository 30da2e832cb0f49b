"""The driver's log."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simplerl_api.progress import LOG_LINES, Progress, RunState
from simplerl_trainer.progress.console import duration
from simplerl_trainer.progress.log import Log

SECRET = 'pa"ss\\wörd'
KEY = "-----BEGIN KEY-----\nMIIEow\nab\n-----END KEY-----\n"


def test_a_line_is_one_object_on_stdout_and_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(tmp_path / "driver.log")
    log.info("step done", step=3, reward=0.5)
    log.error("run failed", reason="LostRank")
    log.close()
    lines = (tmp_path / "driver.log").read_text().split("\n")
    assert capsys.readouterr().out.split("\n") == lines
    first, second = map(json.loads, lines[:2])
    assert first.pop("time").endswith("Z")
    assert first == {"level": "info", "message": "step done", "step": 3, "reward": 0.5}
    assert (second["level"], second["message"], second["reason"]) == ("error", "run failed", "LostRank")


@given(st.text(), st.floats())
@settings(deadline=None)  # a busy disk
def test_any_text_and_figure_make_one_line(tmp_path_factory: pytest.TempPathFactory, text: str, figure: float) -> None:
    log = Log(tmp_path_factory.mktemp("log") / "driver.log", console=True)
    log.info("said", text=text, figures={"x": [figure]})
    (line,) = log.lines
    assert line.splitlines() == [line]
    assert json.loads(line, parse_constant=pytest.fail)["text"] == text


@pytest.mark.parametrize(
    "text",
    [SECRET, f"url?key={SECRET}&x", KEY, "line MIIEow of the key", json.dumps({"key": SECRET})],
    ids=["alone", "inside a text", "a whole key file", "one line of it", "as JSON"],
)
def test_values_of_secrets_never_leave(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    log = Log(tmp_path / "driver.log", secrets=[SECRET, KEY])
    log.error("failed", text=text, nested={"list": [text]})
    log.final(Progress(submission_id="a", sequence=1, state=RunState.FAILED, log=[text], last_progress=0))
    log.close()
    written = capsys.readouterr().out + (tmp_path / "driver.log").read_text() + "".join(log.lines)
    assert not [part for part in ('pa\\"ss', 'pa\\\\\\"ss', "rd", "MIIEow", "BEGIN KEY") if part in written]
    for line in filter(None, written.split("\n")):
        json.loads(line)
    assert log.redact(text) != text


def test_the_newest_lines_are_kept(tmp_path: Path) -> None:
    log = Log(tmp_path / "driver.log", console=True)
    for i in range(LOG_LINES + 5):
        log.info("line", number=i)
    assert [json.loads(line)["number"] for line in log.lines] == list(range(5, LOG_LINES + 5))


def test_people_who_watch_see_steps_and_troubles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(tmp_path / "driver.log", [SECRET], console=True)
    log.info("driver started", attempt=1, example="a\nlong " + "text " * 40, nothing=None, key=SECRET)
    log.step(3, 60, STEP, {"rollout": 1.0, "total": 2.04}, 200.4)
    log.step(60, 60, {"reward": 1.0}, {"total": 2.0}, 0.0)
    log.warning("slow", engine=1, key=SECRET)
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"driver started  attempt 1  example {('a long ' + 'text ' * 40)[:97]}...  key ***",
        "step  3/60  reward 0.5123    kl nan       length 4.9       samples/s 298.1     2.0 s  3m 20s left",
        "step 60/60  reward 1         2.0 s",
    ]
    assert err == "warning: slow\n  engine: 1\n  key: ***\n"


STEP = {
    "reward": 0.51234,
    "kl": float("nan"),
    "response_length": 4.9,
    "samples_per_second": 298.12,
    "clip": float("inf"),
}


def test_a_step_s_line_names_what_is_not_finite_and_holds_only_what_is(tmp_path: Path) -> None:
    log = Log(tmp_path / "driver.log", console=True)
    log.step(3, 60, STEP, {"total": 2.04}, None)
    line = json.loads(log.lines[0], parse_constant=pytest.fail)
    del line["time"]
    assert line == {
        "level": "info",
        "message": "step done",
        "step": 3,
        "reward": 0.51234,
        "response_length": 4.9,
        "samples_per_second": 298.12,
        "non_finite": ["clip", "kl"],
        "seconds": {"total": 2.04},
    }


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0s"), (59.6, "1m 0s"), (200, "3m 20s"), (7500, "2h 5m"), (273600, "3d 4h"), (3599.4, "59m 59s")],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_log_on_a_full_disk_still_speaks(capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(Path("/dev/full"))
    log.error("run failed", reason="CheckpointFailed")
    said = capsys.readouterr()
    assert json.loads(said.out)["reason"] == "CheckpointFailed"
    assert said.err == "error: the log's file cannot be written: No space left on device\n"
    assert len(log.lines) == 1
