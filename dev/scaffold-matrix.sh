#!/usr/bin/env bash
# scaffold-matrix.sh [COMBINATION...]: scaffolds projects into a scratch folder, builds and tests each of them, and checks their
# bundles. Without arguments all combinations; `list` lists them. OLMKIT names the program, OPERATOR_SDK that of upstream.
# CLUSTER=1 also runs each operator against a real control plane (dev/tools/build.sh control-plane).
# The projects share this repository's Cargo.lock, profile, flags and target/, so that dependencies are compiled once.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD

# Each line: a name, flags of init, and after each slash flags of one create api, or of create webhook after that word.
combinations() {
  cat <<'LIST'
plain / --group cache --version v1alpha1 --kind Memcached
empty
deploy-image / --group cache --version v1alpha1 --kind Memcached --plugins deploy-image --image docker.io/library/memcached:1.6.45-alpine --image-container-command memcached,-m,64 --image-container-port 11211 --run-as-user 1001
deploy-image-bare --namespaced / --group cache --version v1 --kind Web --plugins deploy-image --image docker.io/library/nginx:1.29
deploy-image-beside / --group cache --version v1 --kind Memcached / --group cache --version v1 --kind Web --plugins deploy-image --image docker.io/library/nginx:1.29 --image-container-port 80
cluster-scoped / --group cache --version v1 --kind CacheClass --namespaced=false
namespaced --namespaced / --group cache --version v1alpha1 --kind Memcached
namespaced-both --namespaced / --group cache --version v1 --kind Memcached / --group cache --version v1 --kind CacheClass --namespaced=false
three / --group cache --version v1 --kind Memcached / --group cache --version v1 --kind Redis / --group cache --version v1beta1 --kind CacheClass --namespaced=false
two-versions / --group cache --version v1alpha1 --kind Memcached / --group cache --version v1 --kind Memcached
three-versions / --group cache --version v1alpha1 --kind Memcached / --group cache --version v1 --kind Memcached / --group cache --version v2 --kind Memcached
versions-then-kind / --group cache --version v1 --kind Memcached / --group cache --version v2 --kind Memcached / --group cache --version v2 --kind Redis
multigroup --multigroup / --group cache --version v1 --kind Server / --group web-site --version v1 --kind Server
multigroup-versions --multigroup / --group cache --version v1 --kind Server / --group cache --version v2 --kind Server / --group web --version v1 --kind Page --namespaced=false
external --namespaced / --group apps --version v1 --kind Deployment --resource=false / --group cache --version v1 --kind Memcached
external-cluster / --group core --version v1 --kind Node --resource=false --namespaced=false / --group networking.k8s.io --version v1 --kind NetworkPolicy --resource=false
force / --group cache --version v1 --kind Memcached / --group cache --version v1 --kind Memcached --force
no-controller / --group cache --version v1 --kind Memcached --controller=false
controller-later / --group cache --version v1 --kind Memcached --controller=false / --group cache --version v1 --kind Memcached --resource=false
plural / --group sea --version v1 --kind Octopus --plural octopodes
keyword / --group lang --version v1 --kind Type / --group lang --version v1 --kind Match
short / --group x --version v1 --kind X
long / --group a-rather-long-group-name --version v1alpha1 --kind ThisKindHasAVeryLongNameThatNobodyWouldChoose
acronym / --group dns --version v1 --kind DNSRecord / --group dns --version v1 --kind HTTP2Route
no-group / --version v1 --kind Memcached
no-license --license none / --group cache --version v1 --kind Memcached
packaging-names / --group cache --version v1 --kind Manager / --group cache --version v1 --kind Project
webhooks / --group cache --version v1 --kind Memcached / webhook --group cache --version v1 --kind Memcached --defaulting --programmatic-validation
webhooks-namespaced --namespaced / --group cache --version v1 --kind Memcached / webhook --group cache --version v1 --kind Memcached --programmatic-validation
webhooks-multigroup --multigroup / --group cache --version v1 --kind Server / --group web --version v1 --kind Type / webhook --group cache --version v1 --kind Server --defaulting --programmatic-validation / webhook --group web --version v1 --kind Type --defaulting
webhooks-long / --group a-rather-long-group-name --version v1alpha1 --kind ThisKindHasAVeryLongNameThatNobodyWouldChoose / --group a-rather-long-group-name --version v1beta1 --kind ThisKindHasAVeryLongNameThatNobodyWouldChoose / webhook --group a-rather-long-group-name --version v1beta1 --kind ThisKindHasAVeryLongNameThatNobodyWouldChoose --defaulting --programmatic-validation --conversion
conversion / --group cache --version v1alpha1 --kind Memcached / --group cache --version v1 --kind Memcached / webhook --group cache --version v1 --kind Memcached --conversion --spoke v1alpha1
conversion-all / --group cache --version v1alpha1 --kind Memcached / --group cache --version v1 --kind Memcached / webhook --group cache --version v1alpha1 --kind Memcached --conversion / --group cache --version v2 --kind Memcached / webhook --group cache --version v1alpha1 --kind Memcached --conversion --spoke v2 --defaulting
conversion-multigroup --multigroup / --group cache --version v1 --kind Server / --group cache --version v2 --kind Server / webhook --group cache --version v1 --kind Server --conversion
conversion-image / --group cache --version v1 --kind Memcached --plugins deploy-image --image docker.io/library/memcached:1.6.45-alpine --image-container-port 11211 / --group cache --version v2 --kind Memcached / webhook --group cache --version v1 --kind Memcached --conversion --programmatic-validation
LIST
}

