#!/bin/bash
# descriptors.sh DIRECTORY...: compares the owned kinds that olmkit and operator-sdk 1.42.3 write into the base of Go operators. Each
# directory is a checked-out operator with a PROJECT file. operator-sdk needs a Go toolchain and downloads the operator's modules.
# OLMKIT and OPERATOR_SDK name the programs; APIS the directory of the Go types (default: api).
set -euo pipefail
olmkit=${OLMKIT:-olmkit}
sdk=${OPERATOR_SDK:-operator-sdk}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# owned PROGRAM DIRECTORY: the owned kinds as JSON, from a base that describes nothing.
owned() {
  rm -rf "$2/olmkit-compare"
  (cd "$2" && "$1" generate kustomize manifests --interactive=false --apis-dir "${APIS:-api}" \
    --input-dir olmkit-compare/manifests --output-dir olmkit-compare/manifests) > "$work/log" 2>&1 || return 1
  python3 - "$2"/olmkit-compare/manifests/bases/*.yaml << 'PY'
import json, sys, yaml
owned = yaml.safe_load(open(sys.argv[1]))["spec"]["customresourcedefinitions"].get("owned", [])
print(json.dumps(owned, indent=1, sort_keys=True))
PY
}

differences=0
for directory; do
  name=$(basename "$directory")
  # operator-sdk 1.42.3 rejects projects with the layout go.kubebuilder.io/v3.
  if ! owned "$sdk" "$directory" > "$work/sdk.json"; then
    echo "$name: not compared, operator-sdk failed: $(tail -n 1 "$work/log")"
    rm -rf "$directory/olmkit-compare"
    continue
  fi
  if ! owned "$olmkit" "$directory" > "$work/olmkit.json"; then
    echo "$name: olmkit failed: $(tail -n 1 "$work/log")"
  fi
  rm -rf "$directory/olmkit-compare"
  count=$(grep -c '"path"' "$work/sdk.json" || true)
  if diff -u "$work/sdk.json" "$work/olmkit.json" > "$work/diff"; then
    echo "$name: equal, $count descriptors"
  else
    echo "$name: different"
    head -n 40 "$work/diff"
    differences=$((differences + 1))
  fi
done
[ "$differences" -eq 0 ]
