# Sourced by demo.sh and e2e.sh: the cluster they talk to, messages, waiting, and the steps both share.
#
#   CLUSTER    `local` (default): the node of dev/cluster; `current`: whatever kubectl talks to, with REGISTRY=host/path
#   PACKAGE    the operator's package; versions come from the committed bundles
dev=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$dev/.." && pwd)
cd "$root"
CLUSTER=${CLUSTER:-local}
PACKAGE=memcached-operator
NAMESPACE=${NAMESPACE:-memcached-demo}
work=$root/dev/.state/story
cache=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}
begin=$(date +%s); export OLMKIT_BEGIN=$begin

bold=; green=; red=; plain=
if [ -t 1 ]; then bold=$'\033[1m'; green=$'\033[32m'; red=$'\033[31m'; plain=$'\033[0m'; fi
since() { echo $(($(date +%s) - begin)); }
step() { printf '\n%s== %s%s  (%ss)\n' "$bold" "$*" "$plain" "$(since)"; }
note() { printf '   %s\n' "$*"; }
# show COMMAND…: prints the command as a reader would type it, and its output
show() {
  local said=$*
  case $1 in kn) said="kubectl -n $NAMESPACE ${*:2}" ;; k) said="kubectl ${*:2}" ;; esac
  printf '   $ %s\n' "$said"; "$@" | sed 's/^/   /'
}
fail() { printf '%serror: %s%s\n' "$red" "$*" "$plain" >&2; explain >&2; exit 1; }

case $CLUSTER in
  local)
    busybox=docker.io/dev/busybox:1   # the cluster's own; it cannot reach another registry
    in_cluster() { "$dev/cluster/cluster" run "$@"; }
    REGISTRY=localhost:5000 ;;
  current)
    busybox=${BUSYBOX_IMAGE:-docker.io/library/busybox:stable}
    in_cluster() { "$@"; }
    [ -n "${REGISTRY:-}" ] || { echo "error: CLUSTER=current needs REGISTRY=host/path, a registry that this machine and the cluster's nodes reach" >&2; exit 2; } ;;
  *) echo "error: CLUSTER is 'local' or 'current', not '$CLUSTER'" >&2; exit 2 ;;
esac
k() { in_cluster kubectl "$@"; }
kn() { in_cluster kubectl -n "$NAMESPACE" "$@"; }

# Prints the state of the cluster after a failed step; each line may fail.
explain() {
  echo "--- what the cluster says"
  kn get catalogsource,subscription,installplan,csv,memcached,deployment,pod -o wide 2>&1 || true
  kn get events --sort-by=.lastTimestamp 2>/dev/null | tail -n 12 || true
  kn get subscriptions.operators.coreos.com -o 'jsonpath={range .items[*].status.conditions[?(@.status=="True")]}{.type}: {.message}{"\n"}{end}' 2>/dev/null || true
  kn logs deployment/memcached-operator-controller-manager --tail=15 2>/dev/null || true
}

# wait_until SECONDS WHAT WANTED COMMAND…: polls the command until it prints the wanted text, and prints each change.
wait_until() {
  local limit=$1 what=$2 wanted=$3 end seen=- now; shift 3
  end=$(($(date +%s) + limit))
  while :; do
    now=$("$@" 2>/dev/null || true)
    if [ "$now" != "$seen" ]; then printf '   [%3ss] %s: %s\n' "$(since)" "$what" "${now:-nothing yet}"; seen=$now; fi
    [ "$now" != "$wanted" ] || return 0
    [ "$(date +%s)" -lt "$end" ] || fail "$what is '${now:-nothing}' and not '$wanted' after $limit s"
    sleep 1
  done
}

csv_phase() { kn get csv "$1" -o 'jsonpath={.status.phase}'; }
catalog_state() { kn get catalogsource "$PACKAGE-catalog" -o 'jsonpath={.status.connectionState.lastObservedState}'; }
memcached_state() { kn get memcached memcached-sample -o 'jsonpath={.status.phase} with {.status.readyReplicas} ready'; }
operand_pods() { kn get pods -l memcached_cr=memcached-sample --sort-by=.metadata.name -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].restartCount}{"\n"}{end}'; }
operand_image() { kn get deployment memcached-sample -o 'jsonpath={.spec.template.spec.containers[0].image}'; }

# --- images --------------------------------------------------------------------------------------------------------
version_of() { sed -n 's/^  version: *//p' "$1"/manifests/*.clusterserviceversion.yaml; }
image_of() { sed -n 's/^ *containerImage: *//p' "$1"/manifests/*.clusterserviceversion.yaml; }

# stage: copies the committed bundles and the catalog to $work. On the local node, whose runtime takes every image from
# the local registry whatever its name, they are used as they are; elsewhere the image names get REGISTRY's prefix.
stage() {
  rm -rf "$work"; mkdir -p "$work/catalog"
  old_version=$(ls releases | sort -V | tail -n 1)
  cp -r "releases/$old_version/bundle" "$work/old-bundle"
  # Its image is built from today's source, which needs permissions that the old version did not.
  local all="create, delete, get, list, patch, watch" rules
  rules=$(printf '        - apiGroups: [%s]\\n          resources: [%s]\\n          verbs: [%s]\\n' \
    discovery.k8s.io endpointslices "list, watch" apps statefulsets "$all" networking.k8s.io networkpolicies "$all" \
    '""' "configmaps, secrets" "$all" '""' pods/resize patch)
  sed -i "/^      permissions:/,/^        serviceAccountName/ s/^        serviceAccountName/$rules&/" \
    "$work/old-bundle/manifests/memcached-operator.clusterserviceversion.yaml"
  cp -r bundle "$work/new-bundle"
  cp -r catalog "$work/catalog/both"
  new_version=$(version_of bundle)
  base=$(image_of bundle); base=${base%:*}
  if [ "$CLUSTER" = current ]; then
    grep -rl "$base" "$work" | xargs sed -i "s#$base#$REGISTRY/${base##*/}#g"
    base=$REGISTRY/${base##*/}
  fi
}
# reach IMAGE: the name under which this machine pushes the image
reach() { case $CLUSTER in local) echo "$REGISTRY/${1#*/}" ;; *) echo "$1" ;; esac; }

