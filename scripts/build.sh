#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Configures (once) and builds into build/: everything, or the targets named.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -f build/build.ninja ] ||
  cmake -S . -B build -G Ninja -DCMAKE_C_COMPILER_LAUNCHER=ccache \
    -DHIDET_PYTHON="$PWD/.venv/bin/python3"
cmake --build build ${1:+--target "$@"}
