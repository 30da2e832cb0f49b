"""Names of memory that vLLM's processes share in /dev/shm.

Python's resource tracker removes them where processes end in order. Ray ends actors with SIGKILL, and the tracker with
them, so that each engine with workers of its own would leave files behind. A name is only needed until all have mapped
the file: without one, the memory is gone with the last process, however it ends.
"""

from multiprocessing import resource_tracker
from pathlib import Path

_FOLDER = Path("/dev/shm")
_KINDS = ("psm_", "sem.mp-", "vllm_dist_")
"""Python's SharedMemory and semaphores, and the memory of vLLM's collectives on CPU."""


def forget() -> None:
    """Removes the names of what this process has mapped; to be called once all who share it have."""
    # by inode: a semaphore is mapped under the name that the C library gave it first
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    mapped = {int(line.split()[4]) for line in maps if f"{_FOLDER}/" in line}
    for path in _FOLDER.iterdir():
        if path.name.startswith(_KINDS):
            try:
                if path.stat().st_ino not in mapped:
                    continue
                path.unlink()
            except FileNotFoundError:
                continue  # another of the processes was first
            _untrack(path.name)


def _untrack(name: str) -> None:
    """Python's resource tracker would complain that what it knows of is gone."""
    if name.startswith("psm_"):
        resource_tracker.unregister(f"/{name}", "shared_memory")
    elif name.startswith("sem."):
        resource_tracker.unregister(f"/{name.removeprefix('sem.')}", "semaphore")
