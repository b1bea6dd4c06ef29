// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known about values: the bookkeeping. Ranges.c has the arithmetic.

#include "IR/Passes/FactsState.h"
#include "Support/Gcd.h"

#include <string.h>

hd_var_fact_t *hd_facts_find_var(const hd_facts_t *facts, const hd_var_t *var) {
  return hd_ptr_map_find(&facts->vars, var);
}

static void set_var(hd_facts_t *facts, const hd_var_t *var,
                    hd_var_fact_t fact) {
  hd_var_fact_t *entry = hd_facts_find_var(facts, var);
  if (!entry) {
    entry = HD_ARENA_NEW(facts->arena, hd_var_fact_t);
    hd_ptr_map_set(facts->arena, &facts->vars, var, entry);
  }
  *entry = fact;
  facts->state++;
}

void hd_facts_assume_atom(hd_facts_t *facts, hd_atom_fact_t fact) {
  hd_vec_push(facts->arena, &facts->atoms, fact);
  facts->state++;
}

hd_arena_t *hd_facts_arena(const hd_facts_t *facts) { return facts->arena; }

hd_facts_mark_t hd_facts_mark(const hd_facts_t *facts) {
  return (hd_facts_mark_t){facts->atoms.size, facts->linears.size,
                           facts->conditions.size};
}

void hd_facts_reset(hd_facts_t *facts, hd_facts_mark_t mark) {
  facts->state += facts->atoms.size != mark.atoms;
  facts->atoms.size = mark.atoms;
  facts->linears.size = mark.linears;
  facts->conditions.size = mark.conditions;
}

hd_facts_t *hd_facts_unconditional(const hd_facts_t *facts) {
  hd_facts_t *copy = HD_ARENA_COPY(facts->arena, hd_facts_t, facts);
  copy->atoms.size = copy->atoms.capacity = 0;
  copy->linears.size = copy->linears.capacity = 0;
  copy->conditions.size = copy->conditions.capacity = 0;
  copy->atoms.data = NULL;
  copy->linears.data = NULL;
  copy->conditions.data = NULL;
  copy->ranges =
      HD_ARENA_ARRAY(facts->arena, hd_known_range_t, HD_KNOWN_RANGES);
  return copy;
}

// What contradicts the table does not run, but a range has to be one.
static void set_builtin(hd_facts_t *facts, hd_builtin_t builtin,
                        hd_wide_t least, hd_wide_t greatest) {
  facts->state++;
  hd_range_t *range = &facts->builtins[builtin];
  if (least > range->least)
    range->least = least < range->greatest ? least : range->greatest;
  if (greatest < range->greatest)
    range->greatest = greatest > range->least ? greatest : range->least;
}

// An index and its dimension, for a dimension within [least, greatest].
static void set_dimension(hd_facts_t *facts, hd_builtin_t index,
                          hd_builtin_t dimension, hd_range_t range) {
  set_builtin(facts, index, 0, range.greatest - 1);
  set_builtin(facts, dimension, range.least, range.greatest);
}

static hd_range_t launch_range(hd_facts_t *facts, const hd_expr_t *e) {
  hd_range_t range = {1, 1};
  if (e)
    range = hd_facts_range(facts, e);
  // An impossible launch does not run. No dimension is larger; see
  // Builtins.def.
  const hd_wide_t most = INT32_MAX;
  range.least = range.least < 1 ? 1 : range.least > most ? most : range.least;
  range.greatest = range.greatest < range.least ? range.least
                   : range.greatest > most      ? most
                                                : range.greatest;
  return range;
}

static void set_launch(hd_facts_t *facts, const hd_launch_t *launch) {
  static const hd_builtin_t thread[] = {
      HD_BUILTIN_THREAD_X, HD_BUILTIN_THREAD_Y, HD_BUILTIN_THREAD_Z};
  hd_range_t threads = {1, 1}, blocks = {1, 1}, ranks = {1, 1};
  for (unsigned a = 0; a < 3; ++a) {
    hd_range_t block = launch_range(facts, launch->block[a]);
    hd_range_t grid = launch_range(facts, launch->grid[a]);
    hd_range_t cluster = launch_range(facts, launch->cluster[a]);
    set_dimension(facts, thread[a], HD_BUILTIN_BLOCK_DIM_X + a, block);
    set_dimension(facts, HD_BUILTIN_BLOCK_X + a, HD_BUILTIN_GRID_DIM_X + a,
                  grid);
    threads.least *= block.least, threads.greatest *= block.greatest;
    blocks.least *= grid.least, blocks.greatest *= grid.greatest;
    ranks.least *= cluster.least, ranks.greatest *= cluster.greatest;
  }
  set_dimension(facts, HD_BUILTIN_THREAD, HD_BUILTIN_BLOCK_DIM, threads);
  set_dimension(facts, HD_BUILTIN_BLOCK, HD_BUILTIN_GRID_DIM, blocks);
  set_dimension(facts, HD_BUILTIN_CLUSTER, HD_BUILTIN_CLUSTER_DIM, ranks);
  hd_wide_t last = facts->builtins[HD_BUILTIN_THREAD].greatest;
  set_builtin(facts, HD_BUILTIN_LANE_ID, 0, last < 31 ? last : 31);
  set_builtin(facts, HD_BUILTIN_WARP, 0, last / 32);
  set_builtin(facts, HD_BUILTIN_WARPGROUP, 0, last / 128);
}

