"""Up and down, again and again: what runs stays, and afterwards nothing is left. Takes the cluster down."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hack.cluster import addresses, node, places

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.long, pytest.mark.skipif(os.geteuid() != 0, reason="the embedded cluster needs root")]


def make(target: str) -> str:
    done = subprocess.run(["make", "-s", target], cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return done.stdout


def output(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.splitlines()


def host() -> dict[str, list[str]]:
    """All that a cluster could leave; the counters of iptables and the numbers of processes are not part of it."""
    return {
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "links": sorted(line.split()[0] for line in output("ip", "-br", "link")),
        "addresses": output("ip", "-br", "addr"),
        "routes": output("ip", "route"),
        "iptables": [line for line in output("iptables-save") if not line.startswith((":", "#"))],
        "network namespaces": output("ip", "netns", "list"),
        "control groups": sorted(str(path) for path in Path("/sys/fs/cgroup").rglob(f"*{addresses.CGROUP}*")),
        "sysctls": [f"{name}={node.sysctl(name)}" for name in node.CHANGED_SYSCTLS if node.sysctl_path(name).exists()],
        "forwarding": [node.sysctl("net.ipv4.ip_forward")],
        "processes": sorted(line for line in output("ps", "-eo", "args") if str(places.STATE) in line),
        "folders": sorted(str(path) for top in ("/var/lib", "/etc", "/srv", "/run") for path in Path(top).iterdir()),
    }


@pytest.fixture
def stopped() -> Iterator[None]:
    make("cluster-down")
    yield
    make("cluster-up")


def test_down_leaves_nothing(stopped: None) -> None:
    before = host()
    make("cluster-up")
    kubeconfig = make("kubeconfig").strip()
    assert kubeconfig == str(places.KUBECONFIG)
    during = host()
    assert addresses.LINK in " ".join(during["links"])
    make("cluster-down")
    make("cluster-down")
    assert host() == before


def test_up_again_keeps_what_runs(stopped: None) -> None:
    make("cluster-up")
    first = node.init_pid(), node.pid_inside("kube-apiserver"), node.pid_inside("kubelet")
    make("cluster-up")
    assert (node.init_pid(), node.pid_inside("kube-apiserver"), node.pid_inside("kubelet")) == first


def test_up_starts_what_has_died(stopped: None) -> None:
    make("cluster-up")
    pid = node.init_pid()
    for name in ("kubelet", "kube-apiserver", "containerd"):
        subprocess.run(node.inside(["kill", "-9", node.pid_inside(name)]), check=True, timeout=10)
    make("cluster-up")
    assert node.runs("kubelet")
    assert node.init_pid() == pid


def test_a_node_that_was_killed_is_cleared_away(stopped: None) -> None:
    make("cluster-up")
    pid = node.init_pid()
    assert pid
    os.kill(pid, 9)
    make("cluster-up")
    assert node.init_pid() not in (None, pid)
