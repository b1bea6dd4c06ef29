// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replacing accesses of several lanes, by a loop over them, which pass
// vectorize makes accesses of vectors again where what hooks read and write
// lies side by side:
//
//   y[i, 0 +: 4] = x[i, j +: 4] else f32x4(0)
//
// becomes, where the hook of x gives v and that of y does S,
//
//   register chosen: f32[4]
//   if j >= 0 && j < n - 3 {
//     for lane in 0..4 unroll { chosen[lane] = v }
//   } else {
//     chosen[0 +: 4] = f32x4(0)
//     for lane in 0..4 unroll {
//       if j + lane >= 0 && j + lane < n { chosen[lane] = v }
//     }
//   }
//   register lanes: f32[4]
//   lanes[0 +: 4] = chosen[0 +: 4]
//   for lane in 0..4 unroll { S }

#include "Schedule/Access/AccessState.h"

#include <assert.h>

// for lane in 0..n unroll { ... }
typedef struct lanes {
  const hd_var_t *var;
  hd_open_block_t block;
  const hd_expr_t *at[HD_MAX_RANK]; // The place of a lane.
} lanes_t;

static void begin(hd_accessor_t *a, const hd_expr_t *const *at, unsigned rank,
                  lanes_t *lanes) {
  const hd_expr_t *last = at[rank - 1];
  hd_scalar_t type = (hd_scalar_t)last->type.scalar;
  lanes->var = hd_b_loop_var(&a->b, "lane", type);
  hd_b_open(&a->b, &lanes->block);
  for (unsigned i = 0; i + 1 < rank; i++)
    lanes->at[i] = at[i];
  lanes->at[rank - 1] = hd_b_let(
      &a->b, "at",
      hd_b_op(&a->b, HD_EXPR_ADD, last, hd_expr_var(a->b.arena, lanes->var)));
}

static void end(hd_accessor_t *a, const lanes_t *lanes, unsigned count) {
  hd_block_t body = hd_b_close(&a->b);
  hd_type_t type = lanes->var->type;
  hd_b_for(&a->b, lanes->var, hd_expr_int(a->b.arena, type, 0),
           hd_expr_int(a->b.arena, type, count), NULL, HD_UNROLL_FULL, body);
}

static void set_lane(hd_accessor_t *a, const hd_access_hook_t *hook,
                     const hd_var_t *cell, const lanes_t *lanes) {
  const hd_expr_t *value = hook->load(hook->argument, &a->b, lanes->at);
  const hd_expr_t *lane = hd_expr_var(a->b.arena, lanes->var);
  assert(hd_type_equal(value->type, hook->param->type));
  hd_b_store(&a->b, cell, &lane, 1, value);
}

static void set_lanes(hd_accessor_t *a, const hd_access_hook_t *hook,
                      const hd_var_t *cell, const hd_expr_t *const *at,
                      unsigned count) {
  lanes_t lanes;
  begin(a, at, hook->param->tensor->rank, &lanes);
  set_lane(a, hook, cell, &lanes);
  end(a, &lanes, count);
}

const hd_expr_t *hd_access_load_lanes(hd_accessor_t *a,
                                      const hd_access_hook_t *hook,
                                      const hd_expr_t *const *at,
                                      hd_type_t type) {
  const hd_var_t *cell = hd_access_cell(a, type, NULL);
  set_lanes(a, hook, cell, at, type.lanes);
  return hd_access_get_cell(a, cell, type);
}

// Of those that are inside.
static void set_some_lanes(hd_accessor_t *a, const hd_access_hook_t *hook,
                           const hd_var_t *cell, const hd_expr_t *const *at,
                           unsigned count) {
  const hd_tensor_t *tensor = hook->param->tensor;
  lanes_t lanes;
  hd_open_block_t then;
  begin(a, at, tensor->rank, &lanes);
  hd_b_open(&a->b, &then);
  set_lane(a, hook, cell, &lanes);
  hd_block_t block = hd_b_close(&a->b);
  hd_b_if(&a->b, hd_access_inside(a, tensor, lanes.at, 1), block,
          (hd_block_t){0});
  end(a, &lanes, count);
}

const hd_expr_t *hd_access_load_some_lanes(hd_accessor_t *a,
                                           const hd_access_hook_t *hook,
                                           const hd_expr_t *const *at,
                                           hd_type_t type,
                                           hd_access_lazy_t *otherwise) {
  const hd_var_t *cell = hd_access_cell(a, type, NULL);
  hd_open_block_t all, some;
  hd_b_open(&a->b, &all);
  set_lanes(a, hook, cell, at, type.lanes);
  hd_block_t then = hd_b_close(&a->b);
  hd_b_open(&a->b, &some);
  hd_access_to_cell(a, otherwise, cell);
  set_some_lanes(a, hook, cell, at, type.lanes);
  hd_block_t rest = hd_b_close(&a->b);
  hd_b_if(&a->b, hd_access_inside(a, hook->param->tensor, at, type.lanes), then,
          rest);
  return hd_access_get_cell(a, cell, type);
}

void hd_access_store(hd_accessor_t *a, const hd_access_hook_t *hook,
                     const hd_expr_t *const *at, const hd_expr_t *value) {
  hd_builder_t *b = &a->b;
  int64_t count = value->type.lanes;
  if (count == 1 || hook->pairs) {
    hook->store(hook->argument, b, at, value);
    return;
  }
  const hd_expr_t *first = hd_b_i32(b, 0);
  const hd_var_t *cell = hd_b_register(
      b, "lanes", (hd_scalar_t)value->type.scalar, &count, 1, NULL);
  hd_b_store(b, cell, &first, 1, value);
  lanes_t lanes;
  begin(a, at, hook->param->tensor->rank, &lanes);
  const hd_expr_t *lane = hd_expr_var(b->arena, lanes.var);
  value = hd_b_let(b, "value", hd_b_load(b, cell, &lane, 1));
  hook->store(hook->argument, b, lanes.at, value);
  end(a, &lanes, (unsigned)count);
}
