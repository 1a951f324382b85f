#!/usr/bin/env bash
# operand-image.sh [set VERSION]: compares the default memcached image with the tags on Docker Hub. Prints the newer versions and
# exits with 1 if there are any. `set 1.6.46` writes a version everywhere; then run `make manifests bundle catalog`.
# OPERAND_TAGS is a file or URL with the answer of Docker Hub's tags API, for a mirror or a test.
set -euo pipefail
cd "$(dirname "$0")/.."
current=$(sed -n 's/.*"docker\.io\/library\/memcached:\([0-9.]*\)-alpine".*/\1/p' src/bin/manifests.rs)
[ -n "$current" ] || { echo "operand-image.sh: src/bin/manifests.rs names no image of memcached" >&2; exit 2; }
if [ "${1:-}" = set ]; then
  new=${2:?set needs a version such as 1.6.46}
  [[ $new =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "operand-image.sh: $new is not a version such as 1.6.46" >&2; exit 2; }
  # releases/ keeps the images of earlier versions, and the tests have versions of their own.
  git grep -lF "memcached:$current-alpine" -- ':!releases' ':!CHANGELOG.md' |
    xargs sed -i "s|memcached:${current//./\\.}-alpine|memcached:$new-alpine|g"
  sed -i "s|memcached:${current//./\\.}\"|memcached:$new\"|" tests/olm/main.rs
  echo "the default image was $current and is $new; now run make manifests bundle catalog"
  exit
fi
tags=${OPERAND_TAGS:-https://hub.docker.com/v2/repositories/library/memcached/tags?page_size=100&name=-alpine}
if [ -f "$tags" ]; then answer=$(cat "$tags"); else
  answer=$(curl -fsS --max-time 60 "$tags") || { echo "operand-image.sh: cannot read $tags" >&2; exit 2; }
fi
versions=$(printf '%s' "$answer" | { grep -oE '"name": *"[0-9]+\.[0-9]+\.[0-9]+-alpine"' || true; } |
  { grep -oE '[0-9]+\.[0-9]+\.[0-9]+' || true; } | sort -uV)
[ -n "$versions" ] || { echo "operand-image.sh: $tags has no tag such as $current-alpine" >&2; exit 2; }
newer=$(printf '%s\n%s\n' "$versions" "$current" | sort -uV | awk -v current="$current" 'found; $0 == current { found = 1 }')
if [ -n "$newer" ]; then
  echo "the default image is memcached:$current-alpine; newer versions: $(echo $newer)"
  exit 1
fi
echo "the default image, memcached:$current-alpine, is the newest"
