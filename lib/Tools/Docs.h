// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Documents made from the tables (the hidden option --generate-docs; see
// scripts/docs.sh).
#ifndef HIDET_TOOLS_DOCS_H
#define HIDET_TOOLS_DOCS_H

#include "Tools/Options.h"
#include "Tools/Passes.h"

// Says that a document is made; it stands below the title.
extern const char hd_docs_notice[];

void hd_docs_passes(const hd_pass_list_t *passes, hd_buffer_t *out);
void hd_docs_intrinsics(hd_buffer_t *out);
void hd_docs_diagnostics(hd_buffer_t *out);
// A line for each operator of ONNX; scripts/operators.py adds how many of its
// tests pass.
void hd_docs_operators(hd_arena_t *arena, hd_buffer_t *out);
// The options as a table of Markdown.
void hd_docs_options(const hd_command_t *command, hd_buffer_t *out);

#endif
