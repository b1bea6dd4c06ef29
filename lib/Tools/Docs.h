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

// A cell of a table: as words, or between backquotes.
void hd_docs_cell(hd_buffer_t *out, const char *text);
void hd_docs_code_cell(hd_buffer_t *out, const char *text);

void hd_docs_passes(const hd_pass_list_t *passes, hd_buffer_t *out);
void hd_docs_intrinsics(hd_buffer_t *out);
void hd_docs_diagnostics(hd_buffer_t *out);
// What a program's own names cannot be.
void hd_docs_keywords(hd_buffer_t *out);
// The tasks of the operator library, file by file, with what stands above them.
void hd_docs_tasks(hd_context_t *context, hd_buffer_t *out);
// A line for each operator of ONNX; scripts/operators.py adds how many of its
// tests pass.
void hd_docs_operators(hd_arena_t *arena, hd_buffer_t *out);
// The options as a table of Markdown.
void hd_docs_options(const hd_command_t *command, hd_buffer_t *out);

#endif
