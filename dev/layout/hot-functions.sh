#!/bin/bash
# Writes crates/cli/hot-functions.ld: the functions that `olmkit bundle validate` runs. The linker places them
# next to each other. Otherwise they are spread over fifteen megabytes of code. The kernel maps sixteen pages around each page that
# is used, so that one megabyte of code would take five in memory.
# Usage: hot-functions.sh PROGRAM BUNDLE…     writes the list; needs valgrind
#   PROGRAM  a release build with its symbols: CARGO_PROFILE_DIST_STRIP=none make build PROFILE=dist
#   BUNDLE   bundle directories, the more different the better
# Usage: hot-functions.sh --check PROGRAM     fails if too many functions of the list no longer exist
#   PROGRAM  any build with symbols
# The list names functions, not addresses: it stays useful when the code changes, and outdated entries do no harm.
set -euo pipefail
if [ "${1:-}" = --check ]; then
  list=$(dirname "${BASH_SOURCE[0]}")/../../crates/cli/hot-functions.ld
  # The linker merges equal functions and the compiler inlines others, so that builds differ in their functions.
  awk -v least=75 '
    NR == FNR { sub(/17h.*/, "17h", $NF); symbols[$NF]; next }
    match($0, /\.text\._ZN[^ ]*17h/) { all++; found += substr($0, RSTART + 6, RLENGTH - 6) in symbols }
    END {
      share = all ? 100 * found / all : 0
      printf "%d of %d functions in hot-functions.ld are there (%d %%)\n", found, all, share
      if (share < least) { print "error: make the list anew, see dev/layout/hot-functions.sh" > "/dev/stderr"; exit 1 }
    }' <(nm --defined-only "${2:?program}" | grep -F _ZN) "$list"
  exit
fi
program=${1:?build of olmkit with symbols}
[ $# -gt 1 ] || { echo "error: no bundle directory given" >&2; exit 2; }
out=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/crates/cli/hot-functions.ld
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