olmkit=$(make -s --no-print-directory print-olmkit)
operator=$(make -s --no-print-directory print-operator)
export OLMKIT_IMAGE_STORE=$root/dev/.state/images
# publish KIND ARGUMENTS IMAGE: builds an image and pushes it
publish() {
  local kind=$1 from=$2 image=$3 target
  target=$(reach "$image")
  "$olmkit" image build "$kind" "$from" --tag "$target" > /dev/null
  in_cluster "$olmkit" image push "$target" 2> "$work/push.log" | sed 's/^/   pushed /' || { cat "$work/push.log" >&2; fail "$target was not pushed"; }
}

publish_images() {
  local version
  for version in old new; do
    publish operator "$operator" "$(image_of "$work/$version-bundle")"
    publish bundle "$work/$version-bundle" "$base-bundle:v$(version_of "$work/$version-bundle")"
  done
}
# publish_catalog old|both: the catalog of the older version alone, or of both, under one tag that OLM polls.
publish_catalog() {
  [ "$1" = both ] || [ -d "$work/catalog/$1" ] || catalog_of_old
  publish catalog "$work/catalog/$1" "$base-catalog:latest"
}
operand_image_of() { awk '/name: (RELATED_IMAGE_MEMCACHED|MEMCACHED_IMAGE)$/ { getline; print $2; exit }' "$1"/manifests/*.clusterserviceversion.yaml; }

# --- steps ---------------------------------------------------------------------------------------------------------
# The local node installs OLM when it starts; elsewhere it must be there.
install_olm() {
  k get crd clusterserviceversions.operators.coreos.com > /dev/null 2>&1 \
    || fail "OLM is not installed in this cluster; see https://olm.operatorframework.io, or \`olmkit olm install\`"
}
subscribe() {
  k create namespace "$NAMESPACE" --dry-run=client -o yaml | k apply -f - | sed 's/^/   /'
  k apply -f - <<YAML | sed 's/^/   /'
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: $PACKAGE-catalog
  namespace: $NAMESPACE
spec:
  sourceType: grpc
  image: $base-catalog:latest
  displayName: Memcached demo
  grpcPodConfig:
    securityContextConfig: restricted
  updateStrategy:
    registryPoll:
      interval: 15s
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: $PACKAGE
  namespace: $NAMESPACE
spec:
  targetNamespaces: [$NAMESPACE]
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: $PACKAGE
  namespace: $NAMESPACE
spec:
  name: $PACKAGE
  channel: alpha
  source: $PACKAGE-catalog
  sourceNamespace: $NAMESPACE
  installPlanApproval: Automatic
YAML
}
# A pod of the cluster speaks memcached's protocol to the Service's name; one connection, so one of its pods answers.
talk_to_memcached() {
  kn delete pod memcached-client --ignore-not-found --wait > /dev/null
  kn run memcached-client --image="$busybox" --restart=Never --quiet --command -- \
    sh -c "printf 'set greeting 0 0 5\r\nhello\r\nget greeting\r\nquit\r\n' | nc memcached-sample 11211" > /dev/null
  wait_until 300 "client pod" Succeeded kn get pod memcached-client -o 'jsonpath={.status.phase}' >&2
  kn logs memcached-client | tr -d '\r'
  kn delete pod memcached-client --wait=false > /dev/null
}
rollout() { kn rollout status deployment/memcached-sample --watch=false | grep -q 'successfully rolled out' && echo settled; }
# unsubscribe: deletes the custom resources first, while the operator can still finalize them; then the objects that OLM
# installed, in an order in which none is created again; then the namespace.
unsubscribe() {
  kn delete memcacheds.cache.example.com --all --ignore-not-found --timeout=300s
  kn delete subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com,catalogsources.operators.coreos.com --all --timeout=300s
  k delete namespace "$NAMESPACE" --ignore-not-found --timeout=300s
  k delete crd memcacheds.cache.example.com --ignore-not-found --timeout=300s
  # OLM leaves a bundle's ClusterRoles.
  local role; for role in bundle/manifests/*_clusterrole.yaml; do k delete --ignore-not-found -f "$role"; done
  k delete operators.operators.coreos.com "$PACKAGE.$NAMESPACE" --ignore-not-found --timeout=300s
}
catalog_of_old() { OLMKIT=$olmkit "$dev/catalog.sh" "$work/catalog/old" "$base-bundle:v{{.Version}}" "$work/old-bundle" > "$work/catalog.log" 2>&1 || { cat "$work/catalog.log" >&2; fail "the catalog of $old_version cannot be rendered"; }; }
