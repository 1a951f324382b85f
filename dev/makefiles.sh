#!/usr/bin/env bash
# makefiles.sh CLONES [NAME...]: runs the bundle and catalog targets of public operators' Makefiles with olmkit, under links named
# operator-sdk and opm. CLONES holds one clone for each operator (infinispan-operator, argocd-operator, …), which is copied first.
# For each target: `make -n`, which must not overwrite the links with a downloaded tool, then `make`. No image is built or pushed: docker and
# podman are scripts that accept every command and log it, and a bundle directory stands in for the bundle image. Generators of Go
# code and CRDs are not run, because the clones contain their output. Needs OLMKIT or `make build`, and Go for kustomize and yq.
# Prints one line for each target, and exits with 1 if one fails.
set -uo pipefail
[ -d "${1:-}" ] || { sed -n '2,7s/^# //p' "$0"; exit 2; }
clones=$(realpath "$1"); shift
cd "$(dirname "$0")/.."
olmkit=$(realpath "${OLMKIT:-$(make -s --no-print-directory print-olmkit)}")
cache=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/makefiles
for module in sigs.k8s.io/kustomize/kustomize/v5@v5.6.0 github.com/mikefarah/yq/v4@v4.45.1; do
  name=$(basename "${module%/v[0-9]*}")
  [ -x "$cache/$name" ] || GOBIN=$cache go install "$module" || exit 1
done
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
bin=$work/bin; mkdir "$bin"
cp "$olmkit" "$bin/olmkit"; ln -s olmkit "$bin/operator-sdk"; ln -s olmkit "$bin/opm"
ln -s "$cache/kustomize" "$bin/kustomize"; ln -s "$cache/yq" "$bin/yq"
for engine in docker podman; do
  printf '#!/bin/sh\necho "%s $*" >> "$ENGINE_LOG"\n' "$engine" > "$bin/$engine"; chmod +x "$bin/$engine"
done
# grafana's Makefile asks a registry for the published version.
printf '#!/bin/sh\necho 5.0.0\n' > "$bin/crane"; chmod +x "$bin/crane"
# Makefiles list packages and install generators with Go, which has nothing to do with the two tools.
cat > "$bin/go" <<GO
#!/bin/sh
case \$1 in env | version) exec "$(command -v go)" "\$@" ;; esac
GO
chmod +x "$bin/go"
export PATH=$bin:$PATH ENGINE_LOG=$work/engine.log OLMKIT_IMAGE_STORE=$work/store HOME=$work
tools=(OPERATOR_SDK="$bin/operator-sdk" OPM="$bin/opm" KUSTOMIZE="$bin/kustomize" YQ="$bin/yq" LOCALBIN="$bin" CONTROLLER_GEN=/bin/true)
failed=0

