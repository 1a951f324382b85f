#!/usr/bin/env bash
# The network namespace: the node's address on one end of a veth pair, and a default route, which kubelet and
# kube-proxy look for to find their address. It leads nowhere: the cluster cannot reach the outside.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ ! -e "/run/netns/$network" ] || exit 0
# The kubelet, containerd and CNI create these directories. `cluster down` removes those that did not exist before.
for directory in /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers /run/containerd /usr/libexec/kubernetes; do
  [ -e $directory ] || echo $directory
done > "$state/absent"
touch "$state/started"
ip netns add "$network"
# nsenter and not `ip netns exec`: the latter remounts /sys, which hides the cgroup file systems from the kubelet.
"${inside[@]}" ip link set lo up
"${inside[@]}" ip link add olmkit0 type veth peer name olmkit1
"${inside[@]}" ip address add "$node_ip/24" dev olmkit0
"${inside[@]}" ip link set olmkit0 up
"${inside[@]}" ip link set olmkit1 up
"${inside[@]}" ip route add default via "${node_ip%.*}.254" dev olmkit0
"${inside[@]}" sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
"${inside[@]}" sh -c 'echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables' 2>/dev/null || true   # needs br_netfilter; not all kernels have it as a module
say "network namespace $network"
