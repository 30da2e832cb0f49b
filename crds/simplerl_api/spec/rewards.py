"""What is rewarded."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from simplerl_api.spec.hub import HubModel
from simplerl_api.spec.reference import ConfigMapKeyRef, SecretKeyRef
from simplerl_api.struct import Path, Struct, Text, Union


class MathReward(Struct):
    """A rule-based judge of mathematical answers: docs/judge.md says what is equal.

    The answer is the last `\\boxed{…}` of the response or, where there is none, what follows "the answer is", else its
    last expression.
    """

    correct: float = Field(default=1.0, ge=-1000, le=1000)
    """Score of a right answer."""
    wrong: float = Field(default=0.0, ge=-1000, le=1000)
    """Score of a wrong or missing answer."""
    unboxed: float | None = Field(default=None, ge=-1000, le=1000)
    """Score of a response without a box, whatever it says; absent: such a response is judged by its last
    expression. simpleRL-reason used correct 1.0, wrong -0.5, unboxed -1.0."""
    timeout_seconds: float = Field(default=5.0, gt=0, le=600)
    """Seconds that one sample may take; then it is scored as wrong and counted as timed out."""


class PythonReward(Union):
    """A function of your own in a Python file, run in processes that are killed when it hangs: exactly one of file,
    configMap.

    `def score(*, prompt: str, question: str, response: str, answer: str, record: dict, truncated: bool) -> float`, or
    an `async def`, of which many run at once. It is called by keywords, with those of these that it names. It must give
    a finite number; a response for which it does not (it raises, gives something else or takes too long) gets the score
    `failed`, is counted, and the samples file says why.
    """

    members = ("file", "configMap")

    file: Path | None = None
    """A Python file at this path in the head's container: mount it with `cluster.volumes`. It may import the modules
    beside it."""
    config_map: ConfigMapKeyRef | None = None
    """A ConfigMap's key that holds the file's text, mounted into the head."""
    function: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)] = "score"
    """Name of the function."""
    timeout_seconds: float = Field(default=10.0, gt=0, le=3600)
    """Seconds that one call may take."""
    failed: float = Field(default=0.0, ge=-1000, le=1000)
    """Score of a response that the function fails on; best the lowest that it gives."""


class HttpReward(Struct):
    """A service that scores responses, asked in batches.

    It gets `POST {"samples": [{"prompt", "question", "response", "answer", "record", "truncated"}, …]}` and answers
    `{"scores": [1.0, …]}`, a number for each sample in their order. Before the first step it is asked for the scores
    of no samples and must answer `{"scores": []}`.
    """

    url: Annotated[str, Field(pattern=r"^https?://[^\s@]+$", max_length=2048)]
    """Where to post, for example `http://judge.team-a.svc:8000/score`."""
    batch_size: int = Field(default=64, ge=1, le=4096)
    """The most samples in one request; up to 64 are scored together while others are drawn."""
    timeout_seconds: float = Field(default=30.0, gt=0, le=3600)
    """Seconds that one request may take."""
    retries: int = Field(default=3, ge=0, le=10)
    """Further tries, with growing pauses, when the service cannot be reached, takes too long or answers with status
    429 or 5xx."""
    token_secret_ref: SecretKeyRef | None = None
    """A token sent as `Authorization: Bearer …`. Without Kubernetes the variable SIMPLERL_REWARD_n_TOKEN holds it, n
    being the reward's place in the list, from 0."""
    failed: float = Field(default=0.0, ge=-1000, le=1000)
    """Score of a response for which no number came; such responses are counted, and the samples file says why."""


class TaskReward(Struct):
    """The scorer of the reasoning-gym generator that made the question, from 0 to 1; all data sets must be made by
    reasoning-gym.

    It is given the text in the last `<answer>…</answer>` of the response, else its last `\\boxed{…}`, else all of it.
    A response on which it fails or takes too long scores 0 and is counted.
    """

    timeout_seconds: float = Field(default=5.0, gt=0, le=600)
    """Seconds that one sample may take."""


TEMPLATE_RULE = "template has no {response} in it: add it, or leave the template out for the chat template"


class ModelReward(Union):
    """A reward model: a sequence classifier of one label, run by the training ranks, frozen and shared out as the
    reference model is: exactly one of hub, path. It scores the samples of training steps, not those of evaluations.
    Families: Qwen2, Qwen2.5, Qwen3, Llama.

    A response that it cannot score (its text is longer than the model reads, or the score is not a finite number) gets
    the score `failed` and is counted.
    """

    cel: ClassVar[tuple[tuple[str, str], ...]] = (
        ("!has(self.template) || self.template.contains('{response}')", TEMPLATE_RULE),
    )

    members = ("hub", "path")

    hub: HubModel | None = None
    """A sequence classifier of a Hugging Face hub."""
    path: Path | None = None
    """A Hugging Face folder (config.json, safetensors, tokenizer) at this path in every container: mount it with
    `cluster.volumes`."""
    template: Annotated[str, Field(min_length=1, max_length=8192)] | None = None
    """The text that it reads, with {response} and, where wanted, {question} in it. Absent: its chat template for the
    question as the user's message and the response as the assistant's."""
    failed: float = Field(default=0.0, ge=-1000, le=1000)
    """Score of a response that it cannot score."""

    @model_validator(mode="after")
    def _template_holds_the_response(self) -> Self:
        if self.template is not None and "{response}" not in self.template:
            raise ValueError(TEMPLATE_RULE)
        return self


class Reward(Union):
    """A named reward with its weight: exactly one of math, python, model, http, task."""

    members = ("math", "python", "model", "http", "task")

    name: Text
    """Name in metrics and samples; no two rewards share one."""
    weight: float = Field(default=1.0, ge=-1000, le=1000)
    """Weight in the sum of all rewards. Absent: 1."""
    math: MathReward | None = None
    """The rule-based judge of mathematical answers."""
    python: PythonReward | None = None
    """A function of your own."""
    model: ModelReward | None = None
    """A reward model."""
    http: HttpReward | None = None
    """A service that scores responses."""
    task: TaskReward | None = None
    """The reasoning-gym generator's own scorer."""
