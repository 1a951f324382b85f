#!/usr/bin/env bash
# hostile-clients.sh [CLIENTS]: how `opm serve` of the helper image, which catalog pods run, fares while CLIENTS (1000) clients do not
# read, drip or stay silent, and come back when they are disconnected. Prints a Markdown table. PACKAGES (300) is the size of the generated catalog,
# SECONDS_EACH (20) how long they go on. HELPER and EXAMPLES name programs that are built already.
set -euo pipefail
cd "$(dirname "$0")/../.."
clients=${1:-1000} packages=${PACKAGES:-300} span=${SECONDS_EACH:-20} port=${PORT:-50062}
target=${CARGO_TARGET_DIR:-target}/$(rustc -vV | sed -n 's/^host: //p')/release
helper=${HELPER:-$target/olmkit-helper}
examples=${EXAMPLES:-$target/examples}
if [ ! -x "$helper" ] || [ ! -x "$examples/generate_catalog" ] || [ ! -x "$examples/hostile_clients" ]; then
  cargo build --release -q -p olmkit-cli -p olmkit-serve --bin olmkit-helper --example generate_catalog --example hostile_clients
fi
ulimit -n "$(ulimit -Hn)"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
ln -s "$(realpath "$helper")" "$work/opm"
"$examples/generate_catalog" "$work/catalog" "$packages" 7
"$work/opm" serve "$work/catalog" --cache-only --cache-dir "$work/cache" 2> "$work/errors" || { cat "$work/errors" >&2; exit 1; }
read -r -a figures < <("$examples/hostile_clients" "$port" "$clients" "$span" \
  "$work/opm" serve "$work/catalog" --port "$port" --cache-dir "$work/cache" --termination-log none)
echo; echo "| $clients hostile clients, $span s | number | failed | median | 99th percentile | longest |"; echo "|---|---|---|---|---|---|"
row() { printf '| %s | %s | %s | %s ms | %s ms | %s ms |\n' "$@"; }
row "GetPackage" "${figures[@]:0:5}"
row "health probe, new connection" "${figures[@]:5:5}"
echo; echo "resident memory: ${figures[10]} MB before, at most ${figures[11]} MB, ${figures[12]} MB five seconds after"
