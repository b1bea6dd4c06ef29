# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs the build into a fresh prefix, moves that, and builds and runs the
# program in embed/ against it: the package works wherever it is copied.

set(work "${BINARY_DIR}/test/house")
file(REMOVE_RECURSE "${work}/installed" "${work}/prefix" "${work}/embed")

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run("${CMAKE_COMMAND}" --install "${BINARY_DIR}" --prefix "${work}/installed")
file(RENAME "${work}/installed" "${work}/prefix")

set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()
set(examples "${CMAKE_CURRENT_LIST_DIR}/../../examples")
set(model "${examples}/digits/model.onnx")
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/embed" -B "${work}/embed"
    -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${work}/prefix"
    "-DCMAKE_C_COMPILER=${C_COMPILER}" "-DCMAKE_C_FLAGS=${flags}"
    "-DCMAKE_CXX_FLAGS=${flags}" "-DEXAMPLES=${examples}")
run("${CMAKE_COMMAND}" --build "${work}/embed")
run("${work}/embed/embed" "${model}")
run("${work}/embed/embed_cxx")
execute_process(COMMAND "${work}/embed/example" "${model}" sim
  OUTPUT_VARIABLE out COMMAND_ERROR_IS_FATAL ANY)
if(NOT out MATCHES "input image: f32.*output [a-z]*: f32\\[1, 10\\], sum ")
  message(FATAL_ERROR "examples/embed.c printed\n${out}")
endif()
run("${work}/prefix/bin/hidet-opt" --version)

# As its head says.
find_program(pkg_config pkg-config)
if(pkg_config AND NOT SANITIZE)
  run("${CMAKE_COMMAND}" -E env
      "PKG_CONFIG_PATH=${work}/prefix/lib/pkgconfig" CC=${C_COMPILER}
      sh -euc "$CC -std=c17 $0 $(pkg-config --cflags --libs hidet) -o $1"
      "${examples}/embed.c" "${work}/embed/by_pkg_config")
  run("${work}/embed/by_pkg_config" "${model}" sim)
endif()