// A parameter that is the size of a tensor's axis is not negative: a launch
// with such a tensor is refused.
static void set_sizes(hd_facts_t *facts, const hd_func_t *func) {
  for (unsigned i = 0; i < func->num_params; ++i) {
    const hd_tensor_t *tensor = func->params[i]->tensor;
    for (unsigned a = 0; tensor && a < tensor->rank; ++a) {
      const hd_expr_t *size = tensor->shape[a];
      if (size->kind != HD_EXPR_VAR || size->u.var->kind != HD_VAR_PARAM)
        continue;
      hd_range_t range = hd_type_range(size->type);
      range.least = 0;
      set_var(facts, size->u.var, (hd_var_fact_t){NULL, range, 1});
    }
  }
}

hd_facts_t *hd_facts_create(hd_arena_t *arena, const hd_func_t *func) {
  hd_facts_t *facts = HD_ARENA_NEW(arena, hd_facts_t);
  facts->arena = arena;
  facts->state = 1;
  facts->ranges = HD_ARENA_ARRAY(arena, hd_known_range_t, HD_KNOWN_RANGES);
  for (unsigned b = 0; b < HD_BUILTIN_COUNT; ++b) {
    const hd_builtin_info_t *info = hd_builtin_info((hd_builtin_t)b);
    facts->builtins[b] = (hd_range_t){info->least, info->greatest};
  }
  set_sizes(facts, func);
  if (func->kind == HD_FUNC_KERNEL)
    set_launch(facts, &func->launch);
  return facts;
}

static bool is_plain_integer(hd_type_t type) {
  return type.lanes == 1 && (hd_type_is_integer(type) || hd_type_is_bool(type));
}

void hd_facts_let(hd_facts_t *facts, const hd_var_t *var,
                  const hd_expr_t *value) {
  if (!is_plain_integer(value->type))
    return;
  set_var(facts, var,
          (hd_var_fact_t){hd_expr_is_stable(value) ? value : NULL,
                          hd_facts_range(facts, value),
                          hd_facts_divisor(facts, value)});
}

void hd_facts_loop(hd_facts_t *facts, const hd_var_t *var,
                   const hd_expr_t *first, const hd_expr_t *limit,
                   const hd_expr_t *step) {
  if (!is_plain_integer(var->type))
    return;
  hd_range_t from = hd_facts_range(facts, first);
  hd_range_t to = hd_facts_range(facts, limit);
  hd_range_t range = {from.least, to.greatest - 1};
  int64_t by = 1;
  bool counted = !step || hd_facts_constant(facts, step, &by);
  // From a known start the last value is known too.
  if (counted && by > 0 && from.least == from.greatest &&
      range.greatest >= range.least)
    range.greatest -= (range.greatest - range.least) % by;
  if (range.greatest < range.least)
    range.greatest = range.least; // The body does not run.
  int64_t divisor = hd_gcd(hd_facts_divisor(facts, first),
                           counted ? by : hd_facts_divisor(facts, step));
  set_var(facts, var, (hd_var_fact_t){NULL, range, divisor});
  const hd_expr_t *self = hd_expr_var(facts->arena, var);
  if (hd_expr_is_stable(limit))
    hd_facts_assume(
        facts, hd_expr_binary(facts->arena, HD_EXPR_LT, self, limit), true);
  if (hd_expr_is_stable(first))
    hd_facts_assume(
        facts, hd_expr_binary(facts->arena, HD_EXPR_GE, self, first), true);
}

const hd_expr_t *hd_facts_value(hd_facts_t *facts, const hd_var_t *var) {
  hd_var_fact_t *fact = hd_facts_find_var(facts, var);
  return fact ? fact->value : NULL;
}
