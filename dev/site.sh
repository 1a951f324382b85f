#!/usr/bin/env bash
# The documentation as a site, from docs/ with mdBook: dev/site.sh [FOLDER], by default target/site. Fails for a link that leads nowhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-${CARGO_TARGET_DIR:-target}/site}
cargo test -q --locked --manifest-path dev/site/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/site-tool" > /dev/null
cargo run -q --locked --manifest-path dev/site/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/site-tool" -- . "$out"
