"""A reward of one's own: an answer without a word beside it."""


def score(*, response: str, truncated: bool) -> float:
    """1 for a response that is a number and nothing else, 0 for others, -1 for one that was cut."""
    if truncated:
        return -1.0
    return float(response.strip().isdecimal())
