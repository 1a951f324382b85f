# Sourced by e2e.sh: an operator with webhooks, started and built as its author would, is installed from its own image and answers the
# API server with the certificate that OLM gives it.
project_is_built() {
  # Outside this repository, whose workspace it would be in otherwise.
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir "$folder/scaffolded"; cd "$folder/scaffolded"
  export OLMKIT_SOURCE=path:$root CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
  "$olmkit" init --domain example.com
  "$olmkit" create api --group cache --version v1 --kind Widget
  "$olmkit" create webhook --group cache --version v1 --kind Widget --defaulting --programmatic-validation
  # Use this repository's lock file, profile and target directory, so that cargo reuses compiled crates.
  cp "$root/Cargo.lock" .
  sed -i '/^\[profile\.dev\]/,/^\[profile\.release\]/{/^\[profile\.release\]/!d}' Cargo.toml
  { echo; sed -n '/^\[profile\.dev/,/^$/p' "$root/Cargo.toml"; } >> Cargo.toml
  cargo build --quiet --bin scaffolded
  make -s bundle OLMKIT="$olmkit" IMG="$(scaffolded_image)"
  # Upstream's operator-sdk reads PROJECT for every command.
  local upstream=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin/operator-sdk
  "$upstream" version
  "$upstream" bundle validate bundle
  "$upstream" generate bundle --input-dir config --version 0.0.1 --output-dir upstream
  "$upstream" scorecard bundle --list
  publish operator "$CARGO_TARGET_DIR/$(rustc -vV | sed -n 's/^host: //p')/debug/scaffolded" "$(scaffolded_image)"
  publish bundle bundle "$(scaffolded_image bundle)"
}
# scaffolded_image [PART]: the image of the operator, or of a part
scaffolded_image() { echo "registry.example.com/scaffolded${1:+-$1}:v0.0.1"; }
scaffolded_is_installed() {
  restricted_namespace
  push_helper
  kit run bundle "$(reach "$(scaffolded_image bundle)")" -n "$NAMESPACE" --helper-image "$helper"
  eventually 180 is Succeeded csv_phase scaffolded.v0.0.1
}
widget() { printf '{"apiVersion": "cache.example.com/v1", "kind": "Widget", "metadata": {"name": "%s"}, "spec": {"message": "Hello"}}' "$1"; }
webhooks_answer() {
  widget here | kn apply -f -
  is scaffolded kn get widget here -o 'jsonpath={.metadata.labels.app\.kubernetes\.io/part-of}'
  eventually 180 is Hello kn get configmap widget-here -o 'jsonpath={.data.message}'
  eventually 180 is True kn get widget here -o 'jsonpath={.status.conditions[?(@.type=="Available")].status}'
  local long answer; long=$(printf 'x%.0s' {1..64})
  if answer=$(widget "$long" | kn apply -f - 2>&1); then echo "accepted: $answer"; return 1; fi
  contains "at most 63 characters, since labels hold the name" echo "$answer"
}
scaffolded_is_gone() {
  kn delete widget --all --timeout=300s
  kit cleanup scaffolded -n "$NAMESPACE"
  k delete namespace "$NAMESPACE" --timeout=300s
  same_inventory "$results/before"
}

flow_scaffold() {
  local NAMESPACE=scaffolded
  echo; echo "an operator with webhooks that was just scaffolded"
  check "it is built, packaged and pushed" project_is_built
  check "its bundle is installed from its image" scaffolded_is_installed
  check "its webhooks complete and refuse objects" webhooks_answer
  check "nothing is left of it" scaffolded_is_gone
}
