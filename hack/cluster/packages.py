"""Programs that come from the distribution: found on PATH, or installed by apt-get where there is one."""

import shutil
from pathlib import Path

from . import commands
from .errors import ClusterError

# a program of each package -> the Debian package
CLUSTER = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "sysctl": "procps",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "openssl": "openssl",
    "ps": "procps",
}
CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
CNI_PLUGINS = ("bridge", "host-local", "portmap", "loopback")
SYSTEM_FOLDERS = "/usr/sbin:/usr/bin:/sbin:/bin"


def cni_folder() -> Path | None:
    return next((folder for folder in CNI_FOLDERS if all((folder / name).exists() for name in CNI_PLUGINS)), None)


def absent(programs: dict[str, str]) -> list[str]:
    return sorted({package for program, package in programs.items() if not found(program)})


def found(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path=SYSTEM_FOLDERS)


def require_cluster() -> None:
    missing = absent(CLUSTER)
    if cni_folder() is None:
        missing.append("containernetworking-plugins")
    install(missing)


def install(packages: list[str]) -> None:
    if not packages:
        return
    if not shutil.which("apt-get"):
        raise ClusterError(
            f"missing on this machine: {', '.join(packages)} (Debian's package names); "
            "install them with your package manager and run this again"
        )
    commands.say(f"apt-get install {' '.join(packages)}")
    apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300"]
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    doing = f"installing the Debian packages {' '.join(packages)}"
    command = [*apt, "install", "--no-install-recommends", *packages]
    try:
        commands.run(command, doing, seconds=900, environment=environment)
    except ClusterError:  # the package lists are missing or too old on a new machine
        commands.run([*apt, "update"], "updating apt's package lists", seconds=600, environment=environment)
        commands.run(command, doing, seconds=900, environment=environment)
