"""The CRDs of the tools that our objects are for, as their modules carry them."""

from pathlib import Path

from hack.cluster.programs import Program, module_folder

_CRDS = {
    "github.com/prometheus-operator/prometheus-operator": ("example/prometheus-operator-crd", "monitoring.coreos.com_"),
    "github.com/fluxcd/kustomize-controller": ("config/crd/bases", "kustomize.toolkit.fluxcd.io_"),
    "github.com/fluxcd/helm-controller": ("config/crd/bases", "helm.toolkit.fluxcd.io_"),
}


def of(module: str, *plurals: str) -> list[Path]:
    """The files with the CRDs of a module's kinds."""
    folder, prefix = _CRDS[f"github.com/{module}"]
    program = Program("definitions", f"github.com/{module}", (), (), modules=Path(__file__).parent)
    return [module_folder(program) / folder / f"{prefix}{plural}.yaml" for plural in plurals]
