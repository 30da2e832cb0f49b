"""What the README says is so."""

import re
from pathlib import Path

from typer.testing import CliRunner

from simplerl_api import validation, yaml12
from simplerl_api.plan import make_plan
from simplerl_trainer.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_its_job_is_valid_and_has_a_plan() -> None:
    (text,) = blocks("yaml")
    document = yaml12.load(text)
    assert validation.faults(document) == []
    plan = make_plan(validation.parse(document).spec)
    assert (plan.gpus, plan.ranks, plan.engines, plan.durable) == (32, 32, 32, True)


def test_every_make_target_that_it_names_exists() -> None:
    named = {word for command in re.findall(r"\bmake ((?:-s )?[a-z][a-z-]*)", code()) for word in [command.split()[-1]]}
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test"} <= named
    assert named - targets == set()


def test_every_command_of_simplerl_that_it_names_exists() -> None:
    named = set(re.findall(r"(?:^|bin/)simplerl ([a-z]+)", code(), re.MULTILINE))
    assert {"train", "validate"} <= named
    for command in named:
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0, command


def test_every_path_that_it_names_exists() -> None:
    folders = "crds|operator|trainer|images|charts|examples|hack|tests|docs"
    named = set(re.findall(rf"(?<![\w/.-])(?:{folders})/[\w./-]*\w", README))
    assert "examples/tiny.yaml" in named
    assert [path for path in named if not (ROOT / path).exists()] == []


def code() -> str:
    """All that stands as code, in blocks and in lines."""
    return "\n".join([*blocks("[a-z]*"), *re.findall(r"`([^`\n]+)`", README)])
