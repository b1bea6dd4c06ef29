// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tools do with rewrites of graphs: list, leave out, prove, count.
#ifndef HIDET_TOOLS_REWRITES_H
#define HIDET_TOOLS_REWRITES_H

#include "Graph/Rewrite/Rewrite.h"
#include "Tools/Options.h"

// The rules of the library and of a module (may be NULL): name, operators
// before and after.
bool hd_tools_list_rewrites(hd_context_t *context, hd_arena_t *arena,
                            const hd_module_t *module, hd_buffer_t *out);
// The options of the context's rewriting, from the uses of `disable`; they live
// in the arena. False and E1003 where a name is no rule's (module: whose rules
// count, too; may be NULL).
bool hd_tools_rewrite_options(hd_context_t *context, hd_arena_t *arena,
                              const hd_options_t *options, int disable,
                              const hd_module_t *module);
// Proves every rule on `wanted` instances and says how many were valid. False
// where one is wrong; the others are proven all the same.
bool hd_tools_prove_rewrites(hd_context_t *context, hd_arena_t *arena,
                             const hd_module_t *module, unsigned wanted,
                             hd_buffer_t *out);

#endif
