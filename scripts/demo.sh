#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# One command: installs what is missing, builds, runs the example kernels on the
# simulator, and on the GPU if there is one, against numpy; then a model, a
# network that recognises handwritten digits.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
scripts/build.sh hidet-opt hidet-run
.venv/bin/python3 examples/run.py --tools=build/bin --option=--bench
echo
.venv/bin/python3 examples/digits/run.py --tools=build/bin
