#!/bin/bash
# Applies the CRDs, examples and Deployments of bundles to a real API server, and prints for each rule about the API server: how
# often the rule reported a finding, how often it was right and wrong, and how often it missed one.
# With --olm it installs the bundles with the real OLM instead, for the rules about permissions, webhooks and install modes.
# With --olm --record FILE it installs the invented bundles of a file, such as crates/olmkit/tests/library/rules/olm.json, and
# records the results in the file; tests compare them with the rules.
# Usage: precision.sh [--olm [--everywhere]] [--newest] [--sample N] [--facts FILE] DIRECTORY…   (directories are searched for bundles)
set -euo pipefail
cd "$(dirname "$0")/../.."
dev/tools/build.sh control-plane
exec cargo run --quiet -p rules-precision -- "$@"
