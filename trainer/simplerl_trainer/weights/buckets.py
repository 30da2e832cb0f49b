"""Buckets: all parameters in their order, cut into pieces of bounded size.

Both sides compute the same buckets from the same list of parameters, so only tensors travel.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LIMIT = 512 * 2**20
"""Bytes of the largest bucket; a larger parameter has a bucket of its own."""

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter by its Hugging Face name."""

    name: str
    dtype: str
    """float32, bfloat16 or float16."""
    shape: tuple[int, ...]

    @property
    def numel(self) -> int:
        n = 1
        for size in self.shape:
            n *= size
        return n

    @property
    def nbytes(self) -> int:
        return self.numel * _BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Bucket:
    """Parameters of one type that travel together, as one flat tensor."""

    dtype: str
    parameters: tuple[Parameter, ...]

    @property
    def numel(self) -> int:
        return sum(p.numel for p in self.parameters)

    @property
    def nbytes(self) -> int:
        return sum(p.nbytes for p in self.parameters)


def make_buckets(parameters: Iterable[Parameter], limit: int = LIMIT) -> Sequence[Bucket]:
    """The buckets of all parameters, in order; a new one starts where the type changes or `limit` bytes are passed."""
    buckets: list[Bucket] = []
    open_: list[Parameter] = []
    for p in parameters:
        if open_ and (p.dtype != open_[0].dtype or sum(q.nbytes for q in open_) + p.nbytes > limit):
            buckets.append(Bucket(open_[0].dtype, tuple(open_)))
            open_ = []
        open_.append(p)
    if open_:
        buckets.append(Bucket(open_[0].dtype, tuple(open_)))
    return buckets
