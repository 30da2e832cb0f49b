"""Repositories of a Hugging Face hub: revisions become commits once, and files come to a node once.

The token is the variable HF_TOKEN, which the hub's own client reads: it is never an argument here.
"""

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from simplerl_api.credentials import HUB_TOKEN
from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.spec.hub import HubModel, HubQuestions

TRIES = 3
FIRST_PAUSE_SECONDS = 1.0
PASSED_ON = ("HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT")
"""What the driver's environment says of the hub must hold for every node alike. The token is not among them: Ray shows
what it passes on."""
SETTINGS = ("*.json", "*.jinja", "*.model", "*.txt")
WEIGHTS = ("*.safetensors",)

R = TypeVar("R")


def environment(driver: Mapping[str, str]) -> dict[str, str]:
    """Variables for a process that downloads."""
    found = {name: driver[name] for name in PASSED_ON if name in driver}
    return {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_PROGRESS_BARS": "1", **found}


def resolve(hub: HubModel | HubQuestions, field: str) -> str:
    """The commit of a repository's revision now; without a network the one that the cache knows.

    `field` is the spec's path of the repository. Raises TrainerFailure with a sentence that names it: TIMED_OUT where
    the hub cannot be reached, otherwise INVALID_INPUT.
    """
    from huggingface_hub import HfApi  # a third of a second, only where it is used

    kind = "model" if isinstance(hub, HubModel) else "dataset"
    found = _asked(lambda: HfApi().resolve_revision(hub.name, repo_type=kind, revision=hub.revision), hub, field)
    return found.resolved  # str(found) is the name that was asked for


def model_folder(hub: HubModel, commit: str, field: str, *, weights: bool) -> Path:
    """The folder of a model's files on this node, downloaded where it is not there yet: all, or without its weights.

    Raises as `resolve`, and where the repository has no safetensors.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()

    def download() -> str:
        return str(
            snapshot_download(
                hub.name,
                revision=commit,
                allow_patterns=[*SETTINGS, *(WEIGHTS if weights else ())],
                ignore_patterns=["*/*"],  # other formats of the same weights
            )
        )

    return Path(_asked(download, hub, field))


def check_weights(hub: HubModel, commit: str, field: str) -> None:
    """Asks the hub whether a model's weights are safetensors; raises TrainerFailure(INVALID_INPUT) where not, and as
    `resolve`. Where HF_HUB_OFFLINE is set it is seen when they are read."""
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return
    files = _asked(lambda: HfApi().list_repo_files(hub.name, revision=commit), hub, field)
    if not any(f.endswith(".safetensors") and "/" not in f for f in files):
        raise _invalid(
            f"{field}.name is {hub.name}, which has no *.safetensors: give a model whose weights are safetensors"
        )


def _asked(ask: Callable[[], R], hub: HubModel | HubQuestions, field: str) -> R:
    """What the hub answers, asked again while it cannot be reached."""
    try:
        for attempt in Retrying(
            retry=retry_if_exception(_may_pass),
            stop=stop_after_attempt(TRIES),
            wait=wait_exponential_jitter(multiplier=FIRST_PAUSE_SECONDS, max=10),
            reraise=True,
        ):
            with attempt:
                return ask()
    except Exception as e:
        if (failure := failure_of(e, hub, field)) is None:
            raise
        raise failure from e
    raise AssertionError("tenacity re-raises the last fault")


def _may_pass(error: BaseException) -> bool:
    import httpx
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RevisionResolutionError

    if constants.HF_HUB_OFFLINE:
        return False
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code >= 500 or error.response.status_code == 429
    return isinstance(error, httpx.TransportError | RevisionResolutionError | LocalEntryNotFoundError)


def failure_of(error: BaseException, hub: HubModel | HubQuestions, field: str) -> TrainerFailure | None:
    """What a fault of the hub's client means for the run; None where it is another kind of fault."""
    sentence = _sentence(error, hub, field)
    # another attempt may well reach the hub
    reason = FailureReason.TIMED_OUT if _may_pass(error) else FailureReason.INVALID_INPUT
    return None if sentence is None else TrainerFailure(reason, sentence)


def _sentence(error: BaseException, hub: HubModel | HubQuestions, field: str) -> str | None:
    import httpx
    from huggingface_hub import constants, errors

    named = f"{field}.name is {hub.name}"
    token = os.environ.get(HUB_TOKEN)
    if constants.HF_HUB_OFFLINE and isinstance(
        error, errors.RevisionResolutionError | errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled
    ):
        return (
            f"{named}, which is not in the cache {constants.HF_HUB_CACHE} while HF_HUB_OFFLINE is set: unset it, or "
            "fill the cache"
        )
    match error:
        case errors.GatedRepoError():
            reader = f"the token in {HUB_TOKEN} may not read" if token else f"needs a token ({HUB_TOKEN})"
            return f"{named}, a gated repository that {reader}: accept its terms and give {field}.tokenSecretRef"
        case errors.RepositoryNotFoundError():
            reader = f"the token in {HUB_TOKEN}" if token else f"readers without a token ({HUB_TOKEN})"
            return (
                f"{named}, which {constants.ENDPOINT} does not have or hides from {reader}: check the name and "
                f"{field}.tokenSecretRef"
            )
        case errors.RevisionNotFoundError():
            return (
                f"{field}.revision is {hub.revision}, which {hub.name} does not have: give one of its branches, tags "
                "or commits"
            )
        case errors.HfHubHTTPError():
            status = error.response.status_code
            return f"{named}, for which {constants.ENDPOINT} answered with status {status}: check {HUB_TOKEN}, or wait"
        case httpx.TransportError() | errors.RevisionResolutionError() | errors.LocalEntryNotFoundError():
            return (
                f"{named}, but {constants.ENDPOINT} cannot be reached ({_cause(error)}): check the pods' network, or "
                "HF_ENDPOINT"
            )
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return f"{named}, for which {constants.HF_HUB_CACHE} has no room: give a larger model.cacheClaimName"
        case OSError(errno=errno.EACCES | errno.EROFS):
            return f"{named}, but {constants.HF_HUB_CACHE} cannot be written: check the permissions of its claim"
        case _:
            return None


def _cause(error: BaseException) -> str:
    """The innermost cause in a few words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split())[:200] or type(error).__name__


def _invalid(message: str) -> TrainerFailure:
    return TrainerFailure(FailureReason.INVALID_INPUT, message)
