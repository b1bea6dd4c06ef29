// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Rules/Rules.h"

void hd_draft_begin(hd_kernel_draft_t *draft, hd_rules_t *rules) {
  *draft = (hd_kernel_draft_t){.rules = rules};
  draft->b = (hd_builder_t){.context = rules->module->context,
                            .arena = &rules->module->arena,
                            .loc = rules->loc};
  draft->t.b = &draft->b;
  hd_b_open(&draft->b, &draft->block);
}

void hd_draft_finish(hd_kernel_draft_t *draft, const char *suffix,
                     const int64_t grid[3], int64_t threads) {
  hd_rules_t *rules = draft->rules;
  const char *name =
      hd_arena_printf(draft->b.arena, "%s%s", rules->name, suffix);
  hd_block_t body = hd_b_close(&draft->b);
  hd_func_t *kernel =
      hd_b_kernel(&draft->b, rules->module, name, grid, threads, body);
  kernel->chosen = rules->left;
  hd_rule_launch_t launch = {kernel, draft->t.args.data};
  hd_vec_push(draft->b.arena, &rules->launches, launch);
}

void hd_draft_finish_linear(hd_kernel_draft_t *draft, const char *suffix,
                            int64_t blocks, int64_t threads) {
  int64_t grid[3] = {blocks, 1, 1};
  hd_draft_finish(draft, suffix, grid, threads);
}

hd_grid_t hd_grid_linear(int64_t workers, int64_t threads) {
  if (workers < threads)
    threads = (workers + 31) / 32 * 32;
  int64_t blocks = (workers + threads - 1) / threads;
  hd_scalar_t type = workers <= INT32_MAX / 16 ? HD_I32 : HD_I64;
  return (hd_grid_t){workers, blocks, threads, type};
}

const hd_expr_t *hd_draft_open_workers(hd_kernel_draft_t *draft,
                                       const hd_grid_t *grid,
                                       hd_open_block_t *block) {
  hd_builder_t *b = &draft->b;
  const hd_expr_t *first = hd_b_int(b, grid->type, 0);
  if (grid->blocks > 1)
    first = hd_b_op_int(
        b, HD_EXPR_MUL,
        hd_b_cast(b, grid->type, hd_expr_builtin(b->arena, HD_BUILTIN_BLOCK)),
        grid->threads);
  draft->worker = hd_b_let(
      b, "n",
      hd_b_op(b, HD_EXPR_ADD, first, hd_b_cast(b, grid->type, hd_b_thread(b))));
  hd_b_open(b, block);
  return draft->worker;
}

void hd_draft_finish_workers(hd_kernel_draft_t *draft, const hd_grid_t *grid,
                             const char *suffix) {
  hd_builder_t *b = &draft->b;
  hd_block_t body = hd_b_close(b);
  bool whole = grid->workers == grid->blocks * grid->threads;
  const hd_expr_t *exists =
      whole ? NULL : hd_b_op_int(b, HD_EXPR_LT, draft->worker, grid->workers);
  hd_b_if(b, exists, body, (hd_block_t){0});
  hd_draft_finish_linear(draft, suffix, grid->blocks, grid->threads);
}

void hd_draft_place(hd_kernel_draft_t *draft, const hd_expr_t *number,
                    const hd_index_t *const *indices, unsigned count) {
  hd_builder_t *b = &draft->b;
  unsigned first = 0; // The outermost axis takes what is left.
  while (first < count && hd_flat_range(indices[first]) == 1)
    first++;
  for (unsigned i = count; i-- > 0;) {
    int64_t range = hd_flat_range(indices[i]);
    hd_scalar_t type = hd_translate_index_type(indices[i]);
    const hd_expr_t *at;
    if (range == 1) {
      at = hd_b_i32(b, 0);
    } else if (i == first) {
      at = number;
    } else {
      at = hd_b_op_int(b, HD_EXPR_MOD, number, range);
      number = hd_b_op_int(b, HD_EXPR_DIV, number, range);
    }
    at = hd_b_let(b, indices[i]->name, hd_b_cast(b, type, at));
    hd_translate_bind(&draft->t, indices[i], at);
  }
}

void hd_draft_store(hd_kernel_draft_t *draft, const hd_definition_t *d,
                    unsigned i, const hd_expr_t *value) {
  const hd_expr_t *at[HD_MAX_RANK];
  const hd_var_t *target =
      hd_translate_tensor(&draft->t, d->targets[i], HD_DIR_OUT);
  for (uint32_t k = 0; k < d->num_indices; k++)
    at[k] = hd_ptr_map_get(&draft->t.indices, d->indices[k]);
  value = hd_b_cast(&draft->b, d->targets[i]->type.scalar, value);
  hd_b_store(&draft->b, target, at, d->num_indices, value);
}

const hd_var_t *hd_draft_bytes(hd_kernel_draft_t *draft,
                               const hd_task_value_t *value,
                               hd_direction_t direction) {
  int64_t lanes = 8 / hd_scalar_bits(value->type.scalar);
  int64_t size = (hd_flat_count(value) + lanes - 1) / lanes * lanes;
  const hd_task_value_t *bytes = hd_flat_value_make(
      draft->b.arena, value->name, value->kind, value->type.scalar, &size, 1);
  const hd_var_t *var = hd_translate_tensor(&draft->t, bytes, direction);
  draft->t.args.data[draft->t.args.size - 1] = value;
  return var;
}

void hd_draft_define(hd_kernel_draft_t *draft, const hd_definition_t *d) {
  if (!hd_flat_is_reduction(d->term)) {
    hd_draft_store(draft, d, 0, hd_translate(&draft->t, d->term));
    return;
  }
  const hd_var_t *cells[HD_MAX_COMPONENTS];
  hd_translate_begin(&draft->t, d->term, cells);
  hd_translate_loops(&draft->t, d->term, cells);
  for (uint32_t i = 0; i < d->num_targets; i++)
    hd_draft_store(draft, d, i, hd_b_get(&draft->b, cells[i]));
}
