#!/bin/bash
# Builds and runs one fuzz target for some time with the stable compiler; `cargo fuzz` is not needed.
# Usage: fuzz/run.sh arguments|bundle|catalog|catalog_index|cel|clone|commands|decode|definition|images|picture|policy|reader|registry|repository [SECONDS] [DIRECTORY]
# Seeds are the files below seeds/TARGET, and bundles or catalogs from the directory (see OLMKIT_CORPUS); by default those in this
# repository.
# Inputs that break a target are in artifacts/TARGET. TIMEOUT (5) is the limit for one input in seconds; raise it on a busy machine.
set -euo pipefail
cd "$(dirname "$0")"
target=${1:?name a target; README.md lists them}
seconds=${2:-60}
case $target in
  catalog* | picture) folder=catalogs own=../catalog ;;
  *) folder=bundles own=../dev/test-support/data ;;
esac
bundles=${3:-${OLMKIT_CORPUS:+$OLMKIT_CORPUS/$folder}}
bundles=${bundles:-$own}
# Broken catalogs are next to the others.
broken=$bundles-broken
[ -d "$broken" ] || broken=
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}
# libFuzzer reads these counters to see which input reaches new code.
RUSTC_BOOTSTRAP=1 RUSTFLAGS="--cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table" \
  cargo build --locked --release --target "$(rustc -vV | sed -n 's/^host: //p')" --bin "$target"
mkdir -p "corpus/$target" "artifacts/$target" "seeds/$target"
# The files of a directory in one text: `@ path` begins a file.
together() { (cd "$1" && shift && find "$@" -type f -size -64k | sort | while read -r file; do printf '@ %s\n' "$file"; cat "$file"; echo; done); }
if [ -z "$(ls -A "corpus/$target")" ]; then
  case $target in
    bundle)
      for bundle in "$bundles"/*/; do
        seed=corpus/bundle/$(basename "$bundle")
        together "$bundle" manifests metadata > "$seed"
      done ;;
    repository)
      for bundle in "$bundles"/*/; do
        together "$bundle" manifests metadata > "corpus/repository/$(basename "$bundle")"
      done
      find corpus/repository -type f -size +64k -delete ;;
    commands)
      # Each bundle for each command: the first byte says which.
      for bundle in "$bundles"/*/; do
        for command in $(seq 0 4 57); do
          { printf "\\x$(printf %02x "$command")"; together "$bundle" manifests metadata; } > "corpus/commands/$(basename "$bundle")-$command"
        done
      done
      find corpus/commands -type f -size +64k -delete ;;
    cel | policy | registry) ;;
    clone)
      # Each byte selects a change of the repository. An empty corpus would grow too slowly: git takes a second for each input.
      for number in $(seq 24); do head -c 100 /dev/urandom > "corpus/clone/random-$number"; done ;;
    arguments)
      # Commands as the documentation writes them, one word on each line.
      grep -rhoE --include='*.md' '^\$? ?olmkit [^#|>]+' ../docs ../README.md | sed 's/^\$ *//; s/^olmkit //' | sort -u | while read -r line; do
        tr ' ' '\n' <<< "$line" > "corpus/arguments/$(sha256sum <<< "$line" | cut -c1-16)"
      done ;;
    catalog | picture)
      # Whole files where they are small, else their first blobs; then each small catalog as one text.
      find -L "$bundles" ${broken:+"$broken"} -type f \( -name '*.yaml' -o -name '*.json' \) -size -64k | awk 'NR <= 300' | while read -r file; do
        cp "$file" "corpus/$target/$(sha256sum "$file" | cut -c1-16)"
      done
      find -L "$bundles" -type f -name '*.yaml' -size +64k | awk 'NR <= 50' | while read -r file; do
        awk '/^---/ && length(text) > 20000 { exit } length(text) > 60000 { exit } { text = text $0 "\n" } END { printf "%s", text }' "$file" \
          > "corpus/$target/$(sha256sum "$file" | cut -c1-16)"
      done ;;
    catalog_index)
      # Complete indexes, whose bytes the fuzzer changes; it has to get past their checksums.
      olmkit=${OLMKIT:-../target/$(rustc -vV | sed -n 's/^host: //p')/debug/olmkit}
      [ -x "$olmkit" ] || echo "no seeds: build $olmkit first (cargo build -p olmkit-cli), or name one in OLMKIT"
      for catalog in "$bundles"/*/ ${broken:+"$broken"/*/}; do
        [ "$(du -sk "$catalog" | cut -f1)" -lt 400 ] || continue
        cache=$(mktemp -d)
        if [ -x "$olmkit" ] && "$olmkit" catalog serve "$catalog" --cache-only --http --cache-dir "$cache" 2> "$cache/log"; then
          mv "$cache"/*.index "corpus/catalog_index/$(basename "$catalog")"
        fi
        rm -r "$cache"
      done
      find corpus/catalog_index -type f -size +64k -delete ;;
    images)
      # As layers, plain and compressed, and as archives; the first byte says which.
      for bundle in "$bundles"/*/; do
        seed=corpus/images/$(basename "$bundle")
        { printf '\0'; tar -C "$bundle" -cf - .; } > "$seed-layer"
        { printf '\1'; tar -C "$bundle" -czf - .; } > "$seed-gzip"
        { printf '\3'; tar -C "$bundle" -cf - .; } > "$seed-archive"
        # Archives may be compressed. Their first bytes say how.
        for program in gzip bzip2 xz zstd; do
          ! command -v "$program" > /dev/null || { printf '\3'; tar -C "$bundle" -cf - . | "$program" -c; } > "$seed-archive-$program"
        done
      done
      # Links and sparse files in each format, plain and as Zstandard, which is fourth.
      links=$(mktemp -d)
      (
        cd "$links"; mkdir -p usr/real; echo x > usr/real/x; ln -s usr/real linked; ln -s linked again; ln -s loop loop; ln usr/real/x hard
        for part in 1 2 3; do echo "$part" >> sparse; truncate -s "$((part * 40))k" sparse; done
      )
      for format in gnu posix-0.0 posix-0.1 posix-1.0; do
        version=${format#posix-}; [ "$version" != gnu ] || version=
        { printf '\0'; tar -C "$links" -S --format="${format%-*}" ${version:+--sparse-version="$version"} -cf - .; } > "corpus/images/links-$format"
        ! command -v zstd > /dev/null || { printf '\4'; tail -c +2 "corpus/images/links-$format" | zstd -q -c; } > "corpus/images/links-$format-zstd"
      done
      rm -r "$links"
      find corpus/images -type f -size +64k -delete ;;
    *)
      find "$bundles" -path '*/manifests/*' -type f -size -64k | awk 'NR <= 300' | while read -r file; do
        cp "$file" "corpus/$target/$(sha256sum "$file" | cut -c1-16)"
      done ;;
  esac
fi
quiet=
case $target in clone | commands) quiet=-close_fd_mask=3 ;; esac
exec "$CARGO_TARGET_DIR/$(rustc -vV | sed -n 's/^host: //p')/release/$target" -max_total_time="$seconds" -rss_limit_mb="$([ "$target" = images ] && echo 256 || echo 512)" \
  -timeout="${TIMEOUT:-5}" -print_final_stats=1 -max_len=65536 -artifact_prefix="artifacts/$target/" $quiet "corpus/$target" "seeds/$target"
