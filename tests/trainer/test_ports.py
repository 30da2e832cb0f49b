"""Ports are held from the moment they are chosen. Fault 39 (OpenRLHF#674, TRL#3979, verl#5889, NeMo-RL#2380)."""

import socket
import subprocess
import sys
from datetime import timedelta

import pytest
from torch.distributed import TCPStore

from simplerl_trainer import ports


def test_nobody_else_gets_a_held_port() -> None:
    port = ports.hold()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("", port))
    assert ports.hold() != port


def test_torchs_store_listens_on_the_held_socket() -> None:
    port = ports.hold()
    store = TCPStore(
        "127.0.0.1", port, 2, True, timedelta(seconds=10), wait_for_workers=False, master_listen_fd=ports.take(port)
    )
    program = (
        "from datetime import timedelta; from torch.distributed import TCPStore\n"
        f"TCPStore('127.0.0.1', {port}, 2, False, timedelta(seconds=10)).set('key', 'value')"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert store.get("key") == b"value"


def test_a_port_is_taken_once_and_one_that_is_not_held_is_none() -> None:
    port = ports.hold()
    descriptor = ports.take(port)
    assert descriptor is not None
    socket.socket(fileno=descriptor).close()
    assert ports.take(port) is None
