"""The course of the learning rate: a pure function of the optimizer step."""

from math import cos, pi

from simplerl_api.spec.training import Optimizer, ScheduleKind


def learning_rate(optimizer: Optimizer, step: int, total: int) -> float:
    """The rate of optimizer step `step`, from 0, of `total`.

    With w = warmupFraction x total, m = minFraction and p from 0 after the warm-up to 1 at the last step:

        warm-up         learningRate x (step + 1) / w          while step + 1 < w
        Constant        learningRate
        CosineWithMin   learningRate x (m + (1 - m) (1 + cos(pi p)) / 2)
    """
    schedule = optimizer.schedule
    warmup = schedule.warmup_fraction * total
    if step + 1 < warmup:
        return optimizer.learning_rate * (step + 1) / warmup
    if schedule.kind is ScheduleKind.CONSTANT:
        return optimizer.learning_rate
    share = min(max((step - warmup) / max(total - 1 - warmup, 1.0), 0.0), 1.0)
    floor = schedule.min_fraction
    return optimizer.learning_rate * (floor + (1 - floor) * 0.5 * (1 + cos(pi * share)))
