#!/usr/bin/env bash
# Drills for the operator's alerts: tests/operator/alerts/mod.rs causes the fault of each alert of monitoring/prometheus_rule.yaml in
# a real operator with a real API server, and promtool applies the rules to the recorded /metrics. Each alert must be silent before
# the fault and fire during it. Prints one line for each alert. Takes ten minutes.
#
#   alerts.sh [ALERT…]   these alerts, by the end of their names (WatchesFail); all without arguments
#
# A scrape each 20 s counts as a minute of the rules' time. ALERTS_EVERY=60 drills in real time, in half an hour. ALERTS_KEEP
# names a directory for the scrapes; without it they are deleted.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$here"
bin=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin
every=${ALERTS_EVERY:-20}
folder=${ALERTS_KEEP:-$(mktemp -d)}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
[ -n "${ALERTS_KEEP:-}" ] || trap 'rm -rf "$folder"' EXIT

export ALERTS_FOLDER=$folder ALERTS_EVERY=$every
[ $# = 0 ] || { ALERTS=$(IFS=,; echo "$*"); export ALERTS; }
dev/beside.sh control-plane promtool -- cargo test --no-run --locked --workspace --features manifests --test operator
cargo test --locked --workspace --features manifests --test operator drill_of_the_alerts -- --ignored > "$folder/log" 2>&1 ||
  { cat "$folder/log"; exit 1; }

"$bin/promtool" check rules "$folder/rules.yaml" > "$folder/check" 2>&1 || { cat "$folder/check"; exit 1; }
failed=0
while IFS=$'\t' read -r alert calm within fault; do
  if "$bin/promtool" test rules "$folder/$alert.yaml" > "$folder/$alert.log" 2>&1; then
    echo "ok    $alert: silent for $calm min of calm, fires within $within min of: $fault"
  else
    failed=1
    echo "FAIL  $alert: $fault"
    cat "$folder/$alert.log"
  fi
done < "$folder/list"
echo "a minute is one scrape, each $every s"
exit $failed
