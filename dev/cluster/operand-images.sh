#!/usr/bin/env bash
# Prints the names under which the local registry serves memcached, comma-separated: those that the bundles of all
# versions name, without the registry's host.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
names=dev/memcached:1
for csv in "$root"/bundle/manifests/*.clusterserviceversion.yaml "$root"/releases/*/bundle/manifests/*.clusterserviceversion.yaml; do
  [ -e "$csv" ] || continue
  # The value follows the variable's name: `- name: RELATED_IMAGE_MEMCACHED`, `value: docker.io/library/memcached:…`.
  while read -r image; do
    case $image in */*) path=${image#*/} ;; *) path=library/$image ;; esac
    case ,$names, in *",${path%@*},"*) ;; *) names+=,${path%@*} ;; esac
  done < <(awk '/name: (RELATED_IMAGE_MEMCACHED|MEMCACHED_IMAGE)$/ { getline; print $2 }' "$csv")
done
echo "$names"
