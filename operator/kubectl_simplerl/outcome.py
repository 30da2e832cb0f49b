"""Exit codes, the same for every command, and the faults that end one."""

from enum import IntEnum


class Exit(IntEnum):
    """What a script learns."""

    OK = 0
    NO = 1
    """The answer is no: the job failed or is refused, or it does not fit."""
    USAGE = 2
    """The command line is wrong; typer's own code."""
    UNKNOWN = 3
    """There is no answer: not found, not allowed, not reached, or not in time."""


class Fault(Exception):
    """Ends the command with a sentence on standard error."""

    def __init__(self, sentence: str, code: Exit = Exit.UNKNOWN) -> None:
        super().__init__(sentence)
        self.code = code
