# Upstream's operator-sdk with our bundle images.
# It runs in a scaffolded project, whose PROJECT it reads for every command.
sdk() { (cd "$work/sdk-project" && in_cluster operator-sdk "$@" --timeout 3m -n "$NAMESPACE"); }
bundle_on_tls() { on_tls "$base-bundle:v$1"; }
sdk_runs_bundle() {
  k create namespace "$NAMESPACE"
  sdk run bundle "$(bundle_on_tls "$old_version")" --index-image localhost:5443/operator-framework/opm:latest --decompression-image localhost:5000/dev/busybox:1
  eventually 180 is Succeeded csv_phase "$PACKAGE.v$old_version"
}
sdk_upgrades() {
  sdk run bundle-upgrade "$(bundle_on_tls "$new_version")"
  eventually 180 is Succeeded csv_phase "$PACKAGE.v$new_version"
  eventually 180 is "$(operand_image_of "$work/new-bundle")" operand_image
}
sdk_cleans_up() {
  kn delete memcached --all --timeout=300s
  sdk cleanup "$PACKAGE"
  k delete namespace "$NAMESPACE" --timeout=300s
}
# Upstream's clean-up leaves these behind (its own bundles' as well as ours); the test removes them.
sdk_residue() {
  k delete clusterrole -l "olm.owner,olm.owner.kind!=OperatorGroup" --ignore-not-found
  # Objects of the upgrade alone have no owner label: OLM sets it only on existing objects.
  k delete clusterrole "$PACKAGE-metrics-reader" --ignore-not-found
  k delete operators.operators.coreos.com --all
}

flow_upstream() {
  local NAMESPACE=upstream
  echo; echo "upstream's operator-sdk with our bundle images"
  mkdir -p "$work/sdk-project"; "$olmkit" init --directory "$work/sdk-project" --project-name sdk-project > /dev/null
  check "operator-sdk run bundle" sdk_runs_bundle
  check "a Memcached runs" sample_runs
  check "operator-sdk run bundle-upgrade" sdk_upgrades
  check "operator-sdk cleanup" sdk_cleans_up
  check "what operator-sdk leaves behind is known and can be removed" sdk_residue
  check "nothing else is left" same_inventory "$results/before"
}
