"""The base image where no registry is at hand: a Debian root file system with Python, made by mmdebstrap."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hack.cluster import commands, packages

from . import builder

SUITE = "bookworm"  # Python 3.11
PACKAGES = ("python3", "python3-venv", "ca-certificates", "libnuma1", "procps")
COMPILER = ("gcc", "libc6-dev", "libpython3-dev")  # for pycosat, a part of reasoning-gym, which has no wheels
EXCLUDED = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")
SOURCES = Path("/etc/apt")


def ensure(more: tuple[str, ...] = ()) -> str:
    """The name of the base image: $SIMPLERL_BASE_IMAGE if set, otherwise our own with `more` packages, made once."""
    if named := os.environ.get("SIMPLERL_BASE_IMAGE"):
        return named
    name = f"localhost/simplerl-base:{key(more)}"
    if not builder.has(name):
        packages.install(packages.absent({"mmdebstrap": "mmdebstrap"}))
        commands.say(f"making a base image from Debian {SUITE}{' with a compiler' if more else ''}")
        with tempfile.TemporaryDirectory(dir=builder.WORK) as folder:
            archive = Path(folder) / "base.tar"
            bootstrap(archive, PACKAGES + more)
            (Path(folder) / "Dockerfile").write_text("FROM scratch\nADD base.tar /\n")
            builder.build(Path(folder) / "Dockerfile", name, context=Path(folder))
    return name


def key(more: tuple[str, ...] = ()) -> str:
    named = os.environ.get("SIMPLERL_BASE_IMAGE", "")
    return hashlib.sha256(repr((named, SUITE, PACKAGES + more, EXCLUDED)).encode()).hexdigest()[:12]


def bootstrap(archive: Path, include: tuple[str, ...]) -> None:
    # The package source is this machine's; the last hook takes its name out of the result.
    lists = '"$1"/etc/apt/sources.list.d/* "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*'
    emptied = f'rm -rf {lists}; : >"$1/etc/apt/sources.list"'
    commands.run(
        [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            f"--include={','.join(include)}",
            # a frozen mirror's lists are past their date
            '--aptopt=Acquire::Check-Valid-Until "false"',
            '--aptopt=Acquire::Check-Date "false"',
            *(f"--dpkgopt=path-exclude={path}" for path in EXCLUDED),
            f"--customize-hook={emptied}",
            SUITE,
            archive,
            *mirror(texts_of_sources()),
        ],
        f"making a Debian {SUITE} root file system",
        seconds=1200,
    )


def texts_of_sources() -> list[str]:
    paths = [SOURCES / "sources.list", *sorted((SOURCES / "sources.list.d").glob("*"))]
    return [path.read_text() for path in paths if path.is_file()]


def mirror(texts: Iterable[str]) -> list[str]:
    """The address that this machine's apt uses for the suite itself; other vendors' lists may not be reachable.

    Empty where it has none: then mmdebstrap takes Debian's own.
    """
    for text in texts:
        uri = None
        for line in text.splitlines():
            if match := re.match(r"URIs:\s*(\S+)", line):
                uri = match[1]
            elif line.startswith("Suites:") and uri and SUITE in line.split()[1:]:
                return [uri]
            elif match := re.match(rf"deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+{SUITE}\s+.*\bmain\b", line):
                return [match[1]]
    return []
