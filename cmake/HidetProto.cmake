# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# hidet_proto(<target> <file>.proto)
#
# Compiles protobuf-c's code for a file into <target>, whose sources include
# <file>.pb-c.h.

function(hidet_proto target file)
  cmake_path(GET file STEM name)
  cmake_path(GET file PARENT_PATH folder)
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/proto")
  set(outputs "${generated}/${name}.pb-c.c" "${generated}/${name}.pb-c.h")
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${generated}"
    COMMAND "${HIDET_PROTOC_C}" "--c_out=${generated}"
            "--proto_path=${folder}" "${file}"
    DEPENDS "${file}"
    COMMENT "Generating ${name}.pb-c.c"
    VERBATIM)
  target_sources(${target} PRIVATE ${outputs})
  # It is not ours to mend.
  set_source_files_properties("${generated}/${name}.pb-c.c" PROPERTIES
    COMPILE_OPTIONS -w)
  target_include_directories(${target} SYSTEM PRIVATE "${generated}")
endfunction()
