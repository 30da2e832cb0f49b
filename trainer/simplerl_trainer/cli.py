"""`simplerl`: the same YAML, without Kubernetes."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from simplerl_api import overrides, validation, yaml12

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)

File = Annotated[Path, typer.Argument(help="A SimpleRLJob in YAML.", exists=True, dir_okay=False)]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="PATH=VALUE", help="Replace a field, for example training.steps=3.")
]


@app.command()
def validate(file: File, settings: Settings = []) -> None:  # noqa: B006 (typer reads the default)
    """Say what the cluster would say of a job's file."""
    document = _document(file, settings)
    faults = validation.faults(document)
    for fault in faults:
        typer.echo(f"{file}: {fault}", err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo(f"{file}: valid")


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


def main() -> None:
    """Entry point of `python -m simplerl_trainer.cli`."""
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(app())


if __name__ == "__main__":
    main()
