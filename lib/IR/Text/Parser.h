// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text to IR. The parser resolves names and types while it reads, recovers at
// statements and items, and so reports several errors a run.
#ifndef HIDET_IR_TEXT_PARSER_H
#define HIDET_IR_TEXT_PARSER_H

#include "IR/Module.h"

// Returns NULL after errors (reported to the context). name is for diagnostics.
// The text need not outlive the call. The caller owns the module.
hd_module_t *hd_module_parse(hd_context_t *context, const char *name,
                             const char *text, size_t size,
                             uint32_t first_line);

// Adds the items of a text to a module; they may use those that are there.
// After errors the module holds a part of them and is to be destroyed.
bool hd_module_parse_into(hd_module_t *module, const char *name,
                          const char *text, size_t size, uint32_t first_line);

// The same of a text that comes with the compiler: functions with compile-time
// parameters are read when somebody asks for an instance, not before, to say
// what is wrong in them.
bool hd_module_parse_library(hd_module_t *module, const char *name,
                             const char *text, size_t size,
                             uint32_t first_line);

// The function that a text names: "scale", or with values, "scale[B = 64]",
// which are those of a function with compile-time parameters; the instance is
// made where there is none yet. source: what the text is called in messages.
// Verified, but for its mappings. NULL after an error (reported).
const hd_func_t *hd_module_ask(hd_module_t *module, const char *source,
                               const char *text);

// The task that a node with so many operands calls: the one itself, unless it
// has a list of operands. Where the list cannot have so many it is one that
// differs, which the verifier of the node reports. NULL after an error
// (reported).
const hd_task_t *hd_task_for(const hd_task_t *task, uint32_t num_inputs);

// What a rewrite with lists of operands is for so many of each list, none or up
// to HD_MAX_LISTED. NULL after an error (reported).
const hd_rewrite_t *hd_rewrite_for(const hd_rewrite_t *rewrite,
                                   const uint32_t *counts);
#endif
