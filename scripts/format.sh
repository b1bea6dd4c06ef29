#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Formats the C sources with clang-format 19, or says which differ (--check).
set -euo pipefail
cd "$(dirname "$0")/.."

format=${CLANG_FORMAT:-clang-format-19}
if ! command -v "$format" > /dev/null; then
  echo "$format is not installed"
  exit 77
fi

mapfile -t files < <(find lib include tools unittests fuzz test bench examples \
  \( -name '*.c' -o -name '*.h' \) 2> /dev/null | sort)
if [ "${1:-}" = --check ]; then
  "$format" --dry-run --Werror "${files[@]}" ||
    { echo "run scripts/format.sh"; exit 1; }
else
  "$format" -i "${files[@]}"
fi
