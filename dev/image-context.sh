#!/usr/bin/env bash
# image-context.sh OPERATOR HELPER OLMKIT: writes the files that Dockerfile and catalog.Dockerfile copy to target/image. Only needed
# with CONTAINER_TOOL=docker, podman or buildah; olmkit builds the same images without it, and a test compares them.
set -euo pipefail
operator=$1 helper=$2 olmkit=$3
cd "$(dirname "$0")/.."
rm -rf target/image
umask 022

user_names() { # DIRECTORY NAME NUMBER
  mkdir -p "$1/etc"
  printf 'root:x:0:0:root:/:/sbin/nologin\n%s:x:%s:%s:%s:/:/sbin/nologin\n' "$2" "$3" "$3" "$2" > "$1/etc/passwd"
  printf 'root:x:0:\n%s:x:%s:\n' "$2" "$3" > "$1/etc/group"
}

root=target/image/operator
mkdir -p $root
install -m 0755 "$operator" $root/memcached-operator
user_names $root nonroot 65532
if [ -f /etc/ssl/certs/ca-certificates.crt ]; then
  install -D -m 0644 /etc/ssl/certs/ca-certificates.crt $root/etc/ssl/certs/ca-certificates.crt
fi

root=target/image/helper
mkdir -p $root/bin $root/tmp
install -m 0755 "$helper" $root/bin/opm
for name in copy-content cp cpb grpc_health_probe; do ln -s opm $root/bin/$name; done
user_names $root olmkit 1001
chmod 1777 $root/tmp

# The index that the server starts from without reading the catalog.
mkdir -p target/image/cache
"$olmkit" catalog serve catalog --cache-dir target/image/cache --cache-only
chmod 0644 target/image/cache/*
