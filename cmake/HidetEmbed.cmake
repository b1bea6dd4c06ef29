# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# hidet_embed(<target> <prefix> <file>...)
#
# Compiles text files into <target>: an array <prefix>_<name> for each, and the
# table <prefix>_files of lib/Support/Embedded.h. A file's name in the table is
# its path under lib/.

function(hidet_embed target prefix)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${prefix}.c")
  set(list "${CMAKE_CURRENT_BINARY_DIR}/${prefix}.list")
  # The list is a file so that adding or removing one rebuilds the table.
  file(CONFIGURE OUTPUT "${list}" CONTENT "${ARGN}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DLIST=${list}" "-DPREFIX=${prefix}"
            "-DROOT=${PROJECT_SOURCE_DIR}/lib" "-DOUTPUT=${output}"
            -P "${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake"
    DEPENDS ${ARGN} "${list}" "${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake"
    COMMENT "Embedding the .hir library"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
