// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs and outputs that are one, in an executable (Fusion/InPlace.h).
#include "Runtime/ModelState.h"

hd_inouts_t hd_model_inouts(const hd_model_t *m, hd_turn_t *run,
                            const hd_graph_t *graph) {
  const hd_inouts_t *all = &m->options.inouts;
  hd_inout_t *pairs =
      HD_ARENA_ARRAY(&run->values.arena, hd_inout_t, all->count + 1);
  hd_inouts_t found = {pairs, 0};
  for (size_t i = 0; i < all->count; i++)
    for (uint32_t k = 0; k < graph->inputs.size; k++)
      if (graph->inputs.data[k] == hd_turn_input(run, all->pairs[i].input))
        pairs[found.count++] = (hd_inout_t){k, all->pairs[i].output};
  return found;
}

void hd_model_note_outputs(hd_turn_t *run, const bool *planned) {
  hd_arena_t *arena = &run->values.arena;
  const hd_model_segment_t *segment = &run->segment;
  size_t count = segment->graph->outputs.size;
  bool *given = HD_ARENA_ARRAY(arena, bool, count + 1);
  int *stored_in = HD_ARENA_ARRAY(arena, int, count + 1);
  for (size_t i = 0; i < count; i++) {
    given[i] = planned[i];
    stored_in[i] = -1;
  }
  for (size_t i = 0; i < segment->inouts.count; i++) {
    hd_inout_t pair = segment->inouts.pairs[i];
    if (segment->program.entry->params[pair.input]->direction != HD_DIR_INOUT)
      continue;
    given[pair.output] = false;
    stored_in[pair.output] = (int)pair.input;
  }
  run->planned = given;
  run->stored_in = stored_in;
}
