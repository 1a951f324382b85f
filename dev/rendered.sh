#!/usr/bin/env bash
# Renders config/, bundle/ and catalog/ in a copy and fails if a committed file differs, is missing or should not exist. The
# programs must have been built (make build). Nothing in the tree changes, so other checks can run at the same time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
copy=$(mktemp -d); trap 'rm -rf "$copy"' EXIT
rendered="config bundle bundle.Dockerfile catalog"
cp -r $rendered releases Makefile Cargo.toml "$copy/"
mkdir "$copy/dev" && cp dev/catalog.sh "$copy/dev/"
target=$(realpath "${CARGO_TARGET_DIR:-target}")
CARGO_TARGET_DIR=$target make -s -C "$copy" --old-file quick-build --old-file build manifests bundle catalog
differences=
for path in $rendered; do diff -ru "$path" "$copy/$path" || differences+=" $path"; done
if [ -n "$differences" ]; then
  echo "error: not what the code renders:$differences; run \`make manifests bundle catalog\` and commit the result" >&2
  exit 1
fi
echo "config/, bundle/ and catalog/ are what the code renders"
