#!/usr/bin/env bash
# The end-to-end test: the demo's path, then the operator's promises on a real node, `make deploy` and `make undeploy`,
# and upstream's operator-sdk with our bundle images. Each check prints one line; the last line counts them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/story.sh"
. "$dev/e2e/helper-image.sh"
[ "$CLUSTER" = local ] || { echo "error: the end-to-end test makes and removes its own cluster; it does not run on another" >&2; exit 2; }
results=$root/dev/.state/e2e; mkdir -p "$results"
passed=0 failed=0

# check DESCRIPTION FUNCTION…: runs it in a subshell with errexit; its output is shown only when it fails.
check() {
  local description=$1 log code start=$SECONDS; shift
  log=$results/$(tr -c 'a-zA-Z0-9\n' '-' <<< "$description").log
  set +e; (set -euo pipefail; "$@") > "$log" 2>&1; code=$?; set -e
  if [ $code = 0 ]; then
    passed=$((passed + 1)); printf '%sok%s      %s (%ss)\n' "$green" "$plain" "$description" $((SECONDS - start))
  else
    failed=$((failed + 1)); printf '%sFAILED%s  %s (%ss)\n' "$red" "$plain" "$description" $((SECONDS - start)); tail -n 60 "$log" | sed 's/^/        /'
  fi
  return 0
}
finish() {
  local code=$?
  [ -n "${KEEP:-}" ] || "$dev/cluster/cluster" down
  printf '\nend-to-end test, %s s:\n%s passed, %s failed\n' "$(since)" "$passed" "$failed"
  [ "$failed" = 0 ] && exit $code; exit 1
}
trap finish EXIT

# inventory: every object of the cluster but those that come and go by themselves
inventory() {
  k api-resources --verbs=list -o name | grep -vE '^(events|leases|endpoints|endpointslices|componentstatuses|packagemanifests|replicasets|pods|controllerrevisions|ipaddresses)(\.|$)' \
    | paste -sd, - | xargs -I{} "$dev/cluster/cluster" run kubectl get {} -A --no-headers --ignore-not-found -o custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name \
    | sed 's/  */ /g' | sort
}
# same_inventory BEFORE [PATTERN]: what is there now and was not before, but for lines that match the pattern
same_inventory() {
  local end=$((SECONDS + 60)) rest
  while :; do
    rest=$(comm -13 "$1" <(inventory) | grep -vE "${2:-^\$}" || true)
    [ -n "$rest" ] || return 0
    [ $SECONDS -lt $end ] || { echo "left behind:"; echo "$rest"; return 1; }
    sleep 2
  done
}
eventually() { local limit=$1 end; shift; end=$((SECONDS + limit)); until "$@" > /dev/null 2>&1; do [ $SECONDS -lt $end ] || { echo "not within $limit s: $*"; "$@"; return 1; }; sleep 0.5; done; }
condition() { kn get memcached "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].$3}"; }
is() { [ "$("${@:2}")" = "$1" ]; }
contains() { [[ "$("${@:2}")" == *"$1"* ]]; }

# --- the operator's promises ---------------------------------------------------------------------------------------
service_returns() {
  local uid; uid=$(kn get service memcached-sample -o 'jsonpath={.metadata.uid}')
  kn delete service memcached-sample --wait=false
  other() { local now; now=$(kn get service memcached-sample -o 'jsonpath={.metadata.uid}') && [ -n "$now" ] && [ "$now" != "$uid" ]; }
  eventually 10 other
}
image_is_restored() {
  local image container; image=$(operand_image); container=$(kn get deployment memcached-sample -o 'jsonpath={.spec.template.spec.containers[0].name}')
  kn set image deployment/memcached-sample "$container=docker.io/dev/busybox:1"
  eventually 10 is "$image" operand_image
  eventually 120 is settled rollout
}
replicas() { kn get deployment memcached-sample -o 'jsonpath={.spec.replicas}'; }
replicas_are_restored() {
  local size; size=$(kn get memcached memcached-sample -o 'jsonpath={.spec.size}')
  kn scale deployment/memcached-sample --replicas=7
  eventually 10 is "$size" replicas
  eventually 120 is "Running with $size ready" memcached_state
}
memcached() { printf '{"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": "%s"}, "spec": %s}' "$1" "$2"; }
refused() {
  local name=$1 spec=$2 expected=$3 answer
  if answer=$(memcached "$name" "$spec" | kn apply -f - 2>&1); then echo "accepted: $answer"; return 1; fi
  grep -q "$expected" <<< "$answer" || { echo "refused, but not because of $expected: $answer"; return 1; }
}
missing_image_is_told() {
  memcached no-image '{"size": 1, "image": "docker.io/dev/missing:1"}' | kn apply -f -
  # The Deployment gives up after its progress deadline of two minutes; until then it is Progressing.
  eventually 180 contains docker.io/dev/missing:1 condition no-image Degraded message
  is False condition no-image Available status
  kn delete memcached no-image --timeout=60s
}
foreign_deployment_stays() {
  kn create deployment foreign --image=docker.io/dev/pause:1
  local uid; uid=$(kn get deployment foreign -o 'jsonpath={.metadata.uid}')
  memcached foreign '{"size": 2}' | kn apply -f -
  eventually 60 is True condition foreign Degraded status
  echo "reason: $(condition foreign Degraded reason): $(condition foreign Degraded message)"
  is docker.io/dev/pause:1 kn get deployment foreign -o 'jsonpath={.spec.template.spec.containers[0].image}'
  is "" kn get deployment foreign -o 'jsonpath={.metadata.ownerReferences}'
  kn delete memcached foreign --timeout=60s
  is "$uid" kn get deployment foreign -o 'jsonpath={.metadata.uid}'
  kn delete deployment foreign
}
others_go_on() {
  memcached broken '{"size": 1, "image": "docker.io/dev/missing:1"}' | kn apply -f -
  memcached fine '{"size": 1}' | kn apply -f -
  ready() { is "Running with 1 ready" kn get memcached fine -o 'jsonpath={.status.phase} with {.status.readyReplicas} ready'; }
  eventually 120 ready
  kn delete memcached broken fine --timeout=60s
}
deletion_takes_all_along() {
  kn delete memcached memcached-sample --timeout=60s
  none() { is "" kn get deployment,service,poddisruptionbudget,pod -l memcached_cr=memcached-sample -o name; }
  eventually 60 none
  contains "Custom Resource memcached-sample is being deleted from the namespace $NAMESPACE" kn get events.events.k8s.io -o 'jsonpath={.items[*].note}'
}

