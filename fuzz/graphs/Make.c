// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole graphs: nodes until there are enough, then outputs.
#include "Fuzz.h"

#include "IR/Graph/HostTensor.h"

#include <string.h>

static void begin(fuzz_graph_t *g, hd_context_t *context, uint64_t seed,
                  uint64_t index) {
  static const int64_t sizes[] = {1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9};
  static const int64_t large[] = {16, 24, 32, 33, 48, 64, 65, 130};
  static const hd_scalar_t types[] = {HD_F32, HD_F32, HD_F32,  HD_F32,
                                      HD_F32, HD_F16, HD_BF16, HD_F64};
  *g = (fuzz_graph_t){.context = context};
  hd_arena_init(&g->arena, &context->budget);
  // One step between, so that neighbours have nothing in common.
  g->random.state = seed ^ index * UINT64_C(0x9e3779b97f4a7c15);
  g->random.state = random_bits(&g->random);
  for (int i = 0; i < 4; i++)
    g->sizes[i] = sizes[fuzz_in(g, 0, 11)];
  // Past the tiles of products, and where rows have whole vectors.
  if (fuzz_once_in(g, 6))
    for (int i = 0; i < 2; i++)
      g->sizes[i] = large[fuzz_in(g, 0, 7)];
  g->type = types[fuzz_in(g, 0, 7)];
  g->wide = fuzz_once_in(g, 10);
  g->hollow = fuzz_once_in(g, 12);
}

// What nobody uses is asked for, but for a part, which is dead; and a part of
// what is used.
static void choose_outputs(fuzz_graph_t *g) {
  bool dead = fuzz_once_in(g, 4);
  fuzz_value_t *last = NULL;
  for (size_t i = 0; i < g->values.size; i++) {
    fuzz_value_t *v = g->values.data[i];
    if (!v->from)
      continue;
    last = v;
    if (v->users ? fuzz_once_in(g, 20) : !dead || !fuzz_once_in(g, 3))
      hd_vec_push(&g->arena, &g->outputs, v);
  }
  if (g->outputs.size == 0 && last)
    hd_vec_push(&g->arena, &g->outputs, last);
  // An input or a constant, or one twice.
  if (g->outputs.size && fuzz_once_in(g, 40))
    hd_vec_push(&g->arena, &g->outputs,
                g->values.data[fuzz_in(g, 0, (int64_t)g->values.size - 1)]);
}

void fuzz_make(fuzz_graph_t *g, hd_context_t *context, uint64_t seed,
               uint64_t index, unsigned nodes) {
  begin(g, context, seed, index);
  // Half of the graphs are mostly of motifs, half of single tasks.
  int64_t motifs = g->hollow ? 0 : fuzz_once_in(g, 2) ? 6 : 2;
  unsigned count =
      nodes < 4 ? nodes : (unsigned)fuzz_in(g, nodes / 2, nodes + nodes / 2);
  for (int tries = 0; g->nodes.size < count && tries < 400; tries++) {
    hd_budget_check(&context->budget);
    if (fuzz_in(g, 1, 8) <= motifs) {
      if (fuzz_once_in(g, 5))
        fuzz_pattern(g);
      else
        fuzz_motif(g);
      continue;
    }
    const char *task = fuzz_tasks[fuzz_in(g, 0, (int64_t)fuzz_num_tasks - 3)];
    if (fuzz_rule_has(fuzz_rule_of(task), "motif"))
      continue;
    fuzz_value_t *first = NULL;
    if (g->values.size && !fuzz_once_in(g, 4))
      first = g->values.data[fuzz_in(g, 0, (int64_t)g->values.size - 1)];
    if (!fuzz_pick(g, task, first) && first)
      fuzz_pick(g, task, NULL);
  }
  choose_outputs(g);
}

void fuzz_end(fuzz_graph_t *g) {
  for (size_t i = 0; i < g->tensors.size; i++)
    hd_host_tensor_fini(g->tensors.data[i]);
  for (size_t i = 0; i < g->bodies.size; i++)
    fuzz_end(g->bodies.data[i]);
  hd_arena_fini(&g->arena);
}

// Leaves that nothing uses and nobody asks for are left out.
static bool is_asked(const fuzz_graph_t *g, const fuzz_value_t *v) {
  bool asked = false;
  for (size_t i = 0; i < g->outputs.size; i++)
    asked |= g->outputs.data[i] == v;
  for (size_t i = 0; i < g->nodes.size; i++)
    for (uint32_t k = 0; k < g->nodes.data[i]->node.num_inputs; k++)
      asked |= g->nodes.data[i]->inputs[k] == v;
  return asked;
}

const hd_graph_t *fuzz_ir(fuzz_graph_t *g) {
  hd_graph_t *graph = HD_ARENA_NEW(&g->arena, hd_graph_t);
  graph->name = "main";
  for (size_t i = 0; i < g->values.size; i++) {
    const fuzz_value_t *v = g->values.data[i];
    if (v->from || !is_asked(g, v))
      continue;
    if (v->constant)
      hd_vec_push(&g->arena, &graph->constants, v->value);
    else
      hd_vec_push(&g->arena, &graph->inputs, v->value);
  }
  for (size_t i = 0; i < g->nodes.size; i++)
    hd_vec_push(&g->arena, &graph->nodes, &g->nodes.data[i]->node);
  for (size_t i = 0; i < g->outputs.size; i++)
    hd_vec_push(&g->arena, &graph->outputs, g->outputs.data[i]->value);
  return graph;
}
