"""How long the job waits for what does not come."""

from pydantic import Field

from simplerl_api.struct import Struct


class Recovery(Struct):
    """Bounds on waiting."""

    startup_deadline_seconds: int = Field(default=1800, ge=10, le=604800)
    """Seconds from the creation of the pods to the first step."""
    stall_timeout_seconds: int = Field(default=1800, ge=10, le=604800)
    """Seconds without progress of any kind while training."""
