"""Whether the watches hear what lists show. A watch can end or fall silent without anybody noticing (kopf#1276), and an
operator that hears nothing looks healthy in every other way."""

from collections.abc import Mapping

PATIENCE = 60.0
"""Seconds by which an event may come later than what a list shows."""

Uid = str
Version = str


class Watches:
    """What was heard of, and what was listed, by kind of object."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._heard: dict[str, dict[Uid, Version]] = {}
        self._missed: dict[str, dict[Uid, float]] = {}
        self._absent: dict[str, set[Uid]] = {}
        self._newer: dict[str, set[Uid]] = {}

    def hear(self, kind: str, uid: Uid, version: Version, *, gone: bool) -> None:
        """Takes note of an event."""
        self._missed.get(kind, {}).pop(uid, None)
        self._newer.setdefault(kind, set()).add(uid)
        if gone:
            self._heard.get(kind, {}).pop(uid, None)
        else:
            self._heard.setdefault(kind, {})[uid] = version

    def ask(self, kind: str) -> None:
        """A list is asked for: what is heard from here on may be newer than it."""
        self._newer[kind] = set()

    def compare(self, kind: str, listed: Mapping[Uid, Version], now: float) -> None:
        """Holds a list against what was heard; `now` by any clock that never goes back."""
        heard = self._heard.setdefault(kind, {})
        missed, newer = self._missed.get(kind, {}), self._newer.get(kind, set())
        self._missed[kind] = {
            uid: missed.get(uid, now)
            for uid, version in listed.items()
            if heard.get(uid) != version and uid not in newer
        }
        # deletions that fell between two watches: gone once two lists in a row lack them
        absent = heard.keys() - listed.keys()
        for uid in absent & self._absent.get(kind, set()):
            del heard[uid]
        self._absent[kind] = absent & heard.keys()

    def deaf(self, now: float) -> str | None:
        """Which watch has missed something for too long, in a sentence; None where none has."""
        for kind, missed in self._missed.items():
            oldest = min(missed.values(), default=now)
            if now - oldest > self._patience:
                return f"the watch of {kind} is deaf: a list showed {now - oldest:.0f} s ago what it has not told yet"
        return None
