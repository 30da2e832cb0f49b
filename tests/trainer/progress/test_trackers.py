"""Trackers: what they are given, and that none of them can hold up or end a run."""

import asyncio
import json
import os
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from simplerl_api import overrides, yaml12
from simplerl_api.run import Run
from simplerl_trainer import local
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.tensorboard import TensorBoard
from simplerl_trainer.progress.trackers import Trackers, make_trackers
from simplerl_trainer.progress.wandb_run import WandbRun

TINY = Path(__file__).parents[3] / "examples/tiny.yaml"
NAN = float("nan")


def run(folder: Path, *settings: str) -> Run:
    return local.prepare(overrides.apply(yaml12.load_file(TINY), settings), folder, own_ray=True)


class Scripted:
    """A tracker that fails or hangs where it is told to."""

    def __init__(self, name: str, fails_in: str = "", hangs_in: str = "") -> None:
        self.name, self.id = name, f"{name}-1"
        self._fails_in, self._hangs_in = fails_in, hangs_in
        self.lines: list[tuple[int, dict[str, float]]] = []
        self.closed: bool | None = None
        self.killed = threading.Event()

    def _at(self, part: str) -> None:
        if part == self._hangs_in:
            self.killed.wait(30)
        if part == self._fails_in:
            raise ConnectionError(f"no server to {part}")

    def open(self) -> None:
        self._at("open")

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        self._at("log")
        self.lines.append((step, dict(figures)))

    def close(self, failed: bool) -> None:
        self._at("close")
        self.closed = failed

    def kill(self) -> None:
        self.killed.set()


def warnings(log: Log) -> list[tuple[str, str, str]]:
    lines = [json.loads(line) for line in log.lines]
    return [(line["message"], line["tracker"], line["why"]) for line in lines if line["level"] == "warning"]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "driver.log", console=True)


async def test_all_trackers_get_the_same_lines_in_their_order(log: Log) -> None:
    both = [Scripted("a"), Scripted("b")]
    trackers = Trackers(both, log)
    await trackers.open()
    trackers.evaluation(0, "held-out", 0.25)
    trackers.step(1, {"reward": 0.5, "kl": NAN, "ratio_max": float("inf")}, {"rollout": 1.5, "total": 2.0})
    await trackers.close(failed=False)
    for tracker in both:
        assert tracker.lines == [
            (0, {"evaluation/held-out": 0.25}),
            (1, {"reward": 0.5, "seconds/rollout": 1.5, "seconds/total": 2.0}),
        ]
        assert tracker.closed is False
    assert warnings(log) == []


FAILURES = [
    pytest.param({"fails_in": "open"}, "ConnectionError: no server to open", id="cannot be opened"),
    pytest.param({"fails_in": "log"}, "ConnectionError: no server to log", id="takes no figures"),
    pytest.param({"fails_in": "close"}, "ConnectionError: no server to close", id="does not end well"),
    pytest.param({"hangs_in": "open"}, "its last figures were not sent within 0.5 s", id="hangs at its start"),
    pytest.param({"hangs_in": "log"}, "its last figures were not sent within 0.5 s", id="hangs with a line"),
    pytest.param({"hangs_in": "close"}, "its last figures were not sent within 0.5 s", id="hangs at its end"),
]


@pytest.mark.parametrize(("trouble", "why"), FAILURES)
async def test_a_tracker_in_trouble_is_named_once_and_holds_up_nothing(
    log: Log, trouble: dict[str, str], why: str
) -> None:
    broken, sound = Scripted("wandb", **trouble), Scripted("tensorboard")
    trackers = Trackers([broken, sound], log)
    start = time.monotonic()
    await trackers.open(seconds=0.5)
    for step in range(1, 6):
        trackers.step(step, {"reward": 0.1 * step}, {})
        await asyncio.sleep(0.05)
    await trackers.close(failed=True, seconds=0.5)
    assert time.monotonic() - start < 5
    assert [step for step, _ in sound.lines] == [1, 2, 3, 4, 5]
    assert sound.closed is True
    assert broken.killed.is_set()
    assert [w for w in warnings(log) if w[0] == "tracker fails"] == [("tracker fails", "wandb", why)]
    slow = [("tracker is slow", "wandb", "not ready after 0.5 s")] if trouble.get("hangs_in") == "open" else []
    assert [w for w in warnings(log) if w[0] != "tracker fails"] == slow


async def test_lines_that_a_slow_tracker_has_no_room_for_are_dropped_with_a_word(log: Log) -> None:
    slow = Scripted("wandb", hangs_in="log")
    trackers = Trackers([slow], log, longest_queue=3)
    await trackers.open()
    for step in range(1, 50):
        trackers.step(step, {"reward": 0.1}, {})
    ((_, _, why),) = warnings(log)
    assert why.startswith("3 lines wait for it: the figures of step ")
    slow.killed.set()
    await trackers.close(failed=False, seconds=5)
    assert len(slow.lines) < 6


