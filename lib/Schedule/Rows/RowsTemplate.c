// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel over rows by a template, which says who has what of a row:
//
//   kernel warps[...](m: i32, n: i32, in x: f16[m, n], out y: f16[m, n])
//     grid(ceildiv(m, 4)) block(128)
//   {
//     for p in within(repeat(3) * spatial(32) * repeat(8), n) on lane {
//       rows y[block * 4 + warp, p] <- x[block * 4 + warp, p] across lane(32)
//     }
//   }
//
// The steps of the task take the place of the loop (RowsKernel.c), with the
// loop's mapping for who takes which elements. x stands for the largest tensor
// that is read element by element.
#include "Schedule/Access/Access.h"
#include "Schedule/Rows/Rows.h"
#include "Schedule/Template/Instance.h"
#include "Schedule/Template/Templates.h"

enum { MANY = 1 << 30 }; // Elements: more than registers are kept for.

typedef struct taker {
  hd_row_maker_t m;
  unsigned launches; // Of the kernel, one after the other.
  const hd_func_t *kernel;
  const char *why; // The kernel is none for rows; NULL: it is.
} taker_t;

static const hd_var_t *param_of(const hd_func_t *kernel, bool written) {
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if ((kernel->params[i]->direction != HD_DIR_IN) == written)
      return kernel->params[i];
  return NULL;
}

static void place_row(taker_t *taker, const hd_expr_t *number) {
  hd_row_maker_t *m = &taker->m;
  hd_builder_t *b = &m->draft.b;
  const hd_row_axes_t *axes = &m->rows->row;
  number = hd_b_let(b, "number", number);
  m->exists = hd_b_op_int(b, HD_EXPR_LT, number, axes->points);
  number = hd_b_op_int(b, HD_EXPR_MIN, number, axes->points - 1);
  m->row = hd_b_let(b, "row", number);
  hd_draft_place(&m->draft, m->row, axes->indices, axes->count);
}

// The kernel's element of x at [row, element], both of which exist.
static const hd_expr_t *on_load(void *argument, hd_builder_t *b,
                                const hd_expr_t *const *at) {
  taker_t *taker = argument;
  hd_kernel_draft_t *draft = &taker->m.draft;
  const hd_rows_t *rows = taker->m.rows;
  draft->b = *b;
  hd_draft_place(draft, at[0], rows->row.indices, rows->row.count);
  hd_draft_place(draft, at[1], rows->element.indices, rows->element.count);
  const hd_expr_t *e = hd_translate(&draft->t, rows->main->term);
  *b = draft->b;
  return e;
}

// Who has a row, from the point; false where the block has no whole number of
// rows.
static bool take_across(taker_t *taker, const hd_stmt_t *point) {
  hd_row_maker_t *m = &taker->m;
  int64_t workers = 1, threads = hd_func_block_threads(taker->kernel);
  for (int i = 0; i < HD_ACROSS_COUNT; i++) {
    m->across[i] = point->u.point.across[i];
    if (!m->across[i] && i != HD_ACROSS_THREAD)
      m->across[i] = 1;
    if (i != HD_ACROSS_CLUSTER && i != HD_ACROSS_GRID && m->across[i])
      workers *= m->across[i];
  }
  m->slots = threads / workers;
  return threads % workers == 0;
}

// Whether it is an element of shared memory, which is its thread's alone.
static bool is_shared_place(const hd_expr_t *e) {
  return e && e->kind == HD_EXPR_LOAD && !e->linear &&
         e->u.var->tensor->scope == HD_SCOPE_SHARED;
}

// What a reduction's blocks leave in memory, for each row and block, by the
// first launch.
static void declare_parts(taker_t *taker) {
  hd_row_maker_t *m = &taker->m;
  hd_rules_t *rules = m->draft.rules;
  hd_arena_t *arena = &rules->module->arena;
  int64_t shape[] = {m->rows->row.points, m->across[HD_ACROSS_GRID]};
  taker->launches = m->rows->phases + 1;
  for (size_t i = 0; m->launch == 0 && i < m->rows->steps.size; i++) {
    hd_row_step_t *step = m->rows->steps.data[i];
    for (unsigned k = 0; step->kind == HD_ROW_REDUCE && k < step->num_values;
         k++) {
      hd_task_value_t *parts =
          hd_flat_value_make(arena, "parts", HD_VALUE_LOCAL,
                             step->term->operands[k]->type.scalar, shape, 2);
      hd_vec_push(arena, &rules->flat->locals, parts);
      step->parts[k] = parts;
    }
  }
}

// What an element's number is where the loop's variable is 0.
static const hd_expr_t *base_of(hd_builder_t *b, const hd_stmt_t *loop,
                                const hd_expr_t *element) {
  hd_rewriter_t rewriter = {.arena = b->arena};
  hd_rewriter_substitute(&rewriter, loop->u.mapfor.vars[0], hd_b_i32(b, 0));
  return hd_rewrite_expr(&rewriter, element);
}

