#!/usr/bin/env bash
# Images that the cluster itself needs, built from programs of this machine and pushed to the local registry. An image
# whose content is unchanged is skipped.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export OLMKIT_IMAGE_STORE=$state/images
mkdir -p "$state/image-stamps"

# tree: a fresh root file system in $tree, with /tmp for everybody and a user of that number
tree() {
  tree=$state/image-root; rm -rf "$tree"; mkdir -p "$tree/tmp" "$tree/etc" "$tree/bin"; chmod 1777 "$tree/tmp"
  printf 'root:x:0:0:root:/:\nuser:x:1001:1001:user:/:\n' > "$tree/etc/passwd"
}
busybox() { cp "$(type -P busybox)" "$tree/bin/busybox"; local applet; for applet in "$@"; do ln -sf busybox "$tree/bin/$applet"; done; }
programs() { local program; for program in "$@"; do cp "$bin/$program" "$tree/bin/"; done; }
# push_image NAME,NAME… OPTION…: makes an image of $tree
push_image() {
  local names=$1 first content stamp name; shift
  first=${names%%,*}
  content=$(cd "$tree" && { echo "$names" "$@"; find . -printf '%p %y %m %l\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum; } | sha256sum)
  stamp=$state/image-stamps/$(tr '/:' '__' <<< "$first")
  if [ "$(cat "$stamp" 2>/dev/null)" = "$content" ] \
    && "${inside[@]}" curl -fsS -o /dev/null -H 'Accept: application/vnd.oci.image.manifest.v1+json' "http://$registry/v2/${first%:*}/manifests/${first##*:}" 2>/dev/null; then return 0; fi
  "$olmkit" image build directory "$tree" --tag "$registry/$first" "$@" > /dev/null
  for name in ${names//,/ }; do
    "${inside[@]}" "$olmkit" image push "$registry/$first" "$registry/$name" > /dev/null 2>> "$logs/images.log" || { log_tails=images; die "cannot push $name"; }
  done
  echo "$content" > "$stamp"
  say "image $first ($(du -sh "$tree" | cut -f1))"
}

tree; busybox sleep
push_image dev/pause:1 --user 65535:65535 --entrypoint /bin/sleep --entrypoint 2147483647

# operator-sdk runs this image in its registry pod to decompress the catalog; `bundle-upgrade` requires the ubi name.
tree; busybox sh cat gzip gunzip ls cp mv mkdir rm sleep wget nslookup nc echo env id true ps tar head tail grep sed
push_image dev/busybox:1,ubi9/ubi:9.8 --user 1001 --env PATH=/bin --cmd /bin/sh

tree; programs olm catalog package-server copy-content cpb; busybox cp
push_image operator-framework/olm:$olm_version --user 1001 --env PATH=/bin

# operator-sdk starts the index image with `sh -c "opm serve …"` and wants the label of a file-based catalog on it.
tree; programs opm grpc_health_probe; busybox sh cat gzip ls mkdir cp mv rm sleep; mkdir "$tree/configs"
push_image operator-framework/opm:latest --user 1001 --env PATH=/bin --label operators.operatorframework.io.index.configs.v1=/configs --entrypoint /bin/opm

# The operand: memcached with the libraries it is linked to, and a shell, under the names the operator's versions use. Debian sid's
# package where dev/memcached.sh can get it, because the installed one may be too old to reload certificates.
tree; mkdir -p "$tree/usr/local/bin"; busybox sh sleep readlink
if version=$("$root/dev/memcached.sh" 2> "$logs/memcached.log"); then
  say "operand: ${version#*: }"
  libraries=usr/lib/$(uname -m)-linux-gnu
  mkdir -p "$tree/$libraries" "$tree/lib64"
  cp "$cache/memcached/usr/bin/memcached" "$tree/usr/local/bin/"
  find "$cache/memcached/$libraries" -maxdepth 1 -name 'lib*.so.*' -exec cp -L {} "$tree/$libraries/" ';'
  cp -L "$cache/memcached/$libraries"/ld-linux-*.so.* "$tree/lib64/"; ln -s lib64 "$tree/lib"
else
  memcached=$(command -v memcached)
  say "operand: $("$memcached" -V), because dev/memcached.sh has failed: $(tail -n 1 "$logs/memcached.log")"
  cp "$memcached" "$tree/usr/local/bin/"
  ldd "$memcached" | grep -o '/[^ ]*' | while read -r library; do mkdir -p "$tree$(dirname "$library")"; cp -L "$library" "$tree$library"; done
fi
operand_names=$("$here/operand-images.sh")
push_image "$operand_names" --user 1001 --env PATH=/usr/local/bin:/bin --entrypoint memcached
rm -rf "$state/image-root"
