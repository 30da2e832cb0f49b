"""The verbs: up, down, status."""

import hashlib
import shutil
from concurrent.futures import ThreadPoolExecutor

from . import (
    addons,
    addresses,
    certificates,
    checks,
    commands,
    containerd,
    control_plane,
    kubelet,
    node,
    packages,
    places,
    policies,
    programs,
)
from .errors import ClusterError

DAEMONS = (
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "containerd", "kubelet", "kube-proxy",
)  # fmt: skip


def version_key() -> str:
    """Two clones with the same key run the same cluster."""
    digest = hashlib.sha256("".join(p.key for p in programs.PROGRAMS if not p.optional).encode())
    optional = {p.name for p in programs.PROGRAMS if p.optional}
    for path in sorted(places.CONFIGURATION.rglob("*")):
        if path.relative_to(places.CONFIGURATION).parts[0] in optional:
            continue
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:12]


def up(*, kueue: bool = False, network_policy: bool = False) -> None:
    """Starts the cluster, or what is missing of it; what is added to it stays until it goes."""
    checks.is_linux()
    checks.is_root()
    packages.require_cluster()
    with places.locked("cluster", "starting or stopping the cluster"):
        if node.init_pid() is None:
            checks.before_start()
            programs.build_missing()
            addons.module_manifest("kuberay")
            node.remove()  # what a node leaves that was ended from outside, by a reboot for one
            checks.networks_are_free()
            node.create()
            (places.STATE / "version").write_text(version_key())
            programs.link_into(places.PROGRAMS)
        elif (places.STATE / "version").read_text() != version_key():
            commands.say(
                "the running cluster has other versions or settings: `make cluster-down` first for this clone's"
            )
            return
        node.connect()
        commands.say("node's namespaces")
        certificates.make(places.KUBERNETES)
        kubelet.write_configuration()
        start()
        if kueue:
            addons.add_kueue()
            commands.say("Kueue available")
        if network_policy:
            policies.enforce()
            commands.say("NetworkPolicies are enforced")
    commands.say(f"cluster is up: export KUBECONFIG={places.KUBECONFIG}")


def start() -> None:
    """Each part starts as soon as what it needs is there."""
    with ThreadPoolExecutor(2) as background:
        control_plane.start_etcd()
        control_plane.start_api_server()
        images = background.submit(start_containers)
        control_plane.wait_for_api_server()
        commands.say("API server ready")
        control_plane.start_controllers()
        manifests = background.submit(addons.apply_manifests)
        images.result()
        kubelet.start()
        kubelet.wait_for_node()
        commands.say("node Ready")
        manifests.result()
    addons.wait_until_available()
    commands.say("CoreDNS and KubeRay available")


def start_containers() -> None:
    containerd.start()
    addons.import_images()


def down(purge: bool) -> None:
    checks.is_linux()
    checks.is_root()
    with places.locked("cluster", "starting or stopping the cluster"):
        node.remove()
        if purge:
            shutil.rmtree(places.IMAGE_STORE, ignore_errors=True)
    commands.say("cluster is down")


def kubeconfig() -> None:
    if not places.KUBECONFIG.exists():
        raise ClusterError("no embedded cluster runs on this machine: start it by `make cluster-up`")
    print(places.KUBECONFIG)


def status() -> None:
    if node.init_pid() is None:
        print("the embedded cluster is down: start it by `make cluster-up`")
        return
    rows = [
        ("API server", f"https://{addresses.NODE_IP}:6443"),
        ("kubeconfig", places.KUBECONFIG),
        ("programs", places.PROGRAMS),
        ("audit log", places.AUDIT_LOG),
        ("logs", places.LOGS),
        ("containerd", places.CONTAINERD_SOCKET),
        ("volumes", f"{places.VOLUMES} (to pods: hostPath {places.VOLUMES_IN_NODE})"),
        ("services", addresses.SERVICE_NET),
        ("pods", addresses.POD_NET),
    ]
    rows += [
        (daemon, "runs" if node.runs(daemon) else f"does not run: see {places.LOGS}/{daemon}.log") for daemon in DAEMONS
    ]
    rows += [(p.name, p.version) for p in programs.PROGRAMS if p.module and p.is_built]
    for name, value in rows:
        print(f"{name:24}{value}")
    print("\nimages")
    for name in sorted(containerd.images()):
        if not name.startswith("sha256:"):
            print(f"  {name}")
    print()
    print(
        commands.run(control_plane.kubectl("get", "pods", "--all-namespaces", "--output=wide"), "listing pods"), end=""
    )
