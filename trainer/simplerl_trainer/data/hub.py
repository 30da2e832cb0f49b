"""Records of a data set of a Hugging Face hub, by the `datasets` library."""

from collections.abc import Iterator

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.hub import HubQuestions
from simplerl_trainer import hub as hubs
from simplerl_trainer.data.files import Record


def records(hub: HubQuestions, commit: str, field: str) -> Iterator[Record]:
    """The rows of a split at a commit.

    `field` is the spec's path, for messages. Raises TrainerFailure with a sentence that names it: TIMED_OUT where the
    hub cannot be reached, otherwise INVALID_INPUT.
    """
    import datasets  # seconds, only where it is used

    datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(hub.name, hub.config, split=hub.split, revision=commit)
    except Exception as e:
        # the library says by messages alone what was wrong
        failure = TrainerFailure(FailureReason.INVALID_INPUT, _sentence(e, hub, field))
        raise hubs.failure_of(e, hub, field) or failure from e
    for number, row in enumerate(rows, start=1):
        yield Record(f"{field} {hub.name} row {number}", row)


def _sentence(error: BaseException, hub: HubQuestions, field: str) -> str:
    said = " ".join(str(error).split())[:300]
    match error:
        case ValueError() if said.startswith(("BuilderConfig", "Config name is missing")):
            return f"{field}.config is {hub.config or 'absent'}, which does not suit {hub.name} ({said}): give another"
        case ValueError() if "split" in said.lower():
            return f"{field}.split is {hub.split}, which {hub.name} does not have ({said}): give another"
        case _:
            return f"{field}.name is {hub.name}, which cannot be read as a data set ({said or type(error).__name__})"
