"""A Ray of our own on this machine, for as long as this process lives."""

import os

import ray

from simplerl_api.failures import FailureReason, TrainerFailure

TRIES = 3
TOO_SLOW = "timed out during startup"
"""What Ray says where its processes are not up within 30 s, which is fixed in its code (_private/node.py)."""


def start(cpus: int | None, *, cpu_only: bool) -> None:
    """Starts it with that many CPUs, where given, and without GPUs where `cpu_only`.

    Raises TrainerFailure(TimedOut) where it does not start.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # it listens on this machine alone; with its default it would write a token into the user's home folder
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    for left in reversed(range(TRIES)):
        try:
            ray.init(
                address="local",  # without it Ray joins any cluster that it finds on this machine
                num_cpus=cpus,
                num_gpus=0 if cpu_only else None,
                include_dashboard=False,
                object_store_memory=512 * 2**20,
                log_to_driver=False,
                configure_logging=False,
            )
        except Exception as e:  # Ray raises a bare one where its processes are not up in time
            ray.shutdown()
            if not (left and TOO_SLOW in str(e)):
                said = " ".join(str(e).split())[:300]
                raise TrainerFailure(
                    FailureReason.TIMED_OUT,
                    f"Ray did not start on this machine ({said}): try again when it is less busy",
                ) from e
        else:
            return
