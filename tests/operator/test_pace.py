"""Twenty writes of figures a second, all jobs together, in the order in which they came."""

import pytest

from simplerl_operator.apply.status import Pace

JOBS = [("team-a", f"job-{i}") for i in range(3)]


def test_jobs_take_turns_and_keep_them() -> None:
    pace = Pace(per_second=10)
    assert [pace.wait(job, 100.0) for job in JOBS] == pytest.approx([0, 0.1, 0.2])
    assert pace.wait(JOBS[2], 100.05) == pytest.approx(0.15), "its turn is kept, and another look takes no second one"
    assert pace.wait(JOBS[1], 100.1) == 0
    assert pace.wait(JOBS[2], 100.25) == 0
    assert pace.wait(JOBS[1], 100.25) == pytest.approx(0.05), "a turn that was taken is over"


def test_after_a_quiet_time_the_first_waits_for_nobody() -> None:
    pace = Pace(per_second=10)
    assert pace.wait(JOBS[0], 100.0) == 0
    assert pace.wait(JOBS[0], 200.0) == 0


def test_a_job_that_is_gone_leaves_nothing_behind() -> None:
    pace = Pace(per_second=10)
    pace.wait(JOBS[0], 100.0)
    assert pace.wait(JOBS[1], 100.0) > 0
    pace.forget(JOBS[1])
    assert pace.wait(JOBS[1], 100.1) == pytest.approx(0.1), "it comes anew, after all that came before"
