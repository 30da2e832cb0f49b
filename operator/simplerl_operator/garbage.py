"""How often Python looks for garbage. What the operator reads is JSON without cycles, which goes by itself; looking for
cycles in it took a sixth of its processor time."""

import gc

_OBJECTS = 10_000
"""Objects made more than freed until the youngest are looked through; Python's own bound of 700 lies in the middle of a
document."""
_ROUNDS = 20
"""Times after which the older ones are looked through too."""


def collect_seldom() -> None:
    """Sets the pace, once what lives as long as the operator is there: its modules are not looked through again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS, _ROUNDS, _ROUNDS)
