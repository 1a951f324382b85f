#!/bin/bash
# Compares `olmkit bundle validate` with `operator-sdk bundle validate`: wall time and peak memory, in one run on this machine.
# Usage: bundle-validate.sh FOLDER-OF-BUNDLES [ROUNDS]
#   OLMKIT        the program to measure (default: target/release/olmkit)
#   OPERATOR_SDK  the program to compare with (default: the one of the development tools)
set -euo pipefail
bundles=${1:?folder that holds bundle directories}
rounds=${2:-10}
here=$(cd "$(dirname "$0")/../.." && pwd)
olmkit=${OLMKIT:-$here/target/release/olmkit}
sdk=${OPERATOR_SDK:-${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin/operator-sdk}
for program in "$olmkit" "$sdk"; do
  [ -x "$program" ] || { echo "skipped: no $program"; exit 0; }
done

# best ROUNDS COMMAND…: least wall time in microseconds and most resident memory in KiB over the rounds.
best() {
  python3 - "$@" <<'PY'
import os, subprocess, sys, time
rounds, command = int(sys.argv[1]), sys.argv[2:]
wall, memory = float("inf"), 0
for _ in range(rounds):
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    wall = min(wall, time.monotonic() - start)
    memory = max(memory, usage.ru_maxrss)
print(int(wall * 1e6), memory)
PY
}

line() { awk -v what="$1" -v a="$2" -v b="$4" -v ma="$3" -v mb="$5" 'BEGIN {
  printf "%-34s olmkit %8.1f ms %6.1f MB   operator-sdk %8.1f ms %6.1f MB   %5.1f times the speed, 1/%.1f of the memory\n",
    what, a / 1000, ma / 1024, b / 1000, mb / 1024, b / a, mb / ma }'; }

mapfile -t all < <(find "$bundles" -mindepth 1 -maxdepth 1 -type d -exec test -d '{}/manifests' \; -print | sort)
[ "${#all[@]}" -gt 0 ] || { echo "no bundles in $bundles"; exit 1; }
size() { du -sb "$1/manifests" | cut -f1; }
sorted=$(for bundle in "${all[@]}"; do echo "$(size "$bundle") $bundle"; done | sort -n | cut -d' ' -f2-)
median=$(sed -n "$(( (${#all[@]} + 1) / 2 ))p" <<<"$sorted")
largest=$(tail -1 <<<"$sorted")
for bundle in "$median" "$largest"; do
  read -r a ma < <(best "$rounds" "$olmkit" bundle validate "$bundle" -o json-alpha1)
  read -r b mb < <(best "$rounds" "$sdk" bundle validate "$bundle" -o json-alpha1)
  line "one bundle of $(( $(size "$bundle") / 1000 )) kB" "$a" "$ma" "$b" "$mb"
done
mapfile -t hundred < <(head -100 <<<"$sorted")
read -r a ma < <(best 3 "$olmkit" bundle validate --short "${hundred[@]}")
read -r b mb < <(best 1 bash -c 'sdk=$1; shift; for bundle; do "$sdk" bundle validate "$bundle" -o json-alpha1; done' - "$sdk" "${hundred[@]}")
line "${#hundred[@]} bundles" "$a" "$ma" "$b" "$mb"
