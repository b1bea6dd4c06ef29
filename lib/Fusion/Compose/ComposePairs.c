// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two products of one operand that meet element by element become one kernel,
// a product and its gate:
//
//   g = matmul(x, w)      s = swish(g)
//   u = matmul(x, v)      y = mul(s, u)
//
// becomes
//
//   m = pairs(w, v)
//   y = matmul_pairs(x, m)
//
// where m has the columns of w and v in turns, which are constants.
// The task is that of Schedule/Product/Pairs.h. So does one product of which
// two halves meet, y = p[:, :n] * gelu(p[:, n:]), and one whose columns stand
// in pairs already, of any operands.
//
// From a product, and from another one like it, the graph is walked along
// elementwise nodes until what comes of both meets in one. What lies between is
// taken if nobody else reads anything of it, and if that is expected to take
// less than the products do.
#include "Fusion/Compose/ComposePairs.h"

#include "Fusion/Fuse.h"
#include "Graph/Prepare.h"
#include "Schedule/Product/Pairs.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Template/Candidates.h"
#include "Schedule/Terms/Prepare.h"

#include <string.h>

enum { MOST_BETWEEN = 60 }; // Nodes, of the graph's order.

// Few rows want neighbours of the matrix along the sum, and others take it so
// for little more: then a device has it once for both.
static const double WORTH = 0.98;

// What of the two products a node follows from: the elements of one, or those
// of a product as a whole, of which parts are taken.
enum { OF_FIRST = 1, OF_SECOND = 2, OF_WHOLE = 4 };

typedef struct pairs {
  hd_composer_t c;
  hd_ptr_map_t known;  // Values that depend on constants alone.
  hd_key_map_t prices; // Of flat tasks, by their texts: double.
  hd_key_map_t asked;  // What was found of tasks alike, verdict_t.
  hd_product_forms_t forms;
  hd_packer_t packer;
  size_t first;                       // The product that is looked at.
  unsigned char of[MOST_BETWEEN + 1]; // From there on.
  bool explain;
} pairs_t;

// What was found of merged nodes.
typedef struct verdict {
  const char *why; // They are not one; NULL: they are.
  hd_packing_t packing;
  double us; // Expected then, and as they are.
  double apart;
} verdict_t;

static bool is_free(const hd_composed_node_t *info) {
  return !info->composite && !info->node->group && !info->node->schedule;
}

// Whether a node gives one result that is read, its first.
static bool gives_one(const hd_node_t *node) {
  for (uint32_t i = 1; i < node->num_outputs; i++)
    if (node->outputs[i])
      return false;
  return node->num_outputs && node->outputs[0];
}

// A product, or one of rows that are normalized by the squares of their parts.
static bool is_product(pairs_t *p, const hd_composed_node_t *info) {
  const hd_task_t *flat = info->flat;
  hd_product_form_t form;
  if (!flat || !is_free(info) || !gives_one(info->node))
    return false;
  if (flat->definitions.size == 2)
    return !hd_normed_form_find(p->c.arena, flat, &form) &&
           form.normed->parts && !form.normed->centred;
  return flat->definitions.size == 1 &&
         flat->definitions.data[0]->kind == HD_DEFINE &&
         hd_product_forms_get(&p->forms, p->c.arena, flat->definitions.data[0]);
}

// What a value is a reshape of.
static const hd_value_t *base_of(const pairs_t *p, const hd_value_t *value) {
  const hd_composed_node_t *giver;
  while ((giver = hd_composer_giver(&p->c, value)) != NULL &&
         hd_node_is_reshape(giver->node))
    value = giver->node->inputs[0];
  return value;
}

// Whether two products compute the same, of operands of which some are the same
// and some are not.
static bool are_alike(const pairs_t *p, const hd_node_t *a,
                      const hd_node_t *b) {
  if (!a->task || a->task != b->task || a->num_inputs != b->num_inputs ||
      (a->pin == NULL) != (b->pin == NULL))
    return false;
  unsigned others = 0;
  for (uint32_t i = 0; i < a->num_inputs; i++)
    others += base_of(p, a->inputs[i]) != base_of(p, b->inputs[i]);
  if (others == 0 || others == a->num_inputs)
    return false;
  hd_buffer_t keys[2] = {{0}, {0}};
  hd_node_key(&keys[0], a);
  hd_node_key(&keys[1], b);
  bool same = strcmp(hd_buffer_text(&keys[0]), hd_buffer_text(&keys[1])) == 0;
  hd_buffer_fini(&keys[0]);
  hd_buffer_fini(&keys[1]);
  return same;
}

