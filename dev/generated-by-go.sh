#!/usr/bin/env bash
# Runs the Go programs that print committed files, and fails if a file differs. With --write it writes the files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
made=$(mktemp); trap 'rm -f "$made"' EXIT
old=
while read -r program file; do
  (cd "dev/${program%%:*}" && go run . ${program#*:}) > "$made"
  if [ "${1:-}" = --write ]; then cp "$made" "$file"; continue; fi
  diff -u "$file" "$made" >&2 || old+=" $file"
done <<'END'
go-vectors:tables crates/go/src/unicode/tables.rs
go-vectors:vectors crates/go/tests/vectors.json
go-vectors:patterns crates/cel/tests/patterns.json
go-types: crates/olmkit/src/types/structs.txt
END
if [ -n "$old" ]; then
  echo "error: not what $(go version) prints:$old; run dev/generated-by-go.sh --write and commit the result" >&2
  exit 1
fi
[ "${1:-}" = --write ] || echo "the vectors, the patterns, the Unicode tables and structs.txt are what Go prints"
