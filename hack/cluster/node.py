"""The node: its namespaces, the link to the host, the programs in it; and taking all of it away again."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from . import addresses, commands, packages, places
from .errors import ClusterError

INIT = places.STATE / "init.pid"
MADE_FOLDERS = places.STATE / "made-folders"
SYSCTLS = places.STATE / "sysctls.json"
NAMESPACES = ("-m", "-n", "-p", "-u", "-i")
# the kubelet writes all but the last; the last is ours, since each container's watch takes inotify instances
CHANGED_SYSCTLS = (
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.keys.root_maxkeys",
    "kernel.keys.root_maxbytes",
    "fs.inotify.max_user_instances",
)
KERNEL_MODULES = ("overlay", "br_netfilter", "veth")


def init_pid() -> int | None:
    """The host's number of the node's process 1, if it lives and is ours (a stored number may have been given away)."""
    try:
        pid = int(INIT.read_text())
        mounts = Path(f"/proc/{pid}/mountinfo").read_text()
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
    return pid if f"{places.STATE}/run /run " in mounts else None


def inside(command: Sequence[str]) -> list[str]:
    pid = init_pid()
    if pid is None:
        raise ClusterError("the node does not run: start it by `make cluster-up`")
    return ["nsenter", "-t", str(pid), *NAMESPACES, "--wd=/", *command]


def create() -> None:
    places.LOGS.mkdir(parents=True)
    places.STATE.chmod(0o711)  # pods' users reach the volumes below; keys are unreadable to others anyway
    places.IMAGE_STORE.mkdir(parents=True, exist_ok=True)
    SYSCTLS.write_text(json.dumps({name: sysctl(name) for name in CHANGED_SYSCTLS if sysctl_path(name).exists()}))
    load_kernel_modules()
    instances = sysctl_path("fs.inotify.max_user_instances")
    instances.write_text(str(max(1024, int(instances.read_text()))))
    log = places.LOGS / "node.log"
    with log.open("a") as output:
        unshare = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--net", "--uts", "--ipc", "--mount-proc",
             "--propagation", "private",
             "bash", places.CONFIGURATION / "node-init.sh", places.STATE, places.IMAGE_STORE],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    ready = places.STATE / "init-ready"

    def has_started() -> bool:
        if unshare.poll() is not None:
            raise ClusterError(f"the node's namespaces could not be made: {commands.last_words(log.read_text())}")
        return ready.exists()

    try:
        commands.wait_for("the node's process 1", has_started, 20, log)
        INIT.write_text(Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text().strip())
    except BaseException:
        unshare.kill()  # and its child with it: nobody else would know of it
        raise


def connect() -> None:
    """One veth pair; services and pods are reached from the host by two routes through it."""
    if commands.succeeds(["ip", "link", "show", addresses.LINK]):
        return
    prefix = addresses.LINK_NET.prefixlen
    doing = "connecting the node to the host"
    peer = ["peer", "name", "eth0", "netns", str(init_pid())]
    commands.run(["ip", "link", "add", addresses.LINK, "type", "veth", *peer], doing)
    commands.run(["ip", "addr", "add", f"{addresses.HOST_IP}/{prefix}", "dev", addresses.LINK], doing)
    commands.run(["ip", "link", "set", addresses.LINK, "up"], doing)
    for words in (
        f"ip addr add {addresses.NODE_IP}/{prefix} dev eth0",
        "ip link set eth0 up",
        f"ip route add default via {addresses.HOST_IP}",
    ):
        commands.run(inside(words.split()), doing)
    for network in (addresses.SERVICE_NET, addresses.POD_NET):
        commands.run(["ip", "route", "add", str(network), "via", addresses.NODE_IP], doing)


def start(name: str, command: Sequence[str]) -> None:
    """Starts a program in the node unless it runs; its process number is in the node's /run."""
    if runs(name):
        return
    (places.STATE / f"run/{name}.pid").unlink(missing_ok=True)
    path = f"{places.PROGRAMS}:{packages.SYSTEM_FOLDERS}"
    script = 'echo $$ >"/run/$1.pid"; export PATH="$2"; shift 2; exec "$@"'
    with (places.LOGS / f"{name}.log").open("a") as output:
        subprocess.Popen(
            inside(["bash", "-c", script, "_", name, path, *command]),
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    # until then another look would find it absent and start it twice
    commands.wait_for(f"{name} to start", lambda: bool(pid_inside(name)), 20, every=0.02)


def pid_inside(name: str) -> str:
    try:
        return (places.STATE / f"run/{name}.pid").read_text().strip()
    except FileNotFoundError:
        return ""


def runs(name: str) -> bool:
    pid = pid_inside(name)
    return bool(pid) and commands.succeeds(inside(["kill", "-0", pid]))


def stop(name: str) -> None:
    pid = pid_inside(name)
    if pid and runs(name):
        commands.run(inside(["kill", pid]), f"stopping {name}")
        commands.wait_for(f"{name} to end", lambda: not runs(name), 20)


def make_cgroups() -> None:
    """The parent of all pods' groups, so that another kubelet's /kubepods is left alone.

    It weighs as much as the kubelet gives its own group, which has no parent elsewhere: pods that get a tenth of a busy
    machine do not start within Ray's fixed 30 s (ray/_private/node.py).
    """
    cores = os.cpu_count() or 1
    for controller in cgroup_roots():
        group = controller / addresses.CGROUP
        group.mkdir(exist_ok=True)
        for name, one, most in (("cpu.shares", 1024, 262144), ("cpu.weight", 100, 10000)):  # versions 1 and 2
            if (group / name).exists():
                (group / name).write_text(str(min(one * cores, most)))


def cgroup_roots() -> list[Path]:
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():  # version 2: one tree
        return [root]
    return [path for path in root.iterdir() if path.is_dir() and not path.is_symlink()]


def remove() -> None:
    pid = init_pid()
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        commands.wait_for(f"the node's process 1 ({pid}) to end", lambda: not Path(f"/proc/{pid}").exists(), 60)
    if commands.succeeds(["ip", "link", "show", addresses.LINK]):
        commands.run(["ip", "link", "del", addresses.LINK], f"removing the link {addresses.LINK}")
    remove_cgroups()
    restore_sysctls()
    unload_kernel_modules()
    for folder in reversed(MADE_FOLDERS.read_text().split() if MADE_FOLDERS.exists() else []):
        with contextlib.suppress(OSError):  # something else put a file there meanwhile: it is no longer ours
            os.rmdir(folder)
    remove_state()


def remove_state() -> None:
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    below = [point for point in mounted if point == str(places.STATE) or point.startswith(f"{places.STATE}/")]
    if below:
        raise ClusterError(f"{below[0]} is still mounted, so {places.STATE} is kept: unmount it and run this again")
    if places.STATE.exists():
        commands.run(["rm", "-rf", "--one-file-system", places.STATE], f"removing {places.STATE}", seconds=300)


def remove_cgroups() -> None:
    """Groups can be removed a moment after their last process has ended."""
    deadline = time.monotonic() + 30
    while left := [root / addresses.CGROUP for root in cgroup_roots() if (root / addresses.CGROUP).exists()]:
        for top in left:
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        if time.monotonic() > deadline:
            raise ClusterError(f"timed out after 30 s: waiting for the processes in {left[0]} to end")
        time.sleep(0.05)


def sysctl_path(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")


def sysctl(name: str) -> str:
    return sysctl_path(name).read_text().strip()


def restore_sysctls() -> None:
    if SYSCTLS.exists():
        for name, value in json.loads(SYSCTLS.read_text()).items():
            if sysctl(name) != value:
                sysctl_path(name).write_text(value)


def loaded_modules() -> set[str]:
    modules = Path("/proc/modules")
    return {line.split()[0] for line in modules.read_text().splitlines()} if modules.exists() else set()


def load_kernel_modules() -> None:
    before = loaded_modules()
    if shutil.which("modprobe"):
        for module in KERNEL_MODULES:
            commands.succeeds(["modprobe", module])  # built into many kernels
    (places.STATE / "kernel-modules").write_text(" ".join(sorted(loaded_modules() - before)))


def unload_kernel_modules() -> None:
    record = places.STATE / "kernel-modules"
    for module in record.read_text().split() if record.exists() else []:
        commands.succeeds(["modprobe", "-r", module])  # refused while something else uses it, rightly
