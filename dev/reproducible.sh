#!/usr/bin/env bash
# reproducible.sh [--images]: builds the operator and all images in two clones of HEAD that differ in path, umask, time
# zone and home directory, if possible as another user (if root runs it), and compares digests. With --images
# it builds only the images, from existing binaries. Not part of CI: two release builds take a while.
set -euo pipefail
cd "$(dirname "$0")/.."
olmkit=${OLMKIT:-$(make -s --no-print-directory print-olmkit PROFILE=dist)}
operator=${OPERATOR:-$(make -s --no-print-directory print-operator PROFILE=dist)}
[ -x "$olmkit" ] || { echo "error: no $olmkit; run make build PROFILE=dist, or name a static olmkit in OLMKIT" >&2; exit 1; }
work=$(mktemp -d); chmod 755 "$work"; trap 'rm -rf "$work"' EXIT
for program in "$olmkit" "${HELPER:-$(dirname "$olmkit")/olmkit-helper}"; do install -m 755 "$program" "$work/"; done

# clone PLACE UMASK
clone() { (umask "$2"; git clone --quiet . "$work/$1"); }
clone one 022
clone another/place/with/a/longer/name 077
two=another/place/with/a/longer/name

# binary PLACE UMASK ZONE HOME: the operator, built in a clone
binary() {
  (cd "$work/$1" && umask "$2" && export TZ=$3 CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" HOME=$4 \
    && mkdir -p "$HOME" && unset CARGO_TARGET_DIR && make -s build PROFILE=dist PROGRAMS="-p memcached-operator" >&2 && make -s --no-print-directory print-operator PROFILE=dist)
}
if [ "${1:-}" = --images ]; then
  [ -x "$operator" ] || { echo "error: no $operator; run make build PROFILE=dist" >&2; exit 1; }
  first=$operator second=$operator
else
  first=$(binary one 022 UTC "$HOME")
  second=$(binary $two 077 Asia/Kathmandu "$work/home")
fi

# images PLACE UMASK ZONE OPERATOR: one line for each image
images() {
  umask "$2"; cd "$work/$1"; export TZ=$3 OLMKIT_IMAGE_STORE=$work/$1/.images
  "$work/olmkit" image build operator "$4" --tag operator
  "$work/olmkit" image build bundle bundle --tag bundle
  "$work/olmkit" image build catalog catalog --tag catalog
  "$work/olmkit" image build helper --tag helper
}
export work; export -f images
install -m 755 "$first" "$work/one/memcached-operator"
install -m 755 "$second" "$work/$two/memcached-operator"
(images one 022 UTC "$work/one/memcached-operator") > "$work/first"
if [ "$(id -u)" = 0 ]; then
  chown -R 65534:65534 "$work/another"
  setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs env HOME=/nonexistent \
    bash -c "images $two 077 Asia/Kathmandu '$work/$two/memcached-operator'" > "$work/second"
else
  (images $two 077 Asia/Kathmandu "$work/$two/memcached-operator") > "$work/second"
fi
sha256sum "$work/one/memcached-operator" "$work/$two/memcached-operator" | sed "s#$work/##"
cat "$work/first"
[ "$(wc -l < "$work/first")" = 4 ]
diff "$work/first" "$work/second"
cmp "$work/one/memcached-operator" "$work/$two/memcached-operator"
echo "equal"
