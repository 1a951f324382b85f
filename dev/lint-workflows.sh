#!/usr/bin/env bash
# Checks .github/workflows with actionlint. The first run builds it from its pinned module (9 seconds).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dev/tools/build.sh actionlint
"${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin/actionlint" -shellcheck= -pyflakes= .github/workflows/*.yml
echo "workflows are valid"
