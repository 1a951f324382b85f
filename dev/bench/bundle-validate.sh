#!/bin/bash
# Compares `olmkit bundle validate` with `operator-sdk bundle validate` in one run on this machine and prints a table: median wall
# time and peak resident memory of the process. A second table has the processor time that lints add for 200 random bundles
# in the default mode.
# Usage: bundle-validate.sh DIRECTORY [ROUNDS]
#   OLMKIT        the program to measure (default: the program of `make build PROFILE=dist`)
#   OPERATOR_SDK  the program to compare with (default: the one of the development tools, see dev/tools)
set -euo pipefail
bundles=${1:?directory that holds bundle directories}
rounds=${2:-15}
here=$(cd "$(dirname "$0")/../.." && pwd)
olmkit=${OLMKIT:-$(make -s -C "$here" --no-print-directory print-olmkit PROFILE=dist)}
sdk=${OPERATOR_SDK:-${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin/operator-sdk}
# GNU time: it starts the command from a small process. A large one (a Python program, say) would be counted as the command's memory.
for program in "$olmkit" "$sdk" /usr/bin/time; do
  [ -x "$program" ] || { echo "skipped: no $program"; exit 0; }
done

median() { sort -n | awk '{ line[NR] = $1 } END { print line[int((NR + 1) / 2)] }'; }

# wall COMMAND…: microseconds of one run. A verdict of "failed" is fine, a crash is not.
wall() {
  local start=$EPOCHREALTIME code=0
  "$@" >/dev/null 2>&1 || code=$?
  local end=$EPOCHREALTIME
  [ "$code" -le 1 ] || { echo "exit code $code: $*" >&2; exit 1; }
  echo $(( ${end/[.,]/} - ${start/[.,]/} ))
}

memory() { { /usr/bin/time -q -f %M "$@" 2>&1 >/dev/null || true; } | tail -1; }

one_by_one() { for bundle in "${@:2}"; do "$1" bundle validate "$bundle" -o json-alpha1 || true; done; }

# row WHAT ROUNDS: compares the commands in the arrays `ours` and `theirs`, in turn.
row() {
  local a=() b=() round
  wall "${ours[@]}" >/dev/null && wall "${theirs[@]}" >/dev/null
  for (( round = 0; round < $2; round++ )); do
    a+=("$(wall "${ours[@]}")")
    b+=("$(wall "${theirs[@]}")")
  done
  awk -v what="$1" -v a="$(printf '%s\n' "${a[@]}" | median)" -v b="$(printf '%s\n' "${b[@]}" | median)" -v ma="$3" -v mb="$4" 'BEGIN {
    printf "| %s | %.1f ms | %.1f ms | %.0f | %.1f MiB | %.1f MiB | %.1f |\n", what, a / 1000, b / 1000, b / a, ma / 1024, mb / 1024, mb / ma }'
}

mapfile -t all < <(find "$bundles" -mindepth 1 -maxdepth 1 -type d -exec test -d '{}/manifests' \; -print | sort)
[ "${#all[@]}" -gt 0 ] || { echo "no bundles in $bundles"; exit 1; }
size() { du -sb "$1/manifests" | cut -f1; }
mapfile -t sorted < <(for bundle in "${all[@]}"; do echo "$(size "$bundle") $bundle"; done | sort -n | cut -d' ' -f2-)
echo "| bundle | olmkit | operator-sdk | times as fast | olmkit | operator-sdk | times less |"
echo "|---|---|---|---|---|---|---|"
for bundle in "${sorted[$(( ${#sorted[@]} / 2 ))]}" "${sorted[-1]}"; do
  ours=("$olmkit" bundle validate "$bundle" -o json-alpha1)
  theirs=("$sdk" bundle validate "$bundle" -o json-alpha1)
  row "one with $(( $(size "$bundle") / 1000 )) kB" "$rounds" "$(memory "${ours[@]}")" "$(memory "${theirs[@]}")"
done
hundred=("${sorted[@]:0:100}")
ours=("$olmkit" bundle validate --short "${hundred[@]}")
theirs=(one_by_one "$sdk" "${hundred[@]}")
# One after the other: the memory of the loop is that of its largest bundle.
row "${#hundred[@]} in one call, in a loop" 3 "$(memory "${ours[@]}")" "$(memory "$sdk" bundle validate "${hundred[-1]}" -o json-alpha1)"

# The least processor time in milliseconds of three runs: other load on the machine only increases it.
processor() {
  local round
  for round in 1 2 3; do
    { /usr/bin/time -q -f '%U %S' "$@" 2>&1 >/dev/null || true; } | tail -1
  done | awk '{ print int(($1 + $2) * 1000) }' | sort -n | head -1
}

# The same bundles each time.
mapfile -t mixed < <(printf '%s\n' "${all[@]}" | shuf -n 200 --random-source=<(yes))
plain=$(processor "$olmkit" bundle validate --short --no-lints "${mixed[@]}")
linted=$(processor "$olmkit" bundle validate --short "${mixed[@]}")
echo
echo "| processor time | without lints | with lints | more |"
echo "|---|---|---|---|"
awk -v n="${#mixed[@]}" -v a="$plain" -v b="$linted" 'BEGIN { printf "| %d of any size in one call | %d ms | %d ms | %.0f %% |\n", n, a, b, (b - a) * 100 / a }'
