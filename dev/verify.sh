#!/usr/bin/env bash
# What `make verify` checks besides format and lints: dependencies, workflows, the documentation's links, and that config/, bundle/ and catalog/ are what the
# code renders now: it renders them anew and fails if a committed file differs, is missing or is too much. At the end whether the list
# of functions for the linker still fits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dev/deny.sh
dev/lint-workflows.sh
dev/generated-by-go.sh
dev/site.sh
copy=$(mktemp -d); trap 'rm -rf "$copy"' EXIT
rendered="config bundle bundle.Dockerfile catalog"
cp -r $rendered "$copy/"
make -s manifests bundle catalog
differences=
for path in $rendered; do diff -ru "$copy/$path" "$path" || differences+=" $path"; done
# The committed state comes back, so that looking never changes anything.
rm -rf $rendered; for path in $rendered; do cp -r "$copy/$path" "$path"; done
dev/layout/hot-functions.sh --check "$(make -s --no-print-directory print-olmkit)"
if [ -n "$differences" ]; then
  echo "error: not what the code renders:$differences; run \`make manifests bundle catalog\` and commit the result" >&2
  exit 1
fi
echo "config/, bundle/ and catalog/ are what the code renders"
