"""Why a spec has no plan."""


class PlanError(ValueError):
    """A spec that cannot be laid out: names the field, its value and what would fit."""
