# Sourced by e2e.sh: catalogd, the catalog server of OLM v1, serves our catalog image; its answers must equal those of
# `olmkit catalog serve --http` for the same image. The installer of OLM v1 cannot be built from the module proxy (a module is
# missing). Instead, a service account with its permissions applies the objects that it would apply.
catalogd_port=18443
catalogd_runs() {
  local image=quay.io/operator-framework/catalogd:e2e
  publish operator "$cache/bin/catalogd" "$image"
  k create -f "$cache/catalogd-crd.yaml"
  k create namespace "$NAMESPACE"
  kn create serviceaccount catalogd
  k create clusterrolebinding catalogd --clusterrole=cluster-admin --serviceaccount="$NAMESPACE:catalogd"
  (. "$dev/cluster/lib.sh"
   "${kubectl[@]}" -n "$NAMESPACE" create secret tls catalogd --cert="$pki/server.crt" --key="$pki/server.key"
   "${kubectl[@]}" -n "$NAMESPACE" create configmap registry-ca --from-file=ca.crt="$pki/ca.crt")
  # It pulls images itself, so it needs the node's network to reach the node's registry.
  kn apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: catalogd}
spec:
  serviceAccountName: catalogd
  hostNetwork: true
  containers:
  - name: catalogd
    image: $image
    args:
    - --system-namespace=$NAMESPACE
    - --external-address=localhost:$catalogd_port
    - --catalogs-server-addr=:$catalogd_port
    - --metrics-bind-address=:17443
    - --webhook-server-port=19443
    - --health-probe-bind-address=:18081
    - --cache-dir=/cache
    - --tls-cert=/certificates/tls.crt
    - --tls-key=/certificates/tls.key
    - --pull-cas-dir=/registry
    - --feature-gates=APIV1MetasHandler=true
    readinessProbe: {httpGet: {path: /readyz, port: 18081, host: 127.0.0.1}, periodSeconds: 1}
    volumeMounts:
    - {name: cache, mountPath: /cache}
    - {name: temporary, mountPath: /tmp}
    - {name: certificates, mountPath: /certificates}
    - {name: certificates, mountPath: /tmp/k8s-webhook-server/serving-certs}
    - {name: registry, mountPath: /registry}
  securityContext: {fsGroup: 1001}
  volumes:
  - {name: cache, emptyDir: {}}
  - {name: temporary, emptyDir: {}}
  - {name: certificates, secret: {secretName: catalogd}}
  - {name: registry, configMap: {name: registry-ca}}
YAML
  kn wait --for=condition=Ready pod/catalogd --timeout=300s || { kn describe pod catalogd; kn logs catalogd --tail=30; return 1; }
}
catalog_is_served() {
  publish_catalog both
  # catalogd's webhook would set this label.
  k apply -f - <<YAML
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata:
  name: $PACKAGE
  labels: {olm.operatorframework.io/metadata.name: $PACKAGE}
spec: {source: {type: Image, image: {ref: "$(on_tls "$base-catalog:latest")"}}}
YAML
  k wait --for=condition=Serving "clustercatalog/$PACKAGE" --timeout=300s || { k get "clustercatalog/$PACKAGE" -o yaml; kn logs catalogd --tail=30; return 1; }
}
# The query strings for both servers: everything, by schema, by package, by name, by both, and for a missing name.
metas="all metas metas?schema=olm.package metas?schema=olm.bundle&package=$PACKAGE metas?package=$PACKAGE metas?schema=olm.channel&name=alpha metas?name=nobody"
answers() { local query; for query in $metas; do echo "== $query"; in_cluster curl -fsSk "$1/catalogs/$PACKAGE/api/v1/$query"; done; }
same_answers() {
  local server port=18080
  # Not through in_cluster: a function's process would be killed in place of the program's.
  "$dev/cluster/cluster" run "$olmkit" catalog serve "$(reach "$base-catalog:latest")" --port 18051 --http="127.0.0.1:$port" > "$results/http.log" 2>&1 & server=$!
  eventually 180 in_cluster curl -fsS "http://127.0.0.1:$port/api/v1/all" || { cat "$results/http.log"; kill $server; return 1; }
  answers "http://127.0.0.1:$port" > "$results/ours.jsonl" || { kill $server; return 1; }
  kill $server
  answers "https://localhost:$catalogd_port" > "$results/catalogd.jsonl"
  [ "$(grep -c '"olm.bundle"' "$results/catalogd.jsonl")" -ge 4 ]
  cmp "$results/ours.jsonl" "$results/catalogd.jsonl"
}
catalogd_is_gone() {
  k delete clustercatalog "$PACKAGE" --timeout=300s
  k delete namespace "$NAMESPACE" --timeout=300s
  k delete clusterrolebinding catalogd
  k delete -f "$cache/catalogd-crd.yaml" --timeout=300s
  same_inventory "$results/before"
}

