#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds what is shipped (the static preset, in build-static/) and packs what it
# installs, stripped, as the folder hidet/ of an archive. On any x86-64 machine
# with glibc of this one's version or newer and libgcc_s, and in any place:
#   tar xzf hidet.tar.gz; hidet/bin/hidet-run model.onnx
# usage: package.sh [--bench] [ARCHIVE.tar.gz]       (build-static/hidet.tar.gz)
#   --bench: with bench_compile too, which holds an LLVM of its own
set -euo pipefail
targets=(hidet hidet-opt hidet-run)
if [ "${1:-}" = --bench ]; then
  targets+=(bench_compile)
  shift
fi
archive=$(realpath -m "${1:-$(dirname "$0")/../build-static/hidet.tar.gz}")
cd "$(dirname "$0")/.."

[ -f build-static/build.ninja ] ||
  cmake --preset static -DCMAKE_C_COMPILER_LAUNCHER=ccache \
    -DHIDET_PYTHON="$PWD/.venv/bin/python3"
cmake --build build-static --target "${targets[@]}"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install build-static --strip --prefix "$folder/hidet" > "$folder/log"
if [[ " ${targets[*]} " = *" bench_compile "* ]]; then
  mkdir "$folder/hidet/bench"
  strip -o "$folder/hidet/bench/bench_compile" build-static/bench/bench_compile
fi
tar -C "$folder" --owner=0 --group=0 --sort=name -cf - hidet |
  gzip -9n > "$archive"
echo "$archive: $(stat -c %s "$archive") bytes"
