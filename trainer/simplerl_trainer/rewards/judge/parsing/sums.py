"""Sums: products with `+`, `-` or `\\pm` between them."""

from fractions import Fraction

from simplerl_trainer.rewards.judge.parsing import products
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Call, Num, Term, negated


def read(cursor: Cursor) -> Term:
    return cursor.deeper(_sum)


def _sum(cursor: Cursor) -> Term:
    items: list[Term] = []
    if cursor.take("pm"):
        items = [Call("pm", (Num(Fraction(0)), products.read(cursor)))]
    elif cursor.take("mp"):
        items = [Call("mp", (Num(Fraction(0)), products.read(cursor)))]
    else:
        items = [_signed_product(cursor)]
    while True:
        if cursor.take("+"):
            if cursor.take("-"):
                items.append(negated(products.read(cursor)))
            else:
                items.append(products.read(cursor))
        elif cursor.sees("-") and not ((t := cursor.peek(1)) is not None and t.kind == "word"):
            cursor.at += 1
            items.append(negated(_signed_product(cursor)))
        elif cursor.sees("pm", "mp"):
            name = "pm" if cursor.take("pm") else "mp"
            cursor.take("mp")
            items = [Call(name, (_sum_of(items), products.read(cursor)))]
        else:
            return _sum_of(items)


def _signed_product(cursor: Cursor) -> Term:
    sign = 1
    while cursor.sees("-", "+"):
        sign = -sign if cursor.take("-") else sign
        cursor.take("+")
    found = products.read(cursor)
    return found if sign == 1 else negated(found)


def _sum_of(items: list[Term]) -> Term:
    return items[0] if len(items) == 1 else Call("+", tuple(items))
