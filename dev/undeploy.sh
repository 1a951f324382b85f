#!/usr/bin/env bash
# Deletes what `make deploy` created. If there are Memcacheds, it keeps them, their servers, the definition and the roles for users, and
# removes the operator's finalizer from them, so that they can be deleted without the operator.
#
#   FORCE=1 undeploy.sh    deletes all Memcacheds and their servers first
#
# KUBECTL, when set, is the kubectl to use.
set -euo pipefail
kubectl=${KUBECTL:-kubectl}
config=$(cd "$(dirname "${BASH_SOURCE[0]}")/../config" && pwd)
kind=memcacheds.cache.example.com
finalizer=cache.example.com/finalizer

# all: namespace and name of each Memcached
all() {
  [ -n "$($kubectl get crd "$kind" --ignore-not-found -o name)" ] || return 0
  $kubectl get "$kind" -A --no-headers --ignore-not-found -o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name
}

delete() { $kubectl delete --ignore-not-found --timeout=120s "$@"; }

# In the foreground: when the definition is deleted, the owner of the servers is unknown, and they would stay.
if [ "${FORCE:-}" = 1 ] && [ -n "$(all)" ]; then delete "$kind" --all -A --cascade=foreground; fi
left=$(all)
if [ -z "$left" ]; then
  delete -k "$config/default"
  exit
fi
# The operator first, or it would add its finalizer again.
delete -k "$config/manager"
find "$config/rbac" "$config/metrics" -name '*.yaml' ! -name kustomization.yaml ! -name 'memcached_*_role.yaml' -print0 |
  while IFS= read -r -d '' file; do delete -f "$file"; done
while read -r namespace name; do
  others=$($kubectl -n "$namespace" get "$kind" "$name" -o jsonpath='{range .metadata.finalizers[*]}{@}{"\n"}{end}' |
    grep -vxF "$finalizer" | sed 's/.*/"&"/' | paste -sd, || true)
  $kubectl -n "$namespace" patch "$kind" "$name" --type=merge -p "{\"metadata\":{\"finalizers\":[$others]}}" > /dev/null
done <<< "$left"
echo "The operator is deleted. These Memcacheds and their servers keep running without it:"
sed 's/^/  /' <<< "$left"
echo "To delete them and their definition, run: make undeploy FORCE=1"
