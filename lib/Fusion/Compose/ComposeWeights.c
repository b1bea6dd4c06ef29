// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a product's matrix is computed from, where that is smaller and it is
// faster to read that:
//
//   d = dequantize(q, scale, zero)     of 4 bits an element
//   w = reshape(d)                     of 16
//   y = matmul(x, w)
//
// becomes y = dequantize_product(q, scale, zero, x), whose task is all of
// theirs. From the matrix back, elementwise nodes and reshapes are looked at
// that nobody else reads, as far as their largest operands go; where what is
// read comes to the fewest bytes, the composite begins. It is made where its
// best candidate is expected to take less than the product's, and the time of a
// kernel for the matrix, if that is not computed once, from constants, for all
// runs: few rows are as fast as their matrix is read, many rows have other
// things to wait for.
#include "Fusion/Compose/ComposeState.h"
#include "Fusion/Compose/TurnWeights.h"
#include "Fusion/Fuse.h"
#include "Fusion/Passes.h"
#include "Graph/Prepare.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Template/Candidates.h"
#include "Schedule/Terms/Prepare.h"

enum { MOST_STEPS = 8 }; // From a matrix back.

typedef struct weights {
  hd_composer_t c;
  bool prepares;       // Of constants, which are computed once, for all runs.
  hd_ptr_map_t known;  // Values that do.
  hd_key_map_t prices; // Of flat tasks, by their texts: double.
  hd_product_forms_t forms;
  bool explain;
} weights_t;

static double bytes_read(const hd_node_t *node) {
  double bytes = 0;
  for (uint32_t i = 0; i < node->num_inputs; i++)
    bytes += node->inputs[i] ? hd_scheduled_bytes(node->inputs[i]) : 0;
  return bytes;
}

// Whether what a node gives has as many elements as one that it reads, of more
// bits.
static bool grows(const hd_node_t *node) {
  if (!node->task || node->num_outputs != 1 || !node->outputs[0])
    return false;
  double bits = hd_scalar_bits(node->outputs[0]->type);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (node->inputs[i] && hd_scalar_bits(node->inputs[i]->type) < bits &&
        hd_scheduled_bytes(node->inputs[i]) /
                hd_scalar_bits(node->inputs[i]->type) ==
            hd_scheduled_bytes(node->outputs[0]) / bits)
      return true;
  return false;
}

static bool any_grows(const hd_graph_t *graph) {
  for (size_t i = 0; i < graph->nodes.size; i++)
    if (grows(graph->nodes.data[i]))
      return true;
  return false;
}

// --- The matrix ---

// The value that a product's second operand is, as it is; NULL: the node is no
// product, or that is computed already.
static const hd_value_t *matrix_of(weights_t *w,
                                   const hd_composed_node_t *info) {
  const hd_task_t *flat = info->flat;
  if (!flat || flat->definitions.size != 1 || info->node->group ||
      flat->definitions.data[0]->kind != HD_DEFINE)
    return NULL;
  const hd_product_form_t *form =
      hd_product_forms_get(&w->forms, w->c.arena, flat->definitions.data[0]);
  return form && form->b.term->kind == HD_TERM_LOAD
             ? hd_node_input_of(info->node, flat, form->b.term->u.value)
             : NULL;
}

static const hd_value_t *largest_input(const hd_node_t *node) {
  const hd_value_t *largest = NULL;
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (node->inputs[i] && (!largest || hd_scheduled_bytes(node->inputs[i]) >
                                            hd_scheduled_bytes(largest)))
      largest = node->inputs[i];
  return largest;
}

// Puts the nodes into the set that the matrix is to be computed by. False where
// that reads no less.
static bool take_nodes(weights_t *w, const hd_value_t *matrix) {
  hd_composer_t *c = &w->c;
  const hd_composed_node_t *way[MOST_STEPS];
  unsigned steps = 0, best = 0;
  bool widens = false;
  double least = hd_scheduled_bytes(matrix), beside = 0;
  for (const hd_value_t *value = matrix; value && steps < MOST_STEPS;) {
    const hd_composed_node_t *info = hd_composer_giver(c, value);
    if (!info || info->composite || info->node->group || info->node->pin ||
        info->node->schedule || !hd_composer_is_read_once(&w->c, value) ||
        !(hd_node_is_reshape(info->node) || (info->is_pointwise && info->flat)))
      break;
    way[steps++] = info;
    widens |= grows(info->node);
    value = largest_input(info->node);
    double here = bytes_read(info->node) + beside;
    beside = value ? here - hd_scheduled_bytes(value) : here;
    if (widens && here < least) {
      least = here;
      best = steps;
    }
  }
  for (unsigned i = 0; i < best; i++) {
    size_t at = (size_t)(way[i] - c->nodes);
    c->in[at] = true;
    c->low = at < c->low ? at : c->low;
  }
  return best;
}

// --- What it takes ---

