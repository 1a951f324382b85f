#!/usr/bin/env bash
# Prints the version in Cargo.toml. With a tag as argument: fails unless the tag is v and that version, and CHANGELOG.md has it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
if [ -n "${1:-}" ]; then
  [ "$1" = "v$version" ] || { echo "error: the tag is $1 and Cargo.toml says $version" >&2; exit 1; }
  grep -q "^## \[$version\] - [0-9]" CHANGELOG.md || { echo "error: CHANGELOG.md has no section for $version with a date" >&2; exit 1; }
fi
echo "$version"
