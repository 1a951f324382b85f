#!/usr/bin/env bash
# Drills that need pods: each drill breaks something on the local node, checks the code of the cause that olmkit reports,
# follows its hint, and checks that this repairs the installation. Drills without pods are in
# crates/cli/tests/cluster/drills.rs and need only a control plane.
#
#   drills.sh [failures|catalogs …]   these drills; all without arguments
#   drills.sh upstream                the failures with upstream's operator-sdk: prints what it says, asserts nothing
#
# OLMKIT and OPERATOR, when set, are static programs to test instead of those that `make build` builds. KEEP=1 leaves the
# cluster up.
set -euo pipefail
given=${OLMKIT:-}
. "$(dirname "${BASH_SOURCE[0]}")/story.sh"
[ "$CLUSTER" = local ] || { echo "error: drills break things; they run on the local cluster only" >&2; exit 2; }
. "$dev/e2e/checks.sh"
. "$dev/e2e/olmkit.sh"
. "$dev/e2e/upstream.sh"
known="failures catalogs upstream"
for kind in registry failures catalogs upstream; do . "$dev/drills/$kind.sh"; done
for kind in "$@"; do [[ " $known " == *" $kind "* ]] || { echo "error: no drills '$kind'; there are: $known" >&2; exit 2; }; done
title="drills" repeat=dev/drills.sh
NAMESPACE=drills

trap finish EXIT
[ -n "$given" ] || make -s build
dev/tools/build.sh node upstream
"$dev/cluster/cluster" up
stage
publish_once > "$results/publish.log"
inventory > "$results/before-drills"
for kind in ${@:-failures catalogs}; do
  flow=$kind
  restricted_namespace > /dev/null
  "drill_$kind"
  k delete namespace "$NAMESPACE" --timeout=120s > /dev/null
  [ "$kind" = upstream ] || check "nothing is left of the $kind" same_inventory "$results/before-drills"
done
