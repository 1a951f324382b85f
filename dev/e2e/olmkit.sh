# olmkit's cluster commands: a bundle from an image, from a directory and from this host; a subscription to a catalog image.
helper=localhost:5000/olmkit/helper:e2e
bundle_image() { reach "$base-bundle:v$1"; }
push_helper() {
  "$olmkit" image build helper --tag $helper
  in_cluster "$olmkit" image push $helper
}
# installed VERSION: its CSV has Succeeded and no other version's is left
installed() {
  eventually 180 is Succeeded csv_phase "$PACKAGE.v$1"
  eventually 180 is "$PACKAGE.v$1" kn get csv -o 'jsonpath={.items[*].metadata.name}'
}

# --- from an image, with the catalog in a pod ----------------------------------------------------------------------
image_is_installed() {
  restricted_namespace
  kit run bundle "$(bundle_image "$old_version")" -n "$NAMESPACE" --helper-image $helper
  installed "$old_version"
  contains "is already installed in namespace $NAMESPACE" kit run bundle "$(bundle_image "$old_version")" -n "$NAMESPACE" --helper-image $helper
}
catalog_pod() { kn get pod -l "olmkit.dev/catalog-source=$PACKAGE-catalog" --field-selector=status.phase=Running -o 'jsonpath={.items[*].metadata.name}'; }
catalog_survives_its_pod() {
  local lost; lost=$(catalog_pod)
  kn delete pod "$lost"
  another() { local now; now=$(catalog_pod) && [ -n "$now" ] && [ "$now" != "$lost" ]; }
  eventually 180 another
  kn rollout status "deployment/$PACKAGE-catalog" --timeout=300s
  eventually 180 is READY catalog_state
}
image_is_upgraded() { kit run bundle-upgrade "$(bundle_image "$new_version")" -n "$NAMESPACE" --helper-image $helper; installed "$new_version"; }

# --- from a directory ----------------------------------------------------------------------------------------------
# directory_is_installed FLAG…, directory_is_upgraded FLAG…
directory_is_installed() {
  restricted_namespace
  kit run bundle "$work/old-bundle" -n "$NAMESPACE" "$@"
  installed "$old_version"
}
directory_is_upgraded() { kit run bundle-upgrade "$work/new-bundle" -n "$NAMESPACE" "$@"; installed "$new_version"; }
host_leaves_no_catalog() { is "" kn get catalogsources,subscriptions.operators.coreos.com -o name && is "" catalog_pod; }
interrupted() {
  restricted_namespace
  local code=0
  in_cluster timeout --preserve-status -s INT 2 "$olmkit" run bundle "$work/old-bundle" -n "$NAMESPACE" --helper-image $helper || code=$?
  [ $code = 130 ] || { echo "exit code $code"; return 1; }
}

# --- from a catalog image ------------------------------------------------------------------------------------------
# The objects that a user of a catalog applies.
offer_catalog() {
  restricted_namespace
  publish_catalog both
  kn apply -f - <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: offered}
spec: {sourceType: grpc, image: "$base-catalog:latest", grpcPodConfig: {securityContextConfig: restricted}}
YAML
  offered_state() { kn get catalogsource offered -o 'jsonpath={.status.connectionState.lastObservedState}'; }
  eventually 180 is READY offered_state
}
subscribed_manually() {
  offer_catalog
  kit subscribe "$PACKAGE" --catalog "$NAMESPACE/offered" --starting-csv "$PACKAGE.v$old_version" --approval Manual --install-mode OwnNamespace -n "$NAMESPACE"
  installed "$old_version"
}
upgrade_waits_for_approval() {
  waits() { fails_with install-plan-unapproved kit diagnose "$PACKAGE" -n "$NAMESPACE"; }
  eventually 180 waits
  carry_out
  eventually 180 is Succeeded csv_phase "$PACKAGE.v$new_version"
  installed "$new_version"
}
subscribed_automatically() {
  kit subscribe "$PACKAGE" --catalog offered -n "$NAMESPACE"
  installed "$new_version"
}
# A catalog that was not made for the package alone is the user's.
catalog_is_kept() { kn get catalogsource offered; kn delete catalogsource offered; }

