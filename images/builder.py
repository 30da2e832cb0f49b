"""buildah, with a storage of its own in the cache folder and no change to the host's settings."""

import contextlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from hack.cluster import commands, packages, places

WORK = places.CACHE / "buildah"
REPOSITORY = Path(__file__).parent.parent
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
NETWORK_VARIABLES = (
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_DEFAULT_TIMEOUT",
    "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_HTTP_TIMEOUT",
)  # fmt: skip


def prepare() -> None:
    packages.install(packages.absent({"buildah": "buildah", "runc": "runc"}))
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{WORK}/storage"\nrunroot = "{WORK}/run"\n'
    )
    (WORK / "registries.conf").write_text('unqualified-search-registries = []\nshort-name-mode = "disabled"\n')


def buildah(*arguments: str | Path, doing: str, seconds: float = 60) -> str:
    """In a mount namespace of its own: the storage leaves a bind mount behind otherwise."""
    environment = {
        "CONTAINERS_STORAGE_CONF": str(WORK / "storage.conf"),
        "CONTAINERS_REGISTRIES_CONF": str(WORK / "registries.conf"),
        "BUILDAH_ISOLATION": "chroot",
        "BUILDAH_FORMAT": "oci",
        "TMPDIR": str(WORK),
    }
    command = ["unshare", "--mount", "--propagation", "private", "buildah", *arguments]
    return commands.run(command, doing, seconds=seconds, environment=environment)


def has(name: str) -> bool:
    return bool(buildah("images", "--quiet", "--filter", f"reference={name}", doing="listing built images").strip())


def build(
    dockerfile: Path,
    name: str,
    *,
    context: Path = REPOSITORY,
    target: str | None = None,
    arguments: Mapping[str, str] | None = None,
    folders: Mapping[str, Path] | None = None,
) -> None:
    """`folders` are named build contexts."""
    cache = uv_cache()
    command: list[str | Path] = ["bud", "--quiet", "--layers", "--pull-never", "--tag", name, "--file", dockerfile]
    if os.environ.get("SIMPLERL_BASE_IMAGE"):
        command.remove("--pull-never")
    command += ["--volume", f"{cache}:/uv-cache", "--build-arg", "UV_CACHE_DIR=/uv-cache"] if target else []
    command += ["--target", target] if target else []
    for key, value in (arguments or {}).items():
        command += ["--build-arg", f"{key}={value}"]
    for key, folder in (folders or {}).items():
        command += ["--build-context", f"{key}={folder}"]
    with secrets() as given:
        buildah(*command, *given, context, doing=f"building {name}", seconds=2400)


def uv_cache() -> Path:
    """The host's: what `make venv` has downloaded is not downloaded again."""
    path = Path(os.environ.get("UV_CACHE_DIR") or places.CACHE.parent / "uv")
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def secrets() -> Iterator[list[str]]:
    """What the build needs from this machine to reach its registries, as files that no layer keeps."""
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        network = Path(folder) / "network.sh"
        lines = [f"export {name}={shlex.quote(os.environ[name])}" for name in NETWORK_VARIABLES if os.environ.get(name)]
        network.write_text("\n".join(lines) + "\n")
        bundle = next((os.environ[name] for name in CERTIFICATE_VARIABLES if os.environ.get(name)), None)
        certificates = Path(folder) / "certificates.crt"
        certificates.write_bytes(Path(bundle).read_bytes() if bundle and Path(bundle).is_file() else b"")
        yield ["--secret", f"id=network,src={network}", "--secret", f"id=certificates,src={certificates}"]


def save(name: str, layout: Path) -> None:
    """As an OCI layout; zstd at its quickest is twice as fast as gzip and smaller."""
    buildah(
        "push", "--quiet", "--compression-format", "zstd", "--compression-level", "1", name, f"oci:{layout}",
        doing=f"saving {name}", seconds=900,
    )  # fmt: skip


def forget(name: str) -> None:
    """Removes the image and its intermediate layers from buildah; a stage without instructions left a container."""
    doing = f"removing {name} from buildah's storage"
    buildah("rm", "--all", doing=doing, seconds=300)
    buildah("rmi", name, doing=doing, seconds=300)
    buildah("rmi", "--prune", doing=doing, seconds=300)


def run_in(name: str, script: str) -> str:
    """A shell script in a throw-away container of the image."""
    container = buildah("from", "--pull-never", name, doing=f"making a container of {name}").strip()
    try:
        return buildah("run", container, "sh", "-c", script, doing=f"running in {name}", seconds=300)
    finally:
        with contextlib.suppress(subprocess.SubprocessError):
            buildah("rm", container, doing=f"removing a container of {name}")
