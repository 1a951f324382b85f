# OLM itself: removed, installed from its chart and from a release's manifests.
olm_images=(--olm-image "quay.io/operator-framework/olm:v0.46.0" --opm-image quay.io/operator-framework/opm:latest)
refused_while_operators_are_there() {
  restricted_namespace
  kit run bundle "$work/old-bundle" -n "$NAMESPACE"
  fails_with operators-installed kit olm uninstall
  kit olm status
  kit cleanup "$PACKAGE" -n "$NAMESPACE"
  k delete namespace "$NAMESPACE" --timeout=300s
}
uninstalled() {
  kit olm uninstall
  fails_with olm-not-installed kit olm status
  inventory > "$results/no-olm-now"
  ! grep -v olmkit-node "$results/no-olm-now" | grep -iE 'olm|packageserver|operators\.coreos\.com'
  contains "OLM is not installed: nothing to remove" kit olm uninstall
}
installed_from_chart() {
  kit olm install --from "$cache/olm" --version 0.46.0 "${olm_images[@]}"
  contains "OLM 0.46.0 is healthy" kit olm status
}
half_is_completed() {
  k -n olm delete deployment catalog-operator
  k delete crd operatorconditions.operators.coreos.com
  fails_with olm-incomplete kit olm status
  kit olm install --from "$cache/olm" --version 0.46.0 "${olm_images[@]}"
  kit olm status
}
# The layout of a release: crds.yaml and olm.yaml.
installed_from_release() {
  local directory=$work/olm-release crd
  rm -rf "$directory"; mkdir -p "$directory"
  for crd in "$cache"/olm/crds/*.yaml; do echo ---; cat "$crd"; done > "$directory/crds.yaml"
  cp dev/cluster/olm.yaml "$directory/olm.yaml"
  kit olm install --from "$directory"
  kit olm status
  same_inventory "$results/before"
  is "" comm -23 "$results/before" <(inventory)
}

flow_olm() {
  local NAMESPACE=olm-flow
  echo; echo "olmkit: OLM itself"
  check "olm uninstall refuses while operators are installed" refused_while_operators_are_there
  check "olm uninstall leaves nothing" uninstalled
  check "olm install from OLM's chart" installed_from_chart
  check "a partial OLM is reported and completed" half_is_completed
  check "olm uninstall again" uninstalled
  check "olm install from a release's manifests: as kubectl installs them" installed_from_release
}
