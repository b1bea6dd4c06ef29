// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices of constants, turned where a product of few rows is faster then:
//
//   y = matmul(x, w)      w: f16[k, n], of constants
//
// becomes
//
//   t = transpose(w) { order = [1, 0] }
//   y = matmul(x, t) { tb = true }
//
// and t is computed once, for all runs. What is expected of either tells:
// neighbours along the sum are read 16 bytes at a time, to where they are
// multiplied, while those of a result's row go through shared memory, or to
// threads of their own.
#include "Fusion/Compose/TurnWeights.h"
#include "Fusion/Fuse.h"
#include "Graph/Names.h"
#include "Graph/Prepare.h"
#include "IR/Text/Library.h"
#include "Schedule/Template/Candidates.h"

#include <string.h>

// A little is within what prices are worth.
static const double WORTH = 0.9;

// Products, and which of their inputs the matrix is.
static const struct {
  const char *task;
  uint32_t matrix;
} products[] = {
    {"matmul", 1},         {"matmul_integer", 1}, {"norm_matmul", 1},
    {"rms_matmul", 1},     {"scaled_matmul", 2},  {"scaled_matmul_inverse", 2},
    {"centred_matmul", 3},
};

typedef struct turner {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *graph;
  hd_fusion_t *fusion;
  hd_ptr_map_t known;  // Values that depend on constants alone.
  hd_ptr_map_t turned; // Of those, to what they are turned.
  hd_key_map_t names;
  hd_key_map_t asked; // What was found of products alike, bool.
  HD_VEC(const hd_node_t *) nodes;
  bool any, explain;
} turner_t;

static void take_name(turner_t *t, const hd_value_t *value) {
  if (value)
    hd_name_unique(t->arena, &t->names, value->name);
}

static void look(turner_t *t) {
  const hd_graph_t *graph = t->graph;
  t->known = hd_graph_known(t->arena, graph);
  for (size_t i = 0; i < graph->inputs.size; i++)
    take_name(t, graph->inputs.data[i]);
  for (size_t i = 0; i < graph->constants.size; i++)
    take_name(t, graph->constants.data[i]);
  for (size_t i = 0; i < graph->nodes.size; i++)
    for (uint32_t k = 0; k < graph->nodes.data[i]->num_outputs; k++)
      take_name(t, graph->nodes.data[i]->outputs[k]);
}

// A value of the matrix' elements with its axes the other way round.
static const hd_value_t *turned_value(turner_t *t, const hd_value_t *matrix,
                                      const char *name) {
  hd_value_t *value = HD_ARENA_NEW(t->arena, hd_value_t);
  const hd_expr_t **shape = HD_ARENA_ARRAY(t->arena, const hd_expr_t *, 2);
  shape[0] = matrix->shape[1];
  shape[1] = matrix->shape[0];
  *value = (hd_value_t){.name = name,
                        .loc = matrix->loc,
                        .type = matrix->type,
                        .rank = 2,
                        .shape = shape};
  return value;
}

// Which input of a product its matrix is; 0: it is no product.
static uint32_t matrix_of(const turner_t *t, const hd_node_t *node) {
  for (size_t i = 0; node->task && i < sizeof(products) / sizeof(products[0]);
       i++)
    if (node->task == hd_library_task(t->module->context, products[i].task))
      return products[i].matrix;
  return 0;
}

static const hd_node_t *product_of(turner_t *t, const hd_node_t *product,
                                   const hd_value_t *turned) {
  hd_node_t *node = HD_ARENA_COPY(t->arena, hd_node_t, product);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(t->arena, const hd_value_t *, product->num_inputs);
  const hd_attribute_t **attributes = HD_ARENA_ARRAY(
      t->arena, const hd_attribute_t *, product->num_attributes + 1);
  hd_attribute_t *turns = HD_ARENA_NEW(t->arena, hd_attribute_t);
  for (uint32_t i = 0; i < product->num_inputs; i++)
    inputs[i] = i == matrix_of(t, product) ? turned : product->inputs[i];
  node->inputs = inputs;
  node->attributes = attributes;
  node->num_attributes = 0;
  for (uint32_t i = 0; i < product->num_attributes; i++)
    if (strcmp(product->attributes[i]->name, "tb") != 0)
      attributes[node->num_attributes++] = product->attributes[i];
  *turns = (hd_attribute_t){
      .name = "tb", .kind = HD_ATTRIBUTE_INT, .loc = product->loc, .u.i = 1};
  attributes[node->num_attributes++] = turns;
  return node;
}

