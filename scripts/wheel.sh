#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Packs python/hidet with the library inside (the static preset: LLVM in it) as
# a wheel for any Python 3 on x86-64 Linux with this machine's glibc or newer.
# usage: wheel.sh [FOLDER [LIBRARY]]     FOLDER: where to (build-static)
#   LIBRARY: a libhidet.so.0 that is built already
set -euo pipefail
folder=$(realpath -m "${1:-$(dirname "$0")/../build-static}")
library=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."

if [ -z "$library" ]; then
  [ -f build-static/build.ninja ] ||
    cmake --preset static -DCMAKE_C_COMPILER_LAUNCHER=ccache \
      -DHIDET_PYTHON="$PWD/.venv/bin/python3"
  cmake --build build-static --target hidet
  library=build-static/lib/libhidet.so.0
fi

sources=$(mktemp -d)
trap 'rm -rf "$sources"' EXIT
cp -r python/. "$sources"
cp README.md LICENSE "$sources"
find "$sources" -name __pycache__ -exec rm -rf {} +
mkdir -p "$sources/hidet/lib" "$folder"
strip --strip-unneeded -o "$sources/hidet/lib/libhidet.so.0" "$library"
.venv/bin/python3 -m pip wheel -q --no-deps -w "$folder" "$sources"
for wheel in "$folder"/hidet-*.whl; do
  echo "$wheel: $(stat -c %s "$wheel") bytes"
done
