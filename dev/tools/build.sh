#!/usr/bin/env bash
# Builds the Go programs that the local cluster and the tests run, each from a pinned module (go.mod and go.sum
# beside this file), into the cache folder. What is there at the pinned version is left alone.
#
#   build.sh control-plane    etcd, kube-apiserver, kube-controller-manager, kubectl, OLM's two operators
#   build.sh node             the above, and what a node needs: kubelet, kube-proxy, scheduler, CoreDNS, OLM's images
#   build.sh upstream         operator-sdk and opm, which the end-to-end test and the comparisons run
#   build.sh catalogd         the catalog server of OLM v1, and its definition
#   build.sh all              everything
#   build.sh kubelet opm …    single programs
#
# OLMKIT_DEV_CACHE sets the folder (default: ${XDG_CACHE_HOME:-~/.cache}/olmkit). KUBEBUILDER_ASSETS, when set,
# provides etcd and kube-apiserver, which are then not built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}
bin=$cache/bin
mkdir -p "$bin"

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

kubernetes_version=$(sed -n 's/^require k8s.io\/kubernetes //p' "$here/kubernetes/go.mod")
sdk_version=$(sed -n 's/^require github.com\/operator-framework\/operator-sdk //p' "$here/operator-sdk/go.mod")
olm_module=github.com/operator-framework/operator-lifecycle-manager
olm_version=$(sed -n "s#^require $olm_module ##p" "$here/olm/go.mod")
image_tags=json1,containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper

# recipe PROGRAM: sets module (folder), main (the module its version comes from), package, tags, variables (-X flags)
recipe() {
  tags= variables=
  case $1 in
    kube-apiserver | kube-controller-manager | kube-scheduler | kubelet | kube-proxy | kubectl)
      module=kubernetes main=k8s.io/kubernetes package=k8s.io/kubernetes/cmd/$1
      # Without these the server says v0.0.0-master, and every CSV with minKubeVersion stays Pending.
      local v=k8s.io/component-base/version minor=${kubernetes_version#v1.}
      variables="-X $v.gitVersion=$kubernetes_version -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*} -X $v.gitTreeState=clean" ;;
    olm | catalog | package-server | copy-content)
      module=olm main=$olm_module package=$olm_module/cmd/$1 tags=json1
      variables="-X $olm_module/pkg/version.OLMVersion=${olm_version#v}" ;;
    cpb) module=olm main=$olm_module package=$olm_module/util/cpb tags=json1 ;;
    opm) module=opm main=github.com/operator-framework/operator-registry package=$main/cmd/opm tags=$image_tags ;;
    operator-sdk)
      module=operator-sdk main=github.com/operator-framework/operator-sdk package=$main/cmd/operator-sdk tags=$image_tags
      local v=$main/internal/version
      variables="-X $v.Version=$sdk_version -X $v.GitVersion=$sdk_version -X $v.ImageVersion=$sdk_version" ;;
    catalogd) module=catalogd main=github.com/operator-framework/operator-controller package=$main/cmd/catalogd tags=$image_tags ;;
    coredns) module=coredns main=github.com/coredns/coredns package=. ;;
    grpc_health_probe) module=grpc_health_probe main=github.com/grpc-ecosystem/grpc-health-probe package=$main ;;
    etcd) module=etcd main=go.etcd.io/etcd/server/v3 package=$main ;;
    *) die "no program named '$1'; see the head of $0" ;;
  esac
}

# What a binary depends on: the module's pins, its own sources, and how it is built.
pin_of() {
  { echo "$package $tags $variables"; cat "$here/$module/go.mod" "$here/$module/go.sum"; find "$here/$module" -name '*.go' -exec cat {} +; } | sha256sum | cut -c1-64
}

# A binary without a stamp (someone copied it here) counts when its build information names the pinned version.
is_pinned_version() {
  local version
  version=$(sed -n "s#^\(require\)\?[[:space:]]*$main \(v[^ ]*\).*#\2#p" "$here/$module/go.mod" | head -n 1)
  go version -m "$1" 2>/dev/null | grep -qE "^[[:space:]]+(mod|dep)[[:space:]]+$main[[:space:]]+$version([[:space:]]|\$)"
}

