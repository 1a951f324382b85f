#!/usr/bin/env bash
# Publishes the crates to crates.io, each after those it needs; cargo waits until each is there. Without --yes it packages only.
# CARGO_REGISTRY_TOKEN is the token; `cargo publish` reads it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# Everything in crates/.
mapfile -t crates < <(grep -hm1 '^name = ' crates/*/Cargo.toml | sed 's/name = "\(.*\)"/--package=\1/')
if [ "${1:-}" = --yes ]; then
  # kube-manager and kube-testbed leave the version to their users, and are built alone here.
  K8S_OPENAPI_ENABLED_VERSION=1.33 cargo publish --locked "${crates[@]}"
else
  cargo package --locked --no-verify "${CARGO_PACKAGE_FLAGS:---quiet}" "${crates[@]}"
  echo "packaged; --yes publishes"
fi
