#!/usr/bin/env bash
# Measures the time to install, upgrade and remove an operator with OLM on the local node: with olmkit from a bundle
# directory and from an image, and with upstream's operator-sdk from the same image. Each time ends when the phase of the
# ClusterServiceVersion is Succeeded, or when the command has removed its objects. Prints a Markdown table of the
# medians of RUNS runs (default 3).
#
# OLMKIT and OPERATOR, when set, are static programs to measure instead of those that `make build PROFILE=dist` builds. KEEP=1 leaves the
# cluster up.
set -euo pipefail
export PROFILE=${PROFILE:-dist}
given=${OLMKIT:-}
. "$(dirname "${BASH_SOURCE[0]}")/../story.sh"
. "$dev/e2e/checks.sh"
. "$dev/e2e/olmkit.sh"
. "$dev/e2e/upstream.sh"
runs=${RUNS:-3}
times=$results/times; : > "$times"
trap '[ -n "${KEEP:-}" ] || "$dev/cluster/cluster" down' EXIT

# timed TOOL STEP COMMAND…
timed() {
  local tool=$1 step=$2 start; shift 2
  start=$(date +%s%N)
  "$@" > "$results/bench.log" 2>&1 || { cat "$results/bench.log" >&2; exit 1; }
  echo "$tool|$step|$((($(date +%s%N) - start) / 1000000))" | tee -a "$times" >&2
}
median() { grep -F "$1|$2|" "$times" | cut -d'|' -f3 | sort -n | awk '{ t[NR] = $1 } END { printf "%.1f s", t[int((NR + 1) / 2)] / 1000 }'; }
with_olmkit() {
  local tool=$1 old=$2 new=$3; shift 3
  timed "$tool" install kit run bundle "$old" -n "$NAMESPACE" "$@"
  timed "$tool" upgrade kit run bundle-upgrade "$new" -n "$NAMESPACE" "$@"
  timed "$tool" cleanup kit cleanup "$PACKAGE" -n "$NAMESPACE"
}
with_upstream() {
  timed upstream install sdk run bundle "$(bundle_on_tls "$old_version")" --index-image localhost:5443/operator-framework/opm:latest --decompression-image localhost:5000/dev/busybox:1
  timed upstream upgrade sdk run bundle-upgrade "$(bundle_on_tls "$new_version")"
  timed upstream cleanup sdk cleanup "$PACKAGE"
  sdk_residue > /dev/null
}

[ -n "$given" ] || make -s build
dev/tools/build.sh node upstream
"$dev/cluster/cluster" up
stage
publish_images > /dev/null; push_helper > /dev/null
NAMESPACE=bench
k create namespace "$NAMESPACE" > /dev/null
for _ in $(seq "$runs"); do
  with_olmkit host "$work/old-bundle" "$work/new-bundle" --serve-from-host
  with_olmkit image "$(bundle_image "$old_version")" "$(bundle_image "$new_version")" --helper-image $helper
  with_upstream
done
echo "| | olmkit, directory | olmkit, image | operator-sdk, image |"
echo "|---|---|---|---|"
for step in install upgrade cleanup; do echo "| $step | $(median host $step) | $(median image $step) | $(median upstream $step) |"; done
