#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One command: installs what is missing, builds, runs every test; then builds
# what is shipped and runs the few tests that ask what it alone could get wrong.
# The last line is 'N passed, N failed, N skipped'.
set -euo pipefail
cd "$(dirname "$0")/.."

run() { # run BUILD [ctest's arguments]
  ctest --test-dir "$1" --output-on-failure --parallel "$(nproc)" \
    --output-junit "$PWD/$1/test/ctest.xml" \
    --test-output-size-passed 1048576 "${@:2}"
}

scripts/setup.sh
scripts/build.sh
scripts/package.sh
status=0
run build || status=$?
run build-static -R '^house/(package|symbols|embed)$' || status=$?
python3 scripts/count_tests.py build/test build-static/test
exit $status
