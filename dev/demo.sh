#!/usr/bin/env bash
# From source to a running memcached that the Operator Lifecycle Manager installed and upgraded. Every line is checked:
# the demo ends with exit code 0 only if all of it happened.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/story.sh"

step "1. Build the operator and olmkit, render what they package, check it"
if [ "$CLUSTER" = local ]; then "$dev/beside.sh" node -- make -s build; else make -s build; fi
mkdir -p dev/.state
make -s manifests bundle catalog > dev/.state/render.log 2>&1 || { cat dev/.state/render.log; fail "config/, bundle/ or catalog/ cannot be rendered"; }
stage
note "$(grep -a '^bundle: ' dev/.state/render.log) (in dev/.state/render.log)"
note "the package holds $PACKAGE $old_version (committed, never rendered again) and $new_version (rendered from the sources just now)"

step "2. Start the cluster"
if [ "$CLUSTER" = local ]; then "$dev/cluster/cluster" up; else k version; fi
install_olm

step "3. Build the images, without a container engine, and push them to $REGISTRY"
publish_images
publish_catalog old

step "4. Offer version $old_version in a catalog, and subscribe"
subscribe
wait_until 300 "catalog" READY catalog_state
wait_until 300 "ClusterServiceVersion $PACKAGE.v$old_version" Succeeded csv_phase "$PACKAGE.v$old_version"
show kn get csv,deployment

step "5. Ask for a memcached of two pods"
sed 's/^/   | /' config/samples/cache_v1alpha1_memcached.yaml
kn apply -f config/samples/cache_v1alpha1_memcached.yaml | sed 's/^/   /'
wait_until 300 "memcached-sample" "Running with 2 ready" memcached_state
show kn get memcached,pods
old_image=$(operand_image)

step "6. Store and read a value through the Service"
answer=$(talk_to_memcached)
printf '%s\n' "$answer" | sed 's/^/   /'
grep -q 'VALUE greeting' <<< "$answer" || fail "memcached did not return the value"

step "7. Publish version $new_version in the same channel; OLM finds it and upgrades"
publish_catalog both
wait_until 300 "ClusterServiceVersion $PACKAGE.v$new_version" Succeeded csv_phase "$PACKAGE.v$new_version"
wait_until 300 "ClusterServiceVersion $PACKAGE.v$old_version" "" csv_phase "$PACKAGE.v$old_version"
wait_until 300 "memcached-sample" "Running with 2 ready" memcached_state
wait_until 300 "operand image" "$(operand_image_of "$work/new-bundle")" operand_image
wait_until 300 "rollout" settled rollout
note "memcached went from $old_image to $(operand_image)"

step "8. Scale to three; the two pods that run stay as they are"
before=$(operand_pods)
printf '%s\n' "$before" | sed 's/^/   before: /'
show kn patch memcached memcached-sample --type=merge -p '{"spec": {"size": 3}}'
wait_until 300 "memcached-sample" "Running with 3 ready" memcached_state
after=$(operand_pods)
printf '%s\n' "$after" | sed 's/^/   after:  /'
while read -r pod; do grep -qxF "$pod" <<< "$after" || fail "pod $pod did not survive the scaling untouched"; done <<< "$before"

step "Done in $(since) s. What is running:"
show kn get csv,memcached,pods
look=; [ "$CLUSTER" = current ] || look="dev/cluster/cluster run "
cat <<TEXT

   Look at it:     ${look}kubectl -n $NAMESPACE get memcached,pods,service
                   ${look}kubectl -n $NAMESPACE describe csv $PACKAGE.v$new_version
                   ${look}kubectl -n $NAMESPACE logs deployment/memcached-operator-controller-manager
   Change it:      ${look}kubectl -n $NAMESPACE patch memcached memcached-sample --type=merge -p '{"spec": {"size": 1}}'
   Remove it all:  make demo-down$([ "$CLUSTER" = local ] || echo " CLUSTER=$CLUSTER REGISTRY=$REGISTRY")
TEXT
