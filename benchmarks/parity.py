"""A reward that says nothing but has variance: random weights never answer a question."""


def score(*, response: str) -> float:
    """Whether the response has an odd number of characters."""
    return float(len(response) % 2)
