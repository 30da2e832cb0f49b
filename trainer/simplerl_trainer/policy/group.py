"""The process group of the ranks: how they meet, and the sums they make together."""

import os
import warnings
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from simplerl_trainer import ports
from simplerl_trainer.policy.protocol import RankSetup


def join(setup: RankSetup) -> torch.device:
    """Joins the group of all ranks, gloo on CPU and NCCL on CUDA; returns this rank's device.

    They meet at the port that rank 0 holds (simplerl_trainer.ports). Waits up to setup.timeout seconds for the others.
    A process joins once: another call changes nothing.
    """
    os.environ.update(
        RANK=str(setup.rank),
        WORLD_SIZE=str(setup.world_size),
        LOCAL_RANK="0",  # Ray shows each actor its own GPU only
        MASTER_ADDR=setup.master_address,
        MASTER_PORT=str(setup.master_port),
    )
    if setup.cpu_only:
        os.environ["DS_ACCELERATOR"] = "cpu"
        _choose_interface(setup.master_address)
    if setup.training.deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # else cuBLAS may sum in another order each time
    import deepspeed  # reads DS_ACCELERATOR when imported
    from deepspeed.ops import __compatible_ops__
    from deepspeed.utils.logging import set_log_level_from_string

    set_log_level_from_string("warning")
    # DeepSpeed calls collectives by names that torch 2.13 replaces, several times a step
    warnings.filterwarnings("ignore", r"`torch\.distributed\..*` is deprecated", FutureWarning)
    # its shared-memory collectives are compiled at first use, which needs a compiler, and are no faster
    __compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.utils.nvtx.enable_nvtx = False  # 4 ms a micro-batch of ranges that nobody reads
    device = torch.device("cpu" if setup.cpu_only else "cuda:0")
    backend, timeout = "gloo" if setup.cpu_only else "nccl", timedelta(seconds=setup.timeout)
    if not dist.is_initialized():
        dist.init_process_group(
            backend,
            store=dist.TCPStore(
                setup.master_address,
                setup.master_port,
                setup.world_size,
                is_master=setup.rank == 0,
                timeout=timeout,
                master_listen_fd=ports.take(setup.master_port) if setup.rank == 0 else None,
            ),
            rank=setup.rank,
            world_size=setup.world_size,
            timeout=timeout,
            # as DeepSpeed does: NCCL then forms its communicator now, and groups of parts from it
            device_id=None if setup.cpu_only or setup.world_size == 1 else device,
        )
    deepspeed.init_distributed(backend, auto_mpi_discovery=False, timeout=timeout)  # takes that group over
    # some of CUDA's operations have no deterministic form: they warn
    torch.use_deterministic_algorithms(setup.training.deterministic, warn_only=not setup.cpu_only)
    return device


def sums(values: Mapping[str, float], device: torch.device) -> dict[str, float]:
    """Each value summed over all ranks; every rank names the same values."""
    return _reduced(values, device, dist.ReduceOp.SUM)


def maxima(values: Mapping[str, float], device: torch.device) -> dict[str, float]:
    """The greatest of each value over all ranks; every rank names the same values."""
    return _reduced(values, device, dist.ReduceOp.MAX)


def _reduced(values: Mapping[str, float], device: torch.device, op: "dist.ReduceOp.RedOpType") -> dict[str, float]:
    names = sorted(values)
    reduced = torch.tensor([values[name] for name in names], dtype=torch.float64, device=device)
    dist.all_reduce(reduced, op)
    return dict(zip(names, reduced.tolist(), strict=True))


def _choose_interface(master_address: str) -> None:
    """Gloo else looks the host's name up, which fails or gives a wrong address in many pods."""
    if "GLOO_SOCKET_IFNAME" in os.environ:
        return
    if master_address.startswith("127.") or master_address == "localhost":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        return
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        interface, destination, *_ = line.split()
        if destination == "00000000":
            os.environ["GLOO_SOCKET_IFNAME"] = interface
            return
