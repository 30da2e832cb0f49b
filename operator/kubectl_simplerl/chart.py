"""Curves as text."""

from collections.abc import Sequence

Point = tuple[int, float]
"""Step and value."""
_MARKS = "•○×+"


def chart(curves: dict[str, Sequence[Point]], width: int = 60, height: int = 8) -> list[str]:
    """Lines of a chart of all curves over one axis of steps, with a line of marks and names; empty where no curve has
    two points. Values that share a column are averaged."""
    drawn = {name: points for name, points in curves.items() if len(points) > 1}
    if not drawn:
        return []
    steps = [step for points in drawn.values() for step, _ in points]
    values = [value for points in drawn.values() for _, value in points]
    first, last, low, high = min(steps), max(steps), min(values), max(values)
    rows = [[" "] * width for _ in range(height)]
    for mark, points in zip(_MARKS, drawn.values(), strict=False):
        columns: dict[int, list[float]] = {}
        for step, value in points:
            columns.setdefault(_place(step, first, last, width), []).append(value)
        for column, found in columns.items():
            rows[height - 1 - _place(sum(found) / len(found), low, high, height)][column] = mark
    labels = [f"{high:.3g}", *[""] * (height - 2), f"{low:.3g}"]
    margin = max(map(len, labels))
    lines = [f"{label:>{margin}} ┤{''.join(row).rstrip()}" for label, row in zip(labels, rows, strict=True)]
    ends = f"{first}{last:>{width - len(str(first))}}"
    names = "   ".join(f"{mark} {name}" for mark, name in zip(_MARKS, drawn, strict=False))
    return [*lines, f"{'':>{margin}} └{'─' * width}", f"{'':>{margin}}  {ends}", f"{'':>{margin}}  {names}"]


def _place(value: float, low: float, high: float, places: int) -> int:
    return round((value - low) / (high - low) * (places - 1)) if high > low else 0


def bar(share: float, width: int) -> str:
    """A bar of a share from 0 to 1."""
    full = round(min(max(share, 0.0), 1.0) * width)
    return "█" * full + "░" * (width - full)
