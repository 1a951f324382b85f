#!/usr/bin/env bash
# images.sh: compares the sizes of the programs for pods with the upstream programs, and the time to build and push a bundle
# image with buildah. Prints Markdown tables. dev/tools/build.sh builds the upstream programs; missing ones are reported and
# skipped. ROUNDS sets the number of timed builds.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${ROUNDS:-5}
olmkit=${OLMKIT:-$(make -s --no-print-directory print-olmkit PROFILE=dist)}
helper=${HELPER:-$(dirname "$olmkit")/olmkit-helper}
operator=${OPERATOR:-$(make -s --no-print-directory print-operator PROFILE=dist)}
bin=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin
for program in "$olmkit" "$helper" "$operator"; do
  [ -x "$program" ] || { echo "error: no $program; run make build PROFILE=dist, or name it in OLMKIT, HELPER or OPERATOR" >&2; exit 1; }
done
work=$(mktemp -d); registry=
trap '[ -z "$registry" ] || kill "$registry"; rm -rf "$work"' EXIT
export OLMKIT_IMAGE_STORE=$work/store

megabytes() { awk -v bytes="$1" 'BEGIN { printf "%.1f", bytes / 1e6 }'; }
layers() { "$olmkit" image inspect "oci:$1" -o json | jq '[.manifest.layers[].size] | add'; }
# row NAME PATH…: size of the files as they are, and as layers of an image
row() {
  local name=$1 path missing=; shift
  mkdir "$work/root"
  for path in "$@"; do [ -f "$path" ] && cp "$path" "$work/root/" || missing+=" ${path##*/}"; done
  if [ -n "$missing" ]; then
    echo "| $name | not built:$missing | |"
  else
    "$olmkit" image build directory "$work/root" --tag measured:v1 --output "oci:$work/layout" > /dev/null
    echo "| $name | $(megabytes "$(cat "$work"/root/* | wc -c)") MB | $(megabytes "$(layers "$work/layout")") MB |"
  fi
  rm -rf "$work/root" "$work/layout"
}

"$olmkit" image build helper --binary "$helper" --tag helper:v1 --output "oci:$work/helper" > /dev/null
echo "| what OLM runs in pods | programs | compressed, as pulled |"; echo "|---|---|---|"
echo "| olmkit's helper image: util image, opm image and catalog server in one | $(megabytes "$(stat -Lc %s "$helper")") MB | $(megabytes "$(layers "$work/helper")") MB |"
row "upstream's opm image: opm, grpc_health_probe" "$bin/opm" "$bin/grpc_health_probe"
row "upstream's util image: olm, catalog, package-server, cpb, copy-content" "$bin"/{olm,catalog,package-server,cpb,copy-content}
row "of these, what unpacks a bundle and serves a catalog: opm, cpb, copy-content, grpc_health_probe" "$bin"/{opm,cpb,copy-content,grpc_health_probe}
echo; echo "| other programs | as they are | compressed |"; echo "|---|---|---|"
row "olmkit" "$olmkit"
row "operator-sdk and opm, which it stands for" "$bin/operator-sdk" "$bin/opm"
row "memcached-operator" "$operator"

command -v docker-registry > /dev/null || { echo; echo "no docker-registry on PATH: nothing is pushed"; exit 0; }
port=$(shuf -i 20000-30000 -n 1)
printf 'version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/registry}}\nhttp: {addr: "127.0.0.1:%s"}\n' "$work" "$port" > "$work/registry.yaml"
docker-registry serve "$work/registry.yaml" > "$work/registry.log" 2>&1 & registry=$!
until curl -fsS "http://localhost:$port/v2/" > /dev/null 2>&1; do kill -0 $registry; sleep 0.05; done

# Each round has different content, so that no cache helps.
ours() {
  "$olmkit" image build bundle "$1" --tag "localhost:$port/ours:v$2" > /dev/null
  "$olmkit" image push "localhost:$port/ours:v$2" > /dev/null
}
theirs() {
  buildah build --quiet --file "$1/bundle.Dockerfile" --tag "localhost:$port/theirs:v$2" "$1" > /dev/null
  buildah push --quiet --tls-verify=false "localhost:$port/theirs:v$2"
}
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}
buildah() { command buildah --root "$work/storage" --runroot "$work/run" "$@"; }
# timed FUNCTION: milliseconds of each round, sorted
timed() {
  local round begin
  for round in $(seq "$rounds"); do
    rm -rf "$work/context"; mkdir "$work/context"; cp -r bundle bundle.Dockerfile "$work/context/"
    echo "# round $round $1" >> "$work/context/bundle/metadata/annotations.yaml"
    local from=$work/context; [ "$1" = theirs ] || from=$work/context/bundle
    begin=$(date +%s%N)
    "$1" "$from" "$round" 2> "$work/errors" || { cat "$work/errors" >&2; exit 1; }
    echo $((($(date +%s%N) - begin) / 1000000))
  done | sort -n
}
median() { sed -n "$(((rounds + 1) / 2))p" <<< "$1"; }
echo; echo "| bundle image, built and pushed, median of $rounds | time |"; echo "|---|---|"
mine=$(timed ours); echo "| olmkit | $(median "$mine") ms |"
if command -v buildah > /dev/null && buildah version > /dev/null 2>&1; then
  other=$(timed theirs); echo "| buildah, $STORAGE_DRIVER storage | $(median "$other") ms |"
  echo "| times faster | $(($(median "$other") / $(median "$mine"))) |"
else
  echo "| buildah | does not run here |"
fi
