#!/usr/bin/env bash
# Compares the cost of memcached-operator with the Go operator that operator-sdk scaffolds for memcached (deploy-image plugin), in
# one run on one API server. Prints a Markdown table. The Go operator uses a current controller-runtime. Its second column has a
# cache without managed fields. Its reconciler needs all other fields: it updates whole Deployments from the cache, and they have no
# label to select them by. All run without leader election, metrics and probes.
#
#   PROFILE=dist        Cargo profile of memcached-operator and of the measuring programs (default dev)
#   COUNTS=1000,10000   numbers of objects for memory and new lists; SETTLE=200,1000 those that are created at once
#   REST=60             seconds of rest; CHURN=600 adds so many seconds with RATE=100 changes each
#   PEER=DIRECTORY      where the Go operator is built and kept (default: bench-peer in the cache directory)
#
# Needs Go and its module proxy, and the programs of `dev/tools/build.sh control-plane upstream`. With the numbers above a column takes
# 15 to 25 minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
repository=$PWD cache=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}
profile=${PROFILE:-dev} peer=${PEER:-$cache/bench-peer} controller_runtime=v0.24.1
export PATH=$cache/bin:$PATH
for program in go operator-sdk etcd kube-apiserver; do
  command -v "$program" > /dev/null || { echo "error: no $program; see the head of $0" >&2; exit 1; }
done

# peer: scaffolds and builds default and trimmed into $peer/.
peer() {
  local work=$1/memcached-operator
  mkdir -p "$work"; cd "$work"
  operator-sdk init --plugins go/v4 --domain peer.example.com --repo example.com/memcached-operator --project-name memcached-operator
  operator-sdk create api --group cache --version v1alpha1 --kind Memcached --plugins deploy-image/v1-alpha --make=false \
    --image docker.io/library/memcached:1.6.45-alpine --image-container-command "memcached,-m,64,-o,modern,-v" \
    --image-container-port 11211 --run-as-user 1001
  go get "sigs.k8s.io/controller-runtime@$controller_runtime"
  go mod tidy
  make generate manifests
  export CGO_ENABLED=0
  go build -o ../default ./cmd
  sed -i 's#^import (#import (\n\t"sigs.k8s.io/controller-runtime/pkg/cache"#
    s#^\t\tScheme:  *scheme,#\t\tScheme: scheme,\n\t\tCache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()},#' cmd/main.go
  grep -q 'cache.Options' cmd/main.go
  go build -o ../trimmed ./cmd
  cp config/crd/bases/cache.peer.example.com_memcacheds.yaml ../definition.yaml
}
if [ ! -x "$peer/trimmed" ]; then
  work=$(mktemp -d); trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
  (peer "$work") > "$work/log" 2>&1 < /dev/null || { tail -n 30 "$work/log" >&2; exit 1; }
  mkdir -p "$peer"; cp "$work"/{default,definition.yaml,trimmed} "$peer/"
fi

target=${CARGO_TARGET_DIR:-target}/$(rustc -vV | sed -n 's/^host: //p')
cargo build --locked --quiet -p memcached-operator --profile "$profile"
cargo build --locked --quiet -p kube-testbed --features cli --example measure_operator --profile "$profile"
programs=$target/$([ "$profile" = dev ] && echo debug || echo "$profile") rust=$programs/memcached-operator
size() { awk -v plain="$(stat -c %s "$1")" -v packed="$(gzip -9c "$1" | wc -c)" 'BEGIN { printf "%.1f MB, %.1f MB packed", plain / 1e6, packed / 1e6 }'; }
"$programs/examples/measure_operator" --counts "${COUNTS:-1000,10000}" --settle "${SETTLE:-200,1000}" --rest "${REST:-60}" --churn "${CHURN:-0}" --rate "${RATE:-100}" \
  --operator "memcached-operator ($profile)=$rust,$repository/config/crd/bases/cache.example.com_memcacheds.yaml" \
  --operator "Go, as scaffolded=$peer/default,$peer/definition.yaml" \
  --operator "Go, trimmed cache=$peer/trimmed,$peer/definition.yaml"
echo "| size of the program (the image without its base) | $(size "$rust") | $(size "$peer/default") | $(size "$peer/trimmed") |"
