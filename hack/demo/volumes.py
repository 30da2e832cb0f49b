"""Claims for the demo: folders of the node in the embedded cluster, the default storage class elsewhere."""

import os
import shutil
from pathlib import Path

from hack.cluster import places
from hack.demo.target import Target


def claim(target: Target, name: str, *, content: Path | None = None, size: str = "5Gi") -> Path | None:
    """A ReadWriteMany claim of this name in the default namespace, holding a copy of `content` where it is given.

    Returns the folder behind it on this machine, in the embedded cluster. Elsewhere the storage class
    `$SIMPLERL_STORAGE_CLASS` (default: the cluster's) provides it, and content must be put there by hand; a claim of
    this name that is there already is used as it is.
    """
    if not target.embedded:
        if target.get("pvc", name, "default") is not None:
            return None
        storage_class = os.environ.get("SIMPLERL_STORAGE_CLASS")
        target.apply(
            f"creating claim {name}", _claim(name, size, {"storageClassName": storage_class} if storage_class else {})
        )
        return None
    folder = places.VOLUMES / name
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)  # any uid of a pod may write
    if content is not None:
        _copy(content, folder)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"demo-{name}"},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "hostPath": {"path": f"{places.VOLUMES_IN_NODE}/{name}"},
            "claimRef": {"namespace": "default", "name": name},
        },
    }
    if target.get("pvc", name, "default") is None and target.get("pv", f"demo-{name}", "default") is not None:
        # a released volume keeps the uid of the claim that was deleted, and would never be bound again
        target.run(f"removing the old volume of claim {name}", "delete", "pv", f"demo-{name}", "--wait=true")
    target.apply(
        f"creating claim {name}", volume, _claim(name, size, {"storageClassName": "", "volumeName": f"demo-{name}"})
    )
    return folder


def _claim(name: str, size: str, more: dict[str, str | None]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}, **more},
    }


def _copy(content: Path, folder: Path) -> None:
    for source in [content] if content.is_file() else sorted(content.iterdir()):
        target = folder / source.name
        if not target.exists() or target.stat().st_size != source.stat().st_size:
            shutil.copyfile(source, target)
        target.chmod(0o644)
