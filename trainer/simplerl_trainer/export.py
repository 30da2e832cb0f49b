"""`simplerl export`: a checkpoint becomes a model that other programs load."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder: --output of train, or on the claim.")],
    output: Annotated[Path, typer.Option(help="The Hugging Face folder to write; one that is there is replaced.")],
    step: Annotated[
        int | None, typer.Option(min=0, help="The checkpoint after this step. Default: the newest usable one.")
    ] = None,
) -> None:
    """Write a run's checkpoint as a plain Hugging Face folder; needs neither GPU nor network."""
    from simplerl_trainer.checkpoints import export as exports

    try:
        if output.exists() and not (output / "config.json").is_file() and not _is_empty(output):
            typer.echo(f"--output {output} holds something that is no model: choose another folder", err=True)
            raise typer.Exit(1)
        checkpoint = exports.export(run, output, step)
    except exports.NoCheckpoint as e:
        typer.echo(str(e), err=True)
        raise typer.Exit(1) from e
    except OSError as e:
        if e.filename is not None and Path(str(e.filename)).is_relative_to(run):
            typer.echo(f"{e.filename} cannot be read ({e.strerror}): check it, or copy the whole run", err=True)
        else:
            typer.echo(f"--output {output} cannot be written ({e.strerror or e}): choose another folder", err=True)
        raise typer.Exit(1) from e
    typer.echo(f"{output}: the policy after step {checkpoint.step}, from {checkpoint.folder}")


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
