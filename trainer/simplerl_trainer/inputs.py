"""What a run reads before it starts: its questions, the model's tokenizer, the training and evaluation prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.run import Run
from simplerl_api.spec.data import Questions
from simplerl_api.spec.evaluation import EvaluationSet
from simplerl_api.spec.hub import HubModel
from simplerl_api.spec.job import Spec
from simplerl_trainer import fingerprints, hub
from simplerl_trainer.data import known, levels, prompts, questions, stops, templates
from simplerl_trainer.data.questions import Keys, Question
from simplerl_trainer.data.tokenizer import Tokenizer
from simplerl_trainer.fingerprints import Fingerprint
from simplerl_trainer.models import families, shapes, sharding
from simplerl_trainer.progress.log import Log
from simplerl_trainer.rewards import python
from simplerl_trainer.samples import Prompt, Sample

MODEL = "model"
TRAIN = "data.train"


@dataclass(frozen=True, slots=True)
class Inputs:
    """Prompts, and what turns ids into text."""

    prompts: Sequence[Prompt]
    """The training prompts, in the order of their data set."""
    evaluations: Mapping[str, Sequence[Prompt]]
    """The prompts of each evaluation data set by its name."""
    unasked: Mapping[str, Sequence[Prompt]]
    """Those that are too long to be asked, which count as failed."""
    stop_token_ids: Sequence[int]
    """Every id that ends a response: the model's end-of-sequence ids and those of rollout.sampling.stop."""
    vocabulary: int
    """Ids below it may be drawn: those of the tokenizer that the model has a row for."""
    tokenizer: Tokenizer

    def texts(self, samples: Sequence[Sample]) -> dict[int, str]:
        """The text of each response by its sample's id."""
        decoded = self.tokenizer.decode([s.response_ids for s in samples])
        return {s.id: text for s, text in zip(samples, decoded, strict=True)}


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of a run, before they are prompts."""

    train: Sequence[Question]
    evaluations: Mapping[str, Sequence[Question]]
    """By the name of their data set."""
    fingerprints: Mapping[str, Fingerprint]
    """Of each data set, by its path in the spec."""


def commits(run: Run, before: Mapping[str, Fingerprint]) -> dict[str, str]:
    """The commit of each hub repository by its path in the spec: that of the first start, else the newest now.

    Raises TrainerFailure naming a repository that cannot be used (hub.resolve).
    """
    hubs = {MODEL: run.spec.model.hub} | {field: dataset.hub for field, dataset in _datasets(run).items()}
    hubs |= {judge(i): r.model.hub for i, r in enumerate(run.spec.rewards) if r.model}
    commits = {}
    for field, found in hubs.items():
        if found is None:
            continue
        if (commit := fingerprints.pinned(before, field, found)) is None:
            commit = hub.resolve(found, f"{field}.hub")
            if isinstance(found, HubModel):
                hub.check_weights(found, commit, f"{field}.hub")
        commits[field] = commit
    return commits


def read_questions(run: Run, commits: Mapping[str, str], log: Log) -> Asked:
    """Reads all data sets of a run; says in the log what was left out.

    Raises TrainerFailure(INVALID_INPUT) naming the file or field that cannot be used.
    """
    spec = run.spec
    # a response is compared with the answer by the math reward alone; others may do without
    answers = any(r.math is not None for r in spec.rewards)
    loaded: dict[str, Sequence[Question]] = {}
    found: dict[str, Fingerprint] = {}
    for field, dataset in _datasets(run).items():
        commit = commits.get(field)
        own = dataset.fields if isinstance(dataset, EvaluationSet) else None
        named = f"{field}.fields" if own else "data.fields"
        fields, keys = own or spec.data.fields, Keys(f"{named}.question", f"{named}.answer")
        loaded[field] = questions.load(dataset, fields, field, answers=answers, commit=commit, keys=keys)
        found[field] = {
            "source": fingerprints.source(dataset.hub) if dataset.hub else dataset.tag,
            **({"commit": commit} if commit else {}),
            "questions": str(len(loaded[field])),
            "digest": questions.digest(loaded[field]),
        }
    sifted = levels.sift(loaded[TRAIN], spec.data.levels, spec.data.fields.level, TRAIN)
    if spec.data.levels is not None:
        log.info(
            "training questions sifted by level", kept=len(sifted.questions), other_level=sifted.other_level,
            unreadable_level=sifted.unreadable_level, unreadable_example=sifted.unreadable_example,
        )  # fmt: skip
    names = {field: d.name for field, d in _evaluations(run).items()}
    return Asked(sifted.questions, {name: loaded[field] for field, name in names.items()}, found)


def model_before_placement(run: Run, commits: Mapping[str, str]) -> Path | None:
    """The model's folder on the driver's node, where it is known before there are nodes: a toy model is built later.
    From a hub come the tokenizer and configuration alone.

    Raises TrainerFailure(INVALID_INPUT) naming a repository that cannot be used.
    """
    model = run.spec.model
    if model.hub is not None:
        return hub.model_folder(model.hub, commits[MODEL], "model.hub", weights=False)
    return None if model.path is None else Path(model.path)


def judge(index: int) -> str:
    """The path of a reward model in the spec."""
    return f"rewards[{index}].model"


def judge_folders(run: Run, commits: Mapping[str, str]) -> dict[int, Path]:
    """The folder of each reward model on the driver's node, by its place among the rewards: whole, or without its
    weights where it comes from a hub.

    Raises TrainerFailure naming a repository that cannot be used (hub.resolve).
    """
    found = {}
    for i, reward in enumerate(run.spec.rewards):
        if reward.model is not None and reward.model.hub is not None:
            field = f"{judge(i)}.hub"
            found[i] = hub.model_folder(reward.model.hub, commits[judge(i)], field, weights=False)
        elif reward.model is not None:
            found[i] = Path(reward.model.path or "")
            shapes.read(found[i], f"{judge(i)}.path")
    return found


def make_inputs(run: Run, asked: Asked, model_folder: Path, log: Log) -> Inputs:
    """Makes prompts of all questions; says in the log what was left out.

    Raises TrainerFailure(INVALID_INPUT) naming the folder or field that cannot be used.
    """
    spec = run.spec
    model = families.read(model_folder, weights=spec.model.hub is None)
    families.shape(model_folder)
    if spec.model.hub is None:
        shapes.read(model_folder)  # a copy that was cut short would be found out on the GPUs only
    _check_context(spec, model_folder, model.max_position_embeddings)
    sharding.check(model_folder, run.plan.tensor_parallel_size)
    tokenizer = Tokenizer(model_folder)
    stop_ids = stops.ids(spec.rollout.sampling.stop, tokenizer)
    template = templates.choose(spec.data.prompt_template, tokenizer)
    evaluations: dict[str, Sequence[Prompt]] = {}
    unasked: dict[str, Sequence[Prompt]] = {}
    held_out: set[str] = set()
    for field, dataset in _evaluations(run).items():
        loaded = asked.evaluations[dataset.name]
        if spec.training.steps:  # a job that only evaluates may name the same file twice
            held_out |= {prompts.key(q.question) for q in loaded}
        made = prompts.make_prompts(loaded, template, tokenizer, spec.data.max_prompt_tokens, field=field)
        evaluations[dataset.name] = known.tolerated(dataset.name, made.prompts)
        unasked[dataset.name] = made.unasked
        log.info("evaluation questions read", dataset=dataset.name, prompts=len(made.prompts), too_long=made.too_long)
    made = prompts.make_prompts(asked.train, template, tokenizer, spec.data.max_prompt_tokens, held_out)
    log.info(
        "training questions read", prompts=len(made.prompts), too_long=made.too_long, held_out=made.held_out,
        example=made.example,
    )  # fmt: skip
    return Inputs(
        prompts=made.prompts,
        evaluations=evaluations,
        unasked=unasked,
        stop_token_ids=sorted({*model.stop_token_ids, *stop_ids}),
        vocabulary=min(tokenizer.vocabulary, model.vocab_size),
        tokenizer=tokenizer,
    )


def compare(
    run: Run, before: Mapping[str, Fingerprint], asked: Asked, commits: Mapping[str, str], model_folder: Path, log: Log
) -> None:
    """Leaves the fingerprints of the inputs at the first start; names those that have changed at a later one."""
    if (model := run.spec.model.hub) is not None:
        now: dict[str, Fingerprint] = {
            MODEL: {"source": fingerprints.source(model), "commit": commits[MODEL]}, **asked.fingerprints
        }  # fmt: skip
    else:
        now = {MODEL: fingerprints.of_folder(model_folder), **asked.fingerprints}
    for i, reward in enumerate(run.spec.rewards):
        if reward.python is not None:
            now[f"rewards[{i}].python"] = fingerprints.of_file(python.code_file(reward.python, i))
        if reward.model is not None and (found := reward.model.hub) is not None:
            now[judge(i)] = {"source": fingerprints.source(found), "commit": commits[judge(i)]}
        elif reward.model is not None:
            now[judge(i)] = fingerprints.of_folder(Path(reward.model.path or ""))
    if not before:
        fingerprints.write(Path(run.output), now)
        log.info("inputs", **{field: " ".join(known.values()) for field, known in now.items()})
    elif changed := fingerprints.changed(before, now):
        log.warning(
            "inputs differ from those of the first start",
            changed={f: {"first": dict(before.get(f, {})), "now": dict(now.get(f, {}))} for f in changed},
        )


def _check_context(spec: Spec, folder: Path, context: int) -> None:
    longest = {"rollout.sampling.maxNewTokens": spec.rollout.sampling.max_new_tokens}
    if spec.evaluation is not None and spec.evaluation.max_new_tokens is not None:
        longest["evaluation.maxNewTokens"] = spec.evaluation.max_new_tokens
    for field, new_tokens in longest.items():
        if spec.data.max_prompt_tokens + new_tokens > context:
            raise TrainerFailure(
                FailureReason.INVALID_INPUT,
                f"model folder {folder} takes {context} tokens, less than data.maxPromptTokens "
                f"{spec.data.max_prompt_tokens} + {field} {new_tokens}: shorten them, or use another model",
            )


def _datasets(run: Run) -> dict[str, Questions]:
    return {TRAIN: run.spec.data.train, **_evaluations(run)}


def _evaluations(run: Run) -> dict[str, EvaluationSet]:
    datasets = run.spec.evaluation.datasets if run.spec.evaluation else []
    return {f"evaluation.datasets[{i}]": dataset for i, dataset in enumerate(datasets)}
