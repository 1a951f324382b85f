#!/usr/bin/env bash
# beside.sh SET… -- COMMAND…: runs the command, a cargo build, and builds the pinned Go programs of the sets (see tools/build.sh)
# at the same time. Each alone leaves a processor idle for minutes: Go while it links, cargo while it waits for one large crate.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
sets=()
while [ "${1:---}" != -- ]; do sets+=("$1"); shift; done
shift
"$here/tools/build.sh" "${sets[@]}" & programs=$!
trap 'kill "$programs" 2> /dev/null || true' EXIT
"$@"
trap - EXIT
wait "$programs"
