#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Writes the documents that come from the tables, or compares them (--check).
# usage: docs.sh [--check] [folder of the built tools]
set -euo pipefail
cd "$(dirname "$0")/.."

check=false
if [ "${1:-}" = --check ]; then
  check=true
  shift
fi
tools=${1:-build/bin}

# document, tool, what the tool's hidden option --generate-docs is asked for
documents="
docs/PASSES.md        hidet-opt  passes
docs/INTRINSICS.md    hidet-opt  intrinsics
docs/DIAGNOSTICS.md   hidet-opt  diagnostics
docs/OPERATORS.md     hidet-opt  operators
docs/KEYWORDS.md      hidet-opt  keywords
docs/TASKS.md         hidet-opt  tasks
docs/man/hidet-opt.1  hidet-opt  man
docs/man/hidet-run.1  hidet-run  man
"

made=$(mktemp)
joined=$(mktemp)
trap 'rm -f "$made" "$joined"' EXIT
status=0
while read -r document tool what; do
  [ -n "$document" ] || continue
  "$tools/$tool" "--generate-docs=$what" > "$made"
  if [ "$what" = operators ]; then
    python3 scripts/operators.py test/Models/onnx_results.txt < "$made" \
      > "$joined"
    cp "$joined" "$made"
  fi
  if ! $check; then
    mkdir -p "$(dirname "$document")"
    cp "$made" "$document"
  elif ! diff -u "$document" "$made"; then
    echo "$document is not what $tool makes: run scripts/docs.sh"
    status=1
  fi
done <<< "$documents"
exit $status
