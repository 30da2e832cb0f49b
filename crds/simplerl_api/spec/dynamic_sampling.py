"""Replacing what teaches nothing."""

from pydantic import Field

from simplerl_api.struct import Struct


class DynamicSampling(Struct):
    """Groups whose samples all have the same score are replaced by groups of fresh prompts (DAPO,
    https://arxiv.org/abs/2503.14476, section 3.2)."""

    max_rounds: int = Field(ge=1, le=64)
    """Rounds of replacement at most. A step then trains on the groups that it has, in fewer optimizer steps; without
    any it is counted and trains nothing."""
