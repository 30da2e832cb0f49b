"""What runs in every embedded cluster, CoreDNS and KubeRay, and where it is asked for, Kueue: as images of one program
each, and their manifests."""

import hashlib
import json
import shutil
import string
import tempfile
from pathlib import Path

from . import addresses, commands, containerd, control_plane, image_store, oci, places, programs
from .errors import ClusterError

NONROOT = "65532:65532"
PARTS = {"kuberay": ("crd", "rbac", "manager"), "kueue": ("default", "components")}
"""Folders of a module's config/ that etc/NAME/kustomization.yaml stands over."""


def image(program: str) -> oci.Image:
    """The program alone, kept as a layout in the cache folder."""
    built = programs.BY_NAME[program]
    folder = places.CACHE / "images" / f"{program}-{built.key}"
    if not folder.is_dir():
        # the manifests out of modules call their programs /manager
        path = "/manager" if program in PARTS else f"/{program}"
        settings = {"User": NONROOT, "Entrypoint": [path], "WorkingDir": "/"}
        layer = oci.tar_of([(path.lstrip("/"), programs.path(program).read_bytes(), 0o755)])
        oci.write_layout(oci.from_nothing(settings).with_layer(layer, f"{program} {built.version}"), folder)
    return oci.read_layout(folder)


def image_name(program: str) -> str:
    if program == "pause":
        return containerd.PAUSE
    built = programs.BY_NAME[program]
    return f"simplerl.local/{program}:{built.version.removeprefix('v')}-{built.key}"


def import_images() -> None:
    for program in ("pause", "coredns", "kuberay"):
        image_store.ensure(image(program), image_name(program))


def coredns_manifest() -> str:
    text = (places.CONFIGURATION / "coredns.yaml").read_text()
    return string.Template(text).substitute(image=image_name("coredns"), dns_ip=addresses.DNS_IP)


def module_manifest(program: str) -> Path:
    """A program's own manifests out of its module with our few changes, made once and kept.

    Compact JSON: 1 MB of it is applied in half the time of 4 MB of YAML.
    """
    overlay = places.CONFIGURATION / program
    name, tag = image_name(program).rsplit(":", 1)
    key = hashlib.sha256((name + tag).encode())
    for path in sorted(overlay.iterdir()):
        key.update(path.read_bytes())
    made = places.CACHE / "manifests" / f"{program}-{key.hexdigest()[:12]}.json"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=made.parent, prefix=f".{program}-") as folder:
            work = Path(folder)
            source = programs.module_folder(programs.BY_NAME[program])
            for part in PARTS[program]:
                shutil.copytree(source / "config" / part, work / part, copy_function=shutil.copyfile)
                commands.run(["chmod", "-R", "u+w", work / part], f"copying {program}'s manifests")
            for path in overlay.iterdir():
                (work / path.name).write_text(string.Template(path.read_text()).substitute(name=name, tag=tag))
            text = commands.run([programs.path("kubectl"), "kustomize", work], f"rendering {program}'s manifests")
            (work / "list.json").write_text(json.dumps(as_list(text), separators=(",", ":")))
            (work / "list.json").rename(made)
    return made


def as_list(yaml: str) -> dict[str, object]:
    """kubectl reads the YAML, so that nothing but the standard library is needed here."""
    words: list[str | Path] = [
        programs.path("kubectl"),
        "label",
        "--local",
        "--filename=-",
        "--output=json",
        "simplerl.io/addon=true",
    ]
    text = commands.run(words, "reading manifests", stdin=yaml)
    items: list[object] = []
    decoder, position = json.JSONDecoder(), 0
    while position < len(text.rstrip()):
        item, position = decoder.raw_decode(text, position)
        items += item["items"] if item["kind"] == "List" else [item]
        while position < len(text) and text[position].isspace():
            position += 1
    return {"apiVersion": "v1", "kind": "List", "items": items}


def apply_manifests() -> None:
    apply("coredns", coredns_manifest())
    apply("kuberay", module_manifest("kuberay").read_text())


def apply(name: str, text: str) -> None:
    """Server-side: KubeRay's definitions are too large for the annotation of a client-side apply."""
    applied = places.STATE / f"{name}.applied"
    digest = hashlib.sha256(text.encode()).hexdigest()
    if applied.exists() and applied.read_text() == digest:
        return
    command = control_plane.kubectl("apply", "--server-side", "--force-conflicts", "--validate=false", "--filename=-")
    try:
        commands.run(command, f"applying {name}", stdin=text, seconds=120)
    except ClusterError:  # a definition was not served yet when its first object came
        commands.run(command, f"applying {name}", stdin=text, seconds=120)
    applied.write_text(digest)


def wait_until_available() -> None:
    wait_for("kube-system", "coredns")
    wait_for("ray-system", "kuberay-operator")


def wait_for(namespace: str, name: str) -> None:
    command = control_plane.kubectl(
        "--namespace", namespace, "rollout", "status", f"deployment/{name}", "--timeout=180s"
    )
    commands.run(command, f"waiting for {name} to be available", seconds=190)


def add_kueue() -> None:
    """Kueue in a cluster that runs (https://kueue.sigs.k8s.io), with the integration of RayClusters alone."""
    programs.build_missing("kueue")
    image_store.ensure(image("kueue"), image_name("kueue"))
    apply("kueue", module_manifest("kueue").read_text())
    wait_for("kueue-system", "kueue-controller-manager")
