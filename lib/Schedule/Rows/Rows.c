// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One kernel for several definitions over rows (Rows.h), by the best template
// (RowsTemplate.c), or by the rule, where no GPU is meant or no template takes
// them:
//
//   m[i]    = max(p: 768) x[i, p]
//   e[i, p] = exp(x[i, p] - m[i])
//   s[i]    = sum(q: 768) e[i, q]
//   y[i, p] = e[i, p] / s[i]
//
// becomes, 64 threads taking a row and a thread three vectors of it,
//
//   register x_kept: f32[768] layout(local(repeat(3) * spatial(64) *
//   repeat(4))) register acc: f32 = -inf for turn in 0..3 {
//     for chunk in spatial(64) on thread {
//       let at = (turn * 64 + chunk) * 4
//       for v in 0..4 unroll {
//         x_kept[at + v] = x[block, at + v]
//         acc = max(acc, ...)
//       }
//     }
//   }
//   combine acc over the threads
//   ... exp(x_kept[...] - m) is kept and summed, combined, y stored
//
// Each element of an input is read once where it is kept, each element of an
// output stored once; nothing that is stored is read. What goes from one thread
// to others are the results of reductions alone.
#include "Schedule/Rows/Rows.h"

#include "Schedule/Template/Machine.h"

#include "Schedule/Rules/Contract.h"
#include "Schedule/Terms/Merge.h"
#include "Schedule/Terms/Prepare.h"

enum { MAX_RUN = 32, WARP = 32 }; // Definitions of a kernel.

// --- The kernel ---

// Rows past the end are the last one again, and not stored.
static int64_t place_row(hd_row_maker_t *m) {
  hd_builder_t *b = &m->draft.b;
  const hd_rows_t *rows = m->rows;
  int64_t count = rows->row.points;
  int64_t blocks = (count + rows->rows - 1) / rows->rows;
  const hd_expr_t *row = m->slot;
  if (blocks > 1)
    row = hd_b_op(b, HD_EXPR_ADD,
                  hd_b_op_int(b, HD_EXPR_MUL,
                              hd_expr_builtin(b->arena, HD_BUILTIN_BLOCK),
                              rows->rows),
                  row);
  if (count % rows->rows) {
    row = hd_b_let(b, "number", row);
    m->exists = hd_b_op_int(b, HD_EXPR_LT, row, count);
    row = hd_b_op_int(b, HD_EXPR_MIN, row, count - 1);
  }
  row = hd_b_let(b, "row", row);
  hd_draft_place(&m->draft, row, rows->row.indices, rows->row.count);
  return blocks;
}

// Threads take neighbours where operands have to keep their order.
static const hd_stmt_t *make_loop(const hd_row_maker_t *m) {
  const hd_rows_t *rows = m->rows;
  hd_arena_t *arena = rows->arena;
  int64_t own = rows->turns * rows->lanes;
  const hd_mapping_t *threads =
      hd_mapping_spatial(arena, &rows->threads, NULL, 1);
  const hd_mapping_t *last =
      hd_mapping_repeat(arena, rows->ordered ? &own : &rows->lanes, NULL, 1);
  const hd_mapping_t *mapping = hd_mapping_compose(arena, threads, last);
  if (!rows->ordered)
    mapping = hd_mapping_compose(
        arena, hd_mapping_repeat(arena, &rows->turns, NULL, 1), mapping);
  hd_stmt_t *loop = hd_stmt_make(arena, HD_STMT_MAPFOR, m->draft.b.loc);
  loop->u.mapfor.mapping = mapping;
  loop->u.mapfor.worker = m->worker;
  return loop;
}

