#!/usr/bin/env bash
# Writes dist/SHA256SUMS for all files of a release, and checks it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cd "${OUT:-dist}"
find . -maxdepth 1 -type f \( -name '*.tar.gz' -o -name '*.spdx.json' \) -printf '%f\n' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
sha256sum --check --quiet SHA256SUMS
cat SHA256SUMS
