#!/usr/bin/env bash
# catalog.sh DIR IMAGE-TEMPLATE BUNDLE-DIR…: writes DIR/PACKAGE/catalog.yaml, a file-based catalog of these bundles. Its
# channel and edges come from the channel annotation and `replaces` of the bundles.
set -euo pipefail
catalog=$1 template=$2; shift 2
olmkit=${OLMKIT:?}

field() { sed -n "s/^  $2: *//p" "$1"/manifests/*.clusterserviceversion.yaml; }
annotation() { sed -n "s/^  operators.operatorframework.io.bundle.$2.v1: *//p" "$1/metadata/annotations.yaml"; }
last=${*: -1}
package=$(annotation "$last" package)
mkdir -p "$catalog/$package"
{
  # OLM lists a package with the icon of the catalog; it does not look for that of the bundle.
  "$olmkit" catalog init "$package" --default-channel "$(annotation "$last" channel.default)" --icon "$(dirname "${BASH_SOURCE[0]}")/../config/icon.svg" --output yaml
  for channel in $(annotation "$last" channels | tr ',' ' '); do
    printf -- '---\nschema: olm.channel\npackage: %s\nname: %s\nentries:\n' "$package" "$channel"
    for bundle in "$@"; do
      printf -- '- name: %s\n' "$(field "$bundle" name)"
      replaces=$(field "$bundle" replaces); [ -z "$replaces" ] || printf '  replaces: %s\n' "$replaces"
    done
  done
  "$olmkit" catalog render --output yaml --migrate --alpha-image-ref-template "$template" "$@"
} > "$catalog/$package/.catalog.yaml"
mv "$catalog/$package/.catalog.yaml" "$catalog/$package/catalog.yaml"
"$olmkit" catalog validate "$catalog"
