"""`simplerl`: the same YAML, without Kubernetes."""

import asyncio
import io
import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from simplerl_api import overrides, validation, yaml12
from simplerl_api.spec.job import SimpleRLJob
from simplerl_trainer import export
from simplerl_trainer.evaluation import command

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)


@app.callback()
def _begin() -> None:
    # a response may hold what no terminal shows: half a surrogate pair, or signs beyond the locale's
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


File = Annotated[Path, typer.Argument(help="A SimpleRLJob in YAML.", exists=True, dir_okay=False)]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="PATH=VALUE", help="Replace a field, for example training.steps=3.")
]


class Format(StrEnum):
    """How something is printed."""

    TABLE = "table"
    JSON = "json"


@app.command()
def validate(file: File, settings: Settings = []) -> None:  # noqa: B006 (typer reads the default)
    """Say what the cluster would say of a job's file, and of the reward code that is on this machine."""
    from simplerl_trainer.rewards import python

    spec = _valid(file, settings).spec
    faults = [*validation.cluster_faults(spec), *(f"spec.{fault}" for fault in python.faults(spec.rewards))]
    for fault in faults:
        typer.echo(f"{file}: {fault}", err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo(f"{file}: valid")


@app.command()
def plan(
    file: File,
    settings: Settings = [],  # noqa: B006 (typer reads the default)
    output: Annotated[Format, typer.Option("-o", "--output", help="Tables for people, or one JSON document.")] = (
        Format.TABLE
    ),
    gpu_memory: Annotated[float | None, typer.Option(min=1, help="Memory of one GPU in GiB, where not 80.")] = None,
) -> None:
    """Say what a job would make of its GPUs: slots, DeepSpeed's settings, memory, and whatever was chosen for it."""
    from rich.console import Console

    from simplerl_trainer.planning import report, tables

    spec = _valid(file, settings).spec
    document = report.report(spec, gpu_memory)
    if output is Format.JSON:
        typer.echo(json.dumps(document, indent=1))
    else:
        tables.show(document, Console(highlight=False))


@app.command()
def train(
    file: File,
    output: Annotated[Path, typer.Option(help="Folder of checkpoints, metrics.jsonl, samples and the model.")],
    settings: Settings = [],  # noqa: B006 (typer reads the default)
    address: Annotated[str | None, typer.Option(help="A Ray cluster that runs already, for example auto.")] = None,
) -> None:
    """Train on this machine, or on a Ray cluster that runs already; the same command again goes on where it stopped."""
    from simplerl_trainer import driver, local

    try:
        run = local.prepare(_document(file, settings), output, own_ray=address is None)
    except ValueError as e:
        for fault in e.faults if isinstance(e, validation.InvalidJob) else [e]:
            typer.echo(f"{file}: {fault}", err=True)
        raise typer.Exit(1) from e
    raise typer.Exit(asyncio.run(driver.drive(run, token=None, address=address, local=True)))


@app.command()
def grade(
    responses: Annotated[
        str, typer.Argument(metavar="FILE|-", help="JSON Lines with response and gold on each; - reads standard input.")
    ],
    rewards: Annotated[
        Path | None, typer.Option(help="A SimpleRLJob whose rewards score, in place of the judge.", dir_okay=False)
    ] = None,
    settings: Settings = [],  # noqa: B006 (typer reads the default)
    output: Annotated[
        Format | None, typer.Option("-o", "--output", help="JSON Lines (the judge's default), or a table.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, max=600, help="Seconds that judging one line may take. Default: 5.")
    ] = None,
) -> None:
    """Judge responses against gold answers: one JSON object a line, and a summary on standard error.

    With --rewards, score them as a job would; exits with 3 where some could not be scored. Exits with 1 where nothing
    could be read.
    """
    from rich.console import Console

    from simplerl_api.failures import TrainerFailure
    from simplerl_trainer import grades
    from simplerl_trainer.rewards import grade as grading
    from simplerl_trainer.rewards.surroundings import Surroundings

    if rewards is None and settings:
        raise typer.BadParameter("it replaces a field of the job of --rewards: give that too", param_hint="--set")
    if rewards is not None and timeout is not None:
        raise typer.BadParameter(
            "the rewards of --rewards have times of their own: use --set rewards[0].math.timeoutSeconds=9",
            param_hint="--timeout",
        )
    lines = grading.Lines(responses if responses != "-" else "standard input", _bytes(responses))
    try:
        if rewards is None:
            graded = asyncio.run(grading.judge(lines, timeout or 5.0))
        else:
            if not rewards.exists():
                raise typer.BadParameter(f"{rewards} does not exist: name a SimpleRLJob's file", param_hint="--rewards")
            spec = _valid(rewards, settings).spec
            listed = [variable.name for variable in spec.cluster.env]
            gym = spec.data.train.reasoning_gym
            graded = asyncio.run(grading.grade(lines, spec.rewards, gym, Surroundings(listed)))
    except TrainerFailure as e:
        typer.echo(str(e), err=True)
        raise typer.Exit(1) from e
    if output is Format.TABLE or (output is None and rewards is not None):
        grades.show(graded, Console(highlight=False))
    elif rewards is None:
        for line in graded:
            typer.echo(json.dumps(line.judgement()))
        typer.echo(grades.sentence(graded), err=True)
    else:
        for line in graded:
            typer.echo(json.dumps(line.document()))
        typer.echo(json.dumps({"summary": grading.summary(graded)}))
    raise typer.Exit(0 if rewards is None or all(g.judged for g in graded) else 3)


def _bytes(name: str) -> bytes:
    """What a file or standard input holds; ends with a sentence where it cannot be read."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except FileNotFoundError as e:
        typer.echo(f"{name} does not exist: name a file of JSON Lines, or - for standard input", err=True)
        raise typer.Exit(1) from e
    except OSError as e:
        typer.echo(f"{name or 'an empty path'} cannot be read ({e.strerror}): name a file of JSON Lines", err=True)
        raise typer.Exit(1) from e


def _valid(file: Path, settings: list[str]) -> SimpleRLJob:
    """The job in a file; ends with its faults where the cluster would refuse it."""
    document = _document(file, settings)
    faults = validation.faults(document)
    for fault in faults:
        typer.echo(f"{file}: {fault}", err=True)
    if faults:
        raise typer.Exit(1)
    return validation.parse(document)


app.command()(export.export)
app.command("eval")(command.evaluate)


def _document(file: Path, settings: list[str]) -> dict[str, object]:
    try:
        document = yaml12.load_file(file)
        return overrides.apply(document, settings) if settings else document
    except UnicodeDecodeError as e:
        typer.echo(f"{file}: not a text in UTF-8: write the job as YAML", err=True)
        raise typer.Exit(1) from e
    except ValueError as e:
        typer.echo(f"{file}: {e}", err=True)
        raise typer.Exit(1) from e
    except OSError as e:
        typer.echo(f"{file} cannot be read ({e.strerror}): check its permissions", err=True)
        raise typer.Exit(1) from e


def main() -> None:
    """Entry point of `python -m simplerl_trainer.cli`."""
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(app())


if __name__ == "__main__":
    main()
