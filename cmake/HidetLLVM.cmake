# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds LLVM 19 and makes `hidet_llvm`, which lib/CodeGen alone uses.
#
# No version is asked of find_package: LLVM's version file accepts only the
# exact minor version, so "19" is refused by 19.1.

find_package(LLVM REQUIRED CONFIG HINTS /usr/lib/llvm-19)
if(NOT LLVM_VERSION_MAJOR EQUAL 19)
  message(FATAL_ERROR "LLVM 19 is needed; found ${LLVM_VERSION} in ${LLVM_DIR}")
endif()
message(STATUS "Found LLVM ${LLVM_VERSION}: ${LLVM_DIR}")

add_library(hidet_llvm INTERFACE)
target_include_directories(hidet_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})

if(HIDET_STATIC_LLVM)
  # NVPTX makes the kernels; the native target, the JIT and coroutines are the
  # simulator's.
  llvm_map_components_to_libnames(libraries
    core analysis target passes coroutines orcjit native NVPTX
    bitreader bitwriter irreader)
  # Its own dependencies go in too, so that the library needs glibc alone, and
  # gcc's unwinder (libgcc_s), which is with it everywhere and which, linked in,
  # would ask for a newer one. So would arc4random.
  # (Nothing here uses Z3, which LLVMSupport names as well.)
  find_library(HIDET_ZLIB libz.a REQUIRED DOC "Archive of zlib1g-dev")
  find_library(HIDET_ZSTD libzstd.a REQUIRED DOC "Archive of libzstd-dev")
  set_property(TARGET LLVMSupport PROPERTY INTERFACE_LINK_LIBRARIES
    LLVMDemangle "${HIDET_ZLIB}" "${HIDET_ZSTD}" rt ${CMAKE_DL_LIBS} m)
  target_link_libraries(hidet_llvm INTERFACE
    ${libraries} -l:libstdc++.a -Wl,--undefined=hd_random_word
    -Wl,--defsym=arc4random=hd_random_word)
else()
  # Of the C++ library, which LLVM brings, the handler for memory is ours to set.
  target_link_libraries(hidet_llvm INTERFACE LLVM -l:libstdc++.so.6)
endif()