build() {
  local program=$1 pin stamp start
  recipe "$program"
  pin=$(pin_of); stamp=$bin/.$program.pin
  if [ -x "$bin/$program" ]; then
    [ "$(cat "$stamp" 2>/dev/null)" != "$pin" ] || return 0
    if [ ! -e "$stamp" ] && command -v go > /dev/null && is_pinned_version "$bin/$program"; then echo "$pin" > "$stamp"; return 0; fi
  fi
  command -v go > /dev/null || die "$program must be built and there is no Go on PATH; install Go 1.26.6 or newer (https://go.dev/dl)"
  say "building $program from $main ($done_count of $total)"
  start=$SECONDS
  (cd "$here/$module" && CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly" GOWORK=off \
    go build -tags "$tags" -ldflags "-s -w $variables" -o "$bin/.$program.new" "$package") \
    || die "$program did not build from $here/$module"
  mv "$bin/.$program.new" "$bin/$program"
  echo "$pin" > "$stamp"
  say "built $program in $((SECONDS - start)) s"
}

# module_dir FOLDER MODULE: where Go keeps the pinned version of a module that a folder beside this file requires
module_dir() { (cd "$here/$1" && export GOWORK=off GOFLAGS=-mod=readonly && go mod download "$2" && go list -m -f '{{.Dir}}' "$2"); }

# OLM's chart travels in its module: its CustomResourceDefinitions are always those of the binaries.
olm_crds() {
  local to=$cache/olm/crds from
  [ "$(cat "$cache/olm/version" 2>/dev/null)" != "$olm_version" ] || [ ! -e "$cache/olm/Chart.yaml" ] || return 0
  from=$(module_dir olm "$olm_module")/deploy/chart/crds
  rm -rf "$to"; mkdir -p "$to"
  cp "$from"/*.yaml "$to/"; cp "$from/../Chart.yaml" "$cache/olm/"; chmod -R u+w "$cache/olm"
  echo "$olm_version" > "$cache/olm/version"
}

# So does the definition of ClusterCatalog in the module of catalogd.
catalogd_crd() {
  local from
  [ "$cache/catalogd-crd.yaml" -ot "$bin/catalogd" ] || return 0
  from=$(module_dir catalogd github.com/operator-framework/operator-controller)
  install -m 644 "$from/helm/olmv1/base/catalogd/crd/standard/olm.operatorframework.io_clustercatalogs.yaml" "$cache/catalogd-crd.yaml"
}

control_plane="etcd kube-apiserver kube-controller-manager kubectl olm catalog"
node="kube-scheduler kubelet kube-proxy coredns package-server copy-content cpb opm grpc_health_probe"
upstream="operator-sdk opm"
wanted=
for argument in "${@:-all}"; do
  case $argument in
    control-plane) wanted+=" $control_plane" ;;
    node) wanted+=" $control_plane $node" ;;
    upstream) wanted+=" $upstream" ;;
    all) wanted+=" $control_plane $node $upstream catalogd" ;;
    *) wanted+=" $argument" ;;
  esac
done
if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  for provided in etcd kube-apiserver; do
    [ -x "$KUBEBUILDER_ASSETS/$provided" ] || continue
    wanted=$(printf ' %s ' "$wanted" | sed "s/ $provided / /g")
  done
fi
exec 9> "$cache/.lock"; flock 9   # two makes at once would otherwise build the same program twice
programs=$(tr ' ' '\n' <<< "$wanted" | sed '/^$/d' | awk '!seen[$0]++')
total=$(wc -w <<< "$programs"); done_count=0
for program in $programs; do done_count=$((done_count + 1)); build "$program"; done
case " $wanted " in *" olm "*) olm_crds ;; esac
case " $wanted " in *" catalogd "*) catalogd_crd ;; esac
