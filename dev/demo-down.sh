#!/usr/bin/env bash
# Removes the local node of the demo and its state or, with CLUSTER=current, the demo's objects.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/story.sh"
if [ "$CLUSTER" = local ]; then
  "$dev/cluster/cluster" down --purge
else
  unsubscribe
fi
rm -rf "$work"