// --- The nodes between ---

static unsigned of_value(const pairs_t *p, const hd_value_t *value) {
  const hd_composed_node_t *giver = hd_composer_giver(&p->c, value);
  size_t at = giver ? (size_t)(giver - p->c.nodes) : 0;
  return giver && at >= p->first && at < p->c.high ? p->of[at - p->first] : 0;
}

// Whether a node's elements are half as many as those that it reads.
static bool is_half(const hd_node_t *node) {
  return node->num_inputs == 1 && hd_scheduled_count(node->outputs[0]) * 2 ==
                                      hd_scheduled_count(node->inputs[0]);
}

// What a node follows from; halves: so many halves of the product so far.
static unsigned find_of(const pairs_t *p, const hd_composed_node_t *info,
                        unsigned *halves) {
  unsigned of = 0;
  for (uint32_t k = 0; k < info->node->num_inputs; k++)
    of |= of_value(p, info->node->inputs[k]);
  bool computes =
      hd_node_is_reshape(info->node) || (info->is_pointwise && info->flat);
  if (!of || !computes || !is_free(info) || info->node->pin)
    return 0;
  if (of == OF_WHOLE && is_half(info->node))
    return *halves < 2 ? 1u << (*halves)++ : 0;
  return of;
}

static bool is_read_in_set(const pairs_t *p, const hd_node_t *node) {
  const hd_numbers_t *readers = hd_ptr_map_get(&p->c.readers, node->outputs[0]);
  for (size_t i = 0; readers && i < readers->size; i++)
    if (p->c.in[readers->data[i]])
      return true;
  return false;
}

// Puts what lies between the products and the node where they meet into the
// set. NULL, or why that is more than one kernel.
static const char *take_between(pairs_t *p, size_t last) {
  hd_composer_t *c = &p->c;
  c->high = last + 1;
  c->in[last] = true;
  for (size_t i = last; i-- > c->low;)
    c->in[i] = p->of[i - p->first] && is_read_in_set(p, c->nodes[i].node);
  for (size_t i = c->low; i < last; i++)
    if (c->in[i] &&
        hd_composer_is_read_outside(c, c->nodes[i].node->outputs[0]))
      return hd_arena_printf(c->arena, "'%s' is read by others, too",
                             hd_value_label(c->nodes[i].node->outputs[0]));
  return NULL;
}

// Adds what one value of constants is made of by itself, for nobody else:
// matrices that were turned for the products one by one are read as they were.
static void take_way_to(pairs_t *p, const hd_value_t *value) {
  hd_composer_t *c = &p->c;
  const hd_composed_node_t *info;
  while (
      (info = hd_composer_giver(c, value)) != NULL &&
      hd_ptr_map_get(&p->known, value) && is_free(info) && !info->node->pin &&
      info->node->num_inputs == 1 &&
      hd_type_is_float(hd_type(info->node->inputs[0]->type)) &&
      (hd_node_is_reshape(info->node) || (info->is_pointwise && info->flat)) &&
      !hd_composer_is_read_outside(c, info->node->outputs[0])) {
    size_t at = (size_t)(info - c->nodes);
    c->in[at] = true;
    c->low = at < c->low ? at : c->low;
    value = info->node->inputs[0];
  }
}

static void take_matrices(pairs_t *p, size_t second) {
  const hd_node_t *nodes[] = {p->c.nodes[p->first].node,
                              p->c.nodes[second].node};
  for (int i = 0; i < 2; i++)
    for (uint32_t k = 0; k < nodes[i]->num_inputs; k++)
      take_way_to(p, nodes[i]->inputs[k]);
}

static void clear(pairs_t *p) {
  for (size_t i = p->c.low; i < p->c.high; i++)
    p->c.in[i] = false;
}

// --- What it takes ---

static double price_of(pairs_t *p, hd_arena_t *scratch, const hd_task_t *flat) {
  return hd_task_price(p->c.module->context, scratch, flat, p->c.arena,
                       &p->prices);
}

// Of pairs by what the products' pin allows.
static double price_of_pairs(pairs_t *p, hd_arena_t *scratch,
                             const hd_task_t *flat, const hd_pin_t *pin) {
  hd_product_form_t form;
  hd_candidates_t found = {0};
  hd_refusals_t refused = {0};
  if (!pin)
    return price_of(p, scratch, flat);
  if (strcmp(pin->name, HD_PIN_RULES) == 0 ||
      hd_pairs_form_find(scratch, flat, &form))
    return 0;
  hd_form_t asked = hd_product_form_ask(scratch, &form);
  return hd_candidates_find(p->c.module->context, scratch, &asked, pin, &found,
                            &refused) &&
                 found.size
             ? found.data[0].us
             : 0;
}