# as_installer COMMAND…: kubectl as the account that the bundle's rights are computed for
as_installer() {
  k --as="system:serviceaccount:$NAMESPACE:$PACKAGE-installer" --as-group=system:serviceaccounts --as-group=system:authenticated "$@"
}
# rendered_runs ARGUMENT…: the objects of `bundle render --olmv1 ARGUMENT…` serve a Memcached in the namespace $watched
rendered_runs() {
  local objects=$results/rendered.yaml bundle=$work/new-bundle
  k create namespace "$NAMESPACE"
  [ "$watched" = "$NAMESPACE" ] || k create namespace "$watched"
  "$olmkit" bundle render --olmv1 "$bundle" -n "$NAMESPACE" "$@" > "$objects"
  # Check first that nothing can be applied without the permissions.
  if as_installer apply --server-side -f "$objects" > "$results/refused" 2>&1; then echo "applied without permissions"; return 1; fi
  contains "cannot patch resource" cat "$results/refused"
  "$olmkit" bundle rbac --for-installer "$bundle" -n "$NAMESPACE" "$@" > "$results/rights.yaml"
  k apply -f "$results/rights.yaml"
  eventually 180 as_installer apply --server-side -f "$objects"
  kn rollout status "deployment/$PACKAGE-controller-manager" --timeout=300s
  NAMESPACE=$watched sample_runs
  NAMESPACE=$watched contains greeting talk_to_memcached
}
# Of the namespace that the operator does not watch it takes no notice.
others_are_not_watched() {
  k create namespace "$watched-not"
  NAMESPACE=$watched-not
  kn apply -f config/samples/cache_v1alpha1_memcached.yaml
  # By the time that a change to the watched one is carried out, this one would have been seen.
  k -n "$watched" patch memcached memcached-sample --type=merge -p '{"spec": {"size": 1}}'
  NAMESPACE=$watched eventually 180 is "Running with 1 ready" memcached_state
  is "" kn get memcached memcached-sample -o 'jsonpath={.status}{.metadata.finalizers}'
  k delete namespace "$NAMESPACE" --timeout=300s
}
rendered_is_gone() {
  k -n "$watched" delete memcached --all --timeout=300s
  as_installer delete -f "$results/rendered.yaml" --wait=false
  k delete -f "$results/rights.yaml"
  k delete namespace "$NAMESPACE" --timeout=300s
  [ "$watched" = "$NAMESPACE" ] || k delete namespace "$watched" --timeout=300s
  same_inventory "$results/before"
}

flow_olmv1() {
  local NAMESPACE=olmv1-system watched=olmv1-system
  echo; echo "what OLM v1 would apply, by an account with the computed rights"
  check "the operator serves a Memcached" rendered_runs
  check "nothing is left of it" rendered_is_gone
  watched=olmv1-shop
  check "it does in the one namespace that it watches" rendered_runs --watch-namespace "$watched"
  check "it takes no notice of others" others_are_not_watched
  check "nothing is left of that either" rendered_is_gone
  echo; echo "OLM v1's catalogd with our catalog image"
  check "catalogd runs" catalogd_runs
  check "it serves our catalog image" catalog_is_served
  check "its answers are those of olmkit catalog serve --http" same_answers
  check "nothing is left of it" catalogd_is_gone
}
