"""The project's layer, the base image's source, and that nothing of the building machine is in what is committed."""

import io
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from images import base, build, builder, wheel

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def layer() -> Iterator[tarfile.TarFile]:
    with tarfile.open(fileobj=io.BytesIO(wheel.cached_layer())) as archive:
        yield archive


def test_the_layer_holds_code_and_bytecode(layer: tarfile.TarFile) -> None:
    names = set(layer.getnames())
    for package in ("simplerl_api", "simplerl_operator", "simplerl_trainer"):
        assert f"{wheel.SITE_PACKAGES}/{package}/__init__.py" in names
        assert f"{wheel.SITE_PACKAGES}/{package}/__pycache__/__init__.cpython-311.pyc" in names


def test_the_layer_has_the_command_and_its_metadata(layer: tarfile.TarFile) -> None:
    command = layer.getmember("opt/venv/bin/simplerl")
    assert command.mode == 0o755
    reader = layer.extractfile(command)
    assert reader
    assert reader.read().startswith(b"#!/opt/venv/bin/python\n")
    assert any(re.search(r"/simplerl-[\d.]+\.dist-info/METADATA$", name) for name in layer.getnames())


def test_bytecode_names_the_paths_of_the_image(layer: tarfile.TarFile) -> None:
    reader = layer.extractfile(f"{wheel.SITE_PACKAGES}/simplerl_api/__pycache__/__init__.cpython-311.pyc")
    assert reader
    code = reader.read()
    assert f"/{wheel.SITE_PACKAGES}/simplerl_api/__init__.py".encode() in code
    assert str(ROOT).encode() not in code
    assert code[4:8] == b"\x01\x00\x00\x00"  # hash-based and unchecked: good whatever the time stamps


def test_the_same_tree_gives_the_same_layer() -> None:
    assert wheel.layer() == wheel.layer()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Types: deb\nURIs: http://one.example/debian\nSuites: bookworm bookworm-updates\n",
            "http://one.example/debian",
        ),
        ("Types: deb\nURIs: http://one.example/debian-security\nSuites: bookworm-security\n", None),
        ("deb [signed-by=/k.gpg] http://two.example/debian bookworm main contrib\n", "http://two.example/debian"),
        ("deb http://vendor.example/apt cloud-sdk-bookworm main\n", None),
        ("", None),
    ],
)
def test_the_package_source_is_that_of_the_suite(text: str, found: str) -> None:
    assert base.mirror([text]) == ([found] if found else [])


def test_settings_of_the_network_travel_as_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(builder, "WORK", tmp_path)
    monkeypatch.setenv("HTTPS_PROXY", "http://user:it's secret@proxy.example:3128")
    with builder.secrets() as arguments:
        path = Path(arguments[1].removeprefix("id=network,src="))
        assert """export HTTPS_PROXY='http://user:it'"'"'s secret@proxy.example:3128'""" in path.read_text()
    assert not path.exists()


def test_dependencies_are_keyed_by_what_they_are_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.recipes()[0].layout
    monkeypatch.setenv("SIMPLERL_BASE_IMAGE", "registry.example/python:3.11")
    assert build.recipes()[0].layout != before


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_pinned_sets_name_no_host(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert not [line for line in lines if "://" in line or line.startswith("-") or "@ " in line]
    if not path.name.startswith("overrides"):
        pins = [line for line in lines if not line.startswith(" ")]
        assert all(re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==\S+ ", pin) for pin in pins), path.name
        assert len(pins) <= sum("--hash=sha256:" in line for line in lines)


@pytest.mark.parametrize("name", ["operator", "trainer"])
def test_what_a_dockerfile_copies_is_let_through(name: str) -> None:
    text = (ROOT / f"images/{name}/Dockerfile").read_text()
    copied = [path for line in re.findall(r"^COPY (?!--)(.+)$", text, re.MULTILINE) for path in line.split()[:-1]]
    let_through = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert copied
    assert [path for path in copied if not any(Path(path).match(pattern) for pattern in let_through)] == []


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="buildah's own storage needs root")
@pytest.mark.parametrize(("position", "user"), [(0, "65532"), (1, "1000")], ids=["operator", "trainer"])
def test_the_whole_dockerfile_builds(position: int, user: str) -> None:
    """The last stage, which docker users get, holds the same code and command as the thin layer."""
    builder.prepare()
    recipe = build.recipes()[position]
    name = f"localhost/simplerl-{recipe.name}:whole"
    builder.build(
        recipe.dockerfile, name, target="project", arguments=build.build_arguments(recipe), folders=recipe.folders
    )
    try:
        said = builder.run_in(
            name, "id -u; python -c 'import simplerl_api; print(simplerl_api.__file__)'; which simplerl"
        )
        assert said.split() == [user, f"/{wheel.SITE_PACKAGES}/simplerl_api/__init__.py", "/opt/venv/bin/simplerl"]
    finally:
        builder.forget(name)