// Of the products as they are; where it is one, what reads it has a kernel of
// its own.
static double price_apart(pairs_t *p, hd_arena_t *scratch, size_t second,
                          const hd_value_t *met) {
  const hd_composed_node_t *nodes = p->c.nodes;
  const hd_machine_t *machine = &p->c.module->context->schedules->machine;
  double us = price_of(p, scratch, nodes[p->first].flat);
  if (us > 0 && second) {
    double other = price_of(p, scratch, nodes[second].flat);
    return other > 0 ? us + other : 0;
  }
  double bytes = hd_scheduled_bytes(nodes[p->first].node->outputs[0]) +
                 hd_scheduled_bytes(met);
  return us > 0 ? us + machine->launch + bytes / machine->gbs * 1e-3 : 0;
}

// Whether a product's matrix is computed from fewer bits where it is read.
static bool is_narrow(hd_arena_t *arena, const hd_task_t *flat) {
  hd_product_form_t form;
  return flat->definitions.size == 1 &&
         !hd_product_form_find_few(arena, flat->definitions.data[0], &form) &&
         form.b.kept < hd_scalar_bits(form.type);
}

static void judge(pairs_t *p, hd_arena_t *scratch, const hd_merged_t *merged,
                  size_t second, verdict_t *v) {
  const hd_node_t *first = p->c.nodes[p->first].node;
  // What is pinned is read as it was.
  hd_packing_t packing =
      first->pin || is_narrow(scratch, p->c.nodes[p->first].flat)
          ? HD_PACK_PARTS
          : HD_PACK_ROWS;
  for (; packing < HD_PACKINGS; packing++) {
    hd_paired_t paired;
    const char *why =
        hd_pair_task(scratch, merged, &p->known, packing, &paired);
    double us =
        why ? 0 : price_of_pairs(p, scratch, paired.merged.flat, first->pin);
    if (us > 0 && (v->us == 0 || us < WORTH * v->us)) {
      v->us = us;
      v->packing = packing;
    }
    if (why)
      v->why = hd_arena_strndup(p->c.arena, why, strlen(why));
    if (first->pin)
      break;
  }
  v->why = v->us > 0 ? NULL : v->why;
  if (v->why)
    return;
  const hd_composed_node_t *last = &p->c.nodes[p->c.high - 1];
  v->apart = price_apart(p, scratch, second, last->node->outputs[0]);
  if (v->us == 0)
    v->why = "no template answers for both";
  else if (!first->pin && v->apart > 0 && v->us >= v->apart)
    v->why = hd_arena_printf(p->c.arena,
                             "%.2f us are expected of one kernel, %.2f us as "
                             "they are",
                             v->us, v->apart);
}

// What is asked of a task is asked once: a model's layers are alike, if their
// products have the same pin.
static const verdict_t *verdict_of(pairs_t *p, hd_arena_t *scratch,
                                   const hd_merged_t *merged, size_t second) {
  hd_buffer_t text;
  hd_buffer_init_local(&text, scratch->budget);
  hd_node_key(&text, p->c.nodes[p->first].node);
  hd_task_print(merged->flat, &text);
  for (size_t i = 0; i < merged->inputs.size; i++)
    hd_buffer_puts(&text, hd_ptr_map_get(&p->known, merged->inputs.data[i])
                              ? " known"
                              : " given");
  verdict_t *v = hd_key_map_find_name(&p->asked, hd_buffer_text(&text));
  if (!v) {
    v = HD_ARENA_NEW(p->c.arena, verdict_t);
    judge(p, scratch, merged, second, v);
    hd_key_map_set_name(
        p->c.arena, &p->asked,
        hd_arena_strndup(p->c.arena, hd_buffer_text(&text), text.size), v);
  }
  hd_buffer_fini(&text);
  return v;
}

static void explain(pairs_t *p, size_t second, const verdict_t *v) {
  const hd_node_t *first = p->c.nodes[p->first].node;
  hd_diagnostics_t *diags = &p->c.module->context->diags;
  const char *and =
      second ? hd_arena_printf(p->c.arena, " and '%s'",
                               hd_node_label(p->c.nodes[second].node))
             : "";
  if (v->why)
    hd_remark(diags, first->loc, "pairs: not one kernel, %s '%s'%s: %s",
              first->op, hd_node_label(first), and, v->why);
  else
    hd_remark(diags, first->loc,
              "pairs: one kernel, %s '%s'%s: %.2f us are expected, %.2f us as "
              "they were",
              first->op, hd_node_label(first), and, v->us, v->apart);
}

