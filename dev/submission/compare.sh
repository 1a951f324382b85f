#!/bin/sh
# Compares `repo check --strict-compat` with recorded answers over fetched repositories.
#
#   dev/submission/compare.sh DIRECTORY
#
# DIRECTORY has the directories `community` and `certified`: checkouts of community-operators-prod and certified-operators at the
# commits that the recording names. The recording is looked for where all tests look (OLMKIT_CORPUS).
set -eu
directory=$(cd "${1:?usage: dev/submission/compare.sh DIRECTORY}" && pwd)
for repository in community certified; do
    test -d "$directory/$repository/operators" || {
        echo "error: $directory/$repository has no directory operators" >&2
        exit 2
    }
done
cd "$(dirname "$0")/../.."
SUBMISSION_REPOSITORIES=$directory exec cargo test --workspace --features manifests --test recorded -- \
    --ignored --nocapture fetched_operators
