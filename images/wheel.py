"""The project's code as one image layer: its wheel where pip would put it, byte-compiled, with its commands."""

import configparser
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from hack.cluster import commands, oci, places
from hack.cluster.errors import ClusterError

from .builder import REPOSITORY

SOURCES = (
    "pyproject.toml",
    "README.md",
    "crds/simplerl_api",
    "operator/simplerl_operator",
    "operator/kubectl_simplerl",
    "trainer/simplerl_trainer",
)
VENV = "opt/venv"
PYTHON = "3.11"  # of the images
SITE_PACKAGES = f"{VENV}/lib/python{PYTHON}/site-packages"


def layer() -> bytes:
    """The same sources give the same bytes."""
    with tempfile.TemporaryDirectory(prefix="simplerl-wheel-") as folder:
        work = Path(folder)
        site = work / "site"
        with zipfile.ZipFile(build(work / "dist")) as archive:
            archive.extractall(site)
        compile_in(site)
        files = [
            (f"{SITE_PACKAGES}/{path.relative_to(site)}", path.read_bytes(), 0o644)
            for path in sorted(site.rglob("*"))
            if path.is_file()
        ]
        return oci.tar_of([*files, *scripts(site)])


def build(into: Path) -> Path:
    uv = commands.run([REPOSITORY / "hack/uv.sh"], "finding uv", seconds=600).strip()
    # from a copy: a builder writes beside the sources, and another process may change them meanwhile
    source = into.parent / "source"
    for name in SOURCES:
        copy(REPOSITORY / name, source / name)
    commands.run(
        [uv, "build", "--quiet", "--wheel", "--out-dir", into, source], "building the project's wheel", seconds=300
    )
    (wheel,) = into.glob("*.whl")
    return wheel


def copy(source: Path, target: Path) -> None:
    if not source.exists():
        raise ClusterError(f"{source} is missing: the project's wheel needs it")
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(source, target)


def compile_in(site: Path) -> None:
    """By a Python of the image's version, with the image's paths in the tracebacks.

    Unchecked: the layer's time stamps are zero, and the files never change.
    """
    python = sys.executable if sys.version.startswith(f"{PYTHON}.") else shutil.which(f"python{PYTHON}")
    if not python:
        commands.say(f"no Python {PYTHON} here to byte-compile for the images: the code will start a little slower")
        return
    command: list[str | Path] = [python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", site, "-p", f"/{SITE_PACKAGES}", site]
    commands.run(command, "byte-compiling the project", seconds=120)


def scripts(site: Path) -> list[tuple[str, bytes, int]]:
    made = []
    for path in site.glob("*.dist-info/entry_points.txt"):
        points = configparser.ConfigParser(delimiters=("=",))
        points.optionxform = str  # type: ignore[assignment,method-assign]
        points.read_string(path.read_text())
        for name, target in points["console_scripts"].items() if points.has_section("console_scripts") else ():
            module, function = target.split(":")
            text = f"#!/{VENV}/bin/python\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"
            made.append((f"{VENV}/bin/{name}", text.encode(), 0o755))
    return made


def cached_layer() -> bytes:
    """Skips the wheel when no source has changed."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in source_files():
        digest.update(f"{path.relative_to(REPOSITORY)}\0".encode() + path.read_bytes() + b"\0")
    kept = places.CACHE / "images/project-layers" / f"{digest.hexdigest()[:16]}.tar"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        for old in sorted(kept.parent.glob("*.tar"), key=os.path.getmtime)[:-8]:
            old.unlink(missing_ok=True)
        new = kept.with_suffix(f".{os.getpid()}")
        new.write_bytes(layer())
        new.replace(kept)
    return kept.read_bytes()


def source_files() -> list[Path]:
    found: list[Path] = []
    for name in SOURCES:
        path = REPOSITORY / name
        found += [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sorted(file for file in found if "__pycache__" not in file.parts)
