#!/usr/bin/env bash
# check-elf.sh ARCH PROGRAM…: fails unless each program is a static Linux executable for amd64 or arm64.
set -euo pipefail
case ${1:?usage: check-elf.sh ARCH PROGRAM…} in
  amd64) machine=X86-64 ;;
  arm64) machine=AArch64 ;;
  *) echo "error: unknown architecture $1" >&2; exit 2 ;;
esac
shift
for program in "$@"; do
  readelf --file-header "$program" | grep -q "Machine:.*$machine" || { echo "error: $program is not built for $machine" >&2; exit 1; }
  if readelf --wide --program-headers "$program" | grep -qw INTERP; then echo "error: $program needs a dynamic linker" >&2; exit 1; fi
  echo "$program: $machine, static"
done
