#!/usr/bin/env bash
# Checks the dependencies with cargo-deny and deny.toml: licenses, bans, duplicates and sources, and advisories if their database is given.
#
#   dependencies.sh       licenses, bans, duplicates, sources
#   ADVISORIES=DIR        also advisories, from a directory with a clone of https://github.com/rustsec/advisory-db as cargo-deny keeps it
#   ADVISORIES=fetch      also advisories, from a database that cargo-deny downloads
#
# If cargo-deny is not installed, the script builds it once into the cache of the development tools (a few minutes).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=0.20.2
cache=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}
deny=$(command -v cargo-deny || echo "$cache/bin/cargo-deny")
if [ ! -x "$deny" ]; then
  built=$(mktemp -d)
  trap 'rm -rf "$built"' EXIT
  # The check takes seconds, so optimizing the program would cost more time than it saves. The settings of this repository do not
  # apply outside it.
  (cd "$built" && CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=0 \
    cargo install --quiet --locked --root "$built/installed" --target-dir "$built/target" "cargo-deny@$version")
  mkdir -p "$cache/bin"
  mv "$built/installed/bin/cargo-deny" "$deny"
fi
run() { "$deny" --workspace --all-features "$@"; }
run --locked check --hide-inclusion-graph licenses bans sources
case ${ADVISORIES:-} in
  "") echo "skipped: advisories; set ADVISORIES to a directory with their database, or to fetch" ;;
  fetch) run check advisories ;;
  *)
    # cargo-deny reads the directory from its configuration only.
    configured=$(mktemp --suffix .toml)
    sed "s|^\[advisories\]|&\ndb-path = \"$ADVISORIES\"|" deny.toml > "$configured"
    run --offline --config "$configured" check --disable-fetch advisories
    rm "$configured" ;;
esac
