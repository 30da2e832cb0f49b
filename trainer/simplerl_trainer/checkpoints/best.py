"""The model with the best accuracy so far: an exported folder that says in best.json what it reached."""

import json
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path

FOLDER = "best-model"
FILE = "best.json"


@dataclass(frozen=True, slots=True)
class Best:
    """An evaluation's result."""

    step: int
    """Step after which it was measured; 0 is before training."""
    dataset: str
    accuracy: float
    """Share of right answers, 0 to 1."""

    def to_json(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def read(folder: Path) -> Best | None:
    """What the exported folder reached; None where there is none. Raises OSError, ValueError."""
    try:
        return Best(**json.loads((folder / FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except TypeError as e:
        raise ValueError(f"{folder / FILE} cannot be read: {e}") from e


def beats(new: Best, old: Best | None) -> bool:
    """Whether a result is better than the best so far, of the same data set; an equal one is not."""
    return isfinite(new.accuracy) and (old is None or old.dataset != new.dataset or new.accuracy > old.accuracy)
