#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One command: installs what is missing, builds, runs every test. The last line
# is 'N passed, N failed, N skipped'.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
scripts/build.sh
status=0
ctest --test-dir build --output-on-failure --parallel "$(nproc)" \
  --output-junit "$PWD/build/test/ctest.xml" \
  --test-output-size-passed 1048576 || status=$?
python3 scripts/count_tests.py build/test
exit $status
