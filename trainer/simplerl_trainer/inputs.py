"""What a run reads before it starts: the model's tokenizer, the training prompts and the evaluation prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simplerl_api.run import Run
from simplerl_trainer.data import prompts, questions, templates
from simplerl_trainer.data.tokenizer import Tokenizer
from simplerl_trainer.models import families
from simplerl_trainer.progress.log import Log
from simplerl_trainer.samples import Prompt, Sample


@dataclass(frozen=True, slots=True)
class Inputs:
    """Prompts, and what turns ids into text."""

    prompts: Sequence[Prompt]
    """The training prompts, in the order of their data set."""
    evaluations: Mapping[str, Sequence[Prompt]]
    """The prompts of each evaluation data set by its name."""
    stop_token_ids: Sequence[int]
    """Every end-of-sequence id of the model."""
    tokenizer: Tokenizer

    def texts(self, samples: Sequence[Sample]) -> dict[int, str]:
        """The text of each response by its sample's id."""
        decoded = self.tokenizer.decode([s.response_ids for s in samples])
        return {s.id: text for s, text in zip(samples, decoded, strict=True)}


def read_inputs(run: Run, model_folder: Path, log: Log) -> Inputs:
    """Reads all inputs of a run; says in the log what was left out.

    Raises TrainerFailure(INVALID_INPUT) naming the file, folder or field that cannot be used.
    """
    spec = run.spec
    model = families.read(model_folder)
    tokenizer = Tokenizer(model_folder)
    template = templates.choose(spec.data.prompt_template, tokenizer)
    evaluations: dict[str, Sequence[Prompt]] = {}
    held_out: set[str] = set()
    for i, dataset in enumerate(spec.evaluation.datasets if spec.evaluation else []):
        field = f"evaluation.datasets[{i}]"
        loaded = questions.load(dataset, spec.data.fields, field)
        held_out |= {prompts.key(q.question) for q in loaded}
        made = prompts.make_prompts(loaded, template, tokenizer, spec.data.max_prompt_tokens, field=field)
        evaluations[dataset.name] = made.prompts
        log.info("evaluation questions read", dataset=dataset.name, prompts=len(made.prompts), too_long=made.too_long)
    loaded = questions.load(spec.data.train, spec.data.fields, "data.train")
    made = prompts.make_prompts(loaded, template, tokenizer, spec.data.max_prompt_tokens, held_out)
    log.info(
        "training questions read", prompts=len(made.prompts), too_long=made.too_long, held_out=made.held_out,
        example=made.example,
    )  # fmt: skip
    return Inputs(made.prompts, evaluations, model.stop_token_ids, tokenizer)