static void on_rows(void *argument, hd_builder_t *b, const hd_stmt_t *loop) {
  taker_t *taker = argument;
  hd_row_maker_t *m = &taker->m;
  const hd_stmt_t *point = loop->u.mapfor.body.stmts[0];
  const hd_expr_t *value = point->u.point.value;
  const hd_mapping_t *mapping = loop->u.mapfor.mapping;
  if (!take_across(taker, point))
    taker->why = "its block has no whole number of rows";
  const hd_expr_t *element = point->u.point.place->operands[1];
  bool is_part = element->kind != HD_EXPR_VAR;
  int64_t blocks =
      (int64_t)m->across[HD_ACROSS_CLUSTER] * m->across[HD_ACROSS_GRID];
  if (mapping->dims[0] * (is_part ? blocks : 1) < m->rows->element.points)
    taker->why = "its loop leaves elements of a row out";
  if (taker->why)
    return;
  m->draft.b = *b;
  m->loop = loop;
  m->given = value->kind == HD_EXPR_LOAD &&
                     value->u.var == param_of(taker->kernel, false)
                 ? NULL
                 : value;
  m->rows->is_given = m->given;
  m->rows->place =
      is_shared_place(m->given) ? (hd_scalar_t)m->given->type.scalar : HD_VOID;
  int64_t each = mapping->dims[0] / mapping->workers;
  bool is_grid = m->across[HD_ACROSS_GRID] > 1;
  if (is_grid)
    declare_parts(taker);
  hd_rows_keep(m->rows, is_grid ? MANY : each);
  hd_rows_ask_early(m->rows,
                    is_grid && m->launch < m->rows->phases ? MANY : each);
  hd_rows_place_thread(m);
  m->base = is_part ? hd_b_let(&m->draft.b, "base",
                               base_of(&m->draft.b, loop, element))
                    : NULL;
  place_row(taker, point->u.point.place->operands[0]);
  hd_rows_put(m);
  *b = m->draft.b;
}

static bool has_own_params(const taker_t *taker, const hd_func_t *made) {
  for (uint32_t i = 0; i < made->num_params; i++)
    if (made->params[i] == param_of(taker->kernel, false) ||
        made->params[i] == param_of(taker->kernel, true))
      return true;
  return false;
}

static bool report(const hd_rules_t *rules, const hd_candidate_t *candidate,
                   const char *why) {
  return hd_error(&rules->module->context->diags, rules->loc, HD_E0320,
                  rules->name, candidate->template->name, why);
}

// The kernel's launch of that number; *launches: how many there are.
static bool join_launch(hd_rules_t *rules, hd_rows_t *rows,
                        const hd_candidate_t *candidate,
                        const hd_func_t *kernel, unsigned launch,
                        unsigned *launches) {
  taker_t taker = {
      .m = {.rows = rows, .launch = launch}, .launches = 1, .kernel = kernel};
  hd_draft_begin(&taker.m.draft, rules);
  taker.m.draft.t.is_coarse = rows->is_coarse;
  const hd_access_hook_t hooks[] = {
      {.param = param_of(kernel, false), .argument = &taker, .load = on_load},
      {.param = param_of(kernel, true), .argument = &taker, .rows = on_rows}};
  const char *name =
      hd_module_fresh_name(&rules->module->arena, rules->module, rules->name);
  hd_func_t *made = hd_access_rewrite(rules->module, kernel, hooks, 2, name);
  if (!taker.why && has_own_params(&taker, made))
    taker.why = "its kernel stores y elsewhere than by a point of rows";
  if (taker.why)
    return report(rules, candidate, taker.why);
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = made};
  hd_vec_push(&rules->module->arena, &rules->module->items, item);
  hd_rule_launch_t joined = {made, taker.m.draft.t.args.data};
  hd_vec_push(&rules->module->arena, &rules->launches, joined);
  *launches = taker.launches;
  return true;
}

static bool join_kernel(hd_rules_t *rules, hd_rows_t *rows,
                        const hd_candidate_t *candidate,
                        const hd_func_t *kernel) {
  bool ok = true;
  for (unsigned launch = 0, launches = 1; ok && launch < launches; launch++)
    ok = join_launch(rules, rows, candidate, kernel, launch, &launches);
  return ok;
}

bool hd_rows_by_template(hd_rules_t *rules, hd_rows_t *rows) {
  const hd_schedule_options_t *options = rules->module->context->schedules;
  const hd_pin_t *pin;
  if (!hd_template_may_serve(rules, HD_FORM_KIND_ROWS, &pin))
    return false;
  hd_form_t form;
  hd_rows_coarsen(rows);
  hd_rows_order(rows);
  const char *why =
      hd_rows_ask(&rules->module->arena, rows, options->simulated, &form);
  if (why)
    return pin ? hd_template_leave(rules, pin, why) : false;
  hd_choice_made_t made;
  if (!hd_template_choose(rules, &form, pin, &made))
    return false;
  rules->failed = !join_kernel(rules, rows, &made.candidate, made.kernel);
  return !rules->failed;
}
