"""The place in an answer's tokens up to which they are read."""

from collections.abc import Callable

from simplerl_trainer.rewards.judge.terms import Term, Unreadable
from simplerl_trainer.rewards.judge.tokens import Token

DEEPEST = 60
"""Brackets in brackets that are read."""


class Cursor:
    """Tokens, how many of them are read, and the brackets that are open there."""

    def __init__(self, found: list[Token]) -> None:
        self.tokens = found
        self.at = 0
        self.depth = 0
        """Brackets that are open."""
        self.binders = 0
        """Integrals, sums and limits that are open."""
        self.described = False
        """Whether a colon or a bar parts a set's members from their description."""
        self.bars = 0
        """Bars of absolute values that are open: the next one ends the last."""

    def peek(self, ahead: int = 0) -> Token | None:
        """The token that is next, or one after it; None where there is none."""
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else None

    def sees(self, *texts: str, ahead: int = 0) -> bool:
        """Whether the token there is one of these signs or commands."""
        token = self.peek(ahead)
        return token is not None and token.kind in ("sign", "command") and token.text in texts

    def take(self, *texts: str) -> bool:
        """Reads on where one of these signs or commands is next."""
        if self.sees(*texts):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Raises Unreadable where another token is next."""
        if not self.take(text):
            token = self.peek()
            raise Unreadable(f"{text} is missing " + (f"before {token.text}" if token else "at its end"))

    def ended(self, *closing: str) -> bool:
        """Whether one of the closing signs is next, or nothing."""
        return self.sees(*closing) or self.peek() is None

    def finish(self) -> None:
        """Raises Unreadable where something but full stops is left."""
        while self.sees(".", ",", ";", ":"):
            self.at += 1
        if (token := self.peek()) is not None:
            raise Unreadable(f"{token.text!r} stands where nothing can")

    def deeper(self, read: Callable[["Cursor"], Term]) -> Term:
        """What is read one bracket deeper. Raises Unreadable where that is too deep."""
        self.open()
        found = read(self)
        self.close()
        return found

    def open(self) -> None:
        """Raises Unreadable where too many brackets are open."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unreadable(f"brackets lie deeper than {DEEPEST} in each other")

    def close(self) -> None:
        self.depth -= 1
