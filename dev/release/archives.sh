#!/usr/bin/env bash
# Packs the programs of each platform with licence, README, man pages and completions: dist/olmkit-VERSION-OS-ARCH.tar.gz.
# The same input gives the same bytes. SOURCE_DATE_EPOCH sets the time of all entries (default: of the last commit).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${OUT:-dist}
version=${VERSION:-$(dev/release/version.sh)}
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
for programs in "$out"/programs/*/; do
  platform=$(basename "$programs")
  name=olmkit-$version-$platform
  stage=$(mktemp -d)
  mkdir "$stage/$name"
  cp "$programs"/* LICENSE README.md CHANGELOG.md "$stage/$name/"
  cp -r "$out/man" "$out/completions" "$stage/$name/"
  tar -C "$stage" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w -cf - "$name" \
    | gzip -9n > "$out/$name.tar.gz"
  rm -r "$stage"
  echo "$out/$name.tar.gz"
done