static double price_of(weights_t *w, hd_arena_t *arena, const hd_task_t *flat) {
  return hd_task_price(w->c.module->context, arena, flat, w->c.arena,
                       &w->prices);
}

// The matrix by a kernel of its own.
static double price_of_matrix(const weights_t *w, const hd_value_t *matrix,
                              double read) {
  const hd_machine_t *machine = &w->c.module->context->schedules->machine;
  if (w->prepares)
    return 0;
  return machine->launch +
         (hd_scheduled_bytes(matrix) + read) / machine->gbs * 1e-3;
}

static bool merge(weights_t *w, hd_arena_t *arena, hd_composite_t *out) {
  return hd_composer_merge_one(&w->c, arena, "product", out) &&
         out->merged.flat->definitions.size == 1;
}

// NULL, or why the set is not to be one node; nothing of it is kept.
static const char *obstacle(weights_t *w, hd_arena_t *arena,
                            const hd_composed_node_t *product,
                            const hd_value_t *matrix) {
  hd_composite_t tried;
  if (!merge(w, arena, &tried))
    return "it cannot be one task";
  double together = price_of(w, arena, tried.merged.flat);
  if (together == 0)
    return "no template answers where the matrix is computed";
  if (product->node->pin)
    return NULL;
  double apart = price_of(w, arena, product->flat);
  if (apart == 0)
    return NULL;
  double read = 0;
  for (size_t i = 0; i < tried.merged.inputs.size; i++)
    read += hd_scheduled_bytes(tried.merged.inputs.data[i]);
  double us = apart + price_of_matrix(w, matrix, read);
  return together < us
             ? NULL
             : hd_arena_printf(w->c.arena,
                               "%.2f us are expected where the matrix is "
                               "computed, %.2f us where it is read",
                               together, us);
}

static void explain(const weights_t *w, const hd_node_t *product,
                    const hd_value_t *matrix, const char *why) {
  hd_remark(&w->c.module->context->diags, product->loc,
            "weights: %s '%s' reads '%s': %s", product->op,
            hd_node_label(product), matrix->name, why);
}

static void compose_at(weights_t *w, size_t at) {
  hd_composer_t *c = &w->c;
  const hd_composed_node_t *product = &c->nodes[at];
  const hd_value_t *matrix = product->composite ? NULL : matrix_of(w, product);
  c->low = at;
  c->high = at + 1;
  if (!matrix || (w->prepares && !hd_ptr_map_get(&w->known, matrix)) ||
      !take_nodes(w, matrix))
    return;
  c->in[at] = true;
  hd_arena_t scratch;
  hd_arena_init_local(&scratch, &c->module->context->budget);
  const char *why = obstacle(w, &scratch, product, matrix);
  hd_arena_fini(&scratch);
  hd_composite_t *found = HD_ARENA_NEW(c->arena, hd_composite_t);
  if (why && w->explain)
    explain(w, product->node, matrix, why);
  if (!why && merge(w, c->arena, found) && hd_composer_asks(c, found)) {
    found->pin = product->node->pin;
    hd_composer_take(c, found);
  }
  for (size_t i = c->low; i < c->high; i++)
    c->in[i] = false;
}

const hd_graph_t *hd_graph_compose_weights(hd_fusion_t *fusion,
                                           const hd_graph_t *graph,
                                           bool prepares, bool explain) {
  const hd_schedule_options_t *options = fusion->module->context->schedules;
  if (!options || !options->machine.count || !any_grows(graph))
    return graph;
  weights_t w = {
      .c = {.module = fusion->module, .arena = fusion->arena, .graph = graph},
      .prepares = prepares,
      .forms = {.few = true},
      .explain = explain};
  hd_composer_look(&w.c, fusion);
  w.known = hd_graph_known(w.c.arena, graph);
  for (size_t i = 0; i < w.c.num_nodes; i++)
    compose_at(&w, i);
  return w.c.composites.size ? hd_composer_graph(&w.c, explain) : graph;
}

const hd_graph_t *hd_graph_fold_weights(hd_module_t *module,
                                        const hd_graph_t *graph, bool explain) {
  const hd_schedule_options_t *options = module->context->schedules;
  if (!options || !options->machine.count)
    return graph;
  hd_scheduler_t *scheduler = hd_scheduler_create(module, &module->arena);
  hd_fusion_t *fusion = hd_fusion_create(module, scheduler, graph);
  graph = hd_graph_compose_weights(fusion, graph, true, explain);
  return hd_graph_turn_weights(hd_fusion_create(module, scheduler, graph),
                               graph, explain);
}

bool hd_pass_fold_weights(hd_module_t *module, const hd_graph_t *graph,
                          const hd_pass_args_t *args, hd_item_t *version) {
  version->u.graph = hd_graph_check_tasks(module, graph)
                         ? hd_graph_fold_weights(module, graph, args->explain)
                         : NULL;
  return version->u.graph != NULL;
}
