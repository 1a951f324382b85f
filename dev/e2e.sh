#!/usr/bin/env bash
# The end-to-end test. Its flows: the demo and the operator's guarantees on a real node, the images that OLM runs in pods,
# `make deploy` and `make undeploy`, olmkit's cluster commands, a scaffolded operator, scorecard in pods, upstream's operator-sdk with
# our bundle images, OLM removed and installed again, the objects that OLM v1 would apply, and its catalogd with our catalog image.
# Each check prints one line; the last line counts them. Every flow restores the cluster, so the flows run in random order.
#
#   e2e.sh [operator|images|deploy|olmkit|scaffold|scorecard|upstream|olm|olmv1 …]    only these flows, in this order
#
# KEEP=1 leaves the cluster up. SEED, which each run prints, repeats an order; SEED=0 is the order of the list above.
# OLMKIT and OPERATOR, when set, are static programs to test instead of those that `make build` builds.
set -euo pipefail
given=${OLMKIT:-}
. "$(dirname "${BASH_SOURCE[0]}")/story.sh"
[ "$CLUSTER" = local ] || { echo "error: the end-to-end test makes and removes its own cluster; it does not run on another" >&2; exit 2; }
. "$dev/e2e/checks.sh"
flows="operator images deploy olmkit scaffold scorecard upstream olm olmv1"
for flow in operator helper-image olmkit scaffold scorecard upstream olm olmv1; do . "$dev/e2e/$flow.sh"; done
for flow in "$@"; do [[ " $flows " == *" $flow "* ]] || { echo "error: no flow '$flow'; there are: $flows" >&2; exit 2; }; done
trap finish EXIT

if [ -n "$given" ]; then dev/tools/build.sh node upstream catalogd; else dev/beside.sh node upstream catalogd -- make -s build; fi
"$dev/cluster/cluster" up
stage
inventory > "$results/before"
[ $# -gt 0 ] || { SEED=${SEED:-$((RANDOM + 1))}; flows=$(shuffled "$SEED" $flows); echo "SEED=$SEED: $flows"; }
for flow in ${@:-$flows}; do
  [ "$flow" = operator ] || publish_once
  "flow_$flow"
done
