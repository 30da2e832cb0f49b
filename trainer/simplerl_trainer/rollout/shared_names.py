"""Names of memory that vLLM's processes share in /dev/shm.

Python's resource tracker removes them where processes end in order. Ray ends actors with SIGKILL, and the tracker with
them, so that each engine with workers of its own would leave files behind. A name is only needed until all have mapped
the file: without one, the memory is gone with the last process, however it ends.
"""

import os
import re
from multiprocessing import resource_tracker
from pathlib import Path

_MAPPED = re.compile(r"(/dev/shm/(?:psm_|sem\.mp-|vllm_dist_)\S+)$", re.MULTILINE)
"""Python's SharedMemory and semaphores, and the memory of vLLM's collectives on CPU, in /proc/self/maps."""


def forget() -> None:
    """Removes the names of what this process has mapped; to be called once all who share it have."""
    for path in sorted(set(_MAPPED.findall(Path("/proc/self/maps").read_text(encoding="utf-8")))):
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue  # another of the processes was first
        name = Path(path).name
        if name.startswith("psm_"):
            resource_tracker.unregister(f"/{name}", "shared_memory")
        elif name.startswith("sem."):
            resource_tracker.unregister(f"/{name.removeprefix('sem.')}", "semaphore")
