#!/usr/bin/env bash
# Fails if a dependency has a licence or a source that deny.toml does not allow, is banned there, or occurs in two versions
# and is not listed under `skip`. Uses cargo to read Cargo.lock, so a new machine needs no other tool. If cargo-deny is
# installed, it then checks the same lists (and licences); advisories need their database:
#
#   deny.sh               licences, bans, duplicates, sources
#   ADVISORIES=DIR        a directory with a clone of https://github.com/rustsec/advisory-db, as cargo-deny keeps it
#   ADVISORIES=fetch      let cargo-deny fetch it
#   DENY_LISTS=FILE       other lists than deny.toml
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
lists=${DENY_LISTS:-deny.toml}

# Each package of the lock file that any of our targets, features or tests uses: name, version, source, licence.
list() { cargo tree --locked --workspace --all-features --target all --prefix none --format '{p}|{l}' --edges "$1"; }
tree=$(list normal,build,dev)
# Dependencies of tests alone may occur twice, as in cargo-deny.
shipped=$(list normal,build)
members=$(cargo tree --locked --workspace --depth 0 --prefix none --format '{p}')

awk -v members="$members" -v lists="$lists" -v shipped="$shipped" '
  function fail(text) { print "error: " text > "/dev/stderr"; failed = 1 }
  # The value of a quoted field on a line of deny.toml.
  function field(line, key) { return match(line, key " *= *\"[^\"]*\"") ? unquoted(substr(line, RSTART, RLENGTH)) : "" }
  function unquoted(text) { sub(/^[^"]*"/, "", text); sub(/".*$/, "", text); return text }
  # "0.9" covers 0.9.5: a skip names the leading parts of a version.
  function skipped(name, version,   part) {
    part = version
    do { if ((name "@" part) in skip) { met[name "@" part] = 1; return 1 } } while (sub(/\.[^.]*$/, "", part))
    return 0
  }
  # An SPDX expression, in which each licence becomes 1 or 0 and each group, from the innermost, its value.
  function allowed(text,   words, n, i, word, flat) {
    gsub(/\//, " OR ", text); gsub(/\(/, " ( ", text); gsub(/\)/, " ) ", text)
    n = split(text, words, " "); flat = ""
    for (i = 1; i <= n; i++) {
      word = words[i]
      if (word ~ /^(\(|\)|AND|OR)$/) { flat = flat " " word; continue }
      if (words[i + 1] == "WITH") { word = word " WITH " words[i + 2]; i += 2 }
      flat = flat " " ((word in licence) ? 1 : 0)
    }
    while (match(flat, /\([^()]*\)/))
      flat = substr(flat, 1, RSTART - 1) any(substr(flat, RSTART + 1, RLENGTH - 2)) substr(flat, RSTART + RLENGTH)
    return any(flat)
  }
  # AND binds before OR: one alternative without a 0 is enough.
  function any(text,   alternatives, n, i) {
    n = split(text, alternatives, "OR")
    for (i = 1; i <= n; i++) if (alternatives[i] !~ /0/ && alternatives[i] ~ /1/) return 1
    return 0
  }
  BEGIN {
    while ((getline line < lists) > 0) {
      sub(/^[ \t]+/, "", line)
      if (line ~ /^#/ || line == "") continue
      if (line ~ /^\[/) { section = line; gsub(/[\[\] ]/, "", section); list = ""; continue }
      if (line ~ /^[a-z-]+ *= *\[/) { list = line; sub(/ *=.*/, "", list); if (line ~ /\]$/) list = ""; continue }
      if (line ~ /^\]/) { list = ""; continue }
      if (section == "licenses" && list == "allow") { licence[unquoted(line)] = 1; licences++ }
      if (section == "licenses.clarify" && line ~ /^crate/) clarified = unquoted(line)
      if (section == "licenses.clarify" && line ~ /^expression/) clarify[clarified] = unquoted(line)
      if (section == "bans" && list == "deny") { ban[field(line, "crate")] = field(line, "reason"); bans++ }
      if (section == "bans" && list == "skip") skip[field(line, "crate")] = 1
      if (section == "sources" && list ~ /^allow-/) source[unquoted(line)] = 1
    }
    close(lists)
    if (!licences || !bans) fail(lists " could not be read: no licences or no bans in it")
    count = split(members, lines, "\n")
    for (i = 1; i <= count; i++) { split(lines[i], words, " "); own[words[1] " " words[2]] = 1 }
    count = split(shipped, lines, "\n")
    for (i = 1; i <= count; i++) { split(lines[i], words, /[ |]/); ships[words[1] " " substr(words[2], 2)] = 1 }
  }
  {
    sub(/ \(\*\)$/, "")
    if ($0 == "" || seen[$0]++) next
    bar = index($0, "|"); expression = substr($0, bar + 1)
    split(substr($0, 1, bar - 1), words, " "); name = words[1]; version = substr(words[2], 2); place = ""
    for (i = 3; i in words; i++) if (words[i] ~ /^\(.*[\/:]/ || place != "") place = place words[i]
    gsub(/[()]/, "", place); sub(/^registry`?/, "", place); sub(/`$/, "", place)
    id = name " " version
    if (name in ban) fail(id " is banned: " ban[name])
    if ((name " v" version) in own) next
    # cargo names every place but crates.io.
    if (place == "") place = "https://github.com/rust-lang/crates.io-index"
    if (!(place in source)) fail(id " comes from " place ", which [sources] does not allow")
    if (expression == "") expression = clarify[name]
    if (expression == "") fail(id " names no licence; look at its text and add [[licenses.clarify]]")
    else if (!allowed(expression)) fail(id " is licensed " expression ", which [licenses] does not allow")
    if (id in counted) next
    counted[id] = 1; packages++
    if ((id in ships) && !skipped(name, version)) versions[name] = versions[name] " " version
  }
  END {
    for (name in versions) if (split(versions[name], parts, " ") > 1) fail(name " is there in several versions:" versions[name] "; agree on one, or list the older under [bans] skip")
    for (entry in skip) if (!(entry in met)) fail("[bans] skip lists " entry ", which is not there any more")
    if (failed) exit 1
    print packages " dependencies have allowed licences and sources, none is banned or there twice"
  }
' <<< "$tree"

deny=$(command -v cargo-deny || true)
cached=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/bin/cargo-deny
[ -n "$deny" ] || [ ! -x "$cached" ] || deny=$cached
if [ -z "$deny" ]; then
  echo "skipped: cargo-deny is not installed; the workflow runs it (cargo install --locked cargo-deny)"
  exit 0
fi
"$deny" --offline --workspace --all-features --config "$lists" check --hide-inclusion-graph licenses bans sources
case ${ADVISORIES:-} in
  "") echo "skipped: advisories; set ADVISORIES to a directory with their database, or to fetch" ;;
  fetch) "$deny" --workspace --all-features --config "$lists" check advisories ;;
  *)
    # cargo-deny reads the directory only from its configuration.
    configured=$(mktemp --suffix .toml); trap 'rm -f "$configured"' EXIT
    sed "s|^\[advisories\]|&\ndb-path = \"$ADVISORIES\"|" "$lists" > "$configured"
    "$deny" --offline --workspace --all-features --config "$configured" check --disable-fetch advisories ;;
esac
