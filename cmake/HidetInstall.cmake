# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs the library, the headers, the tools, the CMake package `Hidet`
# (find_package(Hidet), Hidet::hidet), and hidet.pc for pkg-config.

include(CMakePackageConfigHelpers)

install(TARGETS hidet EXPORT HidetTargets)
install(TARGETS hidet-opt hidet-run)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/hidet"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(FILES "${PROJECT_BINARY_DIR}/include/hidet/Version.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/hidet")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/man/"
        DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" OPTIONAL
        FILES_MATCHING PATTERN "*.1")

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Hidet")
install(EXPORT HidetTargets NAMESPACE Hidet:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/HidetConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/HidetConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/HidetConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/HidetConfig.cmake"
              "${PROJECT_BINARY_DIR}/HidetConfigVersion.cmake"
        DESTINATION "${package_dir}")

# By paths of its own place, so that it works wherever it is copied.
set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH HIDET_PC_PREFIX "/${pc_dir}" "/")
string(REGEX REPLACE "/+$" "" HIDET_PC_PREFIX "${HIDET_PC_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/hidet.pc.in"
  "${PROJECT_BINARY_DIR}/hidet.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/hidet.pc" DESTINATION "${pc_dir}")

# What `pip install .` takes of it: a wheel has no links.
install(PROGRAMS "$<TARGET_FILE:hidet>" DESTINATION hidet/lib
        RENAME libhidet.so.0 COMPONENT python EXCLUDE_FROM_ALL)
