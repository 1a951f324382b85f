#!/bin/sh
# Fixes copies of random bundles and checks the results.
#
#   dev/submission/fixes.sh DIRECTORY [COUNT] [SEED]
#
# Searches DIRECTORY for bundles and fixes COUNT (500) of them with `bundle validate --fix`, once with safe fixes and once with
# --unsafe-fixes too. There must be no new finding of validation or scorecard, no lost comment or value, and no verdict of the real
# operator-sdk that turns to failed; a second run must change nothing. Needs python3 with PyYAML.
set -eu
directory=$(cd "${1:?usage: dev/submission/fixes.sh DIRECTORY [COUNT] [SEED]}" && pwd)
count=${2:-500}
seed=${3:-1}
cd "$(dirname "$0")/../.."
dev/tools/build.sh operator-sdk
cargo build --quiet --workspace --features manifests --bin olmkit
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
olmkit=$(find "$target" -path '*/debug/olmkit' -type f | head -n 1)
exec python3 dev/submission/fixes.py "$olmkit" "${OLMKIT_DEV_CACHE:-$HOME/.cache/olmkit}/bin/operator-sdk" "$directory" "$count" "$seed"
