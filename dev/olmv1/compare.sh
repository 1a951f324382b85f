#!/bin/sh
# Compares olmkit with the recorded answers of OLM v1 about bundles that are named in the recording but do not stand there. They
# are taken out of clones of the two repositories into DIRECTORY, which may be kept for the next run.
#
#   dev/olmv1/compare.sh DIRECTORY COMMUNITY-OPERATORS-PROD CERTIFIED-OPERATORS
set -eu
if [ $# -ne 3 ]; then
    sed -n '2,6p' "$0" >&2
    exit 2
fi
directory=$1
recording=${OLMKIT_CORPUS:-$(dirname "$0")/../../../shared/corpus}/olmv1

# take SOURCE REPOSITORY COMMIT: the bundles of one repository, into DIRECTORY/SOURCE/operators/NAME/VERSION.
take() {
    mkdir -p "$directory/$1"
    sed -n "s#^$1/##p" "$recording/bundles.txt" | cut -d' ' -f1 | sort -u |
        xargs -n 200 git -C "$2" archive "$3" -- | tar -x --ignore-zeros -C "$directory/$1"
}
if [ ! -e "$directory/complete" ]; then
    take community "$2" 699495f2ff526f9679a0d9d54688f09c683eff2c
    take certified "$3" 3b7b563a8acb879e586e39c6fea2f094a8c41bb9
    touch "$directory/complete"
fi
cd "$(dirname "$0")/../.."
OLMKIT_OLMV1_BUNDLES=$directory cargo test --workspace --features manifests --test library -- olmv1 --nocapture
