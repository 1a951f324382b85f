#!/usr/bin/env bash
# Builds the Go programs that the local cluster and the tests run, from pinned modules (go.mod and go.sum in the directories
# next to this file), into the cache directory. Programs of the pinned version are not built again. One `go build` builds all
# programs of a module: shared packages are compiled once, and one program is linked while another is compiled.
#
#   build.sh control-plane    etcd, kube-apiserver, kube-controller-manager, kubectl, OLM's two operators
#   build.sh node             the above, and the programs of a node: kubelet, kube-proxy, scheduler, CoreDNS, OLM's images
#   build.sh upstream         operator-sdk with its scorecard tests, opm and kuttl, which the end-to-end test and the comparisons run
#   build.sh images           other image tools and a registry, which dev/oci compares olmkit with
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

# version_of FOLDER MODULE: the version of a module that the go.mod of a folder beside this file requires
version_of() { sed -n "s#^\(require\)\?[[:space:]]*$2 \(v[^ ]*\).*#\2#p" "$here/$1/go.mod" | head -n 1; }

olm_module=github.com/operator-framework/operator-lifecycle-manager
kubernetes_version=$(version_of cluster k8s.io/kubernetes)
sdk_version=$(version_of operator-sdk github.com/operator-framework/operator-sdk)
olm_version=$(version_of cluster $olm_module)
image_tags=json1,containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper

# The same for all modules, so that Go's build cache has shared packages (such as the standard library) only once.
# These programs need no debug information: without DWARF the compiler is faster.
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath -mod=readonly" GOWORK=off
compiler_flags=all=-dwarf=false

# recipe PROGRAM: sets module (folder), main (the module its version comes from), package, tags, variables (-X flags)
recipe() {
  tags= variables=
  case $1 in
    kube-apiserver | kube-controller-manager | kube-scheduler | kubelet | kube-proxy | kubectl)
      module=cluster main=k8s.io/kubernetes package=k8s.io/kubernetes/cmd/$1
      # Without these the server says v0.0.0-master, and every CSV with minKubeVersion stays Pending.
      local v=k8s.io/component-base/version minor=${kubernetes_version#v1.}
      variables="-X $v.gitVersion=$kubernetes_version -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*} -X $v.gitTreeState=clean" ;;
    olm | catalog | package-server | copy-content)
      module=cluster main=$olm_module package=$olm_module/cmd/$1 tags=json1
      variables="-X $olm_module/pkg/version.OLMVersion=${olm_version#v}" ;;
    cpb) module=cluster main=$olm_module package=$olm_module/util/cpb tags=json1 ;;
    opm) module=cluster main=github.com/operator-framework/operator-registry package=$main/cmd/opm tags=$image_tags ;;
    kubectl-kuttl) module=cluster main=github.com/kudobuilder/kuttl package=$main/cmd/kubectl-kuttl ;;
    operator-sdk)
      module=operator-sdk main=github.com/operator-framework/operator-sdk package=$main/cmd/operator-sdk tags=$image_tags
      local v=$main/internal/version
      variables="-X $v.Version=$sdk_version -X $v.GitVersion=$sdk_version -X $v.ImageVersion=$sdk_version" ;;
    scorecard-test) module=operator-sdk main=github.com/operator-framework/operator-sdk package=$main/images/scorecard-test tags=$image_tags ;;
    catalogd) module=cluster main=github.com/operator-framework/operator-controller package=$main/cmd/catalogd tags=$image_tags ;;
    coredns) module=cluster main=github.com/coredns/coredns package=./coredns ;;
    grpc_health_probe) module=cluster main=github.com/grpc-ecosystem/grpc-health-probe package=$main ;;
    etcd) module=cluster main=go.etcd.io/etcd/server/v3 package=$main ;;
    promtool) module=prometheus main=github.com/prometheus/prometheus package=$main/cmd/promtool tags=remove_all_sd ;;
    skopeo) module=skopeo main=github.com/containers/skopeo package=$main/cmd/skopeo tags=$image_tags ;;
    crane) module=images main=github.com/google/go-containerregistry package=$main/cmd/crane ;;
    regctl) module=images main=github.com/regclient/regclient package=$main/cmd/regctl ;;
    oras) module=images main=oras.land/oras package=$main/cmd/oras ;;
    registry) module=images main=github.com/distribution/distribution/v3 package=$main/cmd/registry ;;
    kube-router) module=network main=github.com/cloudnativelabs/kube-router/v2 package=$main/cmd/kube-router ;;
    actionlint) module=actionlint main=github.com/rhysd/actionlint package=$main/cmd/actionlint ;;
    *) die "no program named '$1'; see the head of $0" ;;
  esac
}

# The inputs of a binary: the module's pins, its sources, and the build commands.
pin_of() {
  { echo "$package $tags $variables $compiler_flags"; cat "$here/$module/go.mod" "$here/$module/go.sum"; find "$here/$module" -name '*.go' -exec cat {} +; } | sha256sum | cut -c1-64
}

# A binary without a stamp (someone copied it here) counts when its build information names the pinned version.
is_pinned_version() {
  local version
  version=$(version_of "$module" "$main")
  go version -m "$1" 2>/dev/null | grep -qE "^[[:space:]]+(mod|dep)[[:space:]]+$main[[:space:]]+$version([[:space:]]|\$)"
}

