// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows by matrices that an index chooses, where a template orders the rows by
// their matrices (Schedule/Grouped/Grouped.h):
//
//   g = gather_rows(w, at)             t = matmul(x, w)
//   v = reshape(g)              or     u = reshape(t)
//   y = matmul(v, x)                   y = choose_parts(u, at)
//
// becomes y = grouped_product(x, w, at), whose task is all of theirs: each row
// by a matrix of its own, or by all matrices, of which the chosen one's part is
// taken. From the last node back, what gathers, repeats or reshapes and the
// product are taken that nobody else reads. It is made where it is expected to
// take less.
#include "Fusion/Compose/ComposeState.h"
#include "Fusion/Fuse.h"
#include "Schedule/Grouped/Grouped.h"
#include "Schedule/Rules/Contract.h"
#include "Schedule/Template/Candidates.h"
#include "Schedule/Terms/Prepare.h"

enum { MOST_DEPTH = 6 }; // From the last node back.

typedef struct chosen {
  hd_composer_t c;
  hd_key_map_t prices; // Of flat tasks, by their texts: double.
  bool gathers;        // The set at hand reads where an index says,
  size_t product;      // and has this product; num_nodes: none.
} chosen_t;

static const hd_term_t *only_term(const hd_composed_node_t *info) {
  const hd_task_t *flat = info->flat;
  return flat && flat->definitions.size == 1 &&
                 flat->definitions.data[0]->kind == HD_DEFINE
             ? flat->definitions.data[0]->term
             : NULL;
}

// Whether a node moves elements alone.
static bool moves(const hd_composed_node_t *info) {
  const hd_term_t *term = only_term(info);
  return hd_node_is_reshape(info->node) ||
         (term && info->is_pointwise && term->kind == HD_TERM_LOAD);
}

static bool gathers(const hd_composed_node_t *info) {
  const hd_term_t *term = only_term(info);
  bool found = false;
  for (uint32_t i = 0; term && info->is_pointwise && i < term->num_operands;
       i++)
    found |= term->kind == HD_TERM_LOAD &&
             hd_flat_has(term->operands[i], HD_TERM_LOAD);
  return found;
}

static bool is_product(const chosen_t *f, const hd_composed_node_t *info) {
  hd_contraction_t found;
  return only_term(info) && !info->is_pointwise &&
         hd_contraction_find_few(f->c.arena, info->flat->definitions.data[0],
                                 &found);
}

static bool is_free(const hd_composed_node_t *info) {
  return !info->composite && !info->node->group && !info->node->pin &&
         !info->node->schedule;
}

static void take_node(chosen_t *f, size_t at) {
  f->c.in[at] = true;
  f->c.low = at < f->c.low ? at : f->c.low;
}

// Takes what gives the operands of a node, as far as it moves elements, and one
// product.
static void take_operands(chosen_t *f, const hd_node_t *node, unsigned depth) {
  hd_composer_t *c = &f->c;
  for (uint32_t i = 0; depth < MOST_DEPTH && i < node->num_inputs; i++) {
    const hd_composed_node_t *giver = hd_composer_giver(c, node->inputs[i]);
    if (!giver || !is_free(giver) ||
        !hd_composer_is_read_once(c, node->inputs[i]))
      continue;
    size_t at = (size_t)(giver - c->nodes);
    bool multiplies = f->product == c->num_nodes && is_product(f, giver);
    if (!multiplies && !moves(giver))
      continue;
    if (multiplies)
      f->product = at;
    f->gathers |= gathers(giver);
    take_node(f, at);
    take_operands(f, giver->node, depth + 1);
  }
}

// Microseconds of a kernel that moves what the last node gives.
static double price_of_moving(const chosen_t *f, const hd_value_t *value) {
  const hd_machine_t *machine = &f->c.module->context->schedules->machine;
  return machine->launch + 2 * hd_scheduled_bytes(value) / machine->gbs * 1e-3;
}

