#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs what building and testing need on Debian 12: packages with apt (as
# root, and only if some are missing), and a Python environment in .venv.
# usage: setup.sh [--all]     --all: also clang, clang-tidy and libFuzzer
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  cmake ninja-build ccache pkg-config binutils   # to build
  llvm-19-dev                                    # NVPTX, host code, JIT
  llvm-19-tools clang-format-19                  # lit, FileCheck; format test
  libjansson-dev libxxhash-dev                   # reports; tables, the cache
  libprotobuf-c-dev protobuf-c-compiler          # ONNX files
  libsqlite3-dev                                 # what was measured
  g++ libzstd-dev zlib1g-dev                     # archives that LLVM's need
  libcmocka-dev libmpfr-dev                      # unit tests
  valgrind                                       # counts instructions
  python3 python3-venv                           # lit, comparison with numpy
)
if [ "${1:-}" = --all ]; then
  packages+=(clang-19 clang-tidy-19 libclang-rt-19-dev)
fi

installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null)" = installed ]
}

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

# A copy of the requirements in the environment says what it was made from.
if ! cmp -s test/requirements.txt .venv/requirements.txt; then
  echo "making .venv"
  rm -rf .venv
  python3 -m venv .venv
  .venv/bin/pip install -q -r test/requirements.txt
  cp test/requirements.txt .venv/requirements.txt
fi
