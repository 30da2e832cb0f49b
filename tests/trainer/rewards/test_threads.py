"""Rewards may be scored from any thread of the driver."""

import asyncio
import threading
from pathlib import Path

from simplerl_api.spec.rewards import PythonReward, Reward
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.score import Scorer
from simplerl_trainer.samples import Score


async def test_a_time_limit_holds_outside_the_main_thread(tmp_path: Path) -> None:
    """Fault 27 (TRL#5281, cookbook#438): limits by SIGALRM raise or do nothing there."""
    code = tmp_path / "score.py"
    code.write_text("import time\ndef score(response):\n    time.sleep(600 * (response == 'slow'))\n    return 1.0\n")
    reward = Reward(name="own", python=PythonReward(file=str(code), timeout_seconds=1.0, failed=-1.0))

    async def scored() -> list[Score]:
        assert threading.current_thread() is not threading.main_thread()
        async with Scorer([reward], None, 1) as scorer:
            return await scorer.score_cases([Case(response=r, answer="") for r in ("slow", "quick")])

    slow, quick = await asyncio.to_thread(lambda: asyncio.run(scored()))
    assert (slow.value, slow.why, quick.value) == (-1.0, "scoring it took longer than 1 s", 1.0)
