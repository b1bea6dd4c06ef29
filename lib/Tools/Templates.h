// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tools do with schedule templates: list, leave out.
#ifndef HIDET_TOOLS_TEMPLATES_H
#define HIDET_TOOLS_TEMPLATES_H

#include "CodeGen/CodeGen.h"
#include "Schedule/Template/Machine.h"
#include "Tools/Options.h"

// The templates of the library and of a module (may be NULL): name, kernel, how
// many values its choices have.
bool hd_tools_list_templates(hd_context_t *context, hd_arena_t *arena,
                             hd_module_t *module, hd_buffer_t *out);
// The options of the context's scheduler, from the uses of `disable`; they live
// in the arena. target: that is meant, NULL where a device will say. False and
// E1003 where a name is no template's (module: whose templates count, too).
bool hd_tools_schedule_options(hd_context_t *context, hd_arena_t *arena,
                               const hd_options_t *options, int disable,
                               hd_module_t *module, const hd_target_t *target,
                               bool explain);

#endif
