#!/bin/sh
# Compares `repo check --strict-compat` with the hosted pipeline's own program, over random operators that the recording lacks.
#
#   dev/submission/live.sh PIPELINES DIRECTORY [OPERATORS] [CHANGES] [SEED]
#
# PIPELINES is a checkout of redhat-openshift-ecosystem/operator-pipelines at 422dfd6, DIRECTORY has checkouts of
# community-operators-prod and certified-operators as `community` and `certified`. Takes OPERATORS (60) of them, and makes CHANGES (100)
# random pull requests. python3 must have what operator-pipelines needs: PyYAML, jsonschema, semver, semantic-version, python-dateutil,
# requests, PyGithub, packaging.
set -eu
usage='usage: dev/submission/live.sh PIPELINES DIRECTORY [OPERATORS] [CHANGES] [SEED]'
pipelines=$(cd "${1:?$usage}" && pwd)
directory=$(cd "${2:?$usage}" && pwd)
operators=${3:-60} changes=${4:-100} seed=${5:-1}
cd "$(dirname "$0")/../.."
dev/tools/build.sh operator-sdk
export PATH="$PATH:${OLMKIT_DEV_CACHE:-$HOME/.cache/olmkit}/bin" PYTHONPATH="$pipelines" PYTHONDONTWRITEBYTECODE=1
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
corpus=${OLMKIT_CORPUS:-../shared/corpus}/submission/expected
recorded=$(find "$corpus" -name '*.jsonl' 2>/dev/null || true)
# The names in the recording have no blanks.
# shellcheck disable=SC2086
python3 dev/submission/record.py "$directory" "$operators" "$seed" $recorded > "$made/operators.jsonl"
# shellcheck disable=SC2086
python3 dev/submission/changes.py "$directory" "$changes" "$seed" $recorded > "$made/changes.jsonl"
SUBMISSION_REPOSITORIES=$directory SUBMISSION_RECORDS=$made/operators.jsonl SUBMISSION_CHANGES=$made/changes.jsonl \
    cargo test --workspace --features manifests --test recorded -- --ignored --nocapture
