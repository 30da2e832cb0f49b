"""reasoning-gym's own scorers: for questions that have more than one right answer, or part of one."""

import math
import re
from typing import Any

from simplerl_api.spec.data import ReasoningGym
from simplerl_trainer.rewards.judge.boxes import last_box
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.outcome import Outcome, Verdict

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


class Scorers:
    """The generators of a run, made where they are needed: making one does not make its questions."""

    def __init__(self) -> None:
        import reasoning_gym  # seconds of imports, before the first sample's time begins

        self._create = reasoning_gym.create_dataset
        self._generators: dict[str, Any] = {}

    def score(self, response: str, case: Case) -> Outcome:
        """The scorer's number for a response, 0 to 1; 1 alone is right."""
        assert case.gym is not None, "a task reward is refused where questions are not reasoning-gym's"
        answer = extract(response)
        if not answer:
            return Outcome(0.0, Verdict.NO_ANSWER, why="it is empty")
        try:
            score = float(self._generator(case.gym).score_answer(answer, dict(case.record)))
        except Exception as e:  # noqa: BLE001 (scorers parse what models write, and may raise anything on it)
            said = " ".join(str(e).split())[:300]
            return Outcome(0.0, Verdict.FAILED, answer, f"the scorer of {case.gym.dataset}: {type(e).__name__}: {said}")
        if not math.isfinite(score):
            return Outcome(0.0, Verdict.FAILED, answer, f"the scorer of {case.gym.dataset} gave {score}")
        if score >= 1:
            return Outcome(score, Verdict.EQUAL, answer)
        return Outcome(score, Verdict.DIFFERENT, answer, f"the scorer of {case.gym.dataset} gave {score:.4g}")

    def _generator(self, gym: ReasoningGym) -> Any:
        key = gym.model_dump_json()
        if key not in self._generators:
            self._generators[key] = self._create(gym.dataset, size=gym.size, seed=gym.seed, **gym.config)
        return self._generators[key]


def extract(response: str) -> str:
    """The text in the last `<answer>…</answer>`, else in the last box, else all of it."""
    if found := _ANSWER.findall(response):
        return str(found[-1]).strip()
    box = last_box(response)
    return (response if box is None else box).strip()
