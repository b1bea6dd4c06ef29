// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What decides the code of a kernel, as the key under which a cache keeps it.
#ifndef HIDET_RUNTIME_CODEKEY_H
#define HIDET_RUNTIME_CODEKEY_H

#include "IR/Module.h"
#include "Runtime/Cache.h"

// The kernel's text with that of all that it calls, which build of the compiler
// this is, LLVM's version, and the salt: target, devices, options. places: also
// where all of it stands in its sources, for code that names places. Zero,
// under which nothing is kept, where the build is not known. module: for
// scratch.
hd_cache_key_t hd_code_key(hd_module_t *module, const hd_func_t *kernel,
                           const char *salt, bool places);

// That text, with all places.
void hd_code_describe(hd_arena_t *arena, const hd_func_t *kernel,
                      hd_buffer_t *text);

#endif
