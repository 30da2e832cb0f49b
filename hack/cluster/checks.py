"""What must hold before a cluster is started; each refusal says what to do."""

import ipaddress
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import addresses, commands, places, programs
from .errors import ClusterError

GIGABYTE = 10**9
ROOM_TO_BUILD = 16 * GIGABYTE  # Go's module and build caches take about 10 GB on a new machine
ROOM_TO_RUN = 3 * GIGABYTE  # the kubelet evicts pods below 1 GiB


def is_linux(platform: str = sys.platform) -> None:
    if platform != "linux":
        raise ClusterError(
            f"the embedded cluster needs Linux and this is {platform}: use a Linux machine, or your own cluster by "
            "`make demo CLUSTER=current`"
        )


def is_root(user: int | None = None) -> None:
    if (os.geteuid() if user is None else user) != 0:
        raise ClusterError(
            "the embedded cluster needs root (it makes namespaces and mounts): run the same command as root, or use "
            "your own cluster by `make demo CLUSTER=current`"
        )


def go_is_new_enough(version: str | None = None) -> None:
    """Only asked when something must be built."""
    wanted = max(
        tuple(int(part) for part in match[1].split("."))
        for program in programs.PROGRAMS
        if (match := re.search(r"^go (\d+\.\d+)", (program.folder / "go.mod").read_text(), re.MULTILINE))
    )
    wanted_text = ".".join(map(str, wanted))
    if version is None:
        go = shutil.which("go")
        if not go:
            raise ClusterError(f"no Go on PATH: install Go {wanted_text} or newer (https://go.dev/dl)")
        version = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=60).stdout.strip()
    match = re.match(r"(?:go)?(\d+)\.(\d+)", version)
    if not match:
        raise ClusterError(
            f"`go env GOVERSION` says {version!r}, which is no version: install Go {wanted_text} or newer"
        )
    if (int(match[1]), int(match[2])) < wanted:
        raise ClusterError(
            f"{version} is too old for the cluster's programs: install Go {wanted_text} or newer (https://go.dev/dl)"
        )


def has_room(folder: Path, needed: int, why: str) -> None:
    existing = next(path for path in [folder, *folder.parents] if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise ClusterError(
            f"{free / GIGABYTE:.1f} GB are free at {existing} and {needed / GIGABYTE:.0f} GB are needed to {why}: "
            "free some space"
        )


def networks_are_free(routes: list[dict[str, Any]] | None = None, local: list[dict[str, Any]] | None = None) -> None:
    """Refuses routes into our networks and addresses inside them; a wider route (a VPN's 10.0.0.0/8) does no harm."""
    ours = (addresses.LINK_NET, addresses.SERVICE_NET, addresses.POD_NET)
    local = ip("addr") if local is None else local
    routes = ip("route") if routes is None else routes
    for interface in local:
        if interface["ifname"] == addresses.LINK:
            raise ClusterError(
                f"the network link {addresses.LINK} exists and belongs to no running cluster of ours: remove it by "
                f"`ip link del {addresses.LINK}`"
            )
        for entry in interface.get("addr_info", []):
            for network in ours:
                if ipaddress.ip_address(entry["local"]) in network:
                    raise ClusterError(
                        f"the address {entry['local']} of {interface['ifname']} lies in {network}, which the embedded "
                        "cluster uses: stop what uses it (another cluster?)"
                    )
    for route in routes:
        if route["dst"] == "default":
            continue
        destination = ipaddress.IPv4Network(route["dst"], strict=False)
        for network in ours:
            if destination.subnet_of(network):
                raise ClusterError(
                    f"the route {destination} through {route.get('dev', '?')} is taken, and the embedded cluster needs "
                    f"{network}: stop what uses it (another cluster?)"
                )


def ip(what: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(commands.run(["ip", "-j", "-4", what], f"reading the host's {what} table"))
    return found


def store_can_hold_overlays(folder: Path) -> None:
    """An overlay file system cannot be the upper layer of another."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, timeout=10).stdout.strip()
    if kind == "overlayfs":
        raise ClusterError(
            f"{folder} is on an overlay file system, where containers cannot run: name a folder on a disk by "
            "XDG_CACHE_HOME"
        )


def before_start() -> None:
    if programs.missing():
        go_is_new_enough()
        has_room(places.CACHE, ROOM_TO_BUILD, "build the cluster's programs")
    has_room(places.CACHE, ROOM_TO_RUN, "hold container images")
    has_room(places.STATE, ROOM_TO_RUN, "run pods")
    store_can_hold_overlays(places.IMAGE_STORE)
