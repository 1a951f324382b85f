# Sourced by drills.sh: failures that need pods. olmkit must report the cause, and its hint must repair the installation.
# broken SED-EXPRESSION…: the older version's bundle in $work/broken with a changed CSV
broken() {
  rm -rf "$work/broken"; cp -r "$work/old-bundle" "$work/broken"
  sed -i "$@" "$work"/broken/manifests/*.clusterserviceversion.yaml
}
missing_operator_image() { broken "s#image: $base:.*#image: docker.io/dev/missing:1#"; }
crashing_operator() { broken "s#image: $base:.*#image: docker.io/dev/busybox:1#"; }
never_ready_operator() { broken 's#path: /readyz#path: /nothing-here#'; }
# Two ConfigMaps that are each small enough for the API server and together too large for the ConfigMap of a bundle.
oversized() {
  broken -e ''
  local name; for name in one two; do
    { printf 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  noise: ' "$name"; head -c 650000 /dev/urandom | base64 -w 0; echo; } > "$work/broken/manifests/$name.yaml"
  done
}
push_broken() { publish bundle "$work/broken" "$base-bundle:broken"; }

run_broken() { kit run bundle "$work/broken" -n "$NAMESPACE" --serve-from-host "$@"; }
# The remedy of these drills: correct the bundle and run the same command again.
corrected() { broken -e ''; run_broken; installed "$old_version"; cleaned_up; }

bundle_image_is_missing() {
  fails_with bundle-image-pull kit run bundle "$(bundle_image 9.9.9)" -n "$NAMESPACE"
  publish bundle "$work/old-bundle" "$base-bundle:v9.9.9"
  kit run bundle "$(bundle_image 9.9.9)" -n "$NAMESPACE" --helper-image $helper
  cleaned_up
}
helper_image_is_missing() {
  fails_with catalog-image-pull kit run bundle "$work/old-bundle" -n "$NAMESPACE" --helper-image localhost:5000/none/helper:1
  kit run bundle "$work/old-bundle" -n "$NAMESPACE" --helper-image $helper
  cleaned_up
}
helper_pod_crashes() {
  fails_with catalog-pod-crash kit run bundle "$work/old-bundle" -n "$NAMESPACE" --helper-image docker.io/dev/busybox:1
  kit run bundle "$work/old-bundle" -n "$NAMESPACE" --helper-image $helper
  cleaned_up
}
# fails_and_is_corrected CODE BREAKAGE [FLAG…]
fails_and_is_corrected() { "$2"; fails_with "$1" run_broken "${@:3}"; corrected; }
unpacked_bundle_is_too_large() {
  oversized; push_broken
  fails_with unpack-too-large kit run bundle "$(reach "$base-bundle:broken")" -n "$NAMESPACE"
  corrected
}
abandoned_webhook() {
  k apply -f - <<YAML
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: abandoned}
webhooks:
- name: deployments.abandoned.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: nobody, namespace: $NAMESPACE, path: /}}
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments], scope: Namespaced}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NAMESPACE}}
YAML
}
webhook_has_no_endpoint() {
  abandoned_webhook
  broken -e ''
  fails_with webhook-unavailable run_broken
  carry_out | tee "$results/configurations"
  k delete validatingwebhookconfiguration "$(awk '/deployments.abandoned.example.com/ { print $2 }' "$results/configurations")"
  run_broken
  cleaned_up
}
api_server_restarts() {
  broken -e ''
  run_broken > "$results/restart.log" 2>&1 & local run=$!
  eventually 60 grep -q Subscription "$results/restart.log"
  (. "$dev/cluster/lib.sh"; stop kube-apiserver)
  "$dev/cluster/control_plane.sh"
  wait $run || { cat "$results/restart.log"; return 1; }
  installed "$old_version"
  cleaned_up
}

drill_failures() {
  echo; echo "failures"
  check "the helper image is built" push_helper
  check "bundle image missing" bundle_image_is_missing
  check "registry refuses" registry_refuses
  check "helper image missing" helper_image_is_missing
  check "helper pod crashes" helper_pod_crashes
  check "operator image missing" fails_and_is_corrected operator-image-pull missing_operator_image
  check "operator crash loop" fails_and_is_corrected operator-crash-loop crashing_operator
  check "operator never ready" fails_and_is_corrected operator-not-ready never_ready_operator --timeout 60s
  check "bundle too large to unpack" unpacked_bundle_is_too_large
  check "webhook without endpoint" webhook_has_no_endpoint
  check "API server restarted midway" api_server_restarts
}
