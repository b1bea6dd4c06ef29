// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values and nodes in the place of a loop.
#include "Fusion/Loops/ScanState.h"
#include "Fusion/Shaped.h"
#include "Graph/Names.h"
#include "IR/Text/Library.h"
#include "Schedule/Schedule.h"

void hd_scan_set_outer(hd_scanner_t *s, const hd_value_t *value,
                       const hd_value_t *outside, bool turned) {
  hd_scan_outer_t *outer = HD_ARENA_NEW(s->arena, hd_scan_outer_t);
  *outer = (hd_scan_outer_t){outside, turned};
  hd_ptr_map_set(s->arena, &s->outer, value, outer);
}

const hd_value_t *hd_scan_value(hd_scanner_t *s, const hd_value_t *like,
                                int64_t steps) {
  hd_tensor_type_t type = hd_scheduled_type(like);
  int64_t shape[HD_MAX_RANK + 1];
  unsigned rank = 0;
  if (steps)
    shape[rank++] = steps;
  for (unsigned i = 0; i < type.rank; i++)
    shape[rank++] = type.shape[i];
  return hd_value_make(s->arena,
                       hd_name_unique(s->arena, &s->names, like->name),
                       like->type, shape, rank, like->loc);
}

void hd_scan_put_reshape(hd_scanner_t *s, const hd_value_t *from,
                         const hd_value_t *to) {
  hd_vec_push(s->arena, &s->nodes,
              (const hd_node_t *)hd_node_between(s->arena, "reshape", NULL,
                                                 from, to, NULL, s->node->loc));
}

static void put_scanned(void *argument, const hd_node_t *node) {
  hd_scanner_t *s = argument;
  hd_vec_push(s->arena, &s->nodes, node);
}

void hd_scan_put_task(hd_scanner_t *s, const hd_task_t *flat, const char *name,
                      const hd_value_t *const *inputs,
                      const hd_value_t *const *outputs) {
  const hd_task_t *task =
      hd_task_shared(s->arena, s->module, &s->tasks, flat, name);
  hd_node_t node = {.op = task->name,
                    .task = task,
                    .label = s->node->label,
                    .loc = s->node->loc,
                    .num_inputs = (uint32_t)flat->inputs.size,
                    .inputs = inputs,
                    .num_outputs = (uint32_t)flat->outputs.size,
                    .outputs = outputs};
  hd_put_shaped(s->arena, &s->names, &node, put_scanned, s);
}

void hd_scan_put_copy(hd_scanner_t *s, const hd_value_t *from,
                      const hd_value_t *to) {
  hd_vec_push(s->arena, &s->nodes,
              (const hd_node_t *)hd_node_between(
                  s->arena, "copy", hd_library_task(s->module->context, "copy"),
                  from, to, NULL, s->node->loc));
}
