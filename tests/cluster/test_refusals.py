"""What the cluster refuses to start on, and that each refusal names the thing, the value and what to do."""

from pathlib import Path
from typing import Any

import pytest
from hack.cluster import addresses, checks, commands, packages, places
from hack.cluster.errors import ClusterError

NO_ROUTES: list[dict[str, Any]] = []


def refusal(check: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(ClusterError) as caught:
        check(*arguments, **named)
    return str(caught.value)


def test_another_system_than_linux() -> None:
    message = refusal(checks.is_linux, "darwin")
    assert "needs Linux" in message
    assert "darwin" in message
    assert "CLUSTER=current" in message


def test_another_user_than_root() -> None:
    message = refusal(checks.is_root, 1000)
    assert "needs root" in message
    assert "CLUSTER=current" in message


@pytest.mark.parametrize("version", ["go1.21.3", "go1.9", "1.25.9"])
def test_an_old_go(version: str) -> None:
    assert f"{version} is too old" in refusal(checks.go_is_new_enough, version)


@pytest.mark.parametrize("version", ["go1.26.8", "go1.27", "go2.0"])
def test_a_go_that_will_do(version: str) -> None:
    checks.go_is_new_enough(version)


def test_no_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal(checks.go_is_new_enough).startswith("no Go on PATH: install Go 1.")


def test_too_little_room(tmp_path: Path) -> None:
    message = refusal(checks.has_room, tmp_path / "not/made/yet", 10**18, "run pods")
    assert f"free at {tmp_path}" in message
    assert "to run pods" in message


def test_a_network_that_another_cluster_uses() -> None:
    routes = [{"dst": "default", "dev": "eth0"}, {"dst": "10.244.1.0/24", "dev": "flannel.1"}]
    message = refusal(checks.networks_are_free, routes, [])
    assert "the route 10.244.1.0/24 through flannel.1 is taken" in message
    assert "10.244.0.0/16" in message


def test_an_address_inside_our_networks() -> None:
    local = [{"ifname": "eth0", "addr_info": [{"local": "10.96.3.4", "prefixlen": 24}]}]
    assert "the address 10.96.3.4 of eth0 lies in 10.96.0.0/16" in refusal(checks.networks_are_free, NO_ROUTES, local)


def test_a_link_of_our_name() -> None:
    local = [{"ifname": addresses.LINK, "addr_info": []}]
    assert f"ip link del {addresses.LINK}" in refusal(checks.networks_are_free, NO_ROUTES, local)


def test_a_wider_route_does_no_harm() -> None:
    checks.networks_are_free([{"dst": "10.0.0.0/8", "dev": "vpn"}, {"dst": "192.168.1.0/24", "dev": "eth0"}], [])


def test_missing_packages_where_there_is_no_apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    message = refusal(packages.install, ["containerd", "runc"])
    assert "containerd, runc" in message
    assert "package manager" in message


def test_a_lock_held_by_another_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(places, "CACHE", tmp_path)
    with places.locked("cluster", "starting the cluster"):
        message = refusal(places.locked("cluster", "starting the cluster", seconds=0.1).__enter__)
    assert "another process is starting the cluster" in message
    assert str(tmp_path / "cluster.lock") in message


def test_a_command_that_fails_says_why() -> None:
    command = ["sh", "-c", "echo the disk is on fire >&2; exit 3"]
    assert refusal(commands.run, command, "saving") == "saving failed with exit code 3: the disk is on fire"


def test_a_command_that_is_not_there() -> None:
    assert "needs the program no-such-program" in refusal(commands.run, ["no-such-program"], "saving")


def test_a_command_that_hangs() -> None:
    assert "timed out after 0 s: saving" in refusal(commands.run, ["sleep", "9"], "saving", seconds=0.1)


def test_a_wait_names_what_it_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "etcd.log"
    log.write_text("first\npermission denied\n")
    message = refusal(commands.wait_for, "etcd", lambda: False, 0.1, log)
    assert "waiting for etcd" in message
    assert "permission denied" in message
