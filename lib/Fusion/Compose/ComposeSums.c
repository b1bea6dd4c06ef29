// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of matrices that a model writes by broadcasting, and a sum:
//
//   t = mul(x, y)            x: [m, 1, k], y: [1, n, k]
//   s = reduce_sum(t)        over k
//
// becomes s = reduce_sum_product(x, y), a sum of products like any other, and
// t, m * n * k elements, is nowhere. From a sum back, through reshapes that
// nobody else reads, to one product of two elements; what comes of both has to
// be a product of matrices, with rows and columns, for which templates answer,
// expected to take less than reading t: where it is computed as it is added,
// each of its elements costs about that.
#include "Fusion/Compose/ComposeState.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Template/Candidates.h"
#include "Schedule/Terms/Prepare.h"

enum { MOST_STEPS = 4 }; // From a sum back.

typedef struct sums {
  hd_composer_t c;
  hd_key_map_t prices; // Of flat tasks, by their texts: double.
  bool explain;
} sums_t;

static const hd_term_t *only_term(const hd_task_t *flat) {
  const hd_definition_t *d =
      flat && flat->definitions.size == 1 ? flat->definitions.data[0] : NULL;
  return d && d->kind == HD_DEFINE && d->num_targets == 1 ? d->term : NULL;
}

// Whether a node sums elements of one tensor, and does nothing else.
static bool is_sum(const hd_composed_node_t *info) {
  const hd_term_t *term = only_term(info->flat);
  return term && term->kind == HD_TERM_REDUCE && term->num_operands == 1 &&
         term->u.reduction->monoid->builtin == HD_MONOID_SUM &&
         info->node->num_inputs == 1 && !info->node->group &&
         !info->node->pin && term->operands[0]->kind == HD_TERM_LOAD;
}

static bool is_multiplication(const hd_composed_node_t *info) {
  const hd_term_t *term = only_term(info->flat);
  return term && info->is_pointwise && !info->node->group &&
         hd_flat_is_operator(term, HD_EXPR_MUL) &&
         term->operands[0]->kind == HD_TERM_LOAD &&
         term->operands[1]->kind == HD_TERM_LOAD &&
         term->operands[0]->u.value != term->operands[1]->u.value;
}

// Puts the sum and what it is of into the set; the product that the elements
// are, or NULL.
static const hd_value_t *take_nodes(sums_t *s, size_t at) {
  hd_composer_t *c = &s->c;
  size_t way[MOST_STEPS + 1];
  unsigned steps = 0;
  way[steps++] = at;
  const hd_value_t *value = c->nodes[at].node->inputs[0];
  while (steps <= MOST_STEPS && hd_composer_is_read_once(&s->c, value)) {
    const hd_composed_node_t *info = hd_composer_giver(c, value);
    bool multiplies = info && is_multiplication(info);
    if (!info || info->composite ||
        !(multiplies || hd_node_is_reshape(info->node)))
      return NULL;
    way[steps++] = (size_t)(info - c->nodes);
    if (!multiplies) {
      value = info->node->inputs[0];
      continue;
    }
    for (unsigned i = 0; i < steps; i++)
      c->in[way[i]] = true;
    c->low = way[steps - 1];
    return value;
  }
  return NULL;
}

static bool merge(sums_t *s, hd_arena_t *arena, hd_composite_t *out) {
  return hd_composer_merge_one(&s->c, arena, "product", out) &&
         out->merged.flat->definitions.size == 1;
}

// NULL, or why the set is not to be one node; nothing of it is kept.
static const char *obstacle(sums_t *s, hd_arena_t *arena,
                            const hd_value_t *product) {
  const hd_machine_t *machine = &s->c.module->context->schedules->machine;
  hd_composite_t tried;
  hd_product_form_t form;
  if (!merge(s, arena, &tried))
    return "they cannot be one task";
  const char *why = hd_product_form_find(
      arena, tried.merged.flat->definitions.data[0], &form);
  if (why)
    return why;
  double together = hd_task_price(s->c.module->context, arena,
                                  tried.merged.flat, s->c.arena, &s->prices);
  double apart =
      machine->launch + hd_scheduled_bytes(product) / machine->gbs * 1e-3;
  if (together == 0)
    return "no template answers";
  return together < apart
             ? NULL
             : hd_arena_printf(s->c.arena,
                               "%.2f us are expected of a product, %.2f us of "
                               "a sum",
                               together, apart);
}

static void compose_at(sums_t *s, size_t at) {
  hd_composer_t *c = &s->c;
  const hd_node_t *sum = c->nodes[at].node;
  c->low = at;
  c->high = at + 1;
  const hd_value_t *product = !c->nodes[at].composite && is_sum(&c->nodes[at])
                                  ? take_nodes(s, at)
                                  : NULL;
  if (!product)
    return;
  hd_arena_t scratch;
  hd_arena_init_local(&scratch, &c->module->context->budget);
  const char *why = obstacle(s, &scratch, product);
  if (why && s->explain)
    hd_remark(&c->module->context->diags, sum->loc,
              "sums: %s '%s' and what it adds stay two: %s", sum->op,
              hd_node_label(sum), why);
  hd_arena_fini(&scratch);
  hd_composite_t *found = HD_ARENA_NEW(c->arena, hd_composite_t);
  if (!why && merge(s, c->arena, found) && hd_composer_asks(c, found))
    hd_composer_take(c, found);
  for (size_t i = c->low; i < c->high; i++)
    c->in[i] = false;
}

const hd_graph_t *hd_graph_compose_sums(hd_fusion_t *fusion,
                                        const hd_graph_t *graph, bool explain) {
  const hd_schedule_options_t *options = fusion->module->context->schedules;
  if (!options || !options->machine.count)
    return graph;
  sums_t s = {
      .c = {.module = fusion->module, .arena = fusion->arena, .graph = graph},
      .explain = explain};
  hd_composer_look(&s.c, fusion);
  for (size_t i = 0; i < s.c.num_nodes; i++)
    compose_at(&s, i);
  return s.c.composites.size ? hd_composer_graph(&s.c, explain) : graph;
}