# --- without OLM ---------------------------------------------------------------------------------------------------
in_make() { in_cluster env CARGO_NET_OFFLINE=true make -s "$@"; }
deployed() {
  in_make deploy IMG="$(image_of "$work/new-bundle")"
  k -n memcached-operator-system rollout status deployment/memcached-operator-controller-manager --timeout=120s
  NAMESPACE=default
  kn apply -f config/samples/cache_v1alpha1_memcached.yaml
  eventually 120 is "Running with 2 ready" memcached_state
}
undeployed() {
  in_make undeploy
  same_inventory "$results/before"
}

# --- upstream ------------------------------------------------------------------------------------------------------
sdk() { in_cluster operator-sdk "$@" --timeout 3m -n "$NAMESPACE"; }
bundle_on_tls() { echo "localhost:5443/${base#*/}-bundle:v$1"; }
sdk_runs_bundle() {
  k create namespace "$NAMESPACE"
  sdk run bundle "$(bundle_on_tls "$old_version")" --index-image localhost:5443/operator-framework/opm:latest --decompression-image localhost:5000/dev/busybox:1
  eventually 10 is Succeeded csv_phase "$PACKAGE.v$old_version"
}
sample_runs() { kn apply -f config/samples/cache_v1alpha1_memcached.yaml; eventually 120 is "Running with 2 ready" memcached_state; }
sdk_upgrades() {
  sdk run bundle-upgrade "$(bundle_on_tls "$new_version")"
  eventually 60 is Succeeded csv_phase "$PACKAGE.v$new_version"
  eventually 120 is "$(operand_image_of "$work/new-bundle")" operand_image
}
sdk_cleans_up() {
  kn delete memcached --all --timeout=60s
  sdk cleanup "$PACKAGE"
  k delete namespace "$NAMESPACE" --timeout=120s
}
# Upstream's clean-up leaves these behind (its own bundles' as well as ours); the test removes them.
sdk_residue() {
  k delete clusterrole -l "olm.owner" --ignore-not-found
  k delete operators.operators.coreos.com --all
}

# --- the test ------------------------------------------------------------------------------------------------------
make -s build
dev/tools/build.sh node upstream
"$dev/cluster/cluster" up
stage
inventory > "$results/before"

echo; echo "the demo, step by step"
check "the demo runs to its end" "$dev/demo.sh"
echo; echo "the operator, installed by OLM"
check "a deleted Service is back at once" service_returns
check "an edited image is put back" image_is_restored
check "edited replicas are put back" replicas_are_restored
check "size -1 is refused by name" refused bad '{"size": -1}' spec.size
check "port 0 is refused by name" refused bad '{"containerPort": 0}' spec.containerPort
check "an image that does not exist is told in a condition" missing_image_is_told
check "a Deployment of somebody else is never taken over" foreign_deployment_stays
check "a broken Memcached does not hold up another" others_go_on
check "deletion takes everything along and says so" deletion_takes_all_along
check "the demo's objects can be removed" unsubscribe
check "nothing is left of it" same_inventory "$results/before"

echo; echo "the images that OLM runs in pods"
check_helper_image

echo; echo "without OLM"
check "make deploy runs the operator and a Memcached" deployed
check "make undeploy leaves nothing" undeployed

echo; echo "upstream's operator-sdk with our bundle images"
NAMESPACE=upstream
check "operator-sdk run bundle" sdk_runs_bundle
check "a Memcached runs" sample_runs
check "operator-sdk run bundle-upgrade" sdk_upgrades
check "operator-sdk cleanup" sdk_cleans_up
check "what operator-sdk leaves behind is known and can be removed" sdk_residue
check "nothing else is left" same_inventory "$results/before"
