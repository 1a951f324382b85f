#!/usr/bin/env bash
# Writes completion scripts and man pages to dist/completions and dist/man. OLMKIT names a program that runs on this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${OUT:-dist}
olmkit=${OLMKIT:?set OLMKIT to the olmkit to ask for its completions}
mkdir -p "$out/completions" "$out/man"
"$olmkit" completion bash > "$out/completions/olmkit.bash"
"$olmkit" completion zsh > "$out/completions/_olmkit"
"$olmkit" completion fish > "$out/completions/olmkit.fish"
cargo run --locked -q -p olmkit-cli --example man-pages "$out/man"
[ -s "$out/man/olmkit.1" ] && [ -s "$out/man/olmkit-bundle-validate.1" ] || { echo "error: man pages are missing" >&2; exit 1; }
echo "$(find "$out/man" -name '*.1' | wc -l) man pages, $(find "$out/completions" -type f | wc -l) completion scripts"
