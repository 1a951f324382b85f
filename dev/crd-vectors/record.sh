#!/bin/sh
# Writes the answers that the test schemas_are_judged_as_by_the_api_servers_own_code of crates/olmkit always compares.
set -eu
cd "$(dirname "$0")"
out=../../crates/olmkit/tests/library/rules/schema-answers.jsonl
built=$(mktemp -d)
trap 'rm -r "$built"' EXIT
go build -o "$built/answers" .
: > "$out"
for focus in rules formats defaults; do
  "$built/answers" -seed 1 -edits 80 -focus "$focus" testdata >> "$out"
done