static bool make_rows(hd_rules_t *rules, hd_rows_t *rows) {
  int64_t lanes = rows->threads < WARP ? rows->threads : WARP;
  hd_row_maker_t m = {.rows = rows, .slots = rows->rows};
  if (rows->along) {
    m.across[HD_ACROSS_LANE] = (uint16_t)lanes;
    m.across[HD_ACROSS_WARP] = (uint16_t)(rows->threads / lanes);
  } else {
    m.across[HD_ACROSS_THREAD] = (uint16_t)rows->threads;
  }
  hd_draft_begin(&m.draft, rules);
  hd_rows_place_thread(&m);
  int64_t blocks = place_row(&m);
  m.loop = make_loop(&m);
  hd_rows_put(&m);
  hd_draft_finish_linear(&m.draft, "", blocks, rows->threads * rows->rows);
  return true;
}

// --- Runs ---

static bool has_tiles(hd_arena_t *arena, const hd_definition_t *d) {
  hd_contraction_t c;
  return hd_contraction_find(arena, d, &c);
}

// Past the last definition that may stand in a run from first on.
static size_t end_of_run(hd_arena_t *arena, const hd_task_t *flat,
                         size_t first) {
  size_t end = first;
  while (end < flat->definitions.size && end < first + MAX_RUN &&
         flat->definitions.data[end]->kind == HD_DEFINE &&
         !has_tiles(arena, flat->definitions.data[end]))
    end++;
  return end;
}

// Of first .. end - 1.
static bool is_run(hd_arena_t *arena, const hd_task_t *flat, size_t first,
                   size_t end, hd_rows_t *rows) {
  return hd_rows_find(arena, flat, first, end, rows) && hd_rows_order(rows) &&
         (end > first + 1 || hd_rows_pay(rows));
}

// What is in registers now is no tensor.
static void forget_inner(hd_task_t *flat, const hd_rows_t *rows) {
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_row_step_t *step = rows->steps.data[i];
    for (uint32_t k = 0; k < step->num_values; k++)
      if (!(step->stored >> k & 1))
        hd_flat_forget_local(flat, step->values[k]);
  }
}

size_t hd_rule_rows(hd_rules_t *rules, size_t first) {
  hd_rows_t rows;
  hd_arena_t *arena = &rules->module->arena;
  const hd_schedule_options_t *options = rules->module->context->schedules;
  int count = options && !options->simulated ? options->machine.count : 0;
  for (size_t end = end_of_run(arena, rules->flat, first); end > first; end--)
    if (is_run(arena, rules->flat, first, end, &rows) && !rules->failed) {
      bool made = hd_rows_by_template(rules, &rows);
      if (!made && !rules->failed && hd_rows_plan(&rows, count))
        made = make_rows(rules, &rows);
      if (!made)
        continue;
      forget_inner(rules->flat, &rows);
      return end - first;
    }
  return 0;
}

bool hd_rows_fit(hd_arena_t *arena, const hd_task_t *flat) {
  hd_task_t copy = *flat;
  hd_rows_t rows;
  copy.definitions.data = NULL; // What follows writes to the lists.
  copy.definitions.size = copy.definitions.capacity = 0;
  copy.locals.data = NULL;
  copy.locals.size = copy.locals.capacity = 0;
  for (size_t i = 0; i < flat->definitions.size; i++)
    hd_vec_push(arena, &copy.definitions, flat->definitions.data[i]);
  for (size_t i = 0; i < flat->locals.size; i++)
    hd_vec_push(arena, &copy.locals, flat->locals.data[i]);
  hd_task_hoist(arena, &copy);
  hd_task_inline(arena, &copy);
  hd_task_widen(arena, &copy);
  size_t count = copy.definitions.size;
  return end_of_run(arena, &copy, 0) == count &&
         is_run(arena, &copy, 0, count, &rows) && hd_rows_plan(&rows, 0);
}

bool hd_rows_first(hd_arena_t *arena, const hd_task_t *flat, hd_rows_t *rows) {
  for (size_t i = 0; i < flat->definitions.size; i++)
    for (size_t end = end_of_run(arena, flat, i); end > i; end--)
      if (is_run(arena, flat, i, end, rows))
        return true;
  return false;
}