# is_current PROGRAM: whether the cache holds it as it would be built now
is_current() {
  local program=$1 pin stamp=$bin/.$1.pin
  recipe "$program"
  [ -x "$bin/$program" ] || return 1
  pin=$(pin_of)
  [ "$(cat "$stamp" 2>/dev/null)" != "$pin" ] || return 0
  [ ! -e "$stamp" ] && command -v go > /dev/null && is_pinned_version "$bin/$program" && echo "$pin" > "$stamp"
}

# The name that `go build` gives the program of a package: the last part of its path that is no major version
output_of() { [[ ${1##*/} =~ ^v[0-9]+$ ]] && set -- "${1%/*}"; echo "${1##*/}"; }

# install_linked PROGRAM…: moves the programs that Go has linked by now to their place, and sets left to the others
install_linked() {
  local program; left=
  for program in "$@"; do
    recipe "$program"
    if [ -e "$new/$(output_of "$package")" ]; then
      mv "$new/$(output_of "$package")" "$bin/$program"
      pin_of > "$bin/.$program.pin"
      done_count=$((done_count + 1))
      say "built $program from $main after $((SECONDS - start)) s ($done_count of $total)"
    else left+=" $program"; fi
  done
}

# build MODULE PROGRAM…: programs of one module
build() {
  local folder=$here/$1 left all_tags= flags=() packages=() program start=$SECONDS go status=0 new=$bin/.new; shift
  command -v go > /dev/null || die "$* must be built but go was not found on PATH; install Go 1.26.6 or newer (https://go.dev/dl)"
  say "building $* from ${folder#"$here/"}"
  for program in "$@"; do
    recipe "$program"
    packages+=("$package")
    [ -z "$tags" ] || all_tags+=,$tags
    [ -z "$variables" ] || flags+=(-ldflags "$package=-s -w $variables")
  done
  # Go works below the folder it writes to: a program appears there under its name when it is whole. Collecting garbage less
  # often saves the compiler a fifth of its processor time, for some hundred megabytes.
  rm -rf "$new"; mkdir -p "$new/.work"
  (cd "$folder" && GOGC=${GOGC:-400} GOTMPDIR=$new/.work exec go build -tags "${all_tags#,}" -gcflags "$compiler_flags" -ldflags "-s -w" "${flags[@]}" \
    -o "$new/" "${packages[@]}") & go=$!
  trap 'kill "$go" 2> /dev/null || true; exit 143' TERM INT
  left=$*
  while kill -0 "$go" 2> /dev/null; do sleep 0.5; install_linked $left; done
  wait "$go" || status=$?
  trap - TERM INT
  install_linked $left
  rm -rf "$new"
  [ $status = 0 ] && [ -z "$left" ] || die "${left# } did not build from $folder"
}

# module_dir FOLDER MODULE: where Go keeps the pinned version of a module that a folder beside this file requires
module_dir() { (cd "$here/$1" && go mod download "$2" && go list -m -f '{{.Dir}}' "$2"); }

# OLM's chart travels in its module: its CustomResourceDefinitions are always those of the binaries.
olm_crds() {
  local to=$cache/olm/crds from
  [ "$(cat "$cache/olm/version" 2>/dev/null)" != "$olm_version" ] || [ ! -e "$cache/olm/Chart.yaml" ] || return 0
  from=$(module_dir cluster "$olm_module")/deploy/chart/crds
  rm -rf "$to"; mkdir -p "$to"
  cp "$from"/*.yaml "$to/"; cp "$from/../Chart.yaml" "$cache/olm/"; chmod -R u+w "$cache/olm"
  echo "$olm_version" > "$cache/olm/version"
}

# So does the definition of ClusterCatalog in the module of catalogd.
catalogd_crd() {
  local from
  [ "$cache/catalogd-crd.yaml" -ot "$bin/catalogd" ] || return 0
  from=$(module_dir cluster github.com/operator-framework/operator-controller)
  install -m 644 "$from/helm/olmv1/base/catalogd/crd/standard/olm.operatorframework.io_clustercatalogs.yaml" "$cache/catalogd-crd.yaml"
}

control_plane="etcd kube-apiserver kube-controller-manager kubectl olm catalog"
node="kube-scheduler kubelet kube-proxy coredns package-server copy-content cpb opm grpc_health_probe"
upstream="operator-sdk scorecard-test opm kubectl-kuttl"
images="skopeo crane regctl oras registry"
wanted=
for argument in "${@:-all}"; do
  case $argument in
    control-plane) wanted+=" $control_plane" ;;
    node) wanted+=" $control_plane $node" ;;
    upstream) wanted+=" $upstream" ;;
    images) wanted+=" $images" ;;
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
declare -A stale
total=0 done_count=0
for program in $programs; do
  if ! is_current "$program"; then stale[$module]+=" $program"; total=$((total + 1)); fi
done
for module in "${!stale[@]}"; do build "$module" ${stale[$module]}; done
case " $wanted " in *" olm "*) olm_crds ;; esac
case " $wanted " in *" catalogd "*) catalogd_crd ;; esac
