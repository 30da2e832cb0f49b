"""Numbers as exact fractions, repeating decimals too."""

from fractions import Fraction

from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Huge, Num, Term
from simplerl_trainer.rewards.judge.tokens import Token


def read(text: str) -> Num:
    """Raises Huge."""
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > 4000:  # Python reads no more than 4300
        raise Huge("a number of more than 4000 digits is compared by its text only")
    if len(exponent) > 5:
        raise Huge("a number with such an exponent is compared by its text only")
    whole, _, decimals = mantissa.partition(".")
    value = Fraction(int((whole + decimals) or "0"), 10 ** len(decimals))
    if exponent:
        power = int(exponent)
        if abs(power) > 4000:
            raise Huge("a number with such an exponent is compared by its text only")
        value *= Fraction(10) ** power
    return Num(value, len(mantissa))


def repeating(cursor: Cursor, token: Token) -> Term | None:
    """`0.\\overline{3}` is 1/3."""
    if "." not in token.text or not cursor.sees("overline", "dot", "bar") or not cursor.sees("{", ahead=1):
        return None
    digits, end = cursor.peek(2), cursor.sees("}", ahead=3)
    if digits is None or digits.kind != "number" or not digits.text.isdigit() or not end or len(digits.text) > 30:
        return None
    cursor.at += 4
    places = len(token.text.partition(".")[2])
    base = read(token.text)
    period = Fraction(int(digits.text), 10 ** len(digits.text) - 1) / 10**places
    return Num(base.value + period, base.digits)
