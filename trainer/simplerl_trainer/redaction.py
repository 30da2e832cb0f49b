"""Texts without the values of secrets."""

import json
from collections.abc import Iterable

_HIDDEN = "***"
_SHORTEST = 4
"""Lines of secrets with fewer characters hide nothing: they stand in texts by chance."""
_LONGEST_LINE = 64 * 1024
"""Bytes without a line's end that are held back at most."""


class Redaction:
    """Hides each line of each secret (a key file may be printed a line at a time), plain and as JSON writes it."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= _SHORTEST}
        # the longest first, so that no rest of one stays
        self._hidden = sorted(lines | {json.dumps(line)[1:-1] for line in lines}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without the values of secrets."""
        for secret in self._hidden:
            text = text.replace(secret, _HIDDEN)
        return text

    def lines(self, text: bytes) -> tuple[bytes, bytes]:
        """The whole lines at the text's beginning, without secrets, and the rest as it is. A line that does not end is
        cut, where no secret can be across the cut."""
        end = text.rfind(b"\n") + 1
        if end == 0 and len(text) > _LONGEST_LINE:
            text = self._plain(text)
            end = len(text) - max((len(secret.encode()) for secret in self._hidden), default=0)
            return text[:end], text[end:]
        return self._plain(text[:end]), text[end:]

    def _plain(self, text: bytes) -> bytes:
        # bytes that are no text stay as they are
        return self.text(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
