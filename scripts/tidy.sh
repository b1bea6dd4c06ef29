#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs clang-tidy 19 over the sources, or over those named.
# usage: tidy.sh [file...]     (after scripts/build.sh)
set -euo pipefail
cd "$(dirname "$0")/.."

tidy=${CLANG_TIDY:-clang-tidy-19}
if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(find lib tools fuzz unittests -name '*.c' | sort)
fi
# clang does not know every warning that gcc does.
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" "$tidy" -p build --quiet \
    --extra-arg=-Wno-unknown-warning-option
