"""How containers ended, as their pods tell it."""

from typing import Any

import pytest
from tests.operator.observations import NOW, pod, seen, started

from simplerl_api.status import Termination
from simplerl_operator.decide.rules import decide
from simplerl_operator.decide.status import compose
from simplerl_operator.observe import pods
from simplerl_operator.observe.pods import Pod


def ended(code: int, reason: str, message: str | None = None) -> Pod:
    terminated = {"exitCode": code, "reason": reason} | ({} if message is None else {"message": message})
    return read({"containerStatuses": [{"name": "ray-worker", "state": {"terminated": terminated}}]})


def read(status: dict[str, Any]) -> Pod:
    metadata = {"name": "w", "uid": "u", "creationTimestamp": "2026-12-01T00:00:00Z"}
    document = {"metadata": metadata, "spec": {"containers": [{"name": "ray-worker"}]}}
    return pods.read({**document, "status": {"phase": "Failed", **status}})


STORIES = [
    (
        "a container that ended by itself tells its last line",
        ended(1, "Error", "Traceback\nRuntimeError: no raylet \n\n"),
        "container ray-worker Error (exit code 1): RuntimeError: no raylet",
        "Traceback\nRuntimeError: no raylet",
    ),
    ("one that wrote nothing", ended(1, "Error"), "container ray-worker Error (exit code 1)", None),
    ("one that wrote white space", ended(1, "Error", " \n"), "container ray-worker Error (exit code 1)", None),
    (
        "one that a signal ended knew nothing of it",
        ended(137, "OOMKilled", "step 4"),
        "container ray-worker OOMKilled (exit code 137)",
        None,
    ),
    (
        "lines are cut to what a sentence holds",
        ended(2, "Error", "x" * 2000),
        f"container ray-worker Error (exit code 2): {'x' * 300}",
        "x" * 1024,
    ),
]


@pytest.mark.parametrize(("found", "story", "log"), [s[1:] for s in STORIES], ids=[s[0] for s in STORIES])
def test_a_pod_tells_how_it_ended(found: Pod, story: str, log: str | None) -> None:
    assert found.story == story
    assert [t.log for t in found.terminations] == [log]


def test_a_container_that_ended_well_is_none_of_them() -> None:
    assert ended(0, "Completed", "all done").terminations == ()


def test_the_jobs_token_is_taken_out() -> None:
    found = pods.redacted(ended(1, "Error", "token 5ecret is wrong"), "5ecret")
    assert found.story == "container ray-worker Error (exit code 1): token *** is wrong"


def test_an_attempt_keeps_the_lines_of_the_first_three() -> None:
    def worker(number: int) -> Pod:
        said = Termination(pod=f"w{number}", container="ray-worker", exit_code=1, reason="Error", log=f"line {number}")
        return pod("worker", number, phase="Failed", terminations=(said,))

    observation = seen(started(), pods=(pod("head"), *(worker(n) for n in range(5))))
    status = compose(observation, decide(observation, NOW), NOW)
    assert [t.log for t in status.attempts[-1].terminations] == ["line 0", "line 1", "line 2", None, None]
