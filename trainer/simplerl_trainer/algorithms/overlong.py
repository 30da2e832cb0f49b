"""The soft overlong penalty of DAPO (https://arxiv.org/abs/2503.14476, equation 13)."""


def overlong_penalty(length: int, longest: int, buffer: int, penalty: float) -> float:
    """What is added to the score of a response of `length` tokens; `longest` is the most it may have:

    0                                                length <= longest - buffer
    penalty x ((longest - buffer) - length) / buffer up to longest
    -penalty                                         longer
    """
    over = length - (longest - buffer)
    return -penalty * min(max(over, 0), buffer) / buffer
