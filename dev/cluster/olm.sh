#!/usr/bin/env bash
# Installs OLM: definitions, its two operators, and the packageserver that they install from its own CSV.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
crds=$cache/olm/crds
if ! "${kubectl[@]}" get crd clusterserviceversions.operators.coreos.com > /dev/null 2>&1; then
  # Two of them are too large for the annotation of client-side apply.
  "${kubectl[@]}" create -f "$crds" > "$logs/olm-crds.log" 2>&1 || { log_tails=olm-crds; die "OLM's definitions were refused"; }
fi
# Again until it succeeds: kubectl gives up at a definition that has no conditions yet.
established() { "${kubectl[@]}" wait --for=condition=Established --timeout=5s crd --all; }
(log_tails=kube-apiserver wait_for 60 "OLM's definitions established" established)
"${kubectl[@]}" apply -f "$here/olm.yaml" > "$logs/olm-objects.log" 2>&1 || { log_tails=olm-objects; die "OLM's objects were refused"; }

succeeded() { [ "$("${kubectl[@]}" -n olm get csv packageserver -o 'jsonpath={.status.phase}')" = Succeeded ]; }
served() { "${kubectl[@]}" get --raw /apis/packages.operators.coreos.com/v1; }
explain() { "${kubectl[@]}" -n olm get pods -o wide; "${kubectl[@]}" -n olm get events --sort-by=.lastTimestamp | tail -n 8; } >&2
(log_tails=kubelet wait_for 180 "OLM ready (CSV packageserver Succeeded)" succeeded) || { explain; exit 1; }
(log_tails=kubelet wait_for 60 "package manifests served" served) || { explain; exit 1; }
