"""Ports that are held from the moment they are chosen.

A port that is asked for, let go and bound later may be taken by another process in between; many trainers have met that
(https://github.com/OpenRLHF/OpenRLHF/issues/674). The process that will listen holds the listening socket instead, and
hands it to torch's store.
"""

import socket

_BACKLOG = 1024
_held: dict[int, socket.socket] = {}


def hold() -> int:
    """Listens on a port of the system's choice, on all addresses; returns it."""
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    listener = socket.create_server(("", 0), family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
    port = int(listener.getsockname()[1])
    _held[port] = listener
    return port


def take(port: int) -> int | None:
    """The file descriptor of a held port's socket, which is the caller's from now on; None where it is not held."""
    listener = _held.pop(port, None)
    return None if listener is None else listener.detach()
