"""The built programs of the embedded cluster, and KubeRay's CRD."""

import os
from pathlib import Path

from hack.cluster import programs


def path(binary: str) -> Path:
    """A built program: in the folder that SIMPLERL_PROGRAMS names, else of hack/cluster, which builds it if need be."""
    folder = os.environ.get("SIMPLERL_PROGRAMS")
    if folder:
        return Path(folder) / binary
    program = next(p for p in programs.PROGRAMS if binary in p.binaries)
    if not program.is_built:
        programs.build(program)
    return program.built / binary


def module_folder(program: str) -> Path:
    """The source of a program's module (read-only)."""
    return programs.module_folder(programs.BY_NAME[program])


def ray_cluster_crd() -> Path:
    """KubeRay's own CRD, as its module carries it."""
    return module_folder("kuberay") / "config/crd/bases/ray.io_rayclusters.yaml"
