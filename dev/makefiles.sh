#!/usr/bin/env bash
# makefiles.sh CLONES [NAME...]: runs the bundle and catalog targets of public operators' Makefiles with olmkit, under links named
# operator-sdk and opm. CLONES holds one clone for each operator (infinispan-operator, argocd-operator, …), which is copied first.
# For each target: `make -n`, which must not overwrite the links with a downloaded tool, then `make`. No image is built or pushed: docker and
# podman are scripts that accept every command and log it, and a bundle directory stands in for the bundle image. Generators of Go
# code and CRDs are not run, because the clones contain their output. Needs OLMKIT or `make build`, and Go for kustomize and yq.
# If ORIGINAL names a directory with operator-sdk and opm, each target also runs with them in a second copy, and the resulting trees are
# compared. operator-sdk then loads the operator's Go modules.
# OPM_NAME=olmkit passes olmkit under its own name as OPM.
# Prints one line for each target, and exits with 1 if one fails or differs.
set -uo pipefail
[ -d "${1:-}" ] || { sed -n '2,10s/^# //p' "$0"; exit 2; }
clones=$(realpath "$1"); shift
cd "$(dirname "$0")/.."
olmkit=$(realpath "${OLMKIT:-$(make -s --no-print-directory print-olmkit)}")
cache=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/makefiles
for module in sigs.k8s.io/kustomize/kustomize/v5@v5.6.0 github.com/mikefarah/yq/v4@v4.45.1; do
  name=$(basename "${module%/v[0-9]*}")
  [ -x "$cache/$name" ] || GOBIN=$cache go install "$module" || exit 1
done
work=$(mktemp -d); trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
gopath=$(go env GOPATH) go=$(command -v go)

# fill_bin DIR GO-COMMANDS: all tools other than operator-sdk and opm. Of Go, Makefiles and operator-sdk may call only these commands:
# they would also install generators, which has nothing to do with the two tools.
fill_bin() {
  mkdir "$1"
  ln -s "$cache/kustomize" "$1/kustomize"; ln -s "$cache/yq" "$1/yq"
  for engine in docker podman; do
    printf '#!/bin/sh\necho "%s $*" >> "$ENGINE_LOG"\n' "$engine" > "$1/$engine"; chmod +x "$1/$engine"
  done
  # grafana's Makefile asks a registry for the published version.
  printf '#!/bin/sh\necho 5.0.0\n' > "$1/crane"; chmod +x "$1/crane"
  printf '#!/bin/sh\ncase $1 in %s) GOPATH=%s exec %s "$@" ;; esac\n' "$2" "$gopath" "$go" > "$1/go"
  chmod +x "$1/go"
}

bin=$work/bin original=
fill_bin "$bin" 'env | version'
cp "$olmkit" "$bin/olmkit"; ln -s olmkit "$bin/operator-sdk"; ln -s olmkit "$bin/opm"
if [ -n "${ORIGINAL:-}" ]; then
  original=$work/original-bin
  fill_bin "$original" 'env | version | list | mod'
  # Copies: a Makefile may download over them.
  cp "$ORIGINAL"/{operator-sdk,opm} "$original/"
fi
path=$PATH
export ENGINE_LOG=$work/engine.log OLMKIT_IMAGE_STORE=$work/store HOME=$work
failed=0

