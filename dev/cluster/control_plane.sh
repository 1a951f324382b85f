#!/usr/bin/env bash
# etcd, kube-apiserver, kube-controller-manager, kube-scheduler.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

assets() { if [ -x "${KUBEBUILDER_ASSETS:-}/$1" ]; then echo "$KUBEBUILDER_ASSETS/$1"; else echo "$bin/$1"; fi; }
mkdir -p "$state/etcd"; chmod 700 "$state/etcd"
start etcd "$(assets etcd)" --data-dir "$state/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --logger=zap
log_tails=etcd wait_for 30 "etcd healthy" "${inside[@]}" curl -fsS http://127.0.0.1:2379/health

start kube-apiserver "$(assets kube-apiserver)" --etcd-servers=http://127.0.0.1:2379 --advertise-address="$node_ip" --bind-address=0.0.0.0 --secure-port=6443 \
  --service-cluster-ip-range=$service_range --authorization-mode=Node,RBAC --client-ca-file="$pki/ca.crt" \
  --tls-cert-file="$pki/server.crt" --tls-private-key-file="$pki/server.key" \
  --kubelet-client-certificate="$pki/kubelet-client.crt" --kubelet-client-key="$pki/kubelet-client.key" \
  --kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
  --service-account-issuer=https://kubernetes.default.svc.cluster.local \
  --service-account-key-file="$pki/service-accounts.pub" --service-account-signing-key-file="$pki/service-accounts.key" \
  --requestheader-client-ca-file="$pki/front-proxy.crt" --requestheader-allowed-names=front-proxy-client \
  --requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-group-headers=X-Remote-Group --requestheader-username-headers=X-Remote-User \
  --proxy-client-cert-file="$pki/front-proxy-client.crt" --proxy-client-key-file="$pki/front-proxy-client.key" \
  --enable-aggregator-routing=true --allow-privileged=true
# Aggregator routing: the server calls extension servers and webhooks by pod address, without kube-proxy.
log_tails="kube-apiserver etcd" wait_for 120 "API server ready" "${kubectl[@]}" get --raw /readyz

start kube-controller-manager "$bin/kube-controller-manager" --kubeconfig="$state/kube-controller-manager.kubeconfig" --root-ca-file="$pki/ca.crt" \
  --service-account-private-key-file="$pki/service-accounts.key" --cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" \
  --use-service-account-credentials=true --bind-address=127.0.0.1 --leader-elect=false
start kube-scheduler "$bin/kube-scheduler" --kubeconfig="$state/kube-scheduler.kubeconfig" --bind-address=127.0.0.1 --leader-elect=false
