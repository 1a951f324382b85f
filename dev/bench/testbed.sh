#!/usr/bin/env bash
# Measures kube-testbed on this machine: starts of a control plane without and with controllers, and the time of a new user from
# `cargo add --dev kube-testbed` until the README's first test passes, with compiled dependencies and the control plane's programs
# present. The crate is a path dependency; its compilation is in the measured time, like that of a registry crate.
#
#   STARTS=12          number of starts
#   CARGO_TARGET_DIR   where the new user's dependencies are kept (default: bench-testbed in the cache directory). The first run
#                      compiles them, which takes minutes and is not measured
#
# Needs `dev/tools/build.sh control-plane`. The new crate has the versions of this repository's Cargo.lock.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
repository=$PWD starts=${STARTS:-12}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
load() { cut -d' ' -f1 /proc/loadavg; }

env -u CARGO_TARGET_DIR cargo build -q --locked -p kube-testbed --features cli
testbed=$repository/target/$(rustc -vV | sed -n 's/^host: //p')/debug/kube-testbed
# start FORM [FLAG]
start() {
  for _ in $(seq "$starts"); do
    begin=$(date +%s%N)
    ready=$("$testbed" run "${@:2}" date +%s%N 2>> "$work/log") || { cat "$work/log" >&2; exit 1; }
    echo $(((ready - begin) / 1000000))
  done | sort -n > "$work/starts"
  awk -v form="$1" -v load="$(load)" '{ all[NR] = $1 } END {
    printf "start %s controllers: median %.1f s, maximum %.1f s of %d; load %s\n",
      form, (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2000, all[NR] / 1000, NR, load }' "$work/starts"
}
start without --no-controllers
start with

# The dependencies of an operator's crate.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bench-testbed}
mkdir -p "$work/operator/src" "$work/operator/tests"
cd "$work/operator"
cp "$repository/Cargo.lock" "$repository/rust-toolchain.toml" .
cat > Cargo.toml <<'TOML'
[package]
name = "operator"
version = "0.1.0"
edition = "2024"

[dependencies]
k8s-openapi = { version = "0.29", features = ["latest"] }
kube = { version = "5", features = ["derive", "runtime"] }
serde_json = "1"
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
TOML
touch src/lib.rs
cp Cargo.toml Cargo.toml.before
# The first block of Rust.
first() { awk '/^```rust/ { inside = 1; next } /^```/ { if (inside) exit } inside' "$repository/crates/testbed/README.md"; }

add() { cargo add -q --dev --path "$repository/crates/testbed" kube-testbed; }
add; first > tests/first.rs
cargo test -q --no-run
# Unset variables that a new user does not have.
cargo clean -q -p kube-testbed -p operator
rm tests/first.rs; cp Cargo.toml.before Cargo.toml

begin=$(date +%s%N)
add
first > tests/first.rs
cargo test -q --test first > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
end=$(date +%s%N)
awk -v time=$((end - begin)) -v load="$(load)" 'BEGIN { printf "from cargo add to a green test: %.1f s; load %s\n", time / 1e9, load }'
