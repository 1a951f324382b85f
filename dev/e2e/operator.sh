# The operator's promises on a real node, installed by OLM and without it.
service_returns() {
  local uid; uid=$(kn get service memcached-sample -o 'jsonpath={.metadata.uid}')
  kn delete service memcached-sample --wait=false
  other() { local now; now=$(kn get service memcached-sample -o 'jsonpath={.metadata.uid}') && [ -n "$now" ] && [ "$now" != "$uid" ]; }
  eventually 180 other
}
image_is_restored() {
  local image container; image=$(operand_image); container=$(kn get deployment memcached-sample -o 'jsonpath={.spec.template.spec.containers[0].name}')
  kn set image deployment/memcached-sample "$container=docker.io/dev/busybox:1"
  eventually 180 is "$image" operand_image
  eventually 180 is settled rollout
}
replicas() { kn get deployment memcached-sample -o 'jsonpath={.spec.replicas}'; }
replicas_are_restored() {
  local size; size=$(kn get memcached memcached-sample -o 'jsonpath={.spec.size}')
  kn scale deployment/memcached-sample --replicas=7
  eventually 180 is "$size" replicas
  eventually 180 is "Running with $size ready" memcached_state
}
memcached() { printf '{"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": "%s"}, "spec": %s}' "$1" "$2"; }
refused() {
  local name=$1 spec=$2 expected=$3 answer
  if answer=$(memcached "$name" "$spec" | kn apply -f - 2>&1); then echo "accepted: $answer"; return 1; fi
  grep -q "$expected" <<< "$answer" || { echo "refused, but not because of $expected: $answer"; return 1; }
}
image_is_missing() { memcached no-image '{"size": 1, "image": "docker.io/dev/missing:1"}' | kn apply -f -; }
missing_image_is_reported() {
  # The Deployment gives up after its progress deadline of two minutes. Until then it is Progressing.
  eventually 300 contains docker.io/dev/missing:1 condition no-image Degraded message
  is False condition no-image Available status
  kn delete memcached no-image --timeout=300s
}
foreign_deployment_stays() {
  kn create deployment foreign --image=docker.io/dev/pause:1
  local uid; uid=$(kn get deployment foreign -o 'jsonpath={.metadata.uid}')
  memcached foreign '{"size": 2}' | kn apply -f -
  eventually 180 is True condition foreign Degraded status
  echo "reason: $(condition foreign Degraded reason): $(condition foreign Degraded message)"
  is docker.io/dev/pause:1 kn get deployment foreign -o 'jsonpath={.spec.template.spec.containers[0].image}'
  is "" kn get deployment foreign -o 'jsonpath={.metadata.ownerReferences}'
  kn delete memcached foreign --timeout=300s
  is "$uid" kn get deployment foreign -o 'jsonpath={.metadata.uid}'
  kn delete deployment foreign
}
others_go_on() {
  memcached broken '{"size": 1, "image": "docker.io/dev/missing:1"}' | kn apply -f -
  memcached fine '{"size": 1}' | kn apply -f -
  ready() { is "Running with 1 ready" kn get memcached fine -o 'jsonpath={.status.phase} with {.status.readyReplicas} ready'; }
  eventually 180 ready
  kn delete memcached broken fine --timeout=300s
}
deletion_takes_all_along() {
  kn delete memcached memcached-sample --timeout=300s
  none() { is "" kn get deployment,service,poddisruptionbudget,pod -l memcached_cr=memcached-sample -o name; }
  eventually 180 none
  contains "Custom Resource memcached-sample is being deleted from the namespace $NAMESPACE" kn get events.events.k8s.io -o 'jsonpath={.items[*].note}'
}

flow_operator() {
  echo; echo "the demo, step by step"
  check "the demo runs to its end" "$dev/demo.sh"
  echo; echo "the operator, installed by OLM"
  check "a Memcached with a missing image is accepted" image_is_missing
  check "a deleted Service is back at once" service_returns
  check "an edited image is put back" image_is_restored
  check "edited replicas are put back" replicas_are_restored
  check "size -1 is refused by name" refused bad '{"size": -1}' spec.size
  check "port 0 is refused by name" refused bad '{"containerPort": 0}' spec.containerPort
  check "a foreign Deployment is never taken over" foreign_deployment_stays
  check "a broken Memcached does not block another" others_go_on
  check "a missing image is reported in a condition" missing_image_is_reported
  check "deletion takes everything along and says so" deletion_takes_all_along
  check "the demo's objects can be removed" unsubscribe
  check "nothing is left of it" same_inventory "$results/before"
}

in_make() { in_cluster env CARGO_NET_OFFLINE=true make -s "$@"; }
deployed() {
  in_make deploy IMG="$(image_of "$work/new-bundle")"
  k -n memcached-operator-system rollout status deployment/memcached-operator-controller-manager --timeout=300s
  local image
  image=$(k -n memcached-operator-system get deployment memcached-operator-controller-manager -o 'jsonpath={.spec.template.spec.containers[0].image}')
  [ "$image" = "$(image_of "$work/new-bundle")" ]
  NAMESPACE=default
  kn apply -f config/samples/cache_v1alpha1_memcached.yaml
  eventually 180 is "Running with 2 ready" memcached_state
}
undeployed() {
  in_make undeploy FORCE=1
  same_inventory "$results/before"
}

flow_deploy() {
  echo; echo "without OLM"
  check "make deploy runs the operator and a Memcached" deployed
  check "make undeploy leaves nothing" undeployed
}
