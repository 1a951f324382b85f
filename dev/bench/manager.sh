#!/usr/bin/env bash
# Compares the cost of kube-manager's caches and queue with kube-runtime's Store and Controller, on a real API server without
# a node. Prints Markdown tables: resident memory in KiB above that of a connected client, with COUNTS objects; passes in ten
# seconds over one object whose status write changes each time; sizes of the two programs without symbols.
#
# PROFILE (default dev) is the Cargo profile: heap memory does not depend on it, sizes of programs do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
counts=${COUNTS:-1000 10000}
profile=${PROFILE:-dev}
target=${CARGO_TARGET_DIR:-target}/$([ "$profile" = dev ] && echo debug || echo "$profile")/examples
if [ "${1:-}" != measure ]; then
  cargo build -q -p kube-testbed --features cli
  cargo build -q --profile "$profile" -p kube-manager --examples
  exec "${CARGO_TARGET_DIR:-target}/debug/kube-testbed" run --no-pods "$PWD/dev/bench/manager.sh" measure
fi

echo '| cache | objects | after the list | after a second list | peak |'
echo '|---|---|---|---|---|'
for count in $counts; do
  "$target/caches" seed "$count"
  for variant in store-full store-trimmed store-metadata cache-projected cache-metadata; do "$target/caches" $variant; done
done
echo
echo '| status write with each failure | passes in 10 s |'
echo '|---|---|'
"$target/status_writes_controller"
"$target/status_writes_manager"
"$target/status_writes_manager" spec
echo
for program in status_writes_controller status_writes_manager; do
  strip -o "$target/$program.stripped" "$target/$program"
  echo "$program: $(stat -c %s "$target/$program.stripped") bytes ($profile)"
done