# operator NAME TARGETS VARIABLES...: `make -n`, then make, of each target.
operator() {
  local name=$1 targets=$2 target how; shift 2
  [ ${#selected[@]} -eq 0 ] || [[ " ${selected[*]} " == *" $name "* ]] || return 0
  if [ ! -d "$clones/$name" ]; then echo "$name: skipped: no clone"; failed=1; return; fi
  cp -r "$clones/$name" "$work/$name"
  [ -d "$work/$name/.git" ] || (cd "$work/$name" && git init -q . && git add -A &&
    git -c user.name=test -c user.email=test@example.com commit -qm clone)
  # Some Makefiles look in bin/ of the project, whatever their variables say.
  mkdir -p "$work/$name/bin" && ln -sf "$bin"/{operator-sdk,opm} "$work/$name/bin/"
  for target in $targets; do
    local dry=
    case $target in dry:*) dry=1 target=${target#dry:} ;; esac
    : > "$ENGINE_LOG"
    make -C "$work/$name" -n "$target" "${tools[@]}" "$@" > "$work/log" 2>&1
    how=$?
    if [ $how -ne 0 ]; then echo "$name: make -n $target fails:"; tail -n 5 "$work/log"; failed=1; continue; fi
    # The line itself: some Makefiles have the download in a branch of a shell script that is not taken.
    if grep -E "releases/download/[^ ]*(operator-sdk|opm)[^ ]* *-o *\"?$bin" "$work/log" | grep -qv 'exit 0'; then
      echo "$name: make -n $target would download over $bin"; failed=1; continue
    fi
    if [ -n "$dry" ]; then echo "$name: make -n $target: fine; not run: it pulls published images"; continue; fi
    make -C "$work/$name" "$target" "${tools[@]}" "$@" > "$work/log" 2>&1 < /dev/null
    how=$?
    [ "$(readlink "$bin/operator-sdk")" = olmkit ] && cmp -s "$olmkit" "$bin/olmkit" || {
      echo "$name: make $target replaced olmkit"; failed=1; return; }
    if [ $how -eq 0 ]; then
      echo "$name: make $target: fine$(sed -n 's/^/; /p' "$ENGINE_LOG" | tr -d '\n' | cut -c1-150)"
    else
      echo "$name: make $target fails:"; tail -n "${LINES_SHOWN:-8}" "$work/log"; failed=1
    fi
  done
  rm -rf "${work:?}/$name"
}

# absent NAME: an operator whose Makefile calls neither tool.
absent() {
  [ ${#selected[@]} -eq 0 ] || [[ " ${selected[*]} " == *" $1 "* ]] || return 0
  if [ ! -d "$clones/$1" ]; then echo "$1: skipped: no clone"; failed=1; return; fi
  local found
  found=$(cd "$clones/$1" && grep -lE '(OPERATOR_SDK|operator-sdk|\bopm\b)' Makefile* ./*.mk 2> /dev/null)
  if [ -n "$found" ]; then echo "$1: $found calls a tool"; failed=1; else
    echo "$1: nothing to run: the Makefile calls neither operator-sdk nor opm"; fi
}

selected=("$@")
# Versions of the tools that olmkit is compatible with, and a bundle directory in place of an image.
sdk=v1.42.3 opm=v1.73.0
operator infinispan-operator "bundle dry:catalog-build" VERSION=2.5.0 JQ=jq
operator argocd-operator "bundle catalog-build" CONTAINER_RUNTIME=docker BUNDLE_IMGS=bundle
operator cloudnative-pg "olm-bundle olm-catalog" VERSION=1.28.0 OPERATOR_SDK_VERSION=$sdk OPM_VERSION=$opm BUNDLE_IMG=./bundle \
  CONTROLLER_IMG=ghcr.io/cloudnative-pg/cloudnative-pg@sha256:34198e85b6e6dd81471cb1c3ee222ca5231b685220e7ae38a634d35ed4826a40 SHELL=/bin/bash \
  INDEX_IMG=registry.test/index:v1 CATALOG_IMG=registry.test/catalog:v1
# Its target manifests deletes the CRDs before it generates them.
operator grafana-operator "bundle catalog-build" -o manifests CRANE="$bin/crane" BUNDLE_IMGS=bundle CATALOG_IMG=registry.test/catalog:v1
operator keda-olm-operator "bundle index-build" OPERATOR_SDK_VERSION=$sdk BUNDLE=bundle
operator kubernetes-nmstate "bundle index-build" OPERATOR_SDK_VERSION=${sdk#v} BUNDLE_IMG=./bundle IMAGE_BUILDER=docker
operator node-healthcheck-operator "bundle-k8s catalog-build" OPERATOR_SDK_VERSION=$sdk OPM_VERSION=$opm BUNDLE_IMG=./bundle CHANNELS=stable \
  DEFAULT_CHANNEL=stable VERSION=0.11.0 PREVIOUS_VERSION=0.10.0
# Its target bundle is generate-bundle for two variants. api-docs needs a generator.
operator opentelemetry-operator "generate-bundle catalog-build" -o api-docs -o manifests BUNDLE_VARIANT=community VERSION=0.150.0 \
  OPERATOR_SDK_VERSION=${sdk#v} BUNDLE_IMGS=bundle/community
absent external-secrets
absent strimzi-kafka-operator
exit $failed
