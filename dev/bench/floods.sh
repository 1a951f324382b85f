#!/usr/bin/env bash
# floods.sh: runs the memcached operator in a memory cgroup of LIMIT (128Mi) with a real API server without a node, and floods it: 256
# connections with unfinished headers of 400 kB at its probes and at its metrics server, and OBJECTS (60) Deployments of 1 MB
# with its label. Prints a Markdown table: memory, restarts and the 99th percentile of well-behaved probes. Needs root for the
# cgroup (version 1 or 2 as the host has it; without root it measures without a limit), python3 and curl.
# PROFILE (default release) is the Cargo profile, OPERATOR an existing program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
profile=${PROFILE:-release} objects=${OBJECTS:-60} limit=${LIMIT:-$((128 << 20))}
target=${CARGO_TARGET_DIR:-target}/$(rustc -vV | sed -n 's/^host: //p')
operator=${OPERATOR:-$target/$([ "$profile" = dev ] && echo debug || echo "$profile")/memcached-operator}
if [ "${1:-}" != measure ]; then
  [ -n "${TESTBED:-}" ] || cargo build -q -p kube-testbed --features cli
  [ -x "$operator" ] || cargo build -q --profile "$profile" -p memcached-operator --bin memcached-operator
  exec "${TESTBED:-$target/debug/kube-testbed}" run --no-pods "$PWD/dev/bench/floods.sh" measure
fi

probes=18081 metrics=18443 work=$(mktemp -d) group=
clean() { [ -z "${pid:-}" ] || kill "$pid" 2> /dev/null || true; wait 2> /dev/null || true; [ -z "$group" ] || rmdir "$group" || true; rm -rf "$work"; }
trap clean EXIT
kubectl apply -k config/crd > /dev/null
python3 dev/bench/floods.py objects "$objects" > "$work/objects.json"
kubectl create -f "$work/objects.json" > /dev/null
if [ -w /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/memory/olmkit-floods-$$ && mkdir "$group" && echo "$limit" > "$group/memory.limit_in_bytes"
elif [ -w /sys/fs/cgroup/cgroup.procs ]; then
  group=/sys/fs/cgroup/olmkit-floods-$$ && mkdir "$group" && echo "$limit" > "$group/memory.max"
else
  echo "no cgroup can be made: measuring without a limit" >&2
fi
(
  [ -z "$group" ] || echo "$BASHPID" > "$group/cgroup.procs"
  exec "$operator" --health-probe-bind-address "127.0.0.1:$probes" --metrics-bind-address "127.0.0.1:$metrics" 2> "$work/log"
) &
pid=$!
for _ in $(seq 600); do curl -sf -o /dev/null "http://127.0.0.1:$probes/readyz" && break; kill -0 "$pid" || { tail "$work/log" >&2; exit 1; }; sleep 0.1; done
memory() { sed -n "s/^$1:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$pid/status"; }
echo '| flood | resident before, kB | at most, kB | after, kB | probes | failed | 99th percentile, ms |'
echo '|---|---|---|---|---|---|---|'
echo "| $objects Deployments of 1 MB | | $(memory VmHWM) | $(memory VmRSS) | | | |"
for flood in "plain $probes" "tls $metrics"; do
  before=$(memory VmRSS)
  echo 5 > "/proc/$pid/clear_refs" 2> /dev/null || true
  # shellcheck disable=SC2086
  figures=$(python3 dev/bench/floods.py flood $flood "$probes")
  most=$(memory VmHWM); sleep 2
  kill -0 "$pid" || { echo "the operator has ended" >&2; exit 1; }
  echo "| 256 headers of 400 kB, ${flood% *} | $before | $most | $(memory VmRSS) | $figures |"
done
