// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/InOut.h"

#include <string.h>

static size_t find_value(const char *name, const hd_value_t *const *values,
                         size_t count) {
  size_t i = 0;
  while (i < count && strcmp(hd_value_label(values[i]), name) != 0 &&
         strcmp(values[i]->name, name) != 0)
    i++;
  return i;
}

static bool fits(const hd_value_t *input, const hd_value_t *output) {
  bool tensors =
      input->form == HD_HOLDS_TENSOR && output->form == HD_HOLDS_TENSOR;
  return tensors && input->type != HD_VOID &&
         hd_scalar_bits(input->type) >= 8 &&
         (output->type == HD_VOID || output->type == input->type) &&
         input->rank >= 0 && (output->rank < 0 || output->rank == input->rank);
}

static bool is_free(const hd_inouts_t *inouts, hd_inout_t pair) {
  for (size_t i = 0; i < inouts->count; i++)
    if (inouts->pairs[i].input == pair.input ||
        inouts->pairs[i].output == pair.output)
      return false;
  return true;
}

const char *hd_inouts_add(hd_arena_t *arena, const hd_graph_t *graph,
                          const char *input, const char *output,
                          hd_inouts_t *inouts) {
  hd_inout_t pair = {
      (uint32_t)find_value(input, graph->inputs.data, graph->inputs.size),
      (uint32_t)find_value(output, graph->outputs.data, graph->outputs.size)};
  if (pair.input == graph->inputs.size)
    return "the model has no such input";
  if (pair.output == graph->outputs.size)
    return "the model has no such output";
  if (!fits(graph->inputs.data[pair.input], graph->outputs.data[pair.output]))
    return "an input and an output that are one are tensors of one type, of a "
           "byte or more, and of as many axes";
  if (!is_free(inouts, pair))
    return "an input or an output is one with another already";
  hd_inout_t *pairs = HD_ARENA_ARRAY(arena, hd_inout_t, inouts->count + 1);
  if (inouts->count)
    memcpy(pairs, inouts->pairs, inouts->count * sizeof(*pairs));
  pairs[inouts->count] = pair;
  *inouts = (hd_inouts_t){pairs, inouts->count + 1};
  return NULL;
}
