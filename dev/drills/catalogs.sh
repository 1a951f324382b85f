# Sourced by drills.sh: OLM reads catalogs from a pod of our server, and each drill disturbs this pod. OLM must recover without
# help, and then list the content of the catalog.
offer() {
  kn apply -f - <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: offered}
spec: {sourceType: grpc, image: "$1", displayName: Drills, grpcPodConfig: {securityContextConfig: restricted}, updateStrategy: {registryPoll: {interval: 10s}}}
YAML
}
withdraw() { kn delete catalogsource offered --ignore-not-found; eventually 60 is "" kn get pod -l olm.catalogSource=offered -o name; eventually 60 is "" listed currentCSV; }
state_of_offered() { kn get catalogsource offered -o 'jsonpath={.status.connectionState.lastObservedState}'; }
# listed FIELD: of the package's channel as OLM's packageserver lists it
listed() { kn get packagemanifests.packages.operators.coreos.com "$PACKAGE" --ignore-not-found -o "jsonpath={.status.channels[?(@.name==\"alpha\")].$1}"; }
lists_all() { eventually "${1:-90}" is "$PACKAGE.v$new_version" listed currentCSV; is "$PACKAGE.v$new_version $PACKAGE.v$old_version" entries; }
entries() { listed 'entries[*].name' | tr ' ' '\n' | sort -r | paste -sd ' ' -; }
# changed_catalog SOURCE:TARGET TAG: the catalog image with one file more or another
changed_catalog() {
  local image=$REGISTRY/drills/catalog:$2
  in_cluster "$olmkit" image build files --base "$(reach "$base-catalog:latest")" --add "$1" --tag "$image"
  in_cluster "$olmkit" image push "$image"
}
index_in() { (cd "$1" && find cache -type f | sort | head -n 1); }
logs_say() { kn logs -l olm.catalogSource=offered --tail=-1 | grep -iE "$1"; }

retagged_catalog_is_picked_up() {
  publish_catalog old
  offer "$base-catalog:latest"
  eventually 90 is "$PACKAGE.v$old_version" listed currentCSV
  publish_catalog both
  lists_all 120
}
# OLM lists the icon and the description of the catalog.
manifest_shows() {
  local metadata; metadata=$(jq -c --arg name "$PACKAGE.v$new_version" 'select(.name == $name) | .properties[] | select(.type == "olm.csv.metadata").value' \
    <("$olmkit" catalog render "$work/catalog/both" -o json))
  [ "$(listed currentCSVDesc.description)" = "$(jq -r .description <<< "$metadata")" ]
  [ -n "$(listed currentCSVDesc.description)" ]
  is "$(jq -r .displayName <<< "$metadata")" listed currentCSVDesc.displayName
  # Lists leave icons out; they are had one by one.
  is "$(cat config/icon.svg)" icon_of_package
}
icon_of_package() { k get --raw "/apis/packages.operators.coreos.com/v1/namespaces/$NAMESPACE/packagemanifests/$PACKAGE/icon"; }

container_of_offered() { kn get pod -l olm.catalogSource=offered -o 'jsonpath={.items[0].status.containerStatuses[0].state.running.startedAt} {.items[0].status.containerStatuses[0].containerID}' | sed -n 's#^..* containerd://##p'; }
kill_server() (
  . "$dev/cluster/lib.sh"
  "${ctr[@]}" tasks kill -s SIGKILL "$1"
)
# OLM asks for all bundles when it connects and when it resolves: the server dies under it, again and again.
server_is_killed() {
  local container previous= kills=0
  kn create -f - <<YAML
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: own}
spec: {targetNamespaces: [$NAMESPACE]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: $PACKAGE}
spec: {name: $PACKAGE, channel: alpha, source: offered, sourceNamespace: $NAMESPACE}
YAML
  while [ $kills -lt 3 ]; do
    container=$(container_of_offered || true)
    if [ -n "$container" ] && [ "$container" != "$previous" ]; then kill_server "$container" && previous=$container && kills=$((kills + 1)); fi
    sleep 0.2
  done
  eventually 180 is Succeeded csv_phase "$PACKAGE.v$new_version"
  installed "$new_version"
  eventually 90 is READY state_of_offered
  lists_all
  cleaned_up
  kn delete operatorgroup own --ignore-not-found
}
index_is_truncated() {
  local tree=$results/catalog-image index
  withdraw
  rm -rf "$tree"; mkdir -p "$tree"
  in_cluster "$olmkit" image copy "$(reach "$base-catalog:latest")" "oci:$tree/layout"
  for layer in "$tree"/layout/blobs/sha256/*; do tar -C "$tree" -xf "$layer" cache 2> /dev/null || true; done
  index=$(cd "$tree" && find cache -type f -size +1k | sort | head -n 1)
  [ -n "$index" ] || { echo "no index in the image"; find "$tree" | head -n 40; return 1; }
  head -c $(($(stat -c %s "$tree/$index") / 2)) "$tree/$index" > "$tree/truncated"; chmod 644 "$tree/truncated"
  changed_catalog "$tree/truncated:/$index" truncated
  offer "$REGISTRY/drills/catalog:truncated"
  lists_all
  logs_say 'index'
}
# A directory for the index that takes nothing: 16 KiB of memory.
disk_is_full() {
  withdraw
  kn apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: full, labels: {drill: full}}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 1001, seccompProfile: {type: RuntimeDefault}}
  volumes: [{name: index, emptyDir: {medium: Memory, sizeLimit: 16Ki}}]
  containers:
  - name: catalog
    image: "$base-catalog:latest"
    args: [serve, /configs, --cache-dir=/index]
    env: [{name: TMPDIR, value: /index}]
    volumeMounts: [{name: index, mountPath: /index}]
    readinessProbe: {grpc: {port: 50051}, periodSeconds: 1}
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Service
metadata: {name: full}
spec: {selector: {drill: full}, ports: [{port: 50051}]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: full}
spec: {sourceType: grpc, address: "full.$NAMESPACE.svc:50051", displayName: Drills}
YAML
  kn wait pod/full --for=condition=Ready --timeout=60s || { kn logs full; return 1; }
  lists_all
  kn logs full
  kn logs full | grep -iE 'no space|index'
  is 0 kn get pod full -o 'jsonpath={.status.containerStatuses[0].restartCount}'
  kn delete catalogsource/full service/full pod/full
}
package_beside_is_broken() {
  withdraw
  printf '%s\n' 'schema: olm.package' 'name: broken' 'defaultChannel: none' > "$results/broken-package.yaml"
  changed_catalog "$results/broken-package.yaml:/configs/broken/catalog.yaml" broken
  offer "$REGISTRY/drills/catalog:broken"
  lists_all
  is "" kn get packagemanifests.packages.operators.coreos.com broken --ignore-not-found -o name
  logs_say broken
  withdraw
}

drill_catalogs() {
  echo; echo "catalogs"
  check "a catalog image with a moved tag is picked up" retagged_catalog_is_picked_up
  check "its icon and description are listed" manifest_shows
  check "the server is killed while OLM resolves" server_is_killed
  check "the prepared index is truncated" index_is_truncated
  check "the disk is too full for an index" disk_is_full
  check "a broken package does not affect the others" package_beside_is_broken
}
