# Sourced by drills.sh: the same failures with upstream's operator-sdk. Prints its output and checks nothing.
# said DESCRIPTION IMAGE: prints the output of operator-sdk for a bundle image, and its time
said() {
  local image=$2 index=${3:-localhost:5443/operator-framework/opm:latest} start=$SECONDS
  printf '\n== %s\n' "$1"
  in_cluster operator-sdk run bundle "$image" -n "$NAMESPACE" --timeout 60s --index-image $index --decompression-image localhost:5000/dev/busybox:1 2>&1 | tail -n 4 || true
  echo "(after $((SECONDS - start)) s)"
  in_cluster operator-sdk cleanup "$PACKAGE" -n "$NAMESPACE" > /dev/null 2>&1 || true
  kn delete catalogsource,subscription.operators.coreos.com,csv,operatorgroup,pod --all --timeout=60s > /dev/null 2>&1 || true
}
drill_upstream() {
  k label namespace "$NAMESPACE" pod-security.kubernetes.io/enforce- > /dev/null
  local broken_image; broken_image=$(on_tls "$base-bundle:broken")
  said "bundle image missing" "$(on_tls "$base-bundle:v0.0.9")"
  push_guarded_bundle > /dev/null; said "registry refuses" "$guarded_bundle"; stop_guarded_registry
  said "helper image missing" "$(on_tls "$base-bundle:v$old_version")" localhost:5443/none/opm:1
  said "helper pod crashes" "$(on_tls "$base-bundle:v$old_version")" localhost:5443/dev/busybox:1
  missing_operator_image; push_broken > /dev/null; said "operator image missing" "$broken_image"
  crashing_operator; push_broken > /dev/null; said "operator crash loop" "$broken_image"
  never_ready_operator; push_broken > /dev/null; said "operator never ready" "$broken_image"
  oversized; push_broken > /dev/null; said "bundle too large to unpack" "$broken_image"
  abandoned_webhook > /dev/null; said "webhook without endpoint" "$(on_tls "$base-bundle:v$old_version")"
  k delete validatingwebhookconfiguration abandoned > /dev/null
  kn create -f - <<< '{"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "one"}}' > /dev/null
  kn create -f - <<< '{"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "two"}}' > /dev/null
  said "two OperatorGroups" "$(on_tls "$base-bundle:v$old_version")"
  kn create -f - > /dev/null <<< '{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": {"name": "dead"}, "spec": {"sourceType": "grpc", "address": "127.0.0.1:1"}}'
  said "broken catalog beside" "$(on_tls "$base-bundle:v$old_version")"
}
