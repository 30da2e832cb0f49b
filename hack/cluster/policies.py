"""NetworkPolicies, enforced in the node by kube-router's controller where they are asked for."""

from . import addresses, commands, control_plane, node, packages, places, programs

PROGRAM = "kube-router"


def enforce() -> None:
    """Starts the controller in a cluster that runs. Pods of one node meet on a bridge, whose traffic the kernel shows
    to iptables by br_netfilter."""
    programs.build_missing(PROGRAM)
    programs.link_into(places.PROGRAMS)
    packages.install(packages.absent({"ipset": "ipset"}))
    commands.run(node.inside(["sysctl", "-q", "-w", "net.bridge.bridge-nf-call-iptables=1"]), "filtering the bridge")
    node.start(PROGRAM, [
        PROGRAM, f"--kubeconfig={control_plane.CERTIFICATES}/admin.kubeconfig", f"--node={addresses.NODE}",
        f"--services={addresses.SERVICE_NET}",
    ])  # fmt: skip
    commands.wait_for("kube-router's rules", in_place, 60, places.LOGS / f"{PROGRAM}.log")


def in_place() -> bool:
    rules = commands.run(node.inside(["iptables", "-w", "-S", "FORWARD"]), "reading the node's rules")
    return "KUBE-ROUTER-FORWARD" in rules
