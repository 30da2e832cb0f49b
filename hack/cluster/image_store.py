"""Importing images into containerd without what it has."""

import contextlib
import io
import subprocess
import tarfile
from pathlib import Path

from . import commands, containerd, oci, places
from .errors import ClusterError


def ensure(image: oci.Image, *names: str) -> bool:
    """Imports the image under each name that does not stand for it yet; says whether anything was done."""
    have = containerd.images()
    missing = [name for name in names if have.get(name) != image.digest]
    for name in missing:
        load(image, name)
    return bool(missing)


def load(image: oci.Image, name: str) -> None:
    """Streams the image without the blobs that containerd has: it accepts an import that lacks them."""
    held = set(commands.run(containerd.ctr("content", "ls", "-q"), "listing the node's image layers").split())
    log = places.LOGS / "images.log"
    with log.open("a") as output:
        command = containerd.ctr("images", "import", "-")
        importer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
        assert importer.stdin
        with contextlib.suppress(BrokenPipeError), tarfile.open(fileobj=importer.stdin, mode="w|") as archive:
            add(archive, "oci-layout", oci.VERSION_FILE)
            names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rsplit(":", 1)[-1]}
            add(archive, "index.json", oci.index_of(image, names))
            for digest, blob in {**image.blobs, image.digest: oci.canonical(image.manifest)}.items():
                if digest not in held:
                    add(archive, f"blobs/{digest.replace(':', '/')}", blob)
        with contextlib.suppress(BrokenPipeError):
            importer.stdin.close()
        try:
            code = importer.wait(timeout=600)
        except subprocess.TimeoutExpired:
            importer.kill()
            raise ClusterError(f"timed out after 600 s: importing {name} into containerd; see {log}") from None
    if code != 0:
        raise ClusterError(f"importing {name} into containerd failed: {commands.last_words(log.read_text())}")


def add(archive: tarfile.TarFile, path: str, blob: bytes | Path) -> None:
    entry = tarfile.TarInfo(path)
    if isinstance(blob, Path):
        entry.size = blob.stat().st_size
        with blob.open("rb") as content:
            archive.addfile(entry, content)
    else:
        entry.size = len(blob)
        archive.addfile(entry, io.BytesIO(blob))
