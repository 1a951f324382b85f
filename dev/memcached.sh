#!/usr/bin/env bash
# memcached.sh ARGUMENTS...: starts the real memcached with these arguments, asks it for its version over TCP and prints the
# version. Fails if it exits or does not answer. The program is Debian sid's package, unpacked with its libraries below
# ~/.cache/olmkit (OLMKIT_DEV_CACHE moves it), so that it runs on any Debian without being installed. Needs apt-get.
set -euo pipefail
root=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}/memcached
# One process downloads, and the others wait for it.
mkdir -p "$(dirname "$root")"; exec 9> "$root.lock"
[ -x "$root/run" ] || flock 9
if [ ! -x "$root/run" ]; then
  command -v apt-get > /dev/null || { echo "memcached.sh: needs apt-get, to download Debian's memcached" >&2; exit 1; }
  new=$(mktemp -d); trap 'rm -rf "$new"' EXIT
  mkdir -p "$new/lists/partial" "$new/archives/partial" "$new/debs" "$new/files"
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$key] ${DEBIAN_MIRROR:-http://deb.debian.org/debian} sid main" > "$new/sources"
  apt=(-qq -o "Dir::Etc::SourceList=$new/sources" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$new/lists"
    -o "Dir::Cache::Archives=$new/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
  apt-get "${apt[@]}" update
  # The libraries that the program is linked with, and theirs.
  (cd "$new/debs" && apt-get "${apt[@]}" download memcached libevent-2.1-7t64 libc6 libsasl2-2 libssl3t64 libzstd1 zlib1g liblua5.4-0)
  for package in "$new"/debs/*.deb; do dpkg -x "$package" "$new/files"; done
  machine=$(uname -m)-linux-gnu
  cat > "$new/files/run" <<RUN
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")
exec "\$here"/usr/lib/$machine/ld-linux-*.so.* --library-path "\$here/usr/lib/$machine" "\$here/usr/bin/memcached" "\$@"
RUN
  chmod +x "$new/files/run"
  rm -rf "$root" && mv "$new/files" "$root"
fi
exec 9>&-
port=${MEMCACHED_PORT:-$((20000 + RANDOM % 20000))}
"$root/run" "$@" -p "$port" -l 127.0.0.1 -u "$(id -un)" & server=$!
trap 'kill "$server" 2> /dev/null || true; [ -z "${new:-}" ] || rm -rf "$new"' EXIT
for _ in $(seq 100); do
  kill -0 "$server" 2> /dev/null || { wait "$server" || code=$?; echo "memcached.sh: memcached $* exits with ${code:-0}" >&2; exit 1; }
  if exec 3<> "/dev/tcp/127.0.0.1/$port"; then
    printf 'version\r\nquit\r\n' >&3
    IFS= read -r answer <&3
    echo "memcached $*: ${answer%$'\r'}"
    exit
  fi 2> /dev/null
  sleep 0.1
done
echo "memcached.sh: memcached $* does not answer" >&2
exit 1
