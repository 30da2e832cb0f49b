"""Which GPUs train and which roll out."""

from pydantic import Field

from simplerl_api.struct import Struct, Union


class Colocated(Struct):
    """Every GPU holds a training rank and rolls out, in turn."""


class Disaggregated(Struct):
    """Some GPUs train, the others roll out."""

    training_gpus: int = Field(ge=1, le=4096)
    """GPUs that hold a training rank; the rest roll out."""


class Placement(Union):
    """Exactly one of colocated, disaggregated; absent means colocated."""

    colocated: Colocated | None = None
    """Every GPU trains and rolls out."""
    disaggregated: Disaggregated | None = None
    """Some GPUs train, the others roll out."""
