#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Packs the wheel that other machines can use: any Python 3 on x86-64 Linux with
# glibc of the version that its name says, or newer. (`pip install .` builds the
# same for this machine.) It fails where the library needs a newer glibc.
# usage: [GLIBC=2.34] wheel.sh [FOLDER]     FOLDER: where to (build-wheel)
set -euo pipefail
folder=$(realpath -m "${1:-$(dirname "$0")/../build-wheel}")
glibc=${GLIBC:-2.34}
cd "$(dirname "$0")/.."

export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
_PYTHON_HOST_PLATFORM=manylinux_${glibc/./_}_$(uname -m) \
  .venv/bin/python3 -m pip wheel -q --no-deps -w "$folder" .

library=build-wheel/lib/libhidet.so.0
newest=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
if [ "$(printf '%s\n' "${newest#GLIBC_}" "$glibc" | sort -V | tail -1)" != "$glibc" ]; then
  echo "wheel.sh: the library needs $newest, which glibc $glibc has not:" >&2
  objdump -T "$library" | grep "$newest" >&2
  exit 1
fi
for wheel in "$folder"/hidet-*.whl; do
  echo "$wheel: $(stat -c %s "$wheel") bytes"
done
