#!/usr/bin/env bash
# Builds the images of olmkit and its helper for linux/amd64 and linux/arm64 from dist/programs, without a container engine.
#
#   images.sh                      writes OCI layouts to dist/images
#   PUSH=REGISTRY/PATH images.sh   pushes REGISTRY/PATH/olmkit:VERSION and REGISTRY/PATH/olmkit-helper:VERSION
#
# OLMKIT names the program that builds them (default: that of dist/programs for this machine). The digests go to dist/images.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${OUT:-dist}
version=${VERSION:-$(dev/release/version.sh)}
case $(uname -m) in aarch64) machine=arm64 ;; *) machine=amd64 ;; esac
olmkit=${OLMKIT:-$out/programs/linux-$machine/olmkit}
base=${PUSH:-registry.example.com/olmkit}
authorities=${AUTHORITIES:-/etc/ssl/certs/ca-certificates.crt}
common=(--platform linux/amd64,linux/arm64 --sbom Cargo.lock:olmkit-cli --source https://github.com/example/olmkit --revision "$(git rev-parse HEAD)")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
place() { if [ -n "${PUSH:-}" ]; then echo push; else rm -rf "$out/images/$1"; mkdir -p "$out/images"; echo "oci:$out/images/$1"; fi; }

"$olmkit" image build operator "$out/programs/{os}-{arch}/olmkit" --authorities "$authorities" --tag "$base/olmkit:v$version" --output "$(place olmkit)" "${common[@]}"
"$olmkit" image build helper --binary "$out/programs/{os}-{arch}/olmkit-helper" --tag "$base/olmkit-helper:v$version" --output "$(place olmkit-helper)" "${common[@]}"
for image in olmkit olmkit-helper; do
  if [ -n "${PUSH:-}" ]; then from=$base/$image:v$version; else from=oci:$out/images/$image; fi
  echo "$base/$image $("$olmkit" image digest "$from")"
done | tee "$out/images.txt"
