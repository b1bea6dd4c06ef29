// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses over classes.
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

// x: [n, c, ..s], target: [n, ..s].
static bool class_loss(hd_lowering_t *l, const hd_value_t *x) {
  static const struct {
    const char *reduction, *task;
  } tasks[] = {{"mean", "class_loss_mean"},
               {"sum", "class_loss_sum"},
               {"none", "class_loss"}};
  const hd_value_t *weight = hd_lower_input(l, 2);
  const char *reduction = hd_lower_string(l, "reduction", "mean");
  if (x->rank < 2)
    return hd_lower_invalid(l, "a tensor of rank %d has no classes", x->rank);
  if (!weight) {
    int64_t classes = hd_lower_size(x, 1);
    weight = hd_lower_scalar(l, x->type, 1);
    weight = weight ? hd_lower_expand(l, weight, &classes, 1) : NULL;
  }
  if (!weight)
    return false;
  const hd_value_t *inputs[] = {x, hd_lower_input(l, 1), weight};
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "ignored",
                    hd_lower_int(l, "ignore_index", INT64_MIN));
  for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
    if (strcmp(reduction, tasks[i].reduction) == 0) {
      const hd_value_t *y =
          hd_lower_task(l, tasks[i].task, inputs, 3, &list, NULL);
      return hd_lower_output(l, 0, y);
    }
  return hd_lower_invalid(l, "reduction is '%s'", reduction);
}

bool hd_onnx_negative_log_likelihood(hd_lowering_t *l) {
  return class_loss(l, hd_lower_input(l, 0));
}

bool hd_onnx_softmax_cross_entropy(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "s", 1);
  if (x->rank < 2)
    return hd_lower_invalid(l, "a tensor of rank %d has no classes", x->rank);
  x = hd_lower_task(l, "log_softmax", &x, 1, &list, NULL);
  return x && class_loss(l, x) &&
         (!hd_lower_wants_output(l, 1) || hd_lower_output(l, 1, x));
}
