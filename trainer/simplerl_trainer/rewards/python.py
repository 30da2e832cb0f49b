"""Reward functions in Python files of users: loaded and called inside a reward process."""

import asyncio
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from simplerl_api import reward_code
from simplerl_api.mounts import reward_code_folder
from simplerl_api.spec.rewards import PythonReward, Reward
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.outcome import Outcome, Verdict, unusable

Text = Callable[[bytes | str, bool], str]
MODULE = "simplerl_reward"
"""Name of the module that a user's file becomes in its process."""


class Unusable(Exception):
    """Code that cannot be used; the text is the whole sentence."""


def code_file(reward: PythonReward, index: int) -> Path:
    """Where the file of rewards[index] lies."""
    if reward.config_map is not None:
        return Path(reward_code_folder(index)) / reward.config_map.key
    assert reward.file is not None, "a python reward has exactly one of file and configMap"
    return Path(reward.file)


def faults(rewards: Sequence[Reward]) -> list[str]:
    """What can be seen of the code of rewards on this machine without running it: a sentence for each fault. Files that
    are not here may be in the containers."""
    found = []
    for i, reward in enumerate(rewards):
        if reward.python is None or reward.python.file is None:
            continue
        field, file = f"rewards[{i}].python.file", Path(reward.python.file)
        try:
            said = reward_code.fault(file.read_text(encoding="utf-8", errors="replace"), reward.python.function)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as e:
            found.append(f"{field} is {file}, which cannot be read ({e.strerror}): check its kind and permissions")
        else:
            found += [f"{field}: {file} {said}"] if said is not None else []
    return found


class Function:
    """A reward function and how it is called."""

    def __init__(self, function: Callable[..., Any], file: str, reward: PythonReward, wanted: Sequence[str]) -> None:
        self._function = function
        self._file = file
        self._reward = reward
        self._wanted = wanted
        self.concurrent = inspect.iscoroutinefunction(function)
        """Whether many calls run at once."""
        self._runner = asyncio.Runner() if self.concurrent else None

    def call(self, case: Case, text: Text) -> Outcome:
        """The function's score of one case, or why there is none."""
        try:
            return self._outcome(self._function(**self._arguments(case, text)))
        except (Exception, SystemExit) as e:  # noqa: BLE001 (whatever a user's code does fails one sample alone)
            return self._failed(Verdict.FAILED, _told(e, self._file))

    def call_all(self, cases: Sequence[Case], text: Text) -> list[Outcome]:
        """As `call`, for an async function and many cases at once."""
        assert self._runner is not None

        async def all_of_them() -> list[Outcome]:
            return await asyncio.gather(*(self._awaited(case, text) for case in cases))

        return self._runner.run(all_of_them())

    async def _awaited(self, case: Case, text: Text) -> Outcome:
        seconds = self._reward.timeout_seconds
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return self._outcome(await self._function(**self._arguments(case, text)))
        except (Exception, SystemExit, asyncio.CancelledError) as e:  # noqa: BLE001 (as in `call`)
            if deadline.expired():
                return self._failed(Verdict.TIMEOUT, f"scoring it took longer than {seconds:g} s")
            return self._failed(Verdict.FAILED, _told(e, self._file))

    def _arguments(self, case: Case, text: Text) -> dict[str, Any]:
        values: dict[str, Callable[[], Any]] = {
            "prompt": lambda: text(case.prompt, False),
            "question": lambda: case.question,
            "response": lambda: text(case.response, True),
            "answer": lambda: case.answer,
            "record": lambda: dict(case.record),
            "truncated": lambda: case.truncated,
        }
        return {name: values[name]() for name in self._wanted}

    def _outcome(self, value: Any) -> Outcome:
        # strict: a bool or a text that happens to be a number hides a mistake more often than not
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._failed(
                Verdict.FAILED, f"{self._reward.function} gave {_kind(value)}, not a number: return a float"
            )
        if why := unusable(value):
            return self._failed(Verdict.FAILED, f"{self._reward.function} gave {why}")
        return Outcome(float(value), Verdict.SCORED)

    def _failed(self, verdict: Verdict, why: str) -> Outcome:
        return Outcome(self._reward.failed, verdict, why=why)


def load(file: str, field: str, reward: PythonReward) -> Function:
    """Imports a file and finds the function in it.

    Raises Unusable with a sentence that begins with `field`.
    """
    path = Path(file)
    try:
        source = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Unusable(_missing(path, field, reward)) from None
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "it is not UTF-8"
        raise Unusable(f"{field} is {path}, which cannot be read ({why}): check its kind and permissions") from e
    if (fault := reward_code.fault(source, reward.function)) is not None:
        raise Unusable(f"{field}: {path} {fault}")
    function = getattr(_imported(path, field), reward.function, None)
    if function is None:
        raise Unusable(f"{field}: {path} defines no function {reward.function}: add it, or name another one")
    if not callable(function):
        raise Unusable(f"{field}: {path} defines {reward.function} as {_kind(function)}: give a function")
    wanted, fault = _parameters(function, reward.function)
    if fault is not None:
        raise Unusable(f"{field}: {path} {fault}")
    return Function(function, file, reward, wanted)


def _missing(path: Path, field: str, reward: PythonReward) -> str:
    if reward.config_map is not None:
        return (
            f"{field} is {reward.config_map.name}/{reward.config_map.key}, which only Kubernetes mounts at {path}: "
            "give python.file on this machine"
        )
    return f"{field} is {path}, which does not exist: check it (in pods, cluster.volumes)"


def _imported(path: Path, field: str) -> Any:
    sys.path.append(str(path.parent))  # the modules beside it; last, so that none hides a library
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise Unusable(f"{field} is {path}, which is no Python file: give a file whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module  # dataclasses and pickle look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        raise Unusable(f"{field}: {path} cannot be imported ({_told(e, str(path))}): correct it") from e
    return module


def _parameters(function: Callable[..., Any], name: str) -> tuple[Sequence[str], str | None]:
    """The arguments that a function wants, and the fault of those that nobody gives."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return reward_code.ARGUMENTS, None  # some callables made in C have none
    kinds = inspect.Parameter
    if any(p.kind is kinds.VAR_KEYWORD for p in parameters):
        wanted: Sequence[str] = reward_code.ARGUMENTS
    else:
        wanted = [p.name for p in parameters if p.name in reward_code.ARGUMENTS]
    needed = [
        p.name for p in parameters
        if p.default is kinds.empty and p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    ]  # fmt: skip
    positional = [p.name for p in parameters if p.kind is kinds.POSITIONAL_ONLY]
    return wanted, reward_code.wrong_parameters(name, positional, needed)


def _told(error: BaseException, file: str) -> str:
    """An error in one line, with the newest line of the user's own file that took part in it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    said = " ".join(str(error).split())[:300]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}" + (f": {said}" if said else "")


def _kind(value: Any) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
