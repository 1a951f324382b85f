#!/usr/bin/env bash
# rust-operator.sh: follows docs/rust-operators.md to the letter. The files and commands of its sections 1 to 6 go into a crate
# outside of the repository; the commands run against a real API server. Needs `make build` and
# `dev/tools/build.sh control-plane`. The crate shares this repository's Cargo.lock and target/, so that little is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
olmkit=$(realpath "${OLMKIT:-$(make -s --no-print-directory print-olmkit)}")
[ -x "$olmkit" ] || { echo "error: no $olmkit; run make build, or name one in OLMKIT" >&2; exit 1; }
cargo build --locked --quiet -p kube-testbed --features cli
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$repository/target}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir "$work/backup-operator" "$work/bin"
ln -s "$repository" "$work/olmkit"; ln -s "$olmkit" "$work/bin/olmkit"
cp Cargo.lock "$work/backup-operator/"
cd "$work/backup-operator"
# A line `path`: names the file of the block that follows; blocks of commands have lines that begin with a dollar sign.
awk '
  /^## 7\. / { exit }
  /^`[^`]+`:$/ { file = substr($0, 2, length($0) - 3); next }
  /^```$/ { inside = 0; file = ""; next }
  /^```console$/ { inside = 2; next }
  /^```/ { inside = 1; if (file == "") { print "error: a block without a file" > "/dev/stderr"; exit 1 } folder = file; if (sub(/\/[^\/]*$/, "", folder)) system("mkdir -p " folder); next }
  inside == 1 { print > file }
  inside == 2 && /^\$ / { print substr($0, 3) > "commands" }
' "$repository/docs/rust-operators.md"
# Profile and flags of this repository, or everything would be compiled anew.
cp -r "$repository/.cargo" .
sed -n '/^\[profile\.dev/,/^$/p' "$repository/Cargo.toml" > "$work/profile"; { echo; cat "$work/profile"; } >> Cargo.toml
sed -i 's/^cargo run /cargo run --quiet /' commands
cat commands
[ "$(wc -l < commands)" = 4 ]
bin=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin
PATH=$work/bin:$bin:$PATH "$CARGO_TARGET_DIR/$(rustc -vV | sed -n 's/^host: //p')/debug/kube-testbed" run bash -euo pipefail -c '. ./commands
  kubectl get crd backups.backup.example.com -o name
  kubectl apply -f config/samples/backup_v1_backup.yaml'
grep -q 'name: restic' bundle/manifests/backup-operator.clusterserviceversion.yaml
echo "the page is right"
