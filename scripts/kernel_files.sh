#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Packs random kernels for a machine that has a GPU and no unit tests; there,
# bench/device.sh devices compares what the GPU makes of them with the simulator.
# usage: kernel_files.sh ARCHIVE.tar.gz [KERNELS] [SEED] [BUILD]
set -euo pipefail
archive=$(realpath "$1")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
HIDET_KERNEL_FILES=$folder HIDET_TEST_KERNELS=${2:-1000} \
  HIDET_TEST_SEED=${3:-1000000} \
  "${4:-build}/unittests/unittest_Tools_KernelFiles" >/dev/null
tar -C "$folder" -czf "$archive" .
