"""Where things lie: built parts in the user's cache folder, the running node under /var/lib; nothing in the clone."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from .errors import ClusterError

HERE = Path(__file__).parent
CONFIGURATION = HERE / "etc"
MODULES = HERE / "modules"

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simplerl"
IMAGE_STORE = CACHE / "node-images"  # containerd's store: it outlives the cluster, so that images are unpacked once

STATE = Path(os.environ.get("SIMPLERL_CLUSTER_STATE") or "/var/lib/simplerl-cluster")
LOGS = STATE / "log"
KUBERNETES = STATE / "etc/kubernetes"
KUBECONFIG = KUBERNETES / "admin.kubeconfig"
AUDIT_LOG = STATE / "var/log/audit/audit.log"
CONTAINERD_SOCKET = STATE / "run/containerd/containerd.sock"
VOLUMES = STATE / "srv/volumes"  # for hostPath volumes: VOLUMES_IN_NODE to a pod
VOLUMES_IN_NODE = "/srv/volumes"
PROGRAMS = STATE / "bin"  # links to the programs that this cluster was started with


@contextlib.contextmanager
def locked(name: str, doing: str, seconds: float = 1800) -> Iterator[None]:
    """Holds an exclusive lock in the cache folder; waits for another holder with a time limit."""
    path = CACHE / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"timed out after {seconds:.0f} s: another process is {doing} (it holds {path})"
                    ) from None
                time.sleep(0.2)
        yield
