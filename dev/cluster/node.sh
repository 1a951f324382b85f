#!/usr/bin/env bash
# The registry, containerd, kubelet, kube-proxy, CoreDNS.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir -p "$state"/{registry,containerd,cni,registries/_default,kubelet,pod-logs}

registry_configuration() {
  cat <<YAML
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $state/registry}, delete: {enabled: true}}
http: {addr: "127.0.0.1:${1##*:}"$2}
YAML
}
registry_configuration $registry "" > "$state/registry.yaml"
# operator-sdk ignores --use-http where it reads the labels of its index image, so there is TLS as well.
registry_configuration $registry_tls ", tls: {certificate: $pki/server.crt, key: $pki/server.key}" > "$state/registry-tls.yaml"
start registry docker-registry serve "$state/registry.yaml"
start registry-tls docker-registry serve "$state/registry-tls.yaml"
log_tails=registry wait_for 20 "registry ready" "${inside[@]}" curl -fsS http://$registry/v2/
"$here/images.sh"

# Whatever registry an image names, the local one serves it: the node cannot reach another.
cat > "$state/registries/_default/hosts.toml" <<TOML
server = "http://$registry"
[host."http://$registry"]
  capabilities = ["pull", "resolve"]
TOML
# restrict_oom_score_adj: without CAP_SYS_RESOURCE every pod sandbox would die with "can't get final child's PID".
cat > "$state/containerd.toml" <<TOML
version = 2
root = "$state/containerd"
state = "$sockets/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "$sockets/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$registry/dev/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$state/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$state/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      Root = "$sockets/runc"
TOML
cat > "$state/cni/10-bridge.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "olmkit-dev", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pod_range"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "$sockets/addresses"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
echo "nameserver $node_ip" > "$state/resolv.conf"
# failCgroupV1: the kubelet rejects hosts with cgroup v1 unless configured otherwise.
cat > "$state/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $pki/kubelet.crt
tlsPrivateKeyFile: $pki/kubelet.key
clusterDomain: cluster.local
clusterDNS: ["$node_ip"]
containerRuntimeEndpoint: unix://$sockets/containerd.sock
resolvConf: $state/resolv.conf
address: $node_ip
podLogsDir: $state/pod-logs
volumePluginDir: $state/kubelet/volume-plugins
evictionHard: {memory.available: "100Mi", nodefs.available: "1%", imagefs.available: "1%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
failSwapOn: false
registryPullQPS: 0
serializeImagePulls: false
YAML
# Two server blocks: within one, the template plugin would answer before the kubernetes plugin. Without the second,
# names outside of the cluster get REFUSED, which resolvers retry.
cat > "$state/Corefile" <<COREFILE
cluster.local:53 in-addr.arpa:53 {
    bind $node_ip
    errors
    health 127.0.0.1:8053
    ready 127.0.0.1:8054
    kubernetes cluster.local in-addr.arpa {
        kubeconfig $state/coredns.kubeconfig
    }
}
.:53 {
    bind $node_ip
    template ANY ANY {
        rcode NXDOMAIN
    }
}
COREFILE

start containerd containerd --config "$state/containerd.toml"
log_tails=containerd wait_for 30 "containerd ready" "${ctr[@]}" version
# The kubelet changes these for the whole machine; `cluster down` puts them back.
[ -f "$state/sysctl.saved" ] || sysctl vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes \
  > "$state/sysctl.saved" 2>/dev/null || true
start_kubelet() {
  start kubelet "$bin/kubelet" --config="$state/kubelet.yaml" --kubeconfig="$state/kubelet.kubeconfig" --root-dir="$state/kubelet" \
    --node-ip="$node_ip" --hostname-override="$node"
}
start_kubelet
start kube-proxy "$bin/kube-proxy" --kubeconfig="$state/kube-proxy.kubeconfig" --proxy-mode=iptables --hostname-override="$node" \
  --cluster-cidr=$pod_range --conntrack-max-per-core=0
"${kubectl[@]}" apply -f "$here/coredns-rbac.yaml" > /dev/null
start coredns "$bin/coredns" -conf "$state/Corefile"
# containerd answers before its part for the kubelet does, and a kubelet that comes too early ends: it is started again, as
# an init system would.
node_ready() { start_kubelet; [ "$("${kubectl[@]}" get node "$node" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
log_tails="kubelet containerd" wait_for 90 "node ready" node_ready
log_tails=coredns wait_for 30 "DNS ready" "${inside[@]}" curl -fsS http://127.0.0.1:8054/ready