# copy NAME TREE BIN: copies a clone.
copy() {
  mkdir -p "$work/$2" && cp -r "$clones/$1" "$work/$2/$1"
  [ -d "$work/$2/$1/.git" ] || (cd "$work/$2/$1" && git init -q . && git add -A &&
    git -c user.name=test -c user.email=test@example.com commit -qm clone)
  # Some Makefiles look in bin/ of the project, whatever their variables say.
  mkdir -p "$work/$2/$1/bin" && ln -sf "$3"/{operator-sdk,opm} "$work/$2/$1/bin/"
  # operator-sdk 1.42 rejects older layouts.
  sed -i 's,go.kubebuilder.io/v[23]$,go.kubebuilder.io/v4,' "$work/$2/$1/PROJECT" 2> /dev/null
  # operator-sdk and olmkit resolve tags of sample images to digests, for which they need the registry.
  [ "$1" != cloudnative-pg ] || sed -i "s,\(image: .*postgresql\):[0-9.]*$,\1@sha256:$(printf '%064d' 1)," "$work/$2/$1"/config/olm-samples/*.yaml
}

# run NAME TREE BIN ARGUMENTS...: runs make, with output in $work/log.
run() {
  local name=$1 tree=$2 tools=$3; shift 3
  PATH=$tools:$path timeout 1800 make -C "$work/$tree/$name" "${@//@BIN@/$tools}" OPERATOR_SDK="$tools/operator-sdk" OPM="$tools/${OPM_NAME:-opm}" \
    KUSTOMIZE="$tools/kustomize" YQ="$tools/yq" LOCALBIN="$tools" CONTROLLER_GEN=/bin/true > "$work/log" 2>&1 < /dev/null
}

# values FILE: the values of a YAML file without the time of the run. operator-sdk's order of related images is random.
values() {
  "$cache/yq" -o json 'del(.metadata.annotations.createdAt) | sort_keys(..) |
    with(select(.spec.relatedImages); .spec.relatedImages |= sort_by(.name))' "$1"
}

# compare NAME TARGET ARGUMENTS...: runs a target with the original tools too, and prints the difference.
compare() {
  local name=$1 target=$2 log=$ENGINE_LOG file layout=; shift 2
  export ENGINE_LOG=/dev/null
  # Tools built from source have another version, and the Makefile would download the expected one.
  if ! run "$name" original "$original" "$target" "$@" "OPM_VERSION=$("$original/opm" version | cut -d '"' -f 2)"; then
    echo "$name: make $target: not compared: the original tools fail: $(grep -v '^make' "$work/log" | grep -m 1 -iE 'error|fatal' | cut -c1-300)"
    export ENGINE_LOG=$log
    return
  fi
  export ENGINE_LOG=$log
  diff -r -q -x .git -x bin "$work/original/$name" "$work/ours/$name" > "$work/differing"
  : > "$work/difference"
  while read -r line; do
    file=$(sed -n "s,^Files $work/original/$name/\(.*\) and .*,\1,p" <<< "$line")
    if [ -z "$file" ]; then echo "$line" >> "$work/difference"; continue; fi
    diff -I '^ *createdAt: ' "$work/original/$name/$file" "$work/ours/$name/$file" > "$work/texts" && continue
    if diff <(values "$work/original/$name/$file" 2>&1) <(values "$work/ours/$name/$file" 2>&1) >> "$work/difference"; then
      layout="; values equal, other layout: $file"
    else
      echo "in $file" >> "$work/difference"
    fi
  done < "$work/differing"
  if [ -s "$work/difference" ]; then
    echo "$name: make $target differs from the original's result:"; tail -n "${LINES_SHOWN:-8}" "$work/difference"; failed=1
  else
    echo "$name: make $target: as with the original tools$layout"
  fi
}

# operator NAME TARGETS VARIABLES...: `make -n`, then make, of each target. @BIN@ stands for the directory of the tools.
operator() {
  local name=$1 targets=$2 target how; shift 2
  [ ${#selected[@]} -eq 0 ] || [[ " ${selected[*]} " == *" $name "* ]] || return 0
  if [ ! -d "$clones/$name" ]; then echo "$name: skipped: no clone"; failed=1; return; fi
  copy "$name" ours "$bin"
  [ -z "$original" ] || copy "$name" original "$original"
  for target in $targets; do
    local dry=
    case $target in dry:*) dry=1 target=${target#dry:} ;; esac
    : > "$ENGINE_LOG"
    run "$name" ours "$bin" -n "$target" "$@"
    how=$?
    if [ $how -ne 0 ]; then echo "$name: make -n $target fails:"; tail -n 5 "$work/log"; failed=1; continue; fi
    # The line itself: some Makefiles have the download in a branch of a shell script that is not taken.
    if grep -E "releases/download/[^ ]*(operator-sdk|opm)[^ ]* *-o *\"?$bin" "$work/log" | grep -qv 'exit 0'; then
      echo "$name: make -n $target would download over $bin"; failed=1; continue
    fi
    if [ -n "$dry" ]; then echo "$name: make -n $target: fine; not run: it pulls published images"; continue; fi
    run "$name" ours "$bin" "$target" "$@"
    how=$?
    [ "$(readlink "$bin/operator-sdk")" = olmkit ] && cmp -s "$olmkit" "$bin/olmkit" || {
      echo "$name: make $target replaced olmkit"; failed=1; return; }
    if [ $how -eq 0 ]; then
      echo "$name: make $target: fine$(sed -n 's/^/; /p' "$ENGINE_LOG" | tr -d '\n' | cut -c1-150)"
      [ -z "$original" ] || compare "$name" "$target" "$@"
    else
      echo "$name: make $target fails:"; tail -n "${LINES_SHOWN:-8}" "$work/log"; failed=1
    fi
  done
  chmod -R u+w "$work/ours"; rm -rf "$work/ours" "$work/original/$name"
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
operator grafana-operator "bundle catalog-build" -o manifests CRANE=@BIN@/crane BUNDLE_IMGS=bundle CATALOG_IMG=registry.test/catalog:v1
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
