#!/usr/bin/env bash
# set-image.sh FROM TO: replaces the image FROM in the YAML on standard input by TO; fails if it is not there, so that no
# other image is deployed without a word.
set -euo pipefail
from=$1 to=$2 text= found=
while IFS= read -r line || [ -n "$line" ]; do
	case $line in
	*"image: $from") line=${line%"$from"}$to found=1 ;;
	esac
	text+=$line$'\n'
done
if [ -z "$found" ]; then
	echo "set-image.sh: no \"image: $from\" in the rendered objects; render config/ anew with make manifests" >&2
	exit 1
fi
printf %s "$text"
