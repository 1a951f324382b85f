#!/usr/bin/env bash
# catalogs.sh [PACKAGES…]: times `catalog render`, `validate` and `serve` on generated catalogs, opm beside olmkit in the
# same run where it is installed. Prints a Markdown table. SEED changes the catalogs, BUNDLES is a folder of bundle
# directories to render together (left out where unset).
set -euo pipefail
cd "$(dirname "$0")/../.."
sizes=("${@:-30}")
seed=${SEED:-7}
olmkit=${OLMKIT:-target/release/olmkit}
generate=${GENERATE:-target/release/examples/generate_catalog}
bin=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin
[ -x "$olmkit" ] && [ -x "$generate" ] || cargo build --release -q -p olmkit --bin olmkit --example generate_catalog
opm=$bin/opm; [ -x "$opm" ] || { opm=; echo "opm is not installed: timing olmkit alone"; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
now() { date +%s%N; }

# timed COMMAND…: best of three, milliseconds, and the largest resident size in megabytes
timed() {
  local best= begin end memory
  for _ in 1 2 3; do
    begin=$(now)
    /usr/bin/env time -f %M -o "$work/memory" "$@" > /dev/null 2> "$work/errors" || { echo "failed: $*"; tail -n 3 "$work/errors"; return; }
    end=$(now)
    [ -n "$best" ] && [ "$best" -le $(((end - begin) / 1000000)) ] || { best=$(((end - begin) / 1000000)); memory=$(cat "$work/memory"); }
  done
  echo "$best ms, $((memory / 1024)) MB"
}

# started COMMAND…: milliseconds until the server at PORT answers its probe; then its resident size, settled
started() {
  local begin pid port=$1; shift
  begin=$(now)
  "$@" > "$work/log" 2>&1 & pid=$!
  until "$olmkit" grpc_health_probe --addr "127.0.0.1:$port" --connect-timeout 5s --rpc-timeout 5s > /dev/null 2>&1; do
    kill -0 "$pid" 2> /dev/null || { echo "failed: $*"; tail -n 3 "$work/log"; return; }
    sleep 0.005
  done
  local taken=$((($(now) - begin) / 1000000))
  sleep 2
  echo "$taken ms, $(($(awk '/VmRSS/ { print $2 }' "/proc/$pid/status") / 1024)) MB"
  kill "$pid"; wait "$pid" 2> /dev/null || true
}

# row NAME OURS THEIRS
row() { printf '| %s | %s | %s |\n' "$1" "$2" "${3:--}"; }
peer() { [ -z "$opm" ] || "$@"; }

for size in "${sizes[@]}"; do
  catalog=$work/catalog-$size
  echo; "$generate" "$catalog" "$size" "$seed"
  echo; echo "| $size packages | olmkit | opm |"; echo "|---|---|---|"
  row "render -o json" "$(timed "$olmkit" catalog render "$catalog")" "$(peer timed "$opm" render "$catalog")"
  row "render -o yaml" "$(timed "$olmkit" catalog render -o yaml "$catalog")" "$(peer timed "$opm" render -o yaml "$catalog")"
  row "validate" "$(timed "$olmkit" catalog validate -q "$catalog")" "$(peer timed "$opm" validate "$catalog")"
  rm -rf "$work/ours" "$work/theirs"; mkdir "$work/theirs"
  row "serve, first answer" "$(started 50061 "$olmkit" catalog serve "$catalog" --port 50061)" \
    "$(peer started 50062 "$opm" serve "$catalog" --port 50062 --pprof-addr '')"
  "$olmkit" catalog serve "$catalog" --cache-dir "$work/ours" --cache-only 2> /dev/null
  peer "$opm" serve "$catalog" --cache-dir "$work/theirs" --cache-only --pprof-addr '' > /dev/null 2>&1 || true
  row "serve, prepared index" "$(started 50061 "$olmkit" catalog serve "$catalog" --port 50061 --cache-dir "$work/ours")" \
    "$(peer started 50062 "$opm" serve "$catalog" --port 50062 --pprof-addr '' --cache-dir "$work/theirs" --cache-enforce-integrity=false)"
  row "size of the index" "$(du -sm "$work/ours" | cut -f1) MB" "$(peer du -sm "$work/theirs" | cut -f1) MB"
  rm -rf "$catalog"
done
if [ -n "${BUNDLES:-}" ]; then
  mapfile -t bundles < <(find "$BUNDLES" -mindepth 1 -maxdepth 1 -type d | sort | head -n 100)
  echo; echo "| ${#bundles[@]} bundles | olmkit | opm |"; echo "|---|---|---|"
  row "render" "$(timed "$olmkit" catalog render "${bundles[@]}")" "$(peer timed "$opm" render "${bundles[@]}")"
fi
