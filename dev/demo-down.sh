#!/usr/bin/env bash
# Removes what the demo made: the local node and all its state, or, with CLUSTER=current, the demo's objects.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/story.sh"
if [ "$CLUSTER" = local ]; then
  "$dev/cluster/cluster" down --purge
else
  unsubscribe
fi
rm -rf "$work"
