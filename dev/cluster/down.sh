#!/usr/bin/env bash
# Stops everything that `cluster up` started, by the recorded process numbers; removes containers, mounts, control
# groups and network namespaces; puts kernel settings back. Kept: certificates, images, logs. --purge removes them too.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
if [ ! -d "$state" ]; then say "nothing to stop"; exit 0; fi

ask_to_stop kubelet coredns kube-proxy kube-scheduler kube-controller-manager
stop kubelet
if alive containerd; then
  tasks=$("${ctr[@]}" tasks ls -q 2>/dev/null)
  for task in $tasks; do "${ctr[@]}" tasks kill -s SIGKILL "$task"; done > /dev/null 2>&1
  for _ in $(seq 25); do [ -n "$tasks" ] && "${ctr[@]}" tasks ls 2>/dev/null | grep -q RUNNING || break; sleep 0.2; done
  for task in $tasks; do "${ctr[@]}" tasks rm -f "$task"; done > /dev/null 2>&1
  for container in $("${ctr[@]}" containers ls -q 2>/dev/null); do "${ctr[@]}" containers rm "$container"; done > /dev/null 2>&1
  say "containers removed"
fi
ask_to_stop containerd registry registry-tls kube-apiserver
for name in coredns kube-proxy kube-scheduler kube-controller-manager registry registry-tls containerd kube-apiserver etcd; do stop $name 5; done
# Processes that drills started and could not stop.
for left in "$pids"/*; do [ ! -e "$left" ] || stop "${left##*/}" 5; done
say "processes stopped"

# Mounts below our directories, deepest first.
awk '{ print $2 }' /proc/mounts | grep -E "^($state|$sockets)(/|\$)" | sort -r | while read -r mount; do umount "$mount" 2>/dev/null || umount -l "$mount"; done
if [ -e "/run/netns/$network" ]; then
  # containerd's namespaces for pods, made after ours.
  for namespace in /run/netns/cni-*; do
    if [ -e "$namespace" ] && [ "$namespace" -nt "$state/started" ]; then umount "$namespace" 2>/dev/null; rm -f "$namespace"; fi
  done
  ip netns del "$network"
fi
for group in /sys/fs/cgroup/*/kubepods /sys/fs/cgroup/kubepods; do
  [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
done
if [ -f "$state/sysctl.saved" ]; then sysctl -q -p "$state/sysctl.saved" > /dev/null 2>&1; rm -f "$state/sysctl.saved"; fi
# Directories at fixed paths that the kubelet and containerd created.
if [ -f "$state/absent" ]; then
  while read -r directory; do mountpoint -q "$directory" || rm -rf "$directory"; done < "$state/absent"
  rm -f "$state/absent"
fi
rm -rf "$state/etcd" "$state/kubelet" "$state/pod-logs" "$state/started" "$sockets"
[ "${1:-}" != --purge ] || rm -rf "$state"
say "the cluster is down"
