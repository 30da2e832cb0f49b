"""The addresses and names of the cluster; all but the host's end of the link are in the node's namespace."""

import ipaddress

NODE = "node1"
LINK = "srl-node"  # the host's end of the veth pair; at most 15 characters
CGROUP = "simplerl"

LINK_NET = ipaddress.IPv4Network("10.99.0.0/30")
HOST_IP, NODE_IP = "10.99.0.1", "10.99.0.2"
SERVICE_NET = ipaddress.IPv4Network("10.96.0.0/16")
API_IP, DNS_IP = "10.96.0.1", "10.96.0.10"
POD_NET = ipaddress.IPv4Network("10.244.0.0/16")

TEMPLATE = {
    "node": NODE,
    "node_ip": NODE_IP,
    "service_net": str(SERVICE_NET),
    "dns_ip": DNS_IP,
    "pod_net": str(POD_NET),
    "cgroup": CGROUP,
}
