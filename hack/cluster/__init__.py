"""A real one-node Kubernetes on one Linux machine, without a container registry.

The node is one process in namespaces of its own (pid, mount, net, uts, ipc) and everything else runs inside them, so
that taking it down is one kill: the kernel then ends every process and drops the mounts, links and iptables rules. What
the host sees is one veth link, two routes, one cgroup and a state folder; `down` removes these.
"""
