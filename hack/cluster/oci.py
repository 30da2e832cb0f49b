"""Container images as OCI layouts on disk (https://github.com/opencontainers/image-spec), written without a builder.

The same input gives the same bytes: every time stamp is zero and every owner is root.
"""

import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
VERSION_FILE = b'{"imageLayoutVersion":"1.0.0"}'


def architecture() -> str:
    machine = os.uname().machine
    return ARCHITECTURES.get(machine, machine)


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass(frozen=True)
class Image:
    """A manifest and its configuration, and where each blob is: in memory or in a layout's folder."""

    manifest: dict[str, Any]
    config: dict[str, Any]
    blobs: dict[str, bytes | Path] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return digest_of(canonical(self.manifest))

    def with_layer(self, layer: bytes, created_by: str, changes: dict[str, Any] | None = None) -> "Image":
        """This image with one uncompressed layer on top and some settings of its configuration changed."""
        config = json.loads(json.dumps(self.config))
        config["rootfs"]["diff_ids"].append(digest_of(layer))
        config.setdefault("history", []).append({"created_by": created_by})
        config["config"] = {**config.get("config", {}), **(changes or {})}
        entry = {"mediaType": LAYER, "digest": digest_of(layer), "size": len(layer)}
        return assemble(config, [*self.manifest["layers"], entry], {**self.blobs, digest_of(layer): layer})


def assemble(config: dict[str, Any], layers: list[dict[str, Any]], blobs: dict[str, bytes | Path]) -> Image:
    data = canonical(config)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": digest_of(data), "size": len(data)},
        "layers": layers,
    }
    used = {entry["digest"] for entry in layers}
    kept = {digest: blob for digest, blob in blobs.items() if digest in used}
    return Image(manifest, config, {**kept, digest_of(data): data})


def canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def from_nothing(settings: dict[str, Any]) -> Image:
    """An image with no file in it."""
    config = {
        "architecture": architecture(),
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": []},
    }
    return assemble(config, [], {})


def tar_of(files: Iterable[tuple[str, bytes, int]]) -> bytes:
    """A layer of (path, content, mode); parent folders are made by the unpacker."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content, mode in files:
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def read_layout(folder: Path) -> Image:
    """The one image of a layout."""
    (entry,) = json.loads((folder / "index.json").read_text())["manifests"]
    manifest = json.loads(blob_path(folder, entry["digest"]).read_bytes())
    config_path = blob_path(folder, manifest["config"]["digest"])
    digests = [manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])]
    blobs: dict[str, bytes | Path] = {digest: blob_path(folder, digest) for digest in digests}
    return assemble(json.loads(config_path.read_bytes()), manifest["layers"], blobs)


def write_layout(image: Image, folder: Path) -> None:
    """Whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        (work / "oci-layout").write_bytes(VERSION_FILE)
        (work / "index.json").write_bytes(index_of(image, {}))
        for digest, blob in {**image.blobs, image.digest: canonical(image.manifest)}.items():
            path = blob_path(work, digest)
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(blob, Path):
                shutil.copyfile(blob, path)
            else:
                path.write_bytes(blob)
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def index_of(image: Image, annotations: dict[str, str]) -> bytes:
    size = len(canonical(image.manifest))
    entry = {"mediaType": MANIFEST, "digest": image.digest, "size": size, "annotations": annotations}
    return canonical({"schemaVersion": 2, "manifests": [entry]})


def blob_path(folder: Path, digest: str) -> Path:
    return folder / "blobs" / digest.replace(":", "/")
