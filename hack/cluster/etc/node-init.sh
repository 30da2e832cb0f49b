#!/bin/bash
# node-init.sh STATE IMAGE_STORE: process 1 of the node, in pid, mount, net, uts and ipc namespaces of its own.
# Each folder that the node's programs write to is a bind mount of one in STATE; the host's own stays as it was.
set -euo pipefail
state=$1 store=$2

mount --make-rshared / # the kubelet propagates mounts into pods
place() { # source target
  if [ ! -d "$2" ]; then
    mkdir "$2"
    echo "$2" >>"$state/made-folders" # a mount point on the host's disk, for `down` to remove
  fi
  mkdir -p "$1"
  mount --bind "$1" "$2"
}
place "$store" /var/lib/containerd
for folder in var/lib/kubelet var/lib/cni var/lib/etcd var/log etc/kubernetes etc/cni srv run; do
  place "$state/$folder" "/$folder"
done
mkdir -p /run/lock /etc/cni/net.d /var/log/audit
mkdir -p -m 1777 /srv/volumes
chmod 1777 /srv/volumes # any user of a pod may write there, whatever the umask

hostname node1
ip link set lo up
sysctl -q -w net.ipv4.ip_forward=1
sysctl -q -w net.bridge.bridge-nf-call-iptables=1 2>/dev/null || true # absent until a bridge exists on some kernels

touch "$state/init-ready"
# With SIGCHLD ignored the kernel reaps the orphans of the containers' shims: no init program is needed.
exec env --ignore-signal=CHLD sleep infinity