async def test_a_later_attempt_goes_on_under_the_same_ids(tmp_path: Path, log: Log) -> None:
    made = run(tmp_path / "run", "tracking.wandb={mode: Offline}")
    first = make_trackers(made, 0, {}, log)
    assert set(first.ids) == {"wandb"}
    assert make_trackers(made, 4, first.ids, log).ids == first.ids
    assert make_trackers(made, 0, {}, log).ids != first.ids, "another run is another run"


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        pytest.param([], ["tensorboard"], id="TensorBoard where nothing is said"),
        pytest.param(["tracking.tensorboard=false"], [], id="none"),
        pytest.param(["tracking.wandb={}"], ["tensorboard", "wandb"], id="both"),
    ],
)
def test_the_trackers_are_those_of_the_spec(tmp_path: Path, log: Log, settings: list[str], names: list[str]) -> None:
    trackers = make_trackers(run(tmp_path / "run", *settings), 0, {}, log)
    assert [lane.tracker.name for lane in trackers._lanes] == names


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@pytest.mark.parametrize(
    ("steps_done", "values"),
    [
        pytest.param(3, [0, 0.5, 1, 1.5, -2, -2.5, -3], id="from a checkpoint"),
        pytest.param(0, [0, -0.5, -1, -1.5, -2, -2.5, -3], id="from the start, without one"),
    ],
)
def test_tensorboard_shows_each_step_once_though_a_later_attempt_takes_some_again(
    tmp_path: Path, steps_done: int, values: Sequence[float]
) -> None:
    made = run(tmp_path / "run")
    first = TensorBoard(made, steps_done=0)
    first.open()
    for step in range(6):
        first.log(step, {"reward": 0.5 * step})
    first.close(failed=True)
    time.sleep(1.1)  # its files are named by the second
    again = TensorBoard(made, steps_done=steps_done)
    again.open()
    for step in range(steps_done + 1 if steps_done else 0, 7):
        again.log(step, {"reward": -0.5 * step})
    again.close(failed=False)
    assert scalars(tmp_path / "run/tensorboard") == {"reward": list(enumerate(values))}


def wandb_lines(folder: Path) -> tuple[str, list[dict[str, float]]]:
    """Path (entity/project/id) and history of the run that wandb keeps in a folder."""
    from wandb.proto.wandb_internal_pb2 import Record

    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    path, history = "", []
    for data in leveldb_records(file.read_bytes()):
        record = Record.FromString(data)
        if record.HasField("run"):
            path = f"{record.run.entity}/{record.run.project}/{record.run.run_id}"
        if record.HasField("history"):
            row = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
            history.append({k: v for k, v in row.items() if not k.startswith("_")})
    return path, history


def leveldb_records(data: bytes) -> Iterator[bytes]:
    """The records of a log in LevelDB's format (https://github.com/google/leveldb/blob/main/doc/log_format.md), after
    seven bytes of wandb's own: blocks of 32 KiB, in them checksum, length and kind of each piece."""
    at, record = 7, b""
    while at + 7 <= len(data):
        room = 32768 - at % 32768
        if room < 7:
            at += room
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last piece
            yield record
            record = b""


async def test_wandb_offline_keeps_the_run_s_figures_in_its_folder(tmp_path: Path, log: Log) -> None:
    made = run(tmp_path / "run", "tracking={tensorboard: false, wandb: {entity: team, project: sums, mode: Offline}}")
    trackers = make_trackers(made, 0, {"wandb": "abc123"}, log)
    await trackers.open(60)
    trackers.evaluation(0, "held-out", 0.25)
    trackers.step(1, {"reward": 0.5, "kl": NAN}, {"total": 2.0})
    await trackers.close(failed=False, seconds=60)
    assert warnings(log) == []
    assert wandb_lines(tmp_path / "run") == (
        "team/sums/abc123",
        [{"step": 0, "evaluation/held-out": 0.25}, {"step": 1, "reward": 0.5, "seconds/total": 2.0}],
    )


@contextmanager
def silent_server() -> Iterator[str]:
    """A server that takes requests and never answers."""
    stop = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            stop.wait(60)

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        stop.set()
        server.shutdown()


async def test_a_wandb_server_that_never_answers_holds_up_nothing_and_leaves_no_process(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = run(tmp_path / "run", "tracking={tensorboard: false, wandb: {}}")
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    with silent_server() as url:
        monkeypatch.setenv("WANDB_BASE_URL", url)
        monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
        trackers = make_trackers(made, 0, {}, log)
        start = time.monotonic()
        await trackers.open(3)
        trackers.step(1, {"reward": 0.5}, {})
        await trackers.close(failed=False, seconds=1)
        assert time.monotonic() - start < 10
    assert {w[:2] for w in warnings(log)} == {("tracker is slow", "wandb"), ("tracker fails", "wandb")}
    bound = time.monotonic() + 30
    while left := {p.pid for p in psutil.Process().children(recursive=True)} - before:
        assert time.monotonic() < bound, f"processes are left: {left}"
        await asyncio.sleep(0.2)


async def test_wandb_without_a_key_is_a_sentence(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    made = run(tmp_path / "run", "tracking={tensorboard: false, wandb: {}}")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # no `wandb login` either
    trackers = make_trackers(made, 0, {}, log)
    await trackers.open(60)
    await trackers.close(failed=False, seconds=10)
    ((_, _, why),) = warnings(log)
    assert "tracking.wandb.apiKeySecretRef" in why


async def test_the_key_of_wandb_stands_in_no_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def popen(command: list[str], **options: Any) -> subprocess.Popen[str]:
        seen.update(command=command, options=options)
        raise OSError("enough")

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setenv("WANDB_API_KEY", "a-key-of-wandb")
    tracker = WandbRun(run(tmp_path / "run"), run(tmp_path / "run").spec.tracking.wandb or _wandb(), None)
    with pytest.raises(OSError, match="enough"):
        tracker.open()
    assert "a-key-of-wandb" not in str(seen), "it comes by the environment, which is inherited"
    assert "a-key-of-wandb" not in json.dumps(tracker._setup())
    assert os.environ["WANDB_API_KEY"] == "a-key-of-wandb"


def _wandb() -> Any:
    from simplerl_api.spec.tracking import Wandb

    return Wandb()
