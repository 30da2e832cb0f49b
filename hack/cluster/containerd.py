"""containerd: its start in the node, and what it keeps from one cluster to the next."""

import shutil

from . import commands, control_plane, node, places

PAUSE = "simplerl.local/pause:1"


def ctr(*arguments: str) -> list[str]:
    return ["ctr", "--address", str(places.CONTAINERD_SOCKET), "--namespace", "k8s.io", *arguments]


def start() -> None:
    first = places.STATE / "containerd-started"  # later starts in the same cluster must keep its containers
    if not first.exists() and (places.IMAGE_STORE / "io.containerd.metadata.v1.bolt/meta.db").exists():
        forget_old_containers()
    first.touch()
    launch("containerd.toml")


def launch(configuration: str) -> None:
    node.start("containerd", ["containerd", "-c", f"{control_plane.CERTIFICATES}/{configuration}"])
    commands.wait_for("containerd", lambda: commands.succeeds(ctr("version")), 30, places.LOGS / "containerd.log")


def forget_old_containers() -> None:
    """The store outlives the cluster for its images; the last cluster's containers are removed from it before the part
    that serves the kubelet starts, since that part would try to take them up again."""
    text = (places.KUBERNETES / "containerd.toml").read_text()
    without = text.replace("disabled_plugins = [", 'disabled_plugins = ["io.containerd.grpc.v1.cri", ', 1)
    (places.KUBERNETES / "containerd-store.toml").write_text(without)
    launch("containerd-store.toml")
    left = commands.run(ctr("containers", "ls", "-q"), "listing the last cluster's containers").split()
    if left:
        commands.run(ctr("containers", "rm", *left), "removing the last cluster's containers", seconds=120)
    forget_old_images()
    node.stop("containerd")
    for leftover in ("io.containerd.grpc.v1.cri", "io.containerd.runtime.v2.task"):
        shutil.rmtree(places.IMAGE_STORE / leftover, ignore_errors=True)


def forget_old_images() -> None:
    """Every build of the code leaves a name `:dev-HASH`: before any pod runs, all but the last are removed."""
    digests = images()
    old = [
        name
        for name, digest in digests.items()
        if ":dev-" in name and digest != digests.get(name[: name.index(":dev-")] + ":dev")
    ]
    if old:
        commands.run(ctr("images", "rm", *old), "removing old images", seconds=120)


def images() -> dict[str, str]:
    """Names, and the digests of their manifests."""
    listed = commands.run(ctr("images", "ls"), "listing the node's images").splitlines()[1:]
    return {fields[0]: fields[2] for line in listed if len(fields := line.split()) > 2}
