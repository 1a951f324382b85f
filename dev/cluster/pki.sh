#!/usr/bin/env bash
# Creates certificates and kubeconfigs once: an authority, another one for the API server's proxy (extension API servers need it
# to know their users), and the certificates that they sign.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ ! -f "$pki/complete" ] || exit 0
mkdir -p "$pki"; cd "$pki"

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key" 2>/dev/null; }
authority() {
  key "$1"
  openssl req -x509 -new -key "$1.key" -days 3650 -subj "/CN=olmkit-dev-$1" -out "$1.crt" -addext keyUsage=critical,keyCertSign,digitalSignature 2>/dev/null
}
# leaf FILE SUBJECT AUTHORITY [EXTENSIONS]
leaf() {
  key "$1"
  openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA "$3.crt" -CAkey "$3.key" -CAcreateserial -days 3650 -out "$1.crt" \
    -extfile <(printf 'keyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth,serverAuth\n%s\n' "${4:-}") 2>/dev/null
  rm "$1.csr"
}
kubeconfig() {
  cat > "$state/$1.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: olmkit-dev, cluster: {server: "https://$node_ip:6443", certificate-authority: $pki/ca.crt}}]
users: [{name: $1, user: {client-certificate: $pki/$1.crt, client-key: $pki/$1.key}}]
contexts: [{name: $1, context: {cluster: olmkit-dev, user: $1}}]
current-context: $1
YAML
}

authority ca
authority front-proxy
leaf server /CN=kube-apiserver ca "subjectAltName=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:127.0.0.1,IP:$node_ip,IP:10.96.0.1"
leaf kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client ca
leaf front-proxy-client /CN=front-proxy-client front-proxy
leaf kubelet "/O=system:nodes/CN=system:node:$node" ca "subjectAltName=DNS:$node,IP:$node_ip"
leaf admin /O=system:masters/CN=admin ca
for user in kube-controller-manager kube-scheduler kube-proxy coredns; do leaf $user /CN=system:$user ca; done
for user in admin kubelet kube-controller-manager kube-scheduler kube-proxy coredns; do kubeconfig $user; done
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out service-accounts.key 2>/dev/null
openssl rsa -in service-accounts.key -pubout -out service-accounts.pub 2>/dev/null
# For clients of the TLS registry: the authorities of this machine and ours.
cat /etc/ssl/certs/ca-certificates.crt ca.crt > "$state/certificates.pem" 2>/dev/null || cp ca.crt "$state/certificates.pem"
touch complete
say "certificates"
