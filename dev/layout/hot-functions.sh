#!/bin/bash
# Writes crates/olmkit/hot-functions.ld: the functions that `olmkit bundle validate` runs through, for the linker to put side by side.
# Otherwise they are strewn over fifteen megabytes of code, and as the system maps sixteen pages around each that is touched, a run
# of one megabyte of code keeps five in memory.
# Usage: hot-functions.sh PROGRAM BUNDLE…
#   PROGRAM  a release build with its symbols: CARGO_PROFILE_RELEASE_STRIP=none make build
#   BUNDLE   bundle directories, the more different the better
# Needs valgrind. The list names functions, not addresses: it stays useful as the code changes and costs nothing where it is outdated.
set -euo pipefail
program=${1:?release build of olmkit with symbols}
[ $# -gt 1 ] || { echo "error: no bundle directory given" >&2; exit 2; }
out=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/crates/olmkit/hot-functions.ld
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT

run() {
  local code=0
  valgrind --tool=callgrind --demangle=no --compress-strings=no --callgrind-out-file="$scratch/$1/%p" "$program" bundle validate "${@:2}" > "$scratch/log" 2>&1 || code=$?
  [ "$code" -le 1 ] || { cat "$scratch/log" >&2; exit 1; }
}
# The functions of some runs. The hash at the end of a name differs from build to build.
functions() { sed -nE 's/^fn=(_ZN.*17h)[0-9a-f]{16}E.*/\1*E/p' "$@" | LC_ALL=C sort -u; }

mkdir "$scratch/reference" "$scratch/all"
for bundle in "${@:2}"; do
  run reference "$bundle" -o json-alpha1
  run all "$bundle"
done
functions "$scratch"/reference/* > "$scratch/first"
functions "$scratch"/all/* | LC_ALL=C comm -13 "$scratch/first" - > "$scratch/then"
{
  echo "/* Functions that validating a bundle runs through, side by side. Made by dev/layout/hot-functions.sh. */"
  echo "SECTIONS {"
  echo "  .text.hot_functions : {"
  sed 's/.*/    *(.text.& .text.unlikely.&)/' "$scratch/first"
  echo "    /* Rules of our own. */"
  sed 's/.*/    *(.text.& .text.unlikely.&)/' "$scratch/then"
  echo "  }"
  echo "}"
  echo "INSERT BEFORE .text;"
} > "$out"
echo "$(grep -c '_ZN' "$out") functions in ${out##*/}"
