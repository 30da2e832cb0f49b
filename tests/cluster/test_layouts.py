"""Images as layouts: the same input gives the same bytes, and a layer on top leaves what is below alone."""

import io
import json
import tarfile
from pathlib import Path

from hack.cluster import addons, oci, programs

SETTINGS = {"User": "65532:65532", "Entrypoint": ["/program"]}


def an_image() -> oci.Image:
    return oci.from_nothing(SETTINGS).with_layer(oci.tar_of([("program", b"\x7fELF", 0o755)]), "program 1")


def test_the_same_input_gives_the_same_digest() -> None:
    assert an_image().digest == an_image().digest


def test_a_layout_is_read_back_as_it_was(tmp_path: Path) -> None:
    oci.write_layout(an_image(), tmp_path / "layout")
    again = oci.read_layout(tmp_path / "layout")
    assert again.digest == an_image().digest
    assert again.config["config"] == SETTINGS
    assert [path.name for path in tmp_path.iterdir()] == ["layout"]


def test_every_blob_is_named_by_its_digest(tmp_path: Path) -> None:
    oci.write_layout(an_image(), tmp_path / "layout")
    blobs = list((tmp_path / "layout/blobs/sha256").iterdir())
    assert len(blobs) == 3
    assert all(oci.digest_of(path.read_bytes()) == f"sha256:{path.name}" for path in blobs)


def test_a_layer_on_top_keeps_those_below() -> None:
    below = an_image()
    above = below.with_layer(oci.tar_of([("etc/name", b"x", 0o644)]), "a file", {"WorkingDir": "/tmp"})
    assert above.manifest["layers"][:-1] == below.manifest["layers"]
    assert above.config["config"] == {**SETTINGS, "WorkingDir": "/tmp"}
    assert len(above.config["rootfs"]["diff_ids"]) == 2
    assert len(below.config["rootfs"]["diff_ids"]) == 1
    assert above.digest != below.digest


def test_files_belong_to_root_and_have_no_time() -> None:
    with tarfile.open(fileobj=io.BytesIO(oci.tar_of([("a/b", b"c", 0o644)]))) as archive:
        (entry,) = archive.getmembers()
    assert (entry.uid, entry.gid, entry.mtime, entry.mode) == (0, 0, 0, 0o644)


def test_each_program_is_pinned_with_its_sums() -> None:
    for program in programs.PROGRAMS:
        if program.module:
            assert program.version.startswith("v"), program.name
            assert f"{program.module} {program.version} h1:" in (program.folder / "go.sum").read_text(), program.name


def test_an_image_is_named_by_version_and_content() -> None:
    kuberay = programs.BY_NAME["kuberay"]
    assert addons.image_name("kuberay") == f"simplerl.local/kuberay:1.6.1-{kuberay.key}"


def test_the_index_names_the_image() -> None:
    image = an_image()
    index = json.loads(oci.index_of(image, {"io.containerd.image.name": "simplerl.local/program:1"}))
    assert index["manifests"][0]["digest"] == image.digest