# --- with an account of limited rights -----------------------------------------------------------------------------
installer_rights() { sed -n '/^## Install with limited permissions/,/^## When/p' docs/guides/cluster.md | sed -n '/^```yaml/,/^```/p' | grep -v '^```' | sed "s/\bshop\b/$NAMESPACE/g"; }
run_restricted() { kit run bundle "$work/new-bundle" -n "$NAMESPACE" --serve-from-host --install-mode OwnNamespace "$@"; }
rights_are_missing() {
  restricted_namespace
  kn create serviceaccount installer
  kn create -f - <<< "{\"apiVersion\": \"operators.coreos.com/v1\", \"kind\": \"OperatorGroup\", \"metadata\": {\"name\": \"restricted\"}, \"spec\": {\"targetNamespaces\": [\"$NAMESPACE\"], \"serviceAccountName\": \"installer\"}}"
  fails_with forbidden run_restricted
  # With the first permission the plan gets further, and leaves an incomplete version.
  kn create role first --verb=get,create,update --resource=clusterserviceversions.operators.coreos.com
  kn create rolebinding first --role=first --serviceaccount="$NAMESPACE:installer"
  fails_with forbidden run_restricted
  jq -e '.message | contains("clusterroles") or contains("serviceaccounts")' "$results/cause"
}
rights_are_granted() { installer_rights | k apply -f -; run_restricted; installed "$new_version"; }
rights_are_taken_back() { installer_rights | k delete -f -; namespace_is_removed; }

cleaned_up() { kit cleanup "$PACKAGE" -n "$NAMESPACE"; contains "package $PACKAGE is not installed" kit cleanup "$PACKAGE" -n "$NAMESPACE"; }
namespace_is_removed() { k delete namespace "$NAMESPACE" --timeout=300s; same_inventory "$results/before"; }

flow_olmkit() {
  local NAMESPACE=flows
  echo; echo "olmkit: a bundle image"
  check "the helper image is built" push_helper
  check "run bundle IMAGE" image_is_installed
  check "the catalog survives the loss of its pod" catalog_survives_its_pod
  check "a Memcached runs" sample_runs
  check "run bundle-upgrade IMAGE" image_is_upgraded
  check "cleanup removes the package, Memcached first" cleaned_up
  check "nothing is left of it" namespace_is_removed
  echo; echo "olmkit: a bundle directory"
  check "run bundle DIR, served by the image that OLM unpacks with" directory_is_installed
  check "run bundle-upgrade DIR" directory_is_upgraded
  check "cleanup" cleaned_up
  check "nothing is left of it" namespace_is_removed
  check "run bundle DIR, served from this host" directory_is_installed --serve-from-host
  check "no catalog without a server is left behind" host_leaves_no_catalog
  check "run bundle-upgrade DIR, served from this host" directory_is_upgraded --serve-from-host
  check "cleanup" cleaned_up
  check "nothing is left of it" namespace_is_removed
  check "Ctrl-C ends run bundle" interrupted
  check "cleanup removes what it left" cleaned_up
  check "nothing is left of it" namespace_is_removed
  echo; echo "olmkit: an OperatorGroup with a restricted service account"
  check "missing permissions are reported" rights_are_missing
  check "the permissions that the docs list suffice" rights_are_granted
  check "a Memcached runs" sample_runs
  check "cleanup" cleaned_up
  check "nothing is left of it" rights_are_taken_back
  echo; echo "olmkit: a catalog image"
  check "subscribe with manual approval" subscribed_manually
  check "an upgrade waits until it is approved" upgrade_waits_for_approval
  check "cleanup" cleaned_up
  check "subscribe with automatic approval" subscribed_automatically
  check "cleanup" cleaned_up
  check "the catalog is left to its owner" catalog_is_kept
  check "nothing is left of it" namespace_is_removed
}
