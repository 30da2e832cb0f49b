"""A sample's random numbers: fixed by its place in the job, whichever engine draws it."""

import hashlib
from enum import StrEnum


class Stream(StrEnum):
    """What a sample is drawn for; the streams share no random numbers."""

    ROLLOUT = "rollout"
    EVALUATION = "evaluation"


def seed(job_seed: int, step: int, prompt_position: int, sample_position: int, stream: Stream = Stream.ROLLOUT) -> int:
    """Seed of one sample, 0 to 2**63 - 1 (vLLM keeps seeds as int64)."""
    place = f"{stream}/{job_seed}/{step}/{prompt_position}/{sample_position}"
    return int.from_bytes(hashlib.blake2b(place.encode(), digest_size=8).digest()) >> 1
