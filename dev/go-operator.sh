#!/usr/bin/env bash
# go-operator.sh [--node]: the workflow of a Go operator's author, with olmkit instead of operator-sdk and opm. Scaffolds an
# operator with a webhook (operator-sdk init, create api, create webhook), runs the scaffolded Makefile unmodified (bundle,
# bundle-build, bundle-push, catalog-build, catalog-push), compares the bundle with that of operator-sdk, validates it with
# both, and installs it with a real OLM: on a control plane (pods are marked as ready but do not run), or with --node on the
# local node, where the operator runs and its webhook answers. Needs Go and its module proxy, buildah, docker-registry, the
# programs of `dev/tools/build.sh control-plane upstream`, and `make build`.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-}
case $mode in "" | --node) ;; *) echo "error: $0 takes --node or nothing" >&2; exit 2 ;; esac
cluster=$PWD/dev/cluster/cluster
olmkit=$(realpath "${OLMKIT:-$(make -s --no-print-directory print-olmkit)}")
[ -x "$olmkit" ] || { echo "error: no $olmkit; run make build, or name a static olmkit in OLMKIT" >&2; exit 1; }
bin=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin
for program in go buildah docker-registry "$bin/operator-sdk" "$bin/olm"; do
  command -v "$program" > /dev/null || { echo "error: no ${program##*/}; see the head of $0" >&2; exit 1; }
done
cargo build --locked --quiet -p kube-testbed --features cli
testbed=${CARGO_TARGET_DIR:-$PWD/target}/$(rustc -vV | sed -n 's/^host: //p')/debug/kube-testbed
work=$(mktemp -d); registry=
trap '[ "$mode" != --node ] || "$cluster" down; [ -z "$registry" ] || kill "$registry"; chmod -R u+w "$work"; rm -rf "$work"' EXIT
unset MAKEFLAGS MAKELEVEL
if [ "$mode" = --node ]; then dev/tools/build.sh node; "$cluster" up; fi

port=$(shuf -i 20000-30000 -n 1) host=localhost:$port
printf 'version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/registry}}\nhttp: {addr: "127.0.0.1:%s"}\n' "$work" "$port" > "$work/registry.yaml"
docker-registry serve "$work/registry.yaml" > "$work/registry.log" 2>&1 & registry=$!
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/storage"\nrunroot = "%s/run"\n' "$work" "$work" > "$work/storage.conf"
printf '[[registry]]\nlocation = "%s"\ninsecure = true\n' "$host" > "$work/registries.conf"
export CONTAINERS_STORAGE_CONF=$work/storage.conf CONTAINERS_REGISTRIES_CONF=$work/registries.conf BUILDAH_ISOLATION=chroot
export OLMKIT_IMAGE_STORE=$work/store

echo "== scaffold"
mkdir "$work/gadget-operator"; cd "$work/gadget-operator"
sdk() { PATH=$bin:$PATH operator-sdk "$@" >> "$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }; }
sdk init --plugins go/v4 --domain example.com --repo example.com/gadget-operator --project-name gadget-operator
sdk create api --group tools --version v1alpha1 --kind Gadget --resource --controller
sdk create webhook --group tools --version v1alpha1 --kind Gadget --defaulting --programmatic-validation
names=(IMG="$host/gadget-operator:v0.0.1" IMAGE_TAG_BASE="$host/gadget-operator" CONTAINER_TOOL=buildah)

echo "== make bundle, with olmkit and with operator-sdk"
make bundle OPERATOR_SDK="$olmkit" "${names[@]}" < /dev/null
cp -a . "$work/upstream"
(cd "$work/upstream"; rm -rf bundle bundle.Dockerfile; PATH=$bin:$PATH make bundle "${names[@]}" < /dev/null >> "$work/log" 2>&1)
# The time of making is the only thing that may differ.
for folder in . "$work/upstream"; do sed 's/createdAt: .*/createdAt: now/' "$folder"/bundle/manifests/*.clusterserviceversion.yaml > "$folder/csv"; done
diff csv "$work/upstream/csv"; rm csv "$work/upstream/csv"
diff -r -x '*.clusterserviceversion.yaml' bundle "$work/upstream/bundle"
cmp bundle.Dockerfile "$work/upstream/bundle.Dockerfile"
"$bin/operator-sdk" bundle validate bundle 2>&1 | tail -n 1

echo "== make bundle-build bundle-push catalog-build catalog-push"
make bundle-build bundle-push "${names[@]}" > "$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }
make catalog-build OPM="$olmkit" "${names[@]}"
make catalog-push "${names[@]}" > "$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }
"$olmkit" bundle validate "$host/gadget-operator-bundle:v0.0.1" | tail -n 1
"$olmkit" catalog list bundles "$host/gadget-operator-catalog:v0.0.1"

echo "== install"
export olmkit
if [ "$mode" != --node ]; then
  "$testbed" run --olm bash -c '"$olmkit" run bundle bundle --namespace default --timeout 4m
    phase=$(kubectl -n default get csv gadget-operator.v0.0.1 -o "jsonpath={.status.phase}")
    hooks=$(kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o name | grep -c gadget)
    echo "$phase, $hooks webhook configurations"
    [ "$phase $hooks" = "Succeeded 2" ]' 2> "$work/log" || { tail -n 40 "$work/log" >&2; exit 1; }
else
  mkdir "$work/tree"
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$work/tree/manager" ./cmd
  # publish NAME KIND ARGUMENT…: whatever registry an image names, the node takes it from its own.
  publish() {
    "$olmkit" image build "${@:2}" --tag "localhost:5000/$1:v0.0.1" > /dev/null
    "$cluster" run "$olmkit" image push "localhost:5000/$1:v0.0.1" 2> /dev/null
  }
  publish gadget-operator directory "$work/tree" --user 65532:65532 --entrypoint /manager
  publish gadget-operator-bundle bundle bundle
  "$cluster" run bash -ec '
    kubectl create namespace gadgets
    "$olmkit" run bundle localhost:5000/gadget-operator-bundle:v0.0.1 --namespace gadgets --timeout 4m
    kubectl -n gadgets get csv,pods
    [ "$(kubectl -n gadgets get csv gadget-operator.v0.0.1 -o "jsonpath={.status.phase}")" = Succeeded ]
    # Both webhooks are called, and fail when they are not reached.
    kubectl -n gadgets apply -f config/samples/tools_v1alpha1_gadget.yaml
    kubectl -n gadgets logs deployment/gadget-operator-controller-manager | grep -E "(Defaulting|Validation) for Gadget"
    kubectl -n gadgets delete gadgets.tools.example.com --all
    "$olmkit" cleanup gadget-operator --namespace gadgets
    kubectl delete namespace gadgets'
fi
echo "all as it should be"