// Makes one node of the set, if that is worth it.
static void compose(pairs_t *p, size_t second) {
  hd_composer_t *c = &p->c;
  hd_arena_t scratch;
  hd_composite_t tried;
  hd_arena_init_local(&scratch, &c->module->context->budget);
  const verdict_t *v = hd_composer_merge_one(&p->c, &scratch, "pairs", &tried)
                           ? verdict_of(p, &scratch, &tried.merged, second)
                           : NULL;
  hd_arena_fini(&scratch);
  if (v && p->explain)
    explain(p, second, v);
  if (!v || v->why)
    return;
  hd_composite_t *found = HD_ARENA_NEW(c->arena, hd_composite_t);
  hd_paired_t paired;
  if (!hd_composer_merge_one(c, c->arena, "pairs", found) ||
      !hd_composer_asks(c, found) ||
      hd_pair_task(c->arena, &found->merged, &p->known, v->packing, &paired))
    return;
  const hd_node_t *first = c->nodes[p->first].node;
  found->merged = paired.merged;
  found->pin = first->pin;
  while (found->members[found->lead] != p->first)
    found->lead++;
  size_t packed = 0;
  for (size_t i = 0; i < found->merged.inputs.size; i++)
    if (!found->merged.inputs.data[i])
      found->merged.inputs.data[i] = hd_pack_columns(
          &p->packer, &paired.packings.data[packed++], first->loc);
  hd_composer_take(c, found);
}

// --- The search ---

// Where what comes of both meets, the first place that nothing leads out of
// before; second: 0, halves of the first. False where there is none.
static bool compose_from(pairs_t *p, size_t first, size_t second) {
  hd_composer_t *c = &p->c;
  size_t left = c->num_nodes - first;
  size_t end = first + (left > MOST_BETWEEN ? MOST_BETWEEN : left);
  verdict_t refused = {0};
  unsigned halves = 0;
  p->first = first;
  memset(p->of, 0, sizeof(p->of));
  p->of[0] = second ? OF_FIRST : OF_WHOLE;
  for (size_t i = first + 1; i < end; i++) {
    c->low = first;
    c->high = end;
    unsigned of = i == second ? OF_SECOND : find_of(p, &c->nodes[i], &halves);
    p->of[i - first] = (unsigned char)of;
    if (of != (OF_FIRST | OF_SECOND))
      continue;
    const char *why = take_between(p, i);
    if (!why && !c->nodes[first].node->pin)
      take_matrices(p, second ? second : first);
    if (!why)
      compose(p, second);
    clear(p);
    if (!why)
      return true;
    refused.why = refused.why ? refused.why : why;
  }
  if (refused.why && p->explain)
    explain(p, second, &refused);
  return false;
}

// With the first product like this one, of the same operand, that it meets.
static bool compose_with_twin(pairs_t *p, size_t first) {
  size_t left = p->c.num_nodes - first;
  size_t end = first + (left > MOST_BETWEEN ? MOST_BETWEEN : left);
  for (size_t i = first + 1; i < end; i++)
    if (are_alike(p, p->c.nodes[first].node, p->c.nodes[i].node) &&
        is_product(p, &p->c.nodes[i]) && compose_from(p, first, i))
      return true;
  return false;
}

const hd_graph_t *hd_graph_pair_products(hd_module_t *module,
                                         const hd_graph_t *graph,
                                         bool explain) {
  const hd_schedule_options_t *options = module->context->schedules;
  if (!options || !options->machine.count)
    return graph;
  hd_fusion_t *fusion = hd_fusion_create(
      module, hd_scheduler_create(module, &module->arena), graph);
  pairs_t p = {.c = {.module = module, .arena = &module->arena, .graph = graph},
               .forms = {.few = true},
               .explain = explain};
  hd_composer_look(&p.c, fusion);
  p.known = hd_graph_known(p.c.arena, graph);
  hd_packer_begin(&p.packer, &p.c);
  for (size_t i = 0; i < p.c.num_nodes; i++) {
    if (is_product(&p, &p.c.nodes[i]) && !compose_with_twin(&p, i))
      compose_from(&p, i, 0);
  }
  return p.c.composites.size ? hd_composer_graph(&p.c, explain) : graph;
}
