# Sourced by e2e.sh and drills.sh: checks that print one line each and are counted, and their helper functions.
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
    printf '        run it alone: %s%s\n        log: %s\n' "${repeat:-dev/e2e.sh}" "${flow:+ $flow}" "$log"
  fi
  return 0
}
finish() {
  local code=$?
  [ -n "${KEEP:-}" ] || "$dev/cluster/cluster" down
  printf '\n%s, %s s:\n%s passed, %s failed\n' "${title:-end-to-end test}" "$(since)" "$passed" "$failed"
  [ "$failed" = 0 ] && exit $code; exit 1
}

# shuffled SEED WORD…: the words in an order that the seed decides; 0 leaves them as they are. The generator is written out, so
# that the order does not depend on the machine.
shuffled() {
  local state=$1 words=("${@:2}") at other; shift
  if [ "$state" != 0 ]; then
    for ((at = $# - 1; at > 0; at--)); do
      state=$(((state * 1103515245 + 12345) % 2147483648)); other=$((state / 65536 % (at + 1)))
      set -- "${words[at]}" "${words[other]}"; words[at]=$2; words[other]=$1
    done
  fi
  echo "${words[*]}"
}

# inventory: every object of the cluster but those that come and go by themselves
inventory() {
  k api-resources --verbs=list -o name | grep -vE '^(events|leases|endpoints|endpointslices|componentstatuses|packagemanifests|replicasets|pods|controllerrevisions|ipaddresses)(\.|$)' \
    | paste -sd, - | xargs -I{} "$dev/cluster/cluster" run kubectl get {} -A --no-headers --ignore-not-found -o custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name \
    | sed 's/  */ /g' | sort
}
# on_tls IMAGE: its name in the cluster's registry where that speaks TLS, for clients that insist
on_tls() { echo "localhost:5443/${1#*/}"; }
kit() { in_cluster "$olmkit" "$@"; }
# restricted_namespace: makes $NAMESPACE, which takes only pods of the restricted pod security standard
restricted_namespace() { k create namespace "$NAMESPACE"; k label namespace "$NAMESPACE" pod-security.kubernetes.io/enforce=restricted; }
# fails_with CODE COMMAND…: the command must end with exit code 1, and its JSON must have the cause, which is saved in $results/cause
fails_with() {
  local wanted=$1 answer code=0; shift
  answer=$("$@" -o json) || code=$?
  echo "$answer"
  [ $code = 1 ] || { echo "exit code $code"; return 1; }
  jq -e --arg code "$wanted" 'first(.. | objects | select(.code? == $code and .severity? == "error"))' <<< "$answer" > "$results/cause"
}
# carry_out: runs the first kubectl command of the remedy in $results/cause, as a reader would copy it
carry_out() {
  local line; line=$(jq -r .help "$results/cause" | grep -o 'kubectl .*' | sed 's/; or .*//; s/;[^}]*$//; s/)$//')
  echo "\$ $line"; in_cluster sh -c "$line"
}
sample_runs() { kn apply -f config/samples/cache_v1alpha1_memcached.yaml; eventually 180 is "Running with 2 ready" memcached_state; }
published=
publish_once() { [ -n "$published" ] || { publish_images; published=1; }; }
# left_behind LINES: names objects of an inventory, and then tells when and by whom the first ones were made
left_behind() {
  echo "left behind:"; echo "$1"
  head -n 10 <<< "$1" | while read -r kind namespace name; do
    [ "$namespace" != "<none>" ] || namespace=default
    k get "$kind" "$name" -n "$namespace" -o json --show-managed-fields < /dev/null | jq -c '{kind, metadata}' | cut -c 1-4000 || true
  done
}
# same_inventory BEFORE [PATTERN]: fails if objects exist that did not exist before, except lines that match the pattern
same_inventory() {
  local end=$((SECONDS + 180)) rest
  while :; do
    rest=$(comm -13 "$1" <(inventory) | grep -vE "${2:-^\$}" || true)
    [ -n "$rest" ] || return 0
    [ $SECONDS -lt $end ] || { left_behind "$rest"; return 1; }
    sleep 1
  done
}
eventually() { local limit=$1 end; shift; end=$((SECONDS + limit)); until "$@" > /dev/null 2>&1; do [ $SECONDS -lt $end ] || { echo "not within $limit s: $*"; "$@"; return 1; }; sleep 0.5; done; }
condition() { kn get memcached "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].$3}"; }
is() { [ "$("${@:2}")" = "$1" ]; }
contains() { [[ "$("${@:2}")" == *"$1"* ]]; }
