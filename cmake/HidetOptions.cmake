# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What a build can be asked for, and the compiler flags that follow from it.

option(HIDET_STATIC_LLVM "Put LLVM into libhidet instead of linking libLLVM-19"
       OFF)
option(HIDET_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(HIDET_FUZZ "Build fuzz/ with libFuzzer (needs clang)" OFF)
option(HIDET_WERROR "Make compiler warnings errors" ON)
set(HIDET_SANITIZE "" CACHE STRING
    "Sanitizers to build with, as in -fsanitize= (address,undefined or thread)")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Only Release drops the assertions: the tests run with them.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# What every source of this project is compiled with. Messages are cut at their
# buffer's end on purpose, and gcc guesses wrongly about arrays when it optimizes.
add_library(hidet_flags INTERFACE)
target_compile_definitions(hidet_flags INTERFACE _GNU_SOURCE)
target_compile_options(hidet_flags INTERFACE
  -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wcast-qual
  "$<$<C_COMPILER_ID:GNU>:-Wno-format-truncation;-Wno-maybe-uninitialized;-Wno-array-bounds>"
  $<$<BOOL:${HIDET_WERROR}>:-Werror>)
target_include_directories(hidet_flags INTERFACE
  "${PROJECT_SOURCE_DIR}/lib" "${PROJECT_SOURCE_DIR}/include"
  "${PROJECT_BINARY_DIR}/include")

if(HIDET_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HIDET_FUZZ needs clang: -DCMAKE_C_COMPILER=clang-19")
  endif()
  if(NOT HIDET_SANITIZE)
    set(HIDET_SANITIZE "address,undefined")
  endif()
  target_compile_options(hidet_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(HIDET_SANITIZE)
  target_compile_options(hidet_flags INTERFACE
    -fsanitize=${HIDET_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer
    # What is put in confuses gcc's analysis of flow: its warnings stay warnings.
    -Wno-error=array-bounds
    $<$<C_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized>)
  target_link_options(hidet_flags INTERFACE -fsanitize=${HIDET_SANITIZE})
  if(HIDET_SANITIZE MATCHES "thread")
    set(HIDET_TEST_ENVIRONMENT
      "TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/tsan.supp")
  endif()
  # ThreadSanitizer does not see fences by themselves; what is synchronized by
  # them is in the simulator, where the atomics beside them are seen.
  if(HIDET_SANITIZE MATCHES "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    target_compile_options(hidet_flags INTERFACE -Wno-tsan)
  endif()
endif()
