# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The libraries beside LLVM. Each is one Debian package, listed in
# scripts/setup.sh.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
find_program(HIDET_PROTOC_C NAMES protoc-c REQUIRED
  DOC "Compiler of protocol buffers to C (protobuf-c-compiler)")

# The static preset's library needs glibc and libgcc_s alone.
if(HIDET_STATIC_LLVM)
  set(hidet_jansson -l:libjansson.a)
  set(hidet_protobuf_c -l:libprotobuf-c.a)
  set(hidet_sqlite -l:libsqlite3.a)
else()
  set(hidet_jansson PkgConfig::JANSSON)
  set(hidet_protobuf_c PkgConfig::PROTOBUF_C)
  set(hidet_sqlite PkgConfig::SQLITE)
endif()

add_library(hidet_dependencies INTERFACE)
target_link_libraries(hidet_dependencies INTERFACE
  Threads::Threads m ${CMAKE_DL_LIBS} ${hidet_jansson}
  ${hidet_protobuf_c} ${hidet_sqlite})
