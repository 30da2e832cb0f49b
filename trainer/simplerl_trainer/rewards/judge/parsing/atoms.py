"""Atoms: what no operator parts, by the kind of its first token."""

from simplerl_trainer.rewards.judge.parsing import brackets, commands, numbers, variables
from simplerl_trainer.rewards.judge.parsing.cursor import Cursor
from simplerl_trainer.rewards.judge.terms import Term, Unreadable
from simplerl_trainer.rewards.judge.tokens import Token


def read(cursor: Cursor) -> Term:
    token = cursor.peek()
    if token is None:
        raise Unreadable("it ends too early")
    cursor.at += 1
    if token.kind == "number":
        return numbers.repeating(cursor, token) or numbers.read(token.text)
    if token.kind == "letter" or (token.kind == "word" and len(token.text) == 1):
        return variables.read(cursor, token.text)
    if token.kind == "sign":
        return brackets.read(cursor, token.text)
    if token.kind == "command":
        return commands.read(cursor, token.text)
    raise Unreadable(f"the word {token.text!r} stands where no word can")


def argument(cursor: Cursor) -> Term:
    """A command's argument: a group or one token, of a number its first digit."""
    if cursor.sees("{"):
        return brackets.group(cursor)
    token = cursor.peek()
    if token is not None and token.kind == "number":
        if token.text.isdigit() and len(token.text) > 1:
            cursor.tokens[cursor.at] = Token("number", token.text[1:], False)
            return numbers.read(token.text[0])
        cursor.at += 1
        return numbers.read(token.text)
    return read(cursor)
