// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operators of ONNX as a table of Markdown: a line for each, in which the
// rows of Operators.def for its versions stand together.
#include "Graph/Expand/Lowering.h"
#include "Tools/Docs.h"

#include <stdlib.h>
#include <string.h>

typedef const hd_operator_row_t *row_t;

// ONNX's own domain first; then by name, then by version.
static int compare(const void *left, const void *right) {
  row_t a = *(const row_t *)left, b = *(const row_t *)right;
  int own = (strcmp(b->domain, "onnx") == 0) - (strcmp(a->domain, "onnx") == 0);
  int domain = own ? own : strcmp(a->domain, b->domain);
  int op = domain ? domain : strcmp(a->op, b->op);
  return op ? op : a->since - b->since;
}

static void since(row_t row, hd_buffer_t *out) {
  hd_buffer_printf(out, "%d", row->since);
}

static void inputs(row_t row, hd_buffer_t *out) {
  hd_buffer_printf(out, "%d", row->min_inputs);
  if (row->max_inputs < 0)
    hd_buffer_puts(out, " or more");
  else if (row->max_inputs != row->min_inputs)
    hd_buffer_printf(out, " to %d", row->max_inputs);
}

static void task(row_t row, hd_buffer_t *out) {
  if (row->argument[0])
    hd_buffer_printf(out, "`%s`", row->argument);
  else
    hd_buffer_puts(out, "-");
}

static bool same_inputs(row_t a, row_t b) {
  return a->min_inputs == b->min_inputs && a->max_inputs == b->max_inputs;
}

static bool same_task(row_t a, row_t b) {
  return strcmp(a->argument, b->argument) == 0;
}

// One version's or, where they differ, each one's.
static void column(const row_t *rows, size_t num_rows, hd_buffer_t *out,
                   bool (*same)(row_t, row_t),
                   void (*print)(row_t, hd_buffer_t *)) {
  bool all = same != NULL;
  for (size_t i = 1; i < num_rows; i++)
    all = all && same(rows[0], rows[i]);
  for (size_t i = 0; i < (all ? 1 : num_rows); i++) {
    if (i)
      hd_buffer_puts(out, ", ");
    print(rows[i], out);
  }
}

static void line(const row_t *rows, size_t num_rows, hd_buffer_t *out) {
  hd_buffer_printf(out, "| `%s.%s` | ", rows[0]->domain, rows[0]->op);
  column(rows, num_rows, out, NULL, since);
  hd_buffer_puts(out, " | ");
  column(rows, num_rows, out, same_inputs, inputs);
  hd_buffer_puts(out, " | ");
  column(rows, num_rows, out, same_task, task);
  hd_buffer_puts(out, " |\n");
}

void hd_docs_operators(hd_arena_t *arena, hd_buffer_t *out) {
  hd_buffer_printf(out, "# Operators\n\n%s", hd_docs_notice);
  hd_buffer_puts(
      out,
      "What a node of an ONNX model may be. A version is the first of the "
      "operator set that a row of `lib/Graph/ONNX/Operators.def` is for; it "
      "holds until the next. Older sets than the first are not supported. "
      "Where versions differ in what follows, each one's stands in its place. "
      "An input beyond the least number may be left out. The task is one of "
      "`lib/Graph/operators` (of a window, its kind; of an operator between "
      "bytes, that of ONNX on what they are worth); where none is named, the "
      "function of `lib/Graph/Expand/Lower` chooses, or takes several.\n\n"
      "| operator | since | inputs | task |\n|---|---|---|---|\n");
  size_t num_rows = 0;
  while (hd_operator_row(num_rows))
    num_rows++;
  row_t *rows = HD_ARENA_ARRAY(arena, row_t, num_rows);
  for (size_t i = 0; i < num_rows; i++)
    rows[i] = hd_operator_row(i);
  qsort(rows, num_rows, sizeof *rows, compare);
  for (size_t first = 0, end; first < num_rows; first = end) {
    for (end = first + 1; end < num_rows; end++)
      if (strcmp(rows[end]->domain, rows[first]->domain) != 0 ||
          strcmp(rows[end]->op, rows[first]->op) != 0)
        break;
    line(rows + first, end - first, out);
  }
}
