#!/usr/bin/env bash
# tutorial.sh: follows docs/tutorial/README.md to the letter, on a real control plane. Needs `make build` and
# `dev/tools/build.sh control-plane`. The project shares this repository's Cargo.lock, profile, flags and target/.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
olmkit=$(realpath "${OLMKIT:-$(make -s --no-print-directory print-olmkit)}")
[ -x "$olmkit" ] || { echo "error: no $olmkit; run make build, or name one in OLMKIT" >&2; exit 1; }
cargo build --locked --quiet -p kube-testbed --features cli
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$repository/target} OLMKIT_SOURCE=path:$repository
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"; ln -s "$olmkit" "$work/bin/olmkit"
sed -n '/^\[profile\.dev/,/^$/p' Cargo.toml > "$work/profile"
awk '/^```console$/ { inside = 1; next } /^```/ { inside = 0 } inside && /^\$ / { print substr($0, 3) }' docs/tutorial/README.md > "$work/page"
[ "$(wc -l < "$work/page")" -ge 20 ]
# After init: the repository's lock file and profile, or everything would be compiled anew.
cat > "$work/commands" <<'COMMANDS'
set -euo pipefail
set -m
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
COMMANDS
while read -r line; do
  printf 'echo %q\n' "\$ $line" >> "$work/commands"
  # Where the page expects a failure, bash would not mind a success.
  case $line in '! '*) echo "if ${line#! }; then exit 1; fi" ;; *) echo "$line" ;; esac >> "$work/commands"
  if [[ $line == "olmkit init"* ]]; then
    cat >> "$work/commands" <<COMMANDS
cp "$repository/Cargo.lock" .
sed -i '/^\[profile\.dev\]/,/^\[profile\.release\]/{/^\[profile\.release\]/!d}' Cargo.toml
cat "$work/profile" >> Cargo.toml
COMMANDS
  fi
done < "$work/page"
cd "$work"
bin=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin
PATH=$work/bin:$bin:$PATH "$CARGO_TARGET_DIR/$(rustc -vV | sed -n 's/^host: //p')/debug/kube-testbed" run bash "$work/commands" || {
  cat "$work/memcached-operator/operator.log" 2> /dev/null; exit 1; }
echo "the page is right"
