"""`simplerl eval`: how well models do on questions."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

WIDTH = 160
"""Columns of the table in files and pipes."""


def evaluate(
    model_path: Annotated[
        list[Path],
        typer.Option(help="A Hugging Face folder, a checkpoint, or a run's folder: all of its checkpoints."),
    ],
    data: Annotated[
        list[str],
        typer.Option(
            metavar="NAME[=FILE]", help="A data set: NAME=FILE, NAME=hub:OWNER/NAME, or NAME in --data-folder."
        ),
    ],
    output: Annotated[Path, typer.Option(help="Folder of samples and figures; the same command again goes on there.")],
    data_folder: Annotated[Path | None, typer.Option(help="Where the files of bare names are: NAME.jsonl.")] = None,
    n_samples: Annotated[int, typer.Option(min=1, max=1024, help="Responses to each question.")] = 1,
    temperature: Annotated[float, typer.Option(min=0, max=2, help="0 takes the likeliest token.")] = 0.0,
    top_p: Annotated[float, typer.Option(min=0, max=1, help="Share of the probability that is drawn from.")] = 1.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest response.")] = 2048,
    template: Annotated[
        str | None, typer.Option(help="qwen-boxed, chat, or a text with {question} in it. Default: the model's own.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first questions of each data set.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Of the samples' random numbers.")] = 0,
    engines: Annotated[int | None, typer.Option(min=1, help="Engines. Default: as many as are quick and fit.")] = None,
    tensor_parallel: Annotated[
        int, typer.Option(min=1, max=8, help="GPUs that hold an engine together, for a model too large for one.")
    ] = 1,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Responses that an engine draws at once.")] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Results do not depend on what is drawn beside them; slower.")
    ] = False,
    question_key: Annotated[str | None, typer.Option(help="Key of the questions, where not the usual one.")] = None,
    answer_key: Annotated[str | None, typer.Option(help="Key of the answers, where not the usual one.")] = None,
    compare: Annotated[
        Path | None, typer.Option(help="Another evaluation's folder: counts the samples that differ from its.")
    ] = None,
) -> None:
    """Measure models on questions with known answers: accuracy, pass@k, maj@k, lengths, by level and subject."""
    from rich.console import Console

    from simplerl_api.failures import EXIT_CODES, FailureReason, TrainerFailure
    from simplerl_trainer.evaluation import comparison, models, run, sets, show
    from simplerl_trainer.evaluation.evaluate import Settings

    if 0 < temperature < 0.01:
        raise typer.BadParameter("give 0, or 0.01 to 2", param_hint=f"--temperature {temperature}")
    if top_p == 0:
        raise typer.BadParameter("give more than 0, and at most 1", param_hint="--top-p 0")
    for option, key in (("--question-key", question_key), ("--answer-key", answer_key)):
        if key == "":
            raise typer.BadParameter("name a key of the records, or leave the option out", param_hint=option)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    try:
        if compare is not None:
            comparison.check(compare)
        task = run.Task(
            models=models.find(model_path),
            sets=[sets.read(source, limit, question_key, answer_key) for source in sets.sources(data, data_folder)],
            settings=Settings(seed, temperature, max_tokens, n_samples, top_p),
            template=template,
            output=output,
            engines=engines,
            batch_size=batch_size,
            deterministic=deterministic,
            tensor_parallel=tensor_parallel,
        )
        rows = asyncio.run(run.run(task))
        show.table(rows, console)
        if compare is not None:
            comparison.table(comparison.compare(output, compare, [(r.model, r.dataset) for r in rows]), console)
    except TrainerFailure as e:
        typer.echo(str(e), err=True)
        raise typer.Exit(1 if e.reason is FailureReason.INVALID_INPUT else EXIT_CODES[e.reason]) from e
    except OSError as e:
        if e.filename is None:  # no file of the user's
            raise
        typer.echo(
            f"{e.filename} cannot be used ({e.strerror}): check its name, its permissions and its room", err=True
        )
        raise typer.Exit(1) from e
    except KeyboardInterrupt:
        typer.echo("stopped: the same command goes on after the samples that are judged", err=True)
        raise typer.Exit(130) from None