if [ "${1:-}" = list ]; then combinations | awk '{print $1}'; echo adopt; exit; fi
olmkit=$(realpath "${OLMKIT:-$(make -s --no-print-directory print-olmkit)}")
[ -x "$olmkit" ] || { echo "error: no $olmkit; run make build, or name one in OLMKIT" >&2; exit 1; }
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$repository/target} OLMKIT_SOURCE=path:$repository
testbed=$CARGO_TARGET_DIR/$(rustc -vV | sed -n 's/^host: //p')/debug/kube-testbed
[ -z "${CLUSTER:-}" ] || cargo build --locked --quiet -p kube-testbed --features cli
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
sed -n '/^\[profile\.dev/,/^$/p' Cargo.toml > "$work/profile"
count=0

# adopt: an operator that olmkit has not started, of kube-rs alone, gets its bundle; none of its own files changes.
adopt() {
  mkdir -p "$work/adopt/src"; cd "$work/adopt"
  cp -r "$repository/.cargo" "$repository/Cargo.lock" .
  cat > Cargo.toml <<'TOML'
[package]
name = "scaffold-matrix"
version = "0.4.2"
edition = "2024"

[dependencies]
futures = "0.3"
k8s-openapi = { version = "0.29", default-features = false, features = ["v1_33", "schemars"] }
kube = { version = "5", default-features = false, features = ["client", "derive", "runtime", "rustls-tls", "ring"] }
schemars = "1"
serde = { version = "1", features = ["derive"] }
serde_json = "1"
tokio = { version = "1", features = ["macros", "rt"] }
TOML
  cat > src/lib.rs <<'RUST'
//! An operator of kube-rs.
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whom to greet.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
pub struct GreetingSpec {
    /// Their name.
    pub name: String,
}

/// Whether they were greeted.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct GreetingStatus {
    /// What they answered.
    pub answer: Option<String>,
}
RUST
  cat > src/main.rs <<'RUST'
