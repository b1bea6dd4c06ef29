# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Run by hidet_embed: writes OUTPUT, a C source with the files named in LIST.

cmake_minimum_required(VERSION 3.25)
file(READ "${LIST}" files)

set(arrays "")
set(rows "")
set(count 0)
foreach(file IN LISTS files)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${ROOT}" OUTPUT_VARIABLE name)
  string(MAKE_C_IDENTIFIER "${name}" symbol)
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  # The final zero makes each text a string too.
  string(APPEND arrays
    "extern const char ${PREFIX}_${symbol}[];\n"
    "const char ${PREFIX}_${symbol}[] = {${bytes}0};\n")
  string(APPEND rows
    "    {\"${name}\", ${PREFIX}_${symbol}, sizeof ${PREFIX}_${symbol} - 1},\n")
  math(EXPR count "${count} + 1")
endforeach()

file(WRITE "${OUTPUT}" "#include \"Support/Embedded.h\"\n\n${arrays}
const size_t ${PREFIX}_count = ${count};
const hd_embedded_t ${PREFIX}_files[] = {\n${rows}    {0, 0, 0},\n};\n")
