"""The Go programs, built from their modules at the versions that modules/*/go.mod pin, and kept in the cache folder.

To move one to another version: `go get -tool PACKAGE@VERSION && go mod tidy` in its folder. Kubernetes needs its
staging modules replaced by the published ones (k8s.io/X v0.Y.Z for Kubernetes 1.Y.Z), since a replace in a dependency's
own go.mod is ignored.
"""

import functools
import hashlib
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import commands, places
from .errors import ClusterError

KUBERNETES_COMMANDS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)
BUILD = ("go", "build", "-mod=readonly", "-trimpath")
ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}


@dataclass(frozen=True)
class Program:
    """One folder of modules/: the module whose version counts, and the packages to build from it."""

    name: str
    module: str
    packages: tuple[str, ...]
    binaries: tuple[str, ...]
    optional: bool = False
    """Whether a cluster comes up without it; it is built when it is asked for."""
    modules: Path = places.MODULES
    """The folder of its module's folder."""

    @property
    def folder(self) -> Path:
        return self.modules / self.name

    @property
    def version(self) -> str:
        if not self.module:
            return "1"
        found = re.search(rf"{re.escape(self.module)} (v\S+)", (self.folder / "go.mod").read_text())
        assert found, f"{self.folder}/go.mod does not require {self.module}"
        return found[1]

    @property
    def link_flags(self) -> str:
        """kubectl and the API server tell the versions that the linker was given; a module's build has none."""
        flags = "-s -w"
        if self.name == "kubernetes":
            major, minor, _ = self.version.removeprefix("v").split(".", 2)
            stamps = {
                "gitVersion": self.version,
                "gitMajor": major,
                "gitMinor": minor,
                "gitTreeState": "clean",
                "gitCommit": "unknown",
                "buildDate": "1970-01-01T00:00:00Z",
            }
            flags += "".join(f" -X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())
        return flags

    @property
    def key(self) -> str:
        """Changes with whatever the binaries are made from."""
        digest = hashlib.sha256(repr((self.packages, self.link_flags, BUILD, os.uname().machine)).encode())
        for path in sorted(self.folder.iterdir()):
            digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()[:12]

    @property
    def built(self) -> Path:
        return places.CACHE / "programs" / f"{self.name}-{self.version}-{self.key}"

    @property
    def is_built(self) -> bool:
        return self.built.is_dir()


PROGRAMS = (
    Program(
        "kubernetes",
        "k8s.io/kubernetes",
        tuple(f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES_COMMANDS),
        KUBERNETES_COMMANDS,
    ),
    Program("etcd", "go.etcd.io/etcd/server/v3", ("go.etcd.io/etcd/server/v3",), ("etcd",)),
    Program("coredns", "github.com/coredns/coredns", (".",), ("coredns",)),
    Program("pause", "", (".",), ("pause",)),
    Program(
        "kuberay",
        "github.com/ray-project/kuberay/ray-operator",
        ("github.com/ray-project/kuberay/ray-operator",),
        ("kuberay",),
    ),
    Program("helm", "helm.sh/helm/v3", ("helm.sh/helm/v3/cmd/helm",), ("helm",)),
    Program("kueue", "sigs.k8s.io/kueue", ("sigs.k8s.io/kueue/cmd/kueue",), ("kueue",), optional=True),
    Program("kube-router", "github.com/cloudnativelabs/kube-router/v2", (".",), ("kube-router",), optional=True),
    Program("kwok", "sigs.k8s.io/kwok", ("sigs.k8s.io/kwok/cmd/kwok",), ("kwok",), optional=True),
)
BY_NAME = {program.name: program for program in PROGRAMS}


@functools.cache
def path(binary: str) -> Path:
    """The built binary; `build_missing` must have run."""
    return next(program.built / binary for program in PROGRAMS if binary in program.binaries)


def missing(*optional: str) -> list[Program]:
    """What is not built yet of that which every cluster needs, and of the optional programs of these names."""
    return [p for p in PROGRAMS if not p.is_built and (not p.optional or p.name in optional)]


def build_missing(*optional: str) -> None:
    if not missing(*optional):
        return
    with places.locked("programs", "building the cluster's programs", seconds=3600):
        for program in missing(*optional):
            build(program)


def build(program: Program) -> None:
    commands.say(f"building {program.name} {program.version}")
    program.built.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{program.name}-", dir=program.built.parent))
    try:
        # several packages need a folder as the target, one package a file: its own name may differ from ours
        target = f"{work}/" if len(program.packages) > 1 else str(work / program.binaries[0])
        commands.run(
            [*BUILD, "-ldflags", program.link_flags, "-o", target, *program.packages],
            f"building {program.name} {program.version}",
            seconds=2400,
            environment=ENVIRONMENT,
            folder=program.folder,
        )
        absent = [name for name in program.binaries if not (work / name).is_file()]
        if absent:
            raise ClusterError(f"building {program.name} {program.version} made no {', '.join(absent)}")
        work.chmod(0o755)
        work.rename(program.built)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def module_folder(program: Program) -> Path:
    """The module's source in Go's module cache (read-only)."""
    found = commands.run(
        ["go", "mod", "download", "-json", f"{program.module}@{program.version}"],
        f"fetching the module {program.module}",
        seconds=600,
        environment=ENVIRONMENT,
        folder=program.folder,
    )
    return Path(json.loads(found)["Dir"])


def link_into(folder: Path) -> None:
    """One folder with a link to each program that is built, for PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    for program in filter(lambda program: program.is_built, PROGRAMS):
        for binary in program.binaries:
            new = folder / f".{binary}"
            new.unlink(missing_ok=True)
            new.symlink_to(program.built / binary)
            new.replace(folder / binary)
