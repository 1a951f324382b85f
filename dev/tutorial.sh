#!/usr/bin/env bash
# tutorial.sh [PAGE...]: runs the commands of pages, each page on a real control plane. Runs console blocks, applies diff blocks to the
# project, and starts the real memcached with the arguments of the page (memcached.sh). `<!-- fails -->` before a block expects its
# commands to fail. `<!-- run: COMMAND -->` runs a check that the page does not show. If a page shows a command's output, the command must
# print it (tutorial-output.py); UPDATE_GENERATED=1 writes it into the page. Without PAGE: all of docs/tutorial, and
# docs/guides/rust-operators.md. Needs `make build` and `dev/tools/build.sh control-plane`. The projects share this repository's
# Cargo.lock, profile, flags and target/.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
olmkit=$(realpath "${OLMKIT:-$(make -s --no-print-directory print-olmkit)}")
[ -x "$olmkit" ] || { echo "error: no $olmkit; run make build, or name one in OLMKIT" >&2; exit 1; }
[ $# -gt 0 ] || set -- docs/tutorial/*.md docs/guides/rust-operators.md
cargo build --locked --quiet -p kube-testbed --features cli
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$repository/target} OLMKIT_SOURCE=path:$repository
testbed=$CARGO_TARGET_DIR/$(rustc -vV | sed -n 's/^host: //p')/debug/kube-testbed
bin=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"; ln -s "$olmkit" "$work/bin/olmkit"
{ echo; sed -n '/^\[profile\.dev/,/^$/p' Cargo.toml; } > "$work/profile"
# The repository's lock file and profile, so that cargo reuses compiled crates.
cat > "$work/share" <<SHARE
cp "$repository/Cargo.lock" .
sed -i '/^\[profile\.dev\]/,/^\[profile\.release\]/{/^\[profile\.release\]/!d}' Cargo.toml
cat "$work/profile" >> Cargo.toml
SHARE

# commands PAGE: prints the commands of the page as a script.
commands() {
  cat <<'HEAD'
set -euo pipefail
set -m
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
HEAD
  awk -v share="$work/share" -v outputs="$work/outputs" '
    # A command runs when the next line is known: its output is recorded if the page shows it.
    command != "" && inside == 1 { run(command, fails, /^(\$ |```$)/ ? 0 : number); command = "" }
    /^```console$/ { inside = 1; next }
    /^```diff$/ { inside = 2; print "patch -p1 --no-backup-if-mismatch <<\"DIFF\""; next }
    /^```/ { if (inside == 2) print "DIFF"; inside = 0; fails = 0; next }
    inside == 2
    inside == 1 && /^\$ / { command = substr($0, 3); number = NR }
    !inside && /^<!-- fails -->$/ { fails = 1 }
    !inside && /^<!-- run: .* -->$/ {
      line = $0; sub(/^<!-- run: /, "", line); sub(/ -->$/, "", line)
      is_failure = sub(/^! /, "", line)
      run(line, is_failure, 0)
    }
    # An expected failure is a condition: with `!`, bash would ignore a success.
    function run(line, is_failure, recorded,    said, file) {
      said = line; gsub(/\047/, "\047\\\047\047", said); print "echo \047$ " said "\047"
      if (recorded) {
        file = outputs "/" recorded
        print "status=0; { " line "; } > " file " 2>&1 || status=$?; cat " file
        print is_failure ? "[ $status != 0 ]" : "[ $status = 0 ]"
      } else if (is_failure) print "if " line "; then exit 1; fi"; else print line
      if (line ~ /^olmkit init/) print ". " share
    }' "$1"
}

# servers PAGE: the arguments with which the page starts memcached, one line each.
servers() {
  grep -oP -- '--image-container-command \Kmemcached\S*|"command": \K\["memcached".*?\]' "$1" |
    tr -d '[]" ' | sed 's/^memcached,\?//; s/,/ /g' | sort -u
}

for page in "$@"; do
  # No node runs the containers, so check with memcached itself that it accepts the arguments of the page.
  while IFS= read -r arguments; do dev/memcached.sh $arguments; done < <(servers "$page")
  # Pages that use OLM need it.
  olm=(); if grep -q '^\$ olmkit run bundle' "$page"; then olm=(--olm); fi
  mkdir "$work/project" "$work/outputs"
  commands "$page" > "$work/commands"
  [ "$(grep -c '^echo ' "$work/commands")" -ge 5 ] || { echo "error: $page has no commands" >&2; exit 1; }
  (cd "$work/project" && PATH=$work/bin:$bin:$PATH "$testbed" run "${olm[@]}" bash "$work/commands") || {
    cat "$work"/project/*/operator.log 2> /dev/null; echo "error: $page" >&2; exit 1; }
  dev/tutorial-output.py "$page" "$work/outputs" "$work/project"
  rm -rf "$work/project" "$work/outputs"
  echo "$page is right"
done
