#!/usr/bin/env bash
# notes.sh VERSION: prints the section of CHANGELOG.md about a version (or Unreleased), as the text of its release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
awk -v wanted="[${1:?usage: notes.sh VERSION}]" '/^## / { inside = ($2 == wanted); next } /^\[.*\]: / { next } inside { print; found = 1 } END { exit !found }' CHANGELOG.md \
  || { echo "error: CHANGELOG.md has no section for $1" >&2; exit 1; }
