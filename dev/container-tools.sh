#!/usr/bin/env bash
# container-tools.sh [TOOL…]: runs the targets docker-build docker-push bundle-build bundle-push catalog-build catalog-push with
# olmkit, and with each tool (default: buildah) from the Dockerfiles, against a separate docker-registry. Images of the same name
# may differ only in files and settings that the engine adds. Needs `make build`.
set -euo pipefail
cd "$(dirname "$0")/.."
olmkit=$(realpath "${OLMKIT:-$(make -s --no-print-directory print-olmkit)}")
helper=$(realpath "${HELPER:-$(dirname "$olmkit")/olmkit-helper}")
operator=$(realpath "${OPERATOR:-$(make -s --no-print-directory print-operator)}")
for program in "$olmkit" "$helper" "$operator"; do
  [ -x "$program" ] || { echo "error: no $program; run make build, or name it in OLMKIT, HELPER or OPERATOR" >&2; exit 1; }
done
command -v docker-registry > /dev/null || { echo "error: no docker-registry on PATH" >&2; exit 1; }
[ $# -gt 0 ] || set -- buildah
work=$(mktemp -d); registry=
trap '[ -z "$registry" ] || kill "$registry"; rm -rf "$work"' EXIT
port=$(shuf -i 20000-30000 -n 1) host=localhost:$port
printf 'version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/registry}}\nhttp: {addr: "127.0.0.1:%s"}\n' "$work" "$port" > "$work/registry.yaml"
docker-registry serve "$work/registry.yaml" > "$work/registry.log" 2>&1 & registry=$!
until curl -fsS "http://$host/v2/" > /dev/null 2>&1; do kill -0 $registry; sleep 0.05; done
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/storage"\nrunroot = "%s/run"\n' "$work" "$work" > "$work/storage.conf"
printf '[[registry]]\nlocation = "%s"\ninsecure = true\n' "$host" > "$work/registries.conf"
export CONTAINERS_STORAGE_CONF=$work/storage.conf CONTAINERS_REGISTRIES_CONF=$work/registries.conf BUILDAH_ISOLATION=chroot
export OLMKIT_IMAGE_STORE=$work/store

# `-o build`: the programs are already built.
for tool in olmkit "$@"; do
  make -o build docker-build docker-push bundle-build bundle-push catalog-build catalog-push CONTAINER_TOOL="$tool" \
    IMAGE_TAG_BASE="$host/$tool/memcached-operator" OLMKIT="$olmkit" HELPER="$helper" OPERATOR="$operator" \
    > "$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }
done
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
failed=0
for tool in "$@"; do
  for image in memcached-operator memcached-operator-bundle memcached-operator-catalog; do
    # Engines add the usual search path, and buildah its version.
    differences=$("$olmkit" image diff "$host/olmkit/$image:v$version" "$host/$tool/$image:v$version" -o json 2> "$work/log" \
      | jq -r '.[] | select(.what != "env PATH" and .what != "label io.buildah.version") | "\(.what): \(.first) \(.second)"') || true
    labels=$("$olmkit" image inspect "$host/$tool/$image:v$version" -o json 2> "$work/log" | jq '.config.config.Labels | length')
    echo "$image, $tool: ${differences:-equal} ($labels labels)"
    [ -z "$differences" ] || failed=1
  done
done
exit $failed
