#!/bin/sh
# Compares olmkit's model of upgrade graphs with upstream's own code (OLM's resolver, operator-registry's index and drawings).
#
#   dev/graph/compare.sh catalogs --seed 7 --count 1000 --extra     # random catalogs
#   dev/graph/compare.sh bundles --seed 7 --count 1000              # random bundles, added to an empty index
#   dev/graph/compare.sh real DIRECTORY...                          # file-based catalogs
#   dev/graph/compare.sh operators GIT-DIR@COMMIT...                # all bundles of each operator of a repository
#
# It needs Go, a C compiler (for SQLite), Python 3 with PyYAML and the Go module proxy. It exits with 1 if anything differs.
set -eu
cd "$(dirname "$0")"
built=$(mktemp -d)
trap 'rm -r "$built"' EXIT
CGO_ENABLED=1 go build -tags containers_image_openpgp,json1 -o "$built/graph" .
# Questions are many: a debug build takes several times as long.
cargo build --quiet --profile "${PROFILE:-dev}" -p olmkit-cli --bin olmkit
cargo build --quiet --profile "${PROFILE:-dev}" -p olmkit --example upgrade_graph
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
profile=${PROFILE:-dev}
[ "$profile" = dev ] && profile=debug
find_program() { find "$target" -path "*/$profile/$1" -type f | head -n 1; }
python3 compare.py --upstream "$built/graph" --answers "$(find_program examples/upgrade_graph)" --command "$(find_program olmkit)" "$@"
