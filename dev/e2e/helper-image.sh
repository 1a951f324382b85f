# Sourced by e2e.sh: OLM unpacks our bundle image and serves our catalog image twice, with upstream's util and opm images
# and with our helper image. OLM must store the same objects. Nothing is installed: OLM unpacks before it asks for
# approval, and the subscriptions require approval.

# unpack_with_olm NAMESPACE: the bundle's ConfigMap to $results/NAMESPACE.json. In addition to the catalog that its image
# serves, OLM takes a second one out of its image (`extractContent`): that runs the util image's cp and copy-content and the opm
# image's `opm serve`.
unpack_with_olm() {
  NAMESPACE=$1
  k create namespace "$NAMESPACE"
  kn apply -f - <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: served}
spec: {sourceType: grpc, image: "$base-catalog:latest", grpcPodConfig: {securityContextConfig: restricted}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: extracted}
spec: {sourceType: grpc, image: "$base-catalog:latest", grpcPodConfig: {securityContextConfig: restricted, extractContent: {catalogDir: /configs}}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: own}
spec: {targetNamespaces: [$NAMESPACE]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: $PACKAGE}
spec: {name: $PACKAGE, channel: alpha, source: served, sourceNamespace: $NAMESPACE, installPlanApproval: Manual}
YAML
  connection() { kn get catalogsource "$1" -o 'jsonpath={.status.connectionState.lastObservedState}'; }
  eventually 180 is READY connection served
  eventually 180 is READY connection extracted
  plan_phase() { kn get installplans.operators.coreos.com -o 'jsonpath={.items[*].status.phase}'; }
  eventually 180 is RequiresApproval plan_phase
  kn get configmap -l olm.managed=true -o json > "$results/$NAMESPACE.json"
  kn get pods -o 'jsonpath={range .items[*].spec.initContainers[*]}{.image}{"\n"}{end}{range .items[*].spec.containers[*]}{.image}{"\n"}{end}' | sort -u
  kn delete subscriptions.operators.coreos.com --all
  k delete namespace "$NAMESPACE" --wait=false
  k delete operators.operators.coreos.com "$PACKAGE.$NAMESPACE" --ignore-not-found
}

catalog_operator_arguments() { k -n olm get deployment catalog-operator -o 'jsonpath={.spec.template.spec.containers[0].args}'; }
set_catalog_operator_arguments() {
  k -n olm patch deployment catalog-operator --type=json -p "[{\"op\": \"replace\", \"path\": \"/spec/template/spec/containers/0/args\", \"value\": $1}]"
}
with_helper_image() {
  local image=$REGISTRY/example/olmkit:e2e arguments code=0
  "$olmkit" image build helper --tag "$image"
  in_cluster "$olmkit" image push "$image"
  arguments=$(catalog_operator_arguments)
  set_catalog_operator_arguments "$(jq -c --arg image "$image" '. + ["--util-image=" + $image, "--opmImage=" + $image]' <<< "$arguments")"
  k -n olm rollout status deployment/catalog-operator --timeout=300s
  # errexit is off in a command whose status is tested; a subshell turns it on again.
  set +e; (set -e; unpack_with_olm helper-image); code=$?; set -e
  set_catalog_operator_arguments "$arguments"
  return $code
}

# stored NAMESPACE: prints the content of the ConfigMaps as OLM reads it, on comparable lines
stored() {
  local file=$results/$1.json key value
  jq -e '.items | length > 0' "$file" > /dev/null
  jq -S '.items[] | {name: .metadata.name, annotations: .metadata.annotations, labels: .metadata.labels, data, files: (.binaryData | keys)}' "$file"
  # OLM keeps base64 of gzip, and the API base64 of that. The compression level does not matter.
  jq -r '.items[] | .binaryData | to_entries[] | .key + " " + .value' "$file" | while read -r key value; do
    echo "$key $(base64 -d <<< "$value" | base64 -d | gunzip | sha256sum)"
  done
}
same_stored() {
  stored upstream-images > "$results/upstream-images.stored"
  stored helper-image > "$results/helper-image.stored"
  cat "$results/helper-image.stored"
  diff "$results/upstream-images.stored" "$results/helper-image.stored"
}

flow_images() {
  local NAMESPACE
  echo; echo "the images that OLM runs in pods"
  publish_catalog both
  check "OLM unpacks our bundle and serves our catalog with upstream's images" unpack_with_olm upstream-images
  check "and with our helper image as util and opm image" with_helper_image
  check "the ConfigMaps are equal" same_stored
  check "nothing is left of the helper image's test" same_inventory "$results/before"
}
