"""An evaluation from its beginning to its end: models one after the other, on each of them all data sets."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.rewards import MathReward, Reward
from simplerl_trainer.data import templates
from simplerl_trainer.data.tokenizer import Tokenizer
from simplerl_trainer.evaluation import engines, folder, machine, metrics, models, questions
from simplerl_trainer.evaluation.evaluate import Settings, draw
from simplerl_trainer.evaluation.metrics import Answer
from simplerl_trainer.evaluation.models import Model
from simplerl_trainer.evaluation.questions import Asked
from simplerl_trainer.evaluation.records import File, Record, judged
from simplerl_trainer.evaluation.sets import Set
from simplerl_trainer.evaluation.show import Bars, Row
from simplerl_trainer.models import families, sharding
from simplerl_trainer.rewards.score import Scorer
from simplerl_trainer.rewards.stream import Scored
from simplerl_trainer.rollout.pool import Pool
from simplerl_trainer.rollout.protocol import EngineSetup

BATCHED_TOKENS = 8192
"""Tokens of prompts and responses that an engine takes into one step."""
CPU_BATCH, GPU_BATCH = 32, 256
"""Responses that an engine draws at once."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be evaluated, and how."""

    models: Sequence[Model]
    sets: Sequence[Set]
    settings: Settings
    template: str | None
    output: Path
    engines: int | None = None
    batch_size: int | None = None
    deterministic: bool = False
    tensor_parallel: int = 1
    """GPUs that hold an engine together."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A model on a data set."""

    model: Model
    set: Set
    asked: Asked
    file: File
    missing: int
    """Samples that are to be drawn."""


async def run(task: Task) -> list[Row]:
    """Draws and judges what is missing in task.output; returns the figures of all, model by model.

    Raises TrainerFailure; what was judged until then is kept, and the same call goes on after it.
    """
    folder.enter(
        task.output,
        {
            "--n-samples": task.settings.samples, "--temperature": task.settings.temperature,
            "--top-p": task.settings.top_p, "--max-tokens": task.settings.max_new_tokens,
            "--template": task.template, "--seed": task.settings.job_seed,
        },
        {m.label: await asyncio.to_thread(m.fingerprint) for m in task.models},
        {s.name: s.digest for s in task.sets},
    )  # fmt: skip
    rows: list[Row] = []
    with Bars() as bars:
        for model in task.models:
            with models.folder(model, task.output) as path:
                rows += await _evaluate(task, model, path, bars)
    folder.write(task.output / folder.METRICS, [_document(row) for row in rows])
    return rows


async def _evaluate(task: Task, model: Model, path: Path, bars: Bars) -> list[Row]:
    facts, tokenizer = families.read(path), Tokenizer(path)
    context, longest = facts.max_position_embeddings, task.settings.max_new_tokens
    if longest >= context:
        raise TrainerFailure(
            FailureReason.INVALID_INPUT,
            f"--max-tokens is {longest}, and the model {path} takes {context} tokens with the prompt: lower it",
        )
    sharding.check(path, task.tensor_parallel, "--tensor-parallel")
    template = templates.choose(task.template, tokenizer, "--template")
    work: list[_Work] = []
    for found in task.sets:
        asked = questions.ask(found, template, tokenizer, longest, context)
        file = File(folder.samples(task.output, model.label, found.name))
        total = len(found.questions) * task.settings.samples
        file.add([r for r in asked.unasked(task.settings.samples) if r.id not in file.records])
        work.append(_Work(model, found, asked, file, total - len(file.records)))
    drawn: Mapping[str, tuple[float, int]] = {}
    try:
        if any(w.missing for w in work):
            drawn = await _draw(task, path, tokenizer, facts, work, bars)
    finally:
        for w in work:
            w.file.close()
    return [_row(task, w, drawn.get(w.set.name)) for w in work]


async def _draw(
    task: Task, path: Path, tokenizer: Tokenizer, facts: families.ModelFolder, work: Sequence[_Work], bars: Bars
) -> dict[str, tuple[float, int]]:
    """Draws what is missing of each data set; returns the seconds and tokens of each by its name."""
    here = machine.look()
    most = max(w.asked.longest for w in work) + task.settings.max_new_tokens
    layout = machine.layout(here, families.shape(path), most, task.engines, task.tensor_parallel)
    setup = EngineSetup(
        model_folder=str(path),
        bf16=layout.gpus > 0,
        cpu_only=layout.gpus == 0,
        max_model_len=most,
        max_num_seqs=task.batch_size or (GPU_BATCH if layout.gpus else CPU_BATCH),
        max_num_batched_tokens=max(BATCHED_TOKENS, most),
        gpu_memory_share=layout.share,
        stop_token_ids=facts.stop_token_ids,
        seed=task.settings.job_seed,
        deterministic=task.deterministic,
        vocabulary=min(tokenizer.vocabulary, facts.vocab_size),
    )
    device = f"on {layout.gpus} GPUs" if layout.gpus else "on CPUs"
    bars.say(f"{work[0].model.label}: {layout.engines} engines start {device}")
    found: dict[str, tuple[float, int]] = {}
    async with (
        engines.serving(setup, layout, here) as (pool, _),
        Scorer([Reward(name="math", math=MathReward())], str(path)) as scorer,
    ):
        for w in (w for w in work if w.missing):
            found[w.set.name] = await _draw_set(task, w, pool, scorer, tokenizer, bars)
    return found


async def _draw_set(
    task: Task, work: _Work, pool: Pool, scorer: Scorer, tokenizer: Tokenizer, bars: Bars
) -> tuple[float, int]:
    """Draws what is missing of a data set; returns the seconds and the tokens drawn."""
    start, tokens, samples = time.monotonic(), 0, task.settings.samples
    total = len(work.set.questions) * samples
    with bars.counter(work.model.label, work.set.name, total) as counter:
        counter.add(list(work.file.records.values()))

        def arrived(chunk: Sequence[Scored]) -> None:
            nonlocal tokens
            texts = tokenizer.decode([s.sample.response_ids for s in chunk])
            new = [judged(s, text) for s, text in zip(chunk, texts, strict=True)]
            work.file.add(new)
            counter.add(new)
            tokens += sum(r.tokens for r in new)

        skip = set(work.file.records)
        await draw(pool, work.asked.prompts, scorer.score, task.settings, skip=skip, arrived=arrived, size=1)
    return time.monotonic() - start, tokens


def _row(task: Task, work: _Work, drawn: tuple[float, int] | None) -> Row:
    """The figures of a model on a data set, which are also left in the folder; `drawn`: the seconds and tokens of this
    sitting, None where all samples were there."""
    found = metrics.figures(answers(work.file.records, task.settings.samples), task.settings.job_seed)
    file = folder.figures(task.output, work.model.label, work.set.name)
    if drawn is None:
        seconds, rate = folder.speed(task.output, work.model.label, work.set.name)
    else:
        seconds, rate = drawn[0], drawn[1] / drawn[0]
    row = Row(work.model.label, work.set.name, found, seconds, rate)
    folder.write(file, _document(row))
    return row


def answers(records: Mapping[int, Record], samples: int) -> list[Answer]:
    """What counts of records, in the order of their ids."""
    return [
        Answer(r.id // samples, r.verdict, r.extracted, r.tokens, r.finish, r.level, r.subject)
        for _, r in sorted(records.items())
    ]


def _document(row: Row) -> dict[str, object]:
    return {
        "model": row.model, "dataset": row.dataset, **row.figures.document(),
        "seconds": round(row.seconds, 1), "tokensPerSecond": round(row.tokens_per_second, 1),
    }  # fmt: skip
