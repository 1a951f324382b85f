#!/usr/bin/env bash
# Builds the release programs for one target: build.sh TARGET. The programs go to dist/programs/OS-ARCH.
#
#   PROFILE=dist     the cargo profile; PROFILE=dev tries the script without ten minutes of link-time optimisation
#   OUT=dist         the folder of everything that a release is made of
#
# Linux programs are static. arm64 is built on an arm64 machine or, with gcc-aarch64-linux-gnu and libc6-dev-arm64-cross, on amd64.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=${1:?usage: build.sh TARGET, such as x86_64-unknown-linux-gnu}
profile=${PROFILE:-dist}
out=${OUT:-dist}
case $target in
  *-linux-*) os=linux ;;
  *-apple-darwin) os=darwin ;;
  *) echo "error: no release is made for $target" >&2; exit 2 ;;
esac
case $target in
  x86_64-*) arch=amd64 ;;
  aarch64-*) arch=arm64 ;;
  *) echo "error: no release is made for $target" >&2; exit 2 ;;
esac

cargo_home=${CARGO_HOME:-$HOME/.cargo}
flags="--remap-path-prefix=$PWD=. --remap-path-prefix=$HOME=~ --remap-path-prefix=$cargo_home=~/.cargo"
[ $os != linux ] || flags="-C target-feature=+crt-static -C relocation-model=static $flags"
if [ "$target" = aarch64-unknown-linux-gnu ] && [ "$(uname -m)" != aarch64 ]; then
  export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
fi
RUSTFLAGS=$flags cargo build --locked --profile "$profile" --target "$target" -p olmkit-cli --bins

programs=$out/programs/$os-$arch
mkdir -p "$programs"
for program in olmkit olmkit-helper; do
  install -m 755 "${CARGO_TARGET_DIR:-target}/$target/${profile/#dev/debug}/$program" "$programs/$program"
done
[ $os != linux ] || dev/release/check-elf.sh $arch "$programs"/*
ls -l "$programs"
