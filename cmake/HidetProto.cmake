# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# hidet_proto(<target> <file>.proto)
#
# Compiles protobuf-c's code for a file under lib/ into <target>; the header is
# <file>.pb-c.h under the same folder's name.

function(hidet_proto target file)
  cmake_path(GET file STEM name)
  cmake_path(GET file PARENT_PATH folder)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/lib"
             OUTPUT_VARIABLE place)
  set(generated "${PROJECT_BINARY_DIR}/include/${place}")
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
endfunction()
