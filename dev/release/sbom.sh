#!/usr/bin/env bash
# Writes the bill of materials of the programs (SPDX 2.3, made by olmkit from Cargo.lock) to dist/olmkit-VERSION.spdx.json. Images
# carry the same below /usr/share/sbom; it is taken from there, so that the two cannot differ. Run after images.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${OUT:-dist}
version=${VERSION:-$(dev/release/version.sh)}
for blob in "$out"/images/olmkit/blobs/sha256/*; do
  if tar -tzf "$blob" 2> /dev/null | grep -q 'usr/share/sbom/olmkit-cli.spdx.json$'; then
    member=$(tar -tzf "$blob" | grep 'usr/share/sbom/olmkit-cli.spdx.json$')
    tar -xzOf "$blob" "$member" > "$out/olmkit-$version.spdx.json"
  fi
done
grep -q '"SPDX-2.3"' "$out/olmkit-$version.spdx.json"
echo "$out/olmkit-$version.spdx.json: $(grep -o '"SPDXID"' "$out/olmkit-$version.spdx.json" | wc -l) elements"
