#!/bin/bash
# Asks a real API server about the CRDs, examples and Deployments of bundles, and prints for each rule that claims something about
# it: how often the rule spoke, how often it was right and wrong, and how often it should have spoken.
# With --olm it installs the bundles with the real OLM instead, and asks about permissions, webhooks and install modes.
# With --olm --record FILE it installs the made-up bundles of a file, such as crates/olmkit/tests/library/rules/olm.json, and records
# there what happens, which tests compare with the rules.
# Usage: precision.sh [--olm [--everywhere]] [--newest] [--sample N] [--facts FILE] FOLDER…   (folders are searched for bundles)
set -euo pipefail
cd "$(dirname "$0")/../.."
dev/tools/build.sh control-plane
exec cargo run --quiet -p rules-precision -- "$@"
