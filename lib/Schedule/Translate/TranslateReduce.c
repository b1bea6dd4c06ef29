// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions: registers that hold what was combined so far.
#include "Schedule/Translate/TranslateState.h"

void hd_translate_begin(hd_translator_t *t, const hd_term_t *reduction,
                        const hd_var_t **cells) {
  const hd_monoid_t *monoid = reduction->u.reduction->monoid;
  for (unsigned i = 0; i < reduction->num_operands; i++) {
    hd_scalar_t type = reduction->operands[i]->type.scalar;
    const hd_term_t *identity = hd_flat_identity(t->b->arena, monoid, i, type);
    cells[i] =
        hd_b_register(t->b, "acc", type, NULL, 0, hd_translate(t, identity));
  }
}

void hd_translate_combination(hd_translator_t *t, const hd_term_t *reduction,
                              const hd_expr_t *const *left,
                              const hd_expr_t *const *right,
                              const hd_expr_t **result) {
  const hd_monoid_t *monoid = reduction->u.reduction->monoid;
  if (monoid->builtin != HD_MONOID_COUNT) {
    result[0] = hd_expr_binary(t->b->arena, hd_monoid_operator(monoid->builtin),
                               left[0], right[0]);
    return;
  }
  for (uint32_t i = 0; i < monoid->size; i++) {
    hd_ptr_map_set(t->b->arena, &t->variables, monoid->left[i], left[i]);
    hd_ptr_map_set(t->b->arena, &t->variables, monoid->right[i], right[i]);
  }
  for (uint32_t i = 0; i < monoid->size; i++)
    result[i] = hd_translate(t, monoid->result[i]);
}

void hd_translate_combine(hd_translator_t *t, const hd_term_t *reduction,
                          const hd_var_t *const *cells,
                          const hd_expr_t *const *values) {
  const hd_expr_t *left[HD_MAX_COMPONENTS], *right[HD_MAX_COMPONENTS];
  const hd_expr_t *result[HD_MAX_COMPONENTS];
  unsigned count = reduction->num_operands;
  bool is_single = count == 1;
  for (unsigned i = 0; i < count; i++) {
    right[i] = is_single ? values[i] : hd_b_let(t->b, "value", values[i]);
    left[i] = hd_b_get(t->b, cells[i]);
  }
  hd_translate_combination(t, reduction, left, right, result);
  // All of them before any is set.
  for (unsigned i = 0; i < count; i++)
    result[i] = is_single ? result[i] : hd_b_let(t->b, "both", result[i]);
  for (unsigned i = 0; i < count; i++)
    hd_b_set(t->b, cells[i], result[i]);
}

void hd_translate_step(hd_translator_t *t, const hd_term_t *reduction,
                       const hd_var_t *const *cells) {
  const hd_expr_t *values[HD_MAX_COMPONENTS];
  for (unsigned i = 0; i < reduction->num_operands; i++)
    values[i] = hd_translate(t, reduction->operands[i]);
  hd_translate_combine(t, reduction, cells, values);
}

static void put_loops(hd_translator_t *t, const hd_term_t *reduction,
                      const hd_var_t *const *cells, unsigned depth) {
  const hd_reduction_t *r = reduction->u.reduction;
  if (depth == r->num_indices) {
    hd_translate_step(t, reduction, cells);
    return;
  }
  const hd_index_t *index = r->indices[depth];
  hd_scalar_t type = hd_translate_index_type(index);
  const hd_var_t *var = hd_b_loop_var(t->b, index->name, type);
  hd_open_block_t block;
  hd_b_open(t->b, &block);
  hd_translate_bind(t, index, hd_expr_var(t->b->arena, var));
  put_loops(t, reduction, cells, depth + 1);
  hd_block_t body = hd_b_close(t->b);
  hd_b_for(t->b, var, hd_b_int(t->b, type, 0),
           hd_b_int(t->b, type, hd_flat_range(index)), NULL, 0, body);
}

// first .. limit - 1 of the axis of a scan, at being where it stands.
static void put_scan(hd_translator_t *t, const hd_term_t *scan,
                     const hd_var_t *const *cells) {
  const hd_reduction_t *r = scan->u.reduction;
  const hd_index_t *index = r->indices[0];
  hd_scalar_t type = hd_translate_index_type(index);
  const hd_expr_t *zero = hd_b_int(t->b, type, 0);
  const hd_expr_t *end = hd_b_int(t->b, type, hd_flat_range(index));
  const hd_expr_t *at = hd_b_let(
      t->b, "at", hd_b_cast(t->b, type, hd_translate_worth(t, r->at).e));
  const hd_expr_t *after = hd_b_op_int(t->b, HD_EXPR_ADD, at, 1);
  bool is_before = r->part == HD_SCAN_BEFORE || r->part == HD_SCAN_TO;
  const hd_var_t *var = hd_b_loop_var(t->b, index->name, type);
  hd_open_block_t block;
  hd_b_open(t->b, &block);
  hd_translate_bind(t, index, hd_expr_var(t->b->arena, var));
  hd_translate_step(t, scan, cells);
  hd_block_t body = hd_b_close(t->b);
  hd_b_for(t->b, var,
           is_before                  ? zero
           : r->part == HD_SCAN_AFTER ? after
                                      : at,
           !is_before              ? end
           : r->part == HD_SCAN_TO ? after
                                   : at,
           NULL, 0, body);
}

void hd_translate_loops(hd_translator_t *t, const hd_term_t *reduction,
                        const hd_var_t *const *cells) {
  if (reduction->kind == HD_TERM_SCAN)
    put_scan(t, reduction, cells);
  else
    put_loops(t, reduction, cells, 0);
}
