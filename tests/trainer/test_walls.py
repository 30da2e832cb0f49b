"""The driver's process stays light: the actors alone import what computes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import simplerl_trainer

PROGRAM = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*sorted({"vllm", "deepspeed", "torch"} & sys.modules.keys()))
"""


@pytest.mark.parametrize("name", ["driver", "cli", "local", "train", "session", "fleet", "actors"])
def test_a_module_of_the_driver_imports_neither_vllm_nor_deepspeed_nor_torch(name: str) -> None:
    command = [sys.executable, "-c", PROGRAM, f"simplerl_trainer.{name}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []


def test_no_process_is_forked() -> None:
    """Fault 44 (SkyRL#1415): a fork beside Ray's threads in a data set's filter hangs."""
    sources = Path(simplerl_trainer.__file__).parent.rglob("*.py")
    forks = re.compile(r"os\.fork|get_context|num_proc|ProcessPoolExecutor|multiprocessing import (Process|Pool)")
    assert not [path.name for path in sources if forks.search(path.read_text(encoding="utf-8"))]
