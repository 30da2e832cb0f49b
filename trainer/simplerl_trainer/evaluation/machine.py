"""What this machine has for engines, and whether a model fits on it."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from simplerl_api.engine_count import SMALL_ENGINES, SMALL_PARAMETERS
from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.memory import GIB
from simplerl_api.model_shape import ModelShape

GPU_SHARE = 0.9
"""Share of a GPU that its engines take."""
GPU_WORKSPACE, CPU_WORKSPACE = 4 * GIB, GIB
"""For activations, logits and CUDA graphs of an engine; on a CPU for its libraries."""
MOST_ON_CPU = 4
NVIDIA_SMI_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Machine:
    """Its processors and their memory."""

    cpus: int
    memory: int
    """Bytes of the machine's memory that are free."""
    gpus: int = 0
    gpu_memory: int = 0
    """Bytes of the smallest GPU."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How many engines there are, and where."""

    engines: int
    gpus: int
    """That are used; 0: all of them on CPUs."""
    tensor_parallel: int = 1
    """GPUs, or processes on CPUs, that hold an engine together."""

    @property
    def groups(self) -> int:
        """Of neighbouring GPUs, each of which holds whole engines."""
        return self.gpus // self.tensor_parallel

    @property
    def per_gpu(self) -> int:
        """Engines of the GPU that has most of them."""
        return -(-self.engines // self.groups) if self.groups else 0

    def gpus_of(self, engine: int) -> range:
        """The GPUs that hold an engine, counted from 0; none on CPUs."""
        first = engine % self.groups * self.tensor_parallel if self.groups else 0
        return range(first, first + self.tensor_parallel) if self.groups else range(0)

    @property
    def share(self) -> float:
        """Share of a GPU for each engine; 1 on CPUs, where nothing is shared out."""
        return GPU_SHARE / self.per_gpu if self.gpus else 1.0


def look() -> Machine:
    """This machine; GPUs are those of CUDA_VISIBLE_DEVICES."""
    gpu_memory = _gpu_memory()
    return Machine(
        # the affinity, not the machine's count: this process may be held to some of the CPUs
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory=_free_memory(),
        gpus=len(gpu_memory),
        gpu_memory=min(gpu_memory, default=0),
    )


def layout(machine: Machine, shape: ModelShape, tokens: int, asked: int | None, tensor_parallel: int = 1) -> Layout:
    """Where `asked` engines live or, without a number, as many as are quick and fit; `tokens`: the longest sample.

    Raises TrainerFailure(INVALID_INPUT) where the model does not fit.
    """
    if machine.gpus:
        if machine.gpus < tensor_parallel:
            raise TrainerFailure(
                FailureReason.INVALID_INPUT,
                f"--tensor-parallel is {tensor_parallel}, and this machine has {machine.gpus} GPUs: lower it",
            )
        groups = machine.gpus // tensor_parallel
        each = 1 if shape.parameters > SMALL_PARAMETERS or tensor_parallel > 1 else SMALL_ENGINES
        tries = [groups * n for n in (4, 2, 1) if n <= each]
        gpus = groups * tensor_parallel
    else:
        most = max(1, min(machine.cpus // tensor_parallel, MOST_ON_CPU))
        tries, gpus = [n for n in (4, 2, 1) if n <= most], 0
    found = [Layout(n, gpus, tensor_parallel) for n in ([asked] if asked else tries)]
    missing = [(f, _missing(machine, shape, tokens, f)) for f in found]
    if (fits := next((f for f, fault in missing if not fault), None)) is not None:
        return fits
    raise TrainerFailure(FailureReason.INVALID_INPUT, missing[-1][1])


def needed(shape: ModelShape, tokens: int, *, on_gpu: bool, tensor_parallel: int = 1) -> int:
    """The least bytes of an engine: its weights, the keys and values of one longest sample, and workspace; on GPUs
    those of each that holds it, on CPUs those of all its processes."""
    width = 2 if on_gpu else 4
    key_values = 2 * shape.layers * shape.key_value_heads * shape.head * width * tokens
    whole = shape.parameters * width + key_values
    return whole // tensor_parallel + GPU_WORKSPACE if on_gpu else whole + CPU_WORKSPACE * tensor_parallel


def _missing(machine: Machine, shape: ModelShape, tokens: int, layout: Layout) -> str:
    """The sentence where the engines do not fit, else nothing."""
    on_gpu = layout.gpus > 0
    each = needed(shape, tokens, on_gpu=on_gpu, tensor_parallel=layout.tensor_parallel)
    room = int(machine.gpu_memory * layout.share) if on_gpu else machine.memory // layout.engines
    if each <= room:
        return ""
    count = layout.per_gpu if on_gpu else layout.engines
    larger = "raise --tensor-parallel, or " if layout.tensor_parallel < machine.gpus else ""
    alone = f"{larger}use a larger machine or a smaller model" if count == 1 else f"lower --engines {layout.engines}"
    where = "on each GPU" if on_gpu else "in this machine's memory"
    return (
        f"the model of {shape.parameters / 1e9:.2f} billion parameters needs at least {each / GIB:.1f} GiB for an "
        f"engine, and {room / GIB:.1f} GiB are there for each of {count} {where}: {alone}"
    )


def _free_memory() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").split("\n") if Path("/proc/meminfo").exists() else []
    free = {name: int(value.split()[0]) * 1024 for name, _, value in (line.partition(":") for line in lines) if value}
    found = free.get("MemAvailable", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and (text := limit.read_text(encoding="ascii").strip()) != "max":
        found = min(found, int(text) - int(used.read_text(encoding="ascii")))
    return found


def _gpu_memory() -> list[int]:
    """Bytes of each GPU that may be used."""
    if shutil.which("nvidia-smi") is None:
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return []
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    command += [f"--id={visible.strip()}"] if visible else []
    said = subprocess.run(command, capture_output=True, text=True, timeout=NVIDIA_SMI_SECONDS, check=False)
    return [int(line) * 2**20 for line in said.stdout.split("\n") if line.strip().isdigit()]
