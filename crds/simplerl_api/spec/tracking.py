"""Where a run's figures go besides its own folder."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from simplerl_api.spec.reference import SecretKeyRef
from simplerl_api.struct import Struct

Slug = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=128)]
"""A name in an address of Weights & Biases."""


class WandbMode(StrEnum):
    """Whether figures leave the run's folder at once."""

    ONLINE = "Online"
    OFFLINE = "Offline"


class Wandb(Struct):
    """A run in Weights & Biases (https://docs.wandb.ai); a job that is resumed goes on in the same run."""

    project: Slug = "simplerl"
    """Its project."""
    entity: Slug | None = None
    """The user or team that the project belongs to. Absent: the key's own."""
    api_key_secret_ref: SecretKeyRef | None = None
    """The key, from a Secret of the job's namespace. Absent: the driver's own variable WANDB_API_KEY or, outside of
    Kubernetes, what `wandb login` left."""
    mode: WandbMode = WandbMode.ONLINE
    """Online: figures are sent as they come. Offline: they stay in `wandb/` of the run's folder until somebody calls
    `wandb sync`."""


class Tracking(Struct):
    """Trackers of a run. One that fails or does not answer is named in the log, and never holds up or ends the run."""

    tensorboard: bool = True
    """Whether TensorBoard's event files are written to `tensorboard/` of the run's folder."""
    wandb: Wandb | None = None
    """Weights & Biases. Absent: not used."""

    @property
    def secret(self) -> SecretKeyRef | None:
        """Where the pods get WANDB_API_KEY from."""
        return self.wandb.api_key_secret_ref if self.wandb else None
