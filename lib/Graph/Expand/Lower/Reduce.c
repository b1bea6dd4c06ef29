// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions over any axes, brought to [before, reduced, after]; the place of
// the greatest; running sums.
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

// Axes that lie side by side and are all reduced or all kept, as one; what has
// one element is left away.
typedef struct groups {
  int count, reduced; // All; those that are reduced.
  int64_t size[HD_MAX_RANK];
  bool chosen[HD_MAX_RANK];
} groups_t;

static groups_t group_axes(const hd_value_t *x, const bool *chosen) {
  groups_t g = {.count = 0};
  for (int i = 0; i < x->rank; i++) {
    int64_t size = hd_lower_size(x, i);
    if (size == 1)
      continue;
    if (g.count > 0 && g.chosen[g.count - 1] == chosen[i]) {
      g.size[g.count - 1] = hd_size_times(g.size[g.count - 1], size);
      continue;
    }
    g.chosen[g.count] = chosen[i];
    g.reduced += chosen[i];
    g.size[g.count++] = size;
  }
  return g;
}

// x as [p, n, q] with n what is reduced; transposed where that lies apart.
static const hd_value_t *bring_together(hd_lowering_t *l, const hd_value_t *x,
                                        const bool *chosen) {
  groups_t g = group_axes(x, chosen);
  int64_t shape[3] = {1, 1, 1}, permutation[HD_MAX_RANK];
  if (g.reduced <= 1) {
    int at = g.reduced ? 0 : 2;
    for (int i = 0; i < g.count; i++) {
      at = g.chosen[i] ? 1 : at == 1 ? 2 : at;
      shape[at] = hd_size_times(shape[at], g.size[i]);
    }
    return hd_lower_reshape(l, x, shape, 3);
  }
  int to = 0;
  for (int kept = 1; kept >= 0; kept--)
    for (int i = 0; i < g.count; i++)
      if (g.chosen[i] != kept) {
        permutation[to++] = i;
        shape[!kept] = hd_size_times(shape[!kept], g.size[i]);
      }
  x = hd_lower_reshape(l, x, g.size, (unsigned)g.count);
  x = x ? hd_lower_transpose(l, x, permutation) : NULL;
  return x ? hd_lower_reshape(l, x, shape, 3) : NULL;
}

// The task for x's type: those of integers, and of bool, may be their own.
static const char *typed_task(hd_lowering_t *l, const char *task,
                              hd_scalar_t type) {
  static const char *const own[] = {"reduce_mean",    "reduce_l2",
                                    "reduce_log_sum", "reduce_log_sum_exp",
                                    "reduce_max",     "reduce_min"};
  const char *suffix = type == HD_BOOL                     ? "_bool"
                       : hd_type_is_integer(hd_type(type)) ? "_integer"
                                                           : NULL;
  for (size_t i = 0; suffix && i < sizeof own / sizeof *own; i++)
    if (strcmp(own[i], task) == 0)
      return hd_arena_printf(hd_lower_arena(l), "%s%s", task, suffix);
  return task;
}

static const hd_value_t *reduce(hd_lowering_t *l, const char *task,
                                const hd_value_t *x, const bool *chosen,
                                bool keepdims) {
  int64_t shape[HD_MAX_RANK];
  unsigned rank = 0;
  for (int i = 0; i < x->rank; i++)
    if (!chosen[i] || keepdims)
      shape[rank++] = chosen[i] ? 1 : hd_lower_size(x, i);
  const hd_value_t *y = bring_together(l, x, chosen);
  y = y ? hd_lower_unary(l, typed_task(l, task, x->type), y) : NULL;
  return y ? hd_lower_reshape(l, y, shape, rank) : NULL;
}

// The argument is the task.
static bool reduce_over(hd_lowering_t *l, const hd_value_t *input) {
  const hd_value_t *x = hd_lower_input(l, 0);
  hd_axes_t axes;
  if (!hd_lower_axes(l, input, "axes", x->rank, &axes))
    return false;
  // Over no axis it still squares, takes the logarithm and so on.
  if (axes.count == 0 && !hd_lower_int(l, "noop_with_empty_axes", 0))
    for (int i = 0; i < x->rank; i++)
      axes.chosen[i] = true;
  return hd_lower_output(l, 0,
                         reduce(l, hd_lower_argument(l), x, axes.chosen,
                                hd_lower_int(l, "keepdims", 1) != 0));
}

bool hd_onnx_reduce(hd_lowering_t *l) { return reduce_over(l, NULL); }

// From version 13 (ReduceSum) or 18 on, the axes are an input.
bool hd_onnx_reduce_input(hd_lowering_t *l) {
  return reduce_over(l, hd_lower_input(l, 1));
}

bool hd_onnx_arg_reduce(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  int64_t axis;
  if (!hd_lower_axis(l, "axis", 0, x->rank, &axis))
    return false;
  const char *task = hd_lower_argument(l);
  if (hd_lower_int(l, "select_last_index", 0) != 0)
    task = hd_arena_printf(hd_lower_arena(l), "%s_last", task);
  if (hd_lower_size(x, (int)axis) == 0 && hd_lower_count(x) == 0 &&
      hd_lower_product(x, 0, (int)axis) *
              hd_lower_product(x, (int)axis + 1, x->rank) !=
          0)
    return hd_lower_invalid(l, "axis %lld is empty", (long long)axis);
  bool chosen[HD_MAX_RANK] = {false};
  chosen[axis] = true;
  return hd_lower_output(
      l, 0, reduce(l, task, x, chosen, hd_lower_int(l, "keepdims", 1) != 0));
}

// Before version 13 the axes from the given one on are one.
bool hd_onnx_hardmax(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  bool flattens = hd_lower_version(l) < 13;
  int64_t axis;
  if (!hd_lower_axis(l, "axis", flattens ? 1 : -1, x->rank, &axis))
    return false;
  int end = flattens ? x->rank : (int)axis + 1;
  int64_t shape[] = {hd_lower_product(x, 0, (int)axis),
                     hd_lower_product(x, (int)axis, end),
                     hd_lower_product(x, end, x->rank)};
  const hd_value_t *inputs[2] = {hd_lower_reshape(l, x, shape, 3)};
  if (!inputs[0] || !(inputs[1] = hd_lower_unary(l, "arg_max", inputs[0])))
    return false;
  const hd_value_t *y = hd_lower_task(l, "hardmax", inputs, 2, NULL, NULL);
  return hd_lower_output(
      l, 0, hd_lower_unfold(l, y, x, axis, hd_lower_size(x, (int)axis)));
}

// The argument: cumsum or cumprod.
bool hd_onnx_cumulate(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  size_t count;
  const int64_t *data = hd_lower_data_ints(l, hd_lower_input(l, 1), &count);
  if (!data)
    return false;
  int64_t axis = count == 1 ? data[0] : 0;
  if (count != 1)
    return hd_lower_invalid(l, "axis has %zu elements, not 1", count);
  if (!hd_lower_wrap_axis(l, x->rank, &axis))
    return false;
  const char *task =
      hd_arena_printf(hd_lower_arena(l), "%s%s%s", hd_lower_argument(l),
                      hd_lower_int(l, "reverse", 0) ? "_reverse" : "",
                      hd_lower_int(l, "exclusive", 0) ? "_exclusive" : "");
  const hd_value_t *y = hd_lower_around(l, x, axis);
  y = y ? hd_lower_unary(l, task, y) : NULL;
  return hd_lower_output(
      l, 0, hd_lower_unfold(l, y, x, axis, hd_lower_size(x, (int)axis)));
}
