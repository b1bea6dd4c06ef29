// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Views.h"

#include "IR/Text/Library.h"
#include "Schedule/Schedule.h"

// What views begin at multiples of, in bytes.
enum { VIEW_ALIGN = 16 };

// The tasks that concatenate [p, n, q] along n.
static bool is_concatenation(hd_context_t *context, const hd_node_t *node) {
  static const char *const names[] = {"concat2", "concat3", "concat4"};
  if (!node->task || node->num_inputs < 2 || node->num_inputs > HD_MAX_PARTS)
    return false;
  return node->task == hd_library_task(context, names[node->num_inputs - 2]);
}

bool hd_node_concatenates(hd_context_t *context, const hd_node_t *node,
                          int64_t offsets[HD_MAX_PARTS]) {
  if (!is_concatenation(context, node) || !node->outputs[0])
    return false;
  int64_t offset = 0, bits = (int64_t)hd_scalar_bits(node->outputs[0]->type);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    hd_tensor_type_t type = hd_scheduled_type(node->inputs[i]);
    int64_t count;
    if (!hd_shape_count(type.shape, type.rank, &count) || count == 0 ||
        type.shape[0] != 1 || bits < 8 ||
        offset % VIEW_ALIGN * (bits / 8) % VIEW_ALIGN)
      return false;
    offsets[i] = offset;
    offset += count;
  }
  return true;
}