const hd_node_t *hd_node_transposing(hd_context_t *context, hd_arena_t *arena,
                                     const hd_value_t *from,
                                     const hd_value_t *to,
                                     const unsigned *order, hd_loc_t loc) {
  unsigned rank = (unsigned)from->rank;
  hd_attribute_t *axes = HD_ARENA_NEW(arena, hd_attribute_t);
  int64_t *ints = HD_ARENA_ARRAY(arena, int64_t, rank);
  for (unsigned i = 0; i < rank; i++)
    ints[i] = order[i];
  *axes = (hd_attribute_t){.name = "order",
                           .kind = HD_ATTRIBUTE_INTS,
                           .loc = loc,
                           .count = rank,
                           .u.ints = ints};
  return hd_node_between(arena, "transpose",
                         hd_library_task(context, "transpose"), from, to, axes,
                         loc);
}

// Whether a node is a product with a matrix of constants that lies along the
// result.
static bool is_candidate(const turner_t *t, const hd_node_t *node) {
  uint32_t matrix = matrix_of(t, node);
  if (!matrix || node->schedule || node->pin || node->group ||
      node->inputs[matrix]->rank != 2 ||
      !hd_ptr_map_get(&t->known, node->inputs[matrix]))
    return false;
  const hd_attribute_t *tb = hd_node_attribute(node, "tb");
  return !(tb && tb->u.i);
}

// What the best candidate for a node is expected to take; 0: there is none.
static double price_of(turner_t *t, const hd_node_t *node) {
  hd_candidates_t found = {0};
  const hd_flattened_t *flattened = hd_fusion_flatten(t->fusion, node);
  return flattened &&
                 hd_task_candidates(t->module->context, t->arena,
                                    flattened->flat, 0, 0, &found) &&
                 found.size
             ? found.data[0].us
             : 0;
}

static bool is_faster(turner_t *t, const hd_node_t *node) {
  const hd_value_t *probe =
      turned_value(t, node->inputs[matrix_of(t, node)], "probe");
  double as_it_is = price_of(t, node);
  double turned = as_it_is > 0 ? price_of(t, product_of(t, node, probe)) : 0;
  return turned > 0 && turned < WORTH * as_it_is;
}

static bool is_worth_it(turner_t *t, const hd_node_t *node) {
  hd_buffer_t key;
  hd_buffer_init_local(&key, t->arena->budget);
  hd_node_key(&key, node);
  bool *faster = hd_key_map_find_name(&t->asked, hd_buffer_text(&key));
  if (!faster) {
    faster = HD_ARENA_NEW(t->arena, bool);
    *faster = is_faster(t, node);
    hd_key_map_set_name(
        t->arena, &t->asked,
        hd_arena_strndup(t->arena, hd_buffer_text(&key), key.size), faster);
  }
  hd_buffer_fini(&key);
  return *faster && hd_step(&t->module->context->steps, HD_STEP_FUSION,
                            "of '%s', turned for %s '%s'",
                            hd_value_label(node->inputs[matrix_of(t, node)]),
                            node->op, hd_node_label(node));
}

static const hd_value_t *turn(turner_t *t, const hd_node_t *node) {
  const hd_value_t *matrix = node->inputs[matrix_of(t, node)];
  const hd_value_t *turned = hd_ptr_map_get(&t->turned, matrix);
  if (turned)
    return turned;
  const char *name =
      hd_name_unique(t->arena, &t->names,
                     hd_arena_printf(t->arena, "%s_turned", matrix->name));
  turned = turned_value(t, matrix, name);
  hd_ptr_map_set(t->arena, &t->turned, matrix, turned);
  hd_vec_push(t->arena, &t->nodes,
              hd_node_transposing(t->module->context, t->arena, matrix, turned,
                                  (const unsigned[]){1, 0}, node->loc));
  if (t->explain)
    hd_remark(&t->module->context->diags, node->loc,
              "weights: '%s' is turned for %s '%s'", hd_value_label(matrix),
              node->op, hd_node_label(node));
  return turned;
}

const hd_graph_t *hd_graph_turn_weights(hd_fusion_t *fusion,
                                        const hd_graph_t *graph, bool explain) {
  turner_t t = {.module = fusion->module,
                .arena = fusion->arena,
                .graph = graph,
                .fusion = fusion,
                .explain = explain};
  look(&t);
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    if (is_candidate(&t, node) && is_worth_it(&t, node)) {
      node = product_of(&t, node, turn(&t, node));
      t.any = true;
    }
    hd_vec_push(t.arena, &t.nodes, node);
  }
  if (!t.any)
    return graph;
  hd_graph_t *made = HD_ARENA_COPY(t.arena, hd_graph_t, graph);
  made->nodes.data = t.nodes.data;
  made->nodes.size = t.nodes.size;
  made->nodes.capacity = t.nodes.capacity;
  return made;
}
