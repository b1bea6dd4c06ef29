# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds what the tests run with: a Python (scripts/setup.sh makes one with numpy
# in .venv), lit, and LLVM's FileCheck and not.

find_program(HIDET_PYTHON NAMES python3
  HINTS "${PROJECT_SOURCE_DIR}/.venv/bin"
  DOC "Python for the tests; those that compare with numpy need it there")
find_file(HIDET_LIT NAMES lit.py
  HINTS "${LLVM_TOOLS_BINARY_DIR}/../build/utils/lit"
  DOC "LLVM's lit.py" NO_CMAKE_FIND_ROOT_PATH)
