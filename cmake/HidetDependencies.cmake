# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The libraries beside LLVM. Each is one Debian package, listed in
# scripts/setup.sh.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)

# The static preset's library needs glibc alone.
if(HIDET_STATIC_LLVM)
  set(hidet_jansson -l:libjansson.a)
else()
  set(hidet_jansson PkgConfig::JANSSON)
endif()

add_library(hidet_dependencies INTERFACE)
target_link_libraries(hidet_dependencies INTERFACE
  Threads::Threads m ${CMAKE_DL_LIBS} ${hidet_jansson})
