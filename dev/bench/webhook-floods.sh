#!/usr/bin/env bash
# webhook-floods.sh: runs a scaffolded operator with webhooks in a memory cgroup of LIMIT (128Mi) with a real API server without a
# node, and floods its webhook server: 300 slow connections, and 8 to 64 unfinished conversions of 60 MB. Meanwhile it sends well-behaved
# admission requests. Prints a Markdown table: memory, failed requests and their 99th percentile. Needs root for the cgroup
# (version 1 or 2 as the host has it; without root it measures without a limit), python3, openssl and curl.
# PROFILE (default release) is the Cargo profile, OPERATOR an existing program of such a project, OLMKIT and TESTBED existing programs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
repository=$PWD profile=${PROFILE:-release} limit=${LIMIT:-$((128 << 20))}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$repository/target}
target=$CARGO_TARGET_DIR/$(rustc -vV | sed -n 's/^host: //p')
if [ "${1:-}" != measure ]; then
  project=$(mktemp -d) && trap 'rm -rf "$project"' EXIT
  olmkit=$(realpath "${OLMKIT:-$(make -s --no-print-directory print-olmkit)}")
  [ -n "${TESTBED:-}" ] || cargo build -q -p kube-testbed --features cli
  mkdir "$project/floods" && cd "$project/floods"
  export OLMKIT_SOURCE=path:$repository
  {
    "$olmkit" init --domain example.com
    "$olmkit" create api --group cache --version v1alpha1 --kind Memcached
    "$olmkit" create api --group cache --version v1 --kind Memcached
    "$olmkit" create webhook --group cache --version v1 --kind Memcached --conversion --spoke v1alpha1 --defaulting --programmatic-validation
  } > ../log 2>&1 || { cat ../log >&2; exit 1; }
  if [ -z "${OPERATOR:-}" ]; then
    # The lock file and the target directory of this repository, so that cargo reuses compiled crates.
    cp "$repository/Cargo.lock" .
    sed -i '/^\[profile\./,$d' Cargo.toml
    { echo; sed -n '/^\[profile\.dev/,/^$/p; /^\[profile\.release\]/,/^$/p' "$repository/Cargo.toml"; } >> Cargo.toml
    cargo build -q --profile "$profile" --bin floods
    OPERATOR=$target/$([ "$profile" = dev ] && echo debug || echo "$profile")/floods
  fi
  export OPERATOR PROJECT_FOLDER=$project/floods
  "${TESTBED:-$target/debug/kube-testbed}" run --no-pods "$repository/dev/bench/webhook-floods.sh" measure
  exit
fi

probes=18081 metrics=18443 port=19443 work=$(mktemp -d) group=
clean() { [ -z "${pid:-}" ] || kill "$pid" 2> /dev/null || true; wait 2> /dev/null || true; [ -z "$group" ] || rmdir "$group" || true; rm -rf "$work"; }
trap clean EXIT
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/tls.key" -out "$work/tls.crt" -subj /CN=floods -days 2 2> /dev/null
# Nothing converts objects here, as no API server reaches the webhooks by a Service.
for file in "$PROJECT_FOLDER"/config/crd/bases/*.yaml; do
  kubectl create --dry-run=client -o json -f "$file" | python3 -c 'import json, sys; d = json.load(sys.stdin); d["spec"].pop("conversion", None); json.dump(d, sys.stdout)' | kubectl create -f - > /dev/null
done
if [ -w /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/memory/olmkit-floods-$$ && mkdir "$group" && echo "$limit" > "$group/memory.limit_in_bytes"
elif [ -w /sys/fs/cgroup/cgroup.procs ]; then
  group=/sys/fs/cgroup/olmkit-floods-$$ && mkdir "$group" && echo "$limit" > "$group/memory.max"
else
  echo "no cgroup can be made: measuring without a limit" >&2
fi
(
  [ -z "$group" ] || echo "$BASHPID" > "$group/cgroup.procs"
  exec "$OPERATOR" --health-probe-bind-address "127.0.0.1:$probes" --metrics-bind-address "127.0.0.1:$metrics" --webhook-bind-address "127.0.0.1:$port" \
    --webhook-cert-path "$work" 2> "$work/log"
) &
pid=$!
for _ in $(seq 600); do curl -sf -o /dev/null "http://127.0.0.1:$probes/readyz" && break; kill -0 "$pid" || { tail "$work/log" >&2; exit 1; }; sleep 0.1; done
memory() { sed -n "s/^$1:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$pid/status"; }
echo '| flood | resident before, kB | at most, kB | after, kB | admission requests | failed | 99th percentile, ms |'
echo '|---|---|---|---|---|---|---|'
for flood in none slow conversions-8 conversions-64; do
  before=$(memory VmRSS)
  echo 5 > "/proc/$pid/clear_refs" 2> /dev/null || true
  figures=$(python3 dev/bench/floods.py webhooks "$flood" "$port")
  most=$(memory VmHWM); sleep 2
  kill -0 "$pid" || { echo "the operator has ended" >&2; exit 1; }
  echo "| $flood | $before | $most | $(memory VmRSS) | $figures |"
done
