#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Measures every function of the math library on every f32, f16 and bf16 and on
# drawn f64 and pairs (about two minutes of one core for each), and writes the
# table of docs/MATH.md.
# usage: measure_math.sh [BUILD]      (a release build; default: build)
set -euo pipefail
cd "$(dirname "$0")/.."
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
HIDET_MATH_STEP=1 HIDET_MATH_TABLE=$rows \
  "${1:-build}/unittests/unittest_Math_Math"
sed -i '/^| `/d' docs/MATH.md
sed -i "/^|---|---|---|---|$/r $rows" docs/MATH.md
