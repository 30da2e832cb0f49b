"""The kubelet and kube-proxy, and the configuration of all that runs pods."""

import json
import resource
import string

from . import addresses, commands, containerd, control_plane, node, packages, places

CONFIGURATION = ("containerd.toml", "kubelet.yaml", "proxy.yaml", "audit-policy.yaml")


def write_configuration() -> None:
    """The files of etc/, with this machine's and our addresses' values filled in."""
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    values = {
        **addresses.TEMPLATE,
        "pause": containerd.PAUSE,
        "cni_folder": str(packages.cni_folder()),
        "open_files": str(1_000_000 if hard_limit == resource.RLIM_INFINITY else min(hard_limit, 1_000_000)),
    }
    for name in CONFIGURATION:
        template = string.Template((places.CONFIGURATION / name).read_text())
        (places.KUBERNETES / name).write_text(template.substitute(values))
    (places.KUBERNETES / "resolv.conf").write_text("")  # there is nothing outside for pods to resolve
    network = string.Template((places.CONFIGURATION / "pods.conflist").read_text())
    (places.STATE / "etc/cni/net.d/10-pods.conflist").write_text(network.substitute(values))


def start() -> None:
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
