"""The command line: exit codes, and the sentences that a person reads."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simplerl_trainer.cli import app

TINY = Path(__file__).parents[2] / "examples/tiny.yaml"


def simplerl(*words: str | Path) -> tuple[int, str]:
    """Exit code and all that was said."""
    result = CliRunner().invoke(app, [str(w) for w in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param([], id="as it stands"),
        pytest.param(["training.steps=3"], id="with a field replaced"),
        pytest.param(["training.actor.learningRate=5e-7", "placement={colocated: {}}"], id="with two fields replaced"),
    ],
)
def test_a_valid_job_is_called_valid(settings: Sequence[str]) -> None:
    assert simplerl("validate", TINY, *(w for s in settings for w in ("--set", s))) == (0, f"{TINY}: valid\n")


FAULTS = [
    pytest.param("training.stepz=3", 'unknown field "spec.training.stepz": did you mean steps?', id="a field"),
    pytest.param("training.steps=-1", "spec.training.steps is -1", id="a value"),
    pytest.param("training.trainBatchSize=100", "spec.training.trainBatchSize is 100", id="no plan"),
    pytest.param(
        "rewards[3].weight=1", "--set rewards[3].weight=1: spec.rewards ends before [3]", id="a place that is not there"
    ),
    pytest.param("training.steps", "--set training.steps: write path=value", id="a setting without a value"),
    pytest.param("training.steps=[", "--set training.steps=[: its value is not YAML", id="a value that is not YAML"),
]


@pytest.mark.parametrize(("setting", "sentence"), FAULTS)
def test_an_invalid_job_exits_with_1_and_names_the_fault(setting: str, sentence: str) -> None:
    code, text = simplerl("validate", TINY, "--set", setting)
    assert code == 1
    assert text.startswith(f"{TINY}: {sentence}")


def test_what_a_cluster_alone_refuses_is_said_of_a_cluster_s_job() -> None:
    words = ["--set", "checkpoint={resumeFrom: team-a/run}"]
    assert simplerl("validate", TINY, *words) == (
        1,
        f"{TINY}: spec.checkpoint.resumeFrom is team-a/run, but there is no spec.checkpoint.claimName in which that "
        "folder could lie: name the claim\n",
    )
    assert simplerl("plan", TINY, *words)[0] == 0


@pytest.mark.parametrize(
    ("file", "said"),
    [
        pytest.param("/none.py", None, id="a file that is not here may be in the containers"),
        pytest.param(f"{TINY}/score.py", None, id="so may one below a file"),
        pytest.param(str(TINY.parent), "Is a directory", id="a folder"),
        pytest.param(f"/{'a' * 300}", "File name too long", id="a name that no disk takes"),
    ],
)
def test_reward_code_that_cannot_be_read_is_named(file: str, said: str | None) -> None:
    code, text = simplerl("validate", TINY, "--set", f"rewards=[{{name: a, python: {{file: {file}}}}}]")
    sentence = f"spec.rewards[0].python.file is {file}, which cannot be read ({said}): check its kind and permissions"
    assert (code, text) == ((1, f"{TINY}: {sentence}\n") if said else (0, f"{TINY}: valid\n"))


def test_every_fault_has_its_line() -> None:
    code, text = simplerl("validate", TINY, "--set", "training.steps=-1", "--set", "rollout.engines=0")
    assert code == 1
    assert [line.split(" is ")[0] for line in text.splitlines()] == [
        f"{TINY}: spec.rollout.engines",
        f"{TINY}: spec.training.steps",
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"spec: [", "not YAML: ", id="not YAML"),
        pytest.param(b"a: 1\na: 2\n", "not YAML: ", id="a key twice"),
        pytest.param(b"", "expected one YAML document, found 0", id="empty"),
        pytest.param(b"spec: &a [*a]\n", "spec[0][0]", id="an alias within itself"),
        pytest.param(b"a: 1\n---\nb: 2\n", "expected one YAML document, found 2", id="two jobs"),
        pytest.param(
            b"- 1\n", "expected an object with apiVersion, kind, metadata and spec, found a list", id="a list"
        ),
        pytest.param(b"\xff\xfe\x00", "not a text in UTF-8", id="not a text"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "train"])
def test_a_file_that_is_no_job_exits_with_1(tmp_path: Path, command: str, content: bytes, sentence: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(content)
    more = ["--output", tmp_path / "run"] if command == "train" else []
    code, text = simplerl(command, file, *more)
    assert code == 1
    assert text.startswith(f"{file}: {sentence}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("setting", "sentence"), FAULTS)
def test_an_invalid_job_is_not_trained(tmp_path: Path, setting: str, sentence: str) -> None:
    code, text = simplerl("train", TINY, "--output", tmp_path / "run", "--set", setting)
    assert code == 1
    assert text.startswith(f"{TINY}: {sentence}")
    assert not (tmp_path / "run").exists()


def test_the_folder_of_another_run_is_not_trained_in(tmp_path: Path) -> None:
    from simplerl_api import yaml12
    from simplerl_trainer import local

    local.prepare(yaml12.load_file(TINY), tmp_path, own_ray=True)
    code, text = simplerl("train", TINY, "--output", tmp_path, "--set", "training.steps=3")
    assert code == 1
    assert text.startswith(f"{TINY}: --output {tmp_path} holds a run whose spec.training differs from this file's")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        pytest.param(["validate", "none.yaml"], "none.yaml", id="a file that is not there"),
        pytest.param(["train", TINY], "--output", id="no folder"),
        pytest.param(["trian", TINY], "trian", id="an unknown command"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_names(words: Sequence[str | Path], named: str) -> None:
    code, text = simplerl(*words)
    assert code == 2
    assert named in text


LONG = "a" * 300


def test_an_output_that_no_disk_takes_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert simplerl("train", TINY, "--output", LONG) == (
        1, f"{TINY}: --output {LONG} cannot be written (File name too long): choose another folder\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("run", "output", "sentence"),
    [
        pytest.param("none", "model", "none has no folder checkpoints: give a run's folder", id="no run"),
        pytest.param(
            "run", "model", "run/checkpoints/step-000004/ranks.json cannot be read (No such file", id="no state"
        ),
        pytest.param(LONG, "model", f"{LONG}/checkpoints cannot be read (File name too long)", id="a long run"),
        pytest.param(
            "run", LONG, f"--output {LONG} cannot be written (File name too long): choose", id="a long output"
        ),
        pytest.param("run", "run", "--output run holds something that is no model: choose another folder", id="itself"),
        pytest.param(
            "torn", "model", "torn/checkpoints has no complete checkpoint (step-000004: torn/check", id="torn"
        ),
    ],
)
def test_what_cannot_be_exported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str, output: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, manifest in (("run", '{"format": 2, "step": 4, "files": {}}'), ("torn", '{"format": 2')):
        Path(name, "checkpoints/step-000004").mkdir(parents=True)
        Path(name, "checkpoints/step-000004/manifest.json").write_text(manifest)
    code, text = simplerl("export", run, "--output", output)
    assert code == 1
    assert text.startswith(sentence)
