"""The driver's process stays light: the actors alone import what computes."""

import subprocess
import sys

import pytest

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