// NULL, or why the set is not to be one node; nothing of it is kept.
static const char *obstacle(chosen_t *f, hd_arena_t *arena, size_t last) {
  hd_context_t *context = f->c.module->context;
  hd_composite_t tried;
  hd_candidates_t found = {0};
  if (!hd_composer_merge_one(&f->c, arena, "grouped", &tried))
    return "it cannot be one task";
  hd_grouped_form_t form;
  const char *why = hd_grouped_form_find(arena, tried.merged.flat, &form);
  if (why)
    return hd_arena_printf(f->c.arena, "%s", why);
  if (!hd_task_candidates(context, arena, tried.merged.flat, 0, 0, &found) ||
      !found.size || found.data[0].template->form != HD_FORM_KIND_GROUPED)
    return "no template that orders rows is expected to be the best";
  double apart = hd_task_price(context, arena, f->c.nodes[f->product].flat,
                               f->c.arena, &f->prices);
  if (apart == 0)
    return NULL;
  if (last != f->product)
    apart += price_of_moving(f, f->c.nodes[last].node->outputs[0]);
  return found.data[0].us < apart
             ? NULL
             : hd_arena_printf(f->c.arena,
                               "%.2f us are expected where rows are ordered, "
                               "%.2f us where they are not",
                               found.data[0].us, apart);
}

static void compose_at(chosen_t *f, size_t at, bool explain) {
  hd_composer_t *c = &f->c;
  const hd_composed_node_t *last = &c->nodes[at];
  f->product = is_product(f, last) ? at : c->num_nodes;
  f->gathers = gathers(last);
  if (!is_free(last) || last->node->num_outputs != 1 ||
      (f->product != at && !f->gathers))
    return;
  c->low = at;
  c->high = at + 1;
  take_node(f, at);
  take_operands(f, last->node, 0);
  if (f->gathers && f->product < c->num_nodes) {
    hd_arena_t scratch;
    hd_arena_init_local(&scratch, &c->module->context->budget);
    const char *why = obstacle(f, &scratch, at);
    hd_arena_fini(&scratch);
    hd_composite_t *found = HD_ARENA_NEW(c->arena, hd_composite_t);
    if (why && explain)
      hd_remark(&c->module->context->diags, last->node->loc,
                "grouped: not %s '%s': %s", last->node->op,
                hd_node_label(last->node), why);
    if (!why && hd_composer_merge_one(c, c->arena, "grouped", found) &&
        hd_composer_asks(c, found))
      hd_composer_take(c, found);
  }
  for (size_t i = c->low; i < c->high; i++)
    c->in[i] = false;
}

// Whether a node may read elements of floats where integers say.
static bool may_gather(const hd_node_t *node) {
  bool places = false, elements = false;
  for (uint32_t i = 0; node->task && i < node->num_inputs; i++) {
    hd_scalar_t type = node->inputs[i] ? node->inputs[i]->type : HD_VOID;
    places |= type == HD_I64 || type == HD_I32;
    elements |= hd_scalar_class(type) == HD_CLASS_FLOAT;
  }
  return places && elements;
}

static bool any_gathers(const hd_graph_t *graph) {
  for (size_t i = 0; i < graph->nodes.size; i++)
    if (may_gather(graph->nodes.data[i]))
      return true;
  return false;
}

const hd_graph_t *hd_graph_compose_chosen(hd_fusion_t *fusion,
                                          const hd_graph_t *graph,
                                          bool explain) {
  const hd_schedule_options_t *options = fusion->module->context->schedules;
  if (!options || !options->machine.count || !any_gathers(graph))
    return graph;
  chosen_t f = {
      .c = {.module = fusion->module, .arena = fusion->arena, .graph = graph}};
  hd_composer_look(&f.c, fusion);
  for (size_t i = f.c.num_nodes; i-- > 0;)
    compose_at(&f, i, explain);
  return f.c.composites.size ? hd_composer_graph(&f.c, explain) : graph;
}
