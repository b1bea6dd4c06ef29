# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The libraries beside LLVM. Each is one Debian package, listed in
# scripts/setup.sh.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

add_library(hidet_dependencies INTERFACE)
target_link_libraries(hidet_dependencies INTERFACE
  Threads::Threads m ${CMAKE_DL_LIBS})
