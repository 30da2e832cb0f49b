"""What runs pods: containerd, the kubelet and kube-proxy, with their configuration."""

import json
import resource
import shutil
import string

from . import addresses, commands, control_plane, node, packages, places

CONFIGURATION = ("containerd.toml", "kubelet.yaml", "proxy.yaml", "audit-policy.yaml")
PAUSE = "simplerl.local/pause:1"


def write_configuration() -> None:
    """The files of etc/, with this machine's and our addresses' values filled in."""
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    values = {
        **addresses.TEMPLATE,
        "pause": PAUSE,
        "cni_folder": str(packages.cni_folder()),
        "open_files": str(1_000_000 if hard_limit == resource.RLIM_INFINITY else min(hard_limit, 1_000_000)),
    }
    for name in CONFIGURATION:
        template = string.Template((places.CONFIGURATION / name).read_text())
        (places.KUBERNETES / name).write_text(template.substitute(values))
    (places.KUBERNETES / "resolv.conf").write_text("")  # there is nothing outside for pods to resolve
    network = string.Template((places.CONFIGURATION / "pods.conflist").read_text())
    (places.STATE / "etc/cni/net.d/10-pods.conflist").write_text(network.substitute(values))


def start_containerd() -> None:
    first = places.STATE / "containerd-started"  # later starts in the same cluster must keep its containers
    if not first.exists() and (places.IMAGE_STORE / "io.containerd.metadata.v1.bolt/meta.db").exists():
        forget_old_containers()
    first.touch()
    launch_containerd("containerd.toml")


def launch_containerd(configuration: str) -> None:
    node.start("containerd", ["containerd", "-c", f"{control_plane.CERTIFICATES}/{configuration}"])
    commands.wait_for("containerd", lambda: commands.succeeds(ctr("version")), 30, places.LOGS / "containerd.log")


def forget_old_containers() -> None:
    """The store outlives the cluster for its images; the last cluster's containers are removed from it before the part
    that serves the kubelet starts, since that part would try to take them up again."""
    text = (places.KUBERNETES / "containerd.toml").read_text()
    without = text.replace("disabled_plugins = [", 'disabled_plugins = ["io.containerd.grpc.v1.cri", ', 1)
    (places.KUBERNETES / "containerd-store.toml").write_text(without)
    launch_containerd("containerd-store.toml")
    left = commands.run(ctr("containers", "ls", "-q"), "listing the last cluster's containers").split()
    if left:
        commands.run(ctr("containers", "rm", *left), "removing the last cluster's containers", seconds=120)
    forget_old_images()
    node.stop("containerd")
    for leftover in ("io.containerd.grpc.v1.cri", "io.containerd.runtime.v2.task"):
        shutil.rmtree(places.IMAGE_STORE / leftover, ignore_errors=True)


def forget_old_images() -> None:
    """Every build of the code leaves a name `:dev-HASH`; before any pod runs, only those that `:dev` stands for are kept."""
    listed = commands.run(ctr("images", "ls"), "listing the node's images").splitlines()[1:]
    digests = {fields[0]: fields[2] for line in listed if len(fields := line.split()) > 2}
    old = [
        name
        for name, digest in digests.items()
        if ":dev-" in name and digest != digests.get(name[: name.index(":dev-")] + ":dev")
    ]
    if old:
        commands.run(ctr("images", "rm", *old), "removing old images", seconds=120)


def start_kubelet() -> None:
    at = control_plane.CERTIFICATES
    node.make_cgroups()
    node.start("kubelet", [
        "kubelet", f"--config={at}/kubelet.yaml", f"--kubeconfig={at}/kubelet.kubeconfig",
        f"--hostname-override={addresses.NODE}", f"--node-ip={addresses.NODE_IP}", "--v=1",
    ])  # fmt: skip
    node.start("kube-proxy", ["kube-proxy", f"--config={at}/proxy.yaml"])


def wait_for_node() -> None:
    commands.wait_for(f"the node {addresses.NODE} to be Ready", is_ready, 90, places.LOGS / "kubelet.log")


def is_ready() -> bool:
    command = control_plane.kubectl("get", "node", addresses.NODE, "-o", "json")
    if not commands.succeeds(command):
        return False
    conditions = json.loads(commands.run(command, "reading the node"))["status"]["conditions"]
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def ctr(*arguments: str) -> list[str]:
    return ["ctr", "--address", str(places.CONTAINERD_SOCKET), "--namespace", "k8s.io", *arguments]
