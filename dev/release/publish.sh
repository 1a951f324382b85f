#!/usr/bin/env bash
# Publishes the crates to crates.io, each after its dependencies; cargo waits until each is available. Without --yes it only packages
# them; --build also builds the packages. `cargo publish` reads the token from CARGO_REGISTRY_TOKEN. No build script runs while the
# token is set: run --build first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# Everything in crates/.
mapfile -t crates < <(grep -hm1 '^name = ' crates/*/Cargo.toml | sed 's/name = "\(.*\)"/--package=\1/')
if [ "${1:-}" = --yes ]; then
  cargo publish --locked --no-verify "${crates[@]}"
elif [ "${1:-}" = --build ]; then
  # kube-manager and kube-testbed leave the version to their users, and are built alone here.
  K8S_OPENAPI_ENABLED_VERSION=1.33 cargo package --locked "${crates[@]}"
else
  cargo package --locked --no-verify "${CARGO_PACKAGE_FLAGS:---quiet}" "${crates[@]}"
  echo "packaged; --yes publishes"
fi
