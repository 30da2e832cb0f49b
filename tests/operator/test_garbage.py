"""How often Python looks for garbage in the operator."""

import gc

from simplerl_operator import garbage


def test_what_lives_as_long_as_the_operator_is_not_looked_through_again() -> None:
    before = gc.get_threshold()
    try:
        garbage.collect_seldom()
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold()[0] > before[0]
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