//! The process.
use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use kube::{
    Api, Client,
    runtime::{Controller, controller::Action, watcher},
};
use scaffold_matrix::Greeting;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let greetings: Api<Greeting> = Api::all(Client::try_default().await?);
    let reconcile = |_: Arc<Greeting>, _: Arc<()>| async { Ok::<_, kube::Error>(Action::await_change()) };
    let failed = |_: Arc<Greeting>, _: &kube::Error, _: Arc<()>| Action::requeue(Duration::from_secs(30));
    Controller::new(greetings, watcher::Config::default())
        .run(reconcile, failed, Arc::new(()))
        .for_each(|_| async {})
        .await;
    Ok(())
}
RUST
  { echo; cat "$work/profile"; } >> Cargo.toml
  sha256sum Cargo.toml src/*.rs > ../before
  "$olmkit" adopt --domain example.com > ../log
  sha256sum --check --quiet ../before
  # As above: the lock file and the profile of this repository, or everything would be compiled anew.
  cp Cargo.lock olm/; { echo; cat "$work/profile"; } >> olm/Cargo.toml
  cargo build --quiet
  make -s -f olm.mk bundle OLMKIT="$olmkit" > ../log 2>&1 || { cat ../log; echo "error: adopt: make bundle"; exit 1; }
  grep -q 'name: scaffold-matrix.v0.4.2' bundle/manifests/*.clusterserviceversion.yaml
  "$olmkit" bundle validate bundle > ../log 2>&1 || { cat ../log; exit 1; }
  # An example is the author's to add.
  if grep -E '^(error|warning)' ../log | grep -Ev '^warning\[(IMG-1|CSV-10)\]'; then echo "error: adopt: findings"; exit 1; fi
  if [ -n "${OPERATOR_SDK:-}" ]; then (cd "$work" && "$OPERATOR_SDK" bundle validate adopt/bundle --select-optional suite=operatorframework); fi
  cd "$repository"; rm -rf "$work/adopt"
  count=$((count + 1)); echo "ok: adopt ($SECONDS s)"
}
while read -r name rest <&3; do
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  # A crate name of its own would be compiled beside the others and kept; one name is replaced each time.
  mkdir -p "$work/$name"; cd "$work/$name"
  mapfile -t steps < <(sed 's# / #\n#g; s#^/ #\n#' <<< "$rest")
  read -ra flags <<< "${steps[0]}"
  "$olmkit" init --domain example.com --project-name scaffold-matrix "${flags[@]}" > ../log
  for step in "${steps[@]:1}"; do
    [ -n "${step// }" ] || continue
    read -ra flags <<< "$step"
    if [ "${flags[0]}" = webhook ]; then
      "$olmkit" create webhook "${flags[@]:1}" >> ../log
    else
      "$olmkit" create api "${flags[@]}" >> ../log
    fi
  done
  if grep -q 'make manifests' ../log; then echo "error: $name: config/ is not current"; exit 1; fi
  cp "$repository/Cargo.lock" .
  # The profile of this repository, or everything would be compiled anew.
  sed -i '/^\[profile\.dev\]/,/^\[profile\.release\]/{/^\[profile\.release\]/!d}' Cargo.toml
  { echo; cat "$work/profile"; } >> Cargo.toml
  cp -r config config.scaffolded
  make -s lint
  if [ "$name" = plain ]; then
    types=src/api/v1alpha1/memcached.rs controller=src/controller/memcached.rs
    cp "$types" ../types; cp "$controller" ../controller
    # A second print column of the same type, and a field that the child's type does not have.
    sed -i '/printcolumn(name = "Age"/a #[kube(printcolumn(name = "Until", type_ = "date", json_path = ".metadata.deletionTimestamp"))]' "$types"
    make -s lint
    sed -i 's/"data": {/"dta": {/' "$controller"
    if make -s test > ../log 2>&1; then echo "error: $name: a typo in a field name passes the tests"; exit 1; fi
    grep -q 'ConfigMap has no field .dta' ../log || { cat ../log; exit 1; }
    cp ../types "$types"; cp ../controller "$controller"
  fi
  make -s test > ../log 2>&1 || { cat ../log; echo "error: $name: make test"; exit 1; }
  grep '^test result' ../log | grep -v ' 0 passed; 0 failed; 0 ignored'
  make -s manifests
  diff -r config config.scaffolded || { echo "error: $name: make manifests changes config/"; exit 1; }
  if [ -d config/crd ]; then
    make -s bundle OLMKIT="$olmkit" > ../log
    "$olmkit" bundle validate bundle > ../log
    # Nothing was pushed, so images have no digests; a kind without a reconciler is not watched. There is nothing else to find.
    accepted=IMG-1; if [[ $rest == *--controller=false ]]; then accepted='IMG-1|RBAC-3'; fi
    if grep -E '^(error|warning)' ../log | grep -Ev "^warning\[($accepted)\]"; then echo "error: $name: findings"; exit 1; fi
    cp -r bundle bundle.first
    make -s bundle OLMKIT="$olmkit" > ../log
    diff -r bundle bundle.first || { echo "error: $name: a second make bundle changes bundle/"; exit 1; }
    if [ -n "${OPERATOR_SDK:-}" ]; then "$OPERATOR_SDK" bundle validate bundle --select-optional suite=operatorframework; fi
    if [ -n "${CLUSTER:-}" ] && [ -d config/samples ]; then
      PATH=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin:$PATH "$testbed" run make -s test-cluster
    fi
  fi
  cd "$repository"; rm -rf "${work:?}/$name"
  count=$((count + 1)); echo "ok: $name ($SECONDS s)"
done 3< <(combinations) < /dev/null
if [ $# -eq 0 ] || [[ " $* " == *" adopt "* ]]; then adopt < /dev/null; fi
[ $count -gt 0 ] || { echo "error: no such combination" >&2; exit 1; }
echo "$count combinations"
