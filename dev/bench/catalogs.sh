#!/usr/bin/env bash
# catalogs.sh [PACKAGES…]: times `catalog render`, `validate` and `serve` on generated catalogs, with olmkit and, if it is
# installed, opm. Prints Markdown tables. SEED changes the catalogs. BUNDLES is a directory with bundle directories: a
# hundred are rendered together (skipped if unset). SECONDS_EACH is the length of the requests to each server.
#
# Times are the best of three, on the wall clock and, behind it, of the processor: the latter counts on a busy machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
sizes=("$@"); [ $# -gt 0 ] || sizes=(30 300)
seed=${SEED:-7} span=${SECONDS_EACH:-5} rounds=${ROUNDS:-3}
target=${CARGO_TARGET_DIR:-target}/$(rustc -vV | sed -n 's/^host: //p')/release
olmkit=${OLMKIT:-$target/olmkit}
examples=${EXAMPLES:-$target/examples}
bin=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin
if [ ! -x "$olmkit" ] || [ ! -x "$examples/generate_catalog" ] || [ ! -x "$examples/measure_server" ]; then
  cargo build --release -q -p olmkit-cli -p olmkit-serve --bin olmkit --example generate_catalog --example measure_server
fi
opm=$bin/opm; [ -x "$opm" ] || { opm=; echo "opm is not installed (dev/tools/build.sh builds it): timing olmkit alone"; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
now() { date +%s%N; }

# timed COMMAND…: milliseconds of wall clock and of processor, and the largest resident size in megabytes
timed() {
  local best= begin wall user system memory cpu
  for _ in $(seq "$rounds"); do
    begin=$(now)
    /usr/bin/env time -f '%U %S %M' -o "$work/usage" "$@" > /dev/null 2> "$work/errors" || { echo "failed: $*"; tail -n 3 "$work/errors"; return; }
    wall=$((($(now) - begin) / 1000000))
    read -r user system memory < <(tail -n 1 "$work/usage")
    [ -n "$best" ] && [ "$best" -le "$wall" ] || { best=$wall; cpu=$(awk "BEGIN { printf \"%d\", ($user + $system) * 1000 }"); }
  done
  echo "$best ms ($cpu), $((memory / 1024)) MB"
}
# served COMMAND…: prints the output of examples/measure_server.rs for a server at port 50061
served() { "$examples/measure_server" 50061 "$span" "$@" 2> "$work/errors" || { tail -n 1 "$work/errors" >&2; echo "failed - - - - - -"; }; }
row() { printf '| %s | %s | %s |\n' "$1" "$2" "${3:--}"; }
peer() { [ -z "$opm" ] || "$@"; }
# server_rows WHAT OURS THEIRS: one row for each number of `served`
server_rows() {
  local what=$1; local -a ours=($2) theirs=(${3:-- - - - - - -})
  row "serve, first answer$what" "${ours[0]} ms" "${theirs[0]} ms"
  row "settled memory$what" "${ours[1]} MB" "${theirs[1]} MB"
  row "ListBundles$what: bundles per second (of processor time)" "${ours[2]} (${ours[3]})" "${theirs[2]} (${theirs[3]})"
  row "GetPackage$what: calls per second (of processor time)" "${ours[4]} (${ours[5]})" "${theirs[4]} (${theirs[5]})"
  row "memory after that load$what" "${ours[6]} MB" "${theirs[6]} MB"
}

for size in "${sizes[@]}"; do
  catalog=$work/catalog-$size ours=$work/ours theirs=$work/theirs
  echo; "$examples/generate_catalog" "$catalog" "$size" "$seed"
  echo; echo "| $size packages | olmkit | opm |"; echo "|---|---|---|"
  row "render -o json" "$(timed "$olmkit" catalog render "$catalog")" "$(peer timed "$opm" render "$catalog")"
  row "render -o yaml" "$(timed "$olmkit" catalog render -o yaml "$catalog")" "$(peer timed "$opm" render -o yaml "$catalog")"
  row "validate" "$(timed "$olmkit" catalog validate -q "$catalog")" "$(peer timed "$opm" validate "$catalog")"
  rm -rf "$ours" "$theirs"; mkdir "$ours" "$theirs"
  server_rows "" "$(served "$olmkit" catalog serve "$catalog" --port 50061 --cache-dir "$ours")" \
    "$(peer served "$opm" serve "$catalog" --port 50061 --pprof-addr '' --cache-dir "$theirs" --cache-enforce-integrity=false)"
  server_rows " with a prepared index" "$(served "$olmkit" catalog serve "$catalog" --port 50061 --cache-dir "$ours")" \
    "$(peer served "$opm" serve "$catalog" --port 50061 --pprof-addr '' --cache-dir "$theirs")"
  row "size of the index" "$(du -sm "$ours" | cut -f1) MB" "$(peer du -sm "$theirs" | cut -f1) MB"
  rm -rf "$catalog"
done
if [ -n "${BUNDLES:-}" ]; then
  mapfile -t bundles < <(find "$BUNDLES" -mindepth 1 -maxdepth 1 -type d | sort | head -n 100)
  echo; echo "| ${#bundles[@]} bundles | olmkit | opm |"; echo "|---|---|---|"
  row "render" "$(timed "$olmkit" catalog render "${bundles[@]}")" "$(peer timed "$opm" render "${bundles[@]}")"
fi
