#!/usr/bin/env bash
# Prepares this machine for the node: the user's consent, and Debian packages.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Checked now and not after minutes of builds.
for program in cargo go; do command -v $program > /dev/null || die "install $program first"; done

missing=
package() { command -v "$1" > /dev/null || [ -x "$1" ] || missing+=" $2"; }
package containerd containerd
package runc runc
package /usr/lib/cni/bridge containernetworking-plugins
package docker-registry docker-registry
package iptables iptables
package ip iproute2
package nsenter util-linux
package busybox busybox-static
package memcached memcached
package jq jq
package openssl openssl
package curl curl

say "the node runs as root in a separate network namespace ($network) and, while it is up, sets these kernel values:"
say "  vm.overcommit_memory, vm.panic_on_oom, kernel.panic, kernel.panic_on_oops (put back by 'cluster down')"
[ -z "$missing" ] || say "Debian packages to install (none of their services is started):$missing"
if [ "${YES:-}" != 1 ]; then
  [ -t 0 ] || die "no terminal to ask on; set YES=1 to agree"
  printf 'Go on? [y/N] ' >&2; read -r answer; case $answer in y | Y | yes) ;; *) die "not agreed" ;; esac
fi
if [ -n "$missing" ]; then
  command -v apt-get > /dev/null || die "missing programs, and no apt-get to install them:$missing"
  say "installing$missing"
  # Packages must not start daemons: policy-rc.d answers 101 (forbidden) to each of them while we install.
  policy=/usr/sbin/policy-rc.d; mine=
  if [ ! -e $policy ]; then printf '#!/bin/sh\nexit 101\n' > $policy; chmod +x $policy; mine=1; fi
  mkdir -p "$logs"
  if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; } > "$logs/apt.log" 2>&1; then
    [ -z "$mine" ] || rm -f $policy
    log_tails=apt die "apt-get install failed"
  fi
  [ -z "$mine" ] || rm -f $policy
fi
