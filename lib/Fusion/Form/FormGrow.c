// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a group begins and takes epilogues.
#include "Fusion/Form/FormState.h"
#include "Fusion/Group/GroupRows.h"
#include "Fusion/Views.h"
#include "Schedule/Attention/Attention.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Rows/Rows.h"
#include "Schedule/Rules/Slide.h"

// Why a group that had a node will not have it again.
static const char by_bytes[] =
    "its elements, of less than a byte, are stored by whole bytes";
static const char by_readers[] =
    "what it is made of is stored anyway, so that who reads it computes it";

void hd_former_add(hd_former_t *f, uint32_t node, uint32_t group) {
  hd_vec_push(f->arena, &f->groups.data[group].members, node);
  f->first_grouped = node < f->first_grouped ? node : f->first_grouped;
}

uint32_t hd_former_begin(hd_former_t *f, uint32_t anchor) {
  hd_forming_t forming = {.group =
                              hd_group_begin(f->fusion, f->nodes[anchor].node),
                          .anchor = anchor};
  const hd_node_t *node = f->nodes[anchor].node;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i] && hd_value_is_packed(node->outputs[i]))
      forming.closed = by_bytes;
  hd_vec_push(f->arena, &f->groups, forming);
  uint32_t group = (uint32_t)f->groups.size - 1;
  f->nodes[anchor].group = group;
  hd_former_add(f, anchor, group);
  return group;
}

// A step of the compilation: --bisect may ask to leave it out.
bool hd_former_asks(hd_former_t *f, uint32_t node, uint32_t group) {
  const hd_node_t *n = f->nodes[node].node;
  const hd_node_t *anchor = f->nodes[f->groups.data[group].anchor].node;
  return hd_step(&f->module->context->steps, HD_STEP_FUSION,
                 "of %s '%s' into %s '%s'", n->op, hd_node_label(n), anchor->op,
                 hd_node_label(anchor));
}

// A test of --bisect may put another node in the place of one that joins.
void hd_former_plant(hd_former_t *f, uint32_t number, uint32_t group,
                     bool is_epilogue) {
  const hd_node_t *node = f->nodes[number].node;
  const hd_node_t *made =
      hd_step_made(&f->module->context->steps, f->module, node);
  if (made == node)
    return;
  f->nodes[number].node = made;
  for (uint32_t i = 0; i < made->num_outputs; i++)
    if (made->outputs[i])
      hd_ptr_map_set(f->arena, &f->fusion->givers, made->outputs[i], made);
  if (is_epilogue) {
    hd_group_drop_epilogue(f->groups.data[group].group, node);
    hd_group_add_epilogue(f->groups.data[group].group, made);
  }
}

void hd_former_join(hd_former_t *f, uint32_t node, uint32_t group) {
  f->nodes[node].group = group;
  hd_former_add(f, node, group);
}

static hd_refusal_t *refusal_of(hd_former_t *f, uint32_t node, uint32_t group) {
  hd_formed_t *formed = &f->nodes[node];
  for (size_t i = 0; i < formed->no_epilogue.size; i++)
    if (formed->no_epilogue.data[i].group == group)
      return &formed->no_epilogue.data[i];
  return NULL;
}

// Those for what an anchor computes; nodes that compute the same share a task.
static const hd_candidates_t *candidates_of(hd_former_t *f,
                                            const hd_task_t *flat) {
  hd_candidates_t *all = hd_ptr_map_find(&f->candidates, flat);
  if (all)
    return all;
  all = HD_ARENA_NEW(f->arena, hd_candidates_t);
  if (!hd_task_candidates(f->module->context, f->arena, flat, 0, 0, all))
    all->size = 0;
  hd_ptr_map_set(f->arena, &f->candidates, flat, all);
  return all;
}

// Whether a node is rows of so few neighbours that a candidate for the group's
// anchor, a product, stores whole ones from lanes side by side, and takes less
// with the rows than the best one and a launch.
static bool may_be_rows(hd_former_t *f, uint32_t node, uint32_t group) {
  const hd_node_t *anchor = f->nodes[f->groups.data[group].anchor].node;
  const hd_node_t *n = f->nodes[node].node;
  const hd_schedule_options_t *options = f->module->context->schedules;
  hd_rows_t rows;
  if (!options || !options->machine.count) // No GPU is meant.
    return false;
  const hd_flattened_t *of =
      n->task && !n->schedule ? hd_fusion_flatten(f->fusion, n) : NULL;
  if (!of || !anchor->task || anchor->schedule ||
      !hd_group_rows_find(f->arena, of->flat, &rows))
    return false;
  const hd_flattened_t *product = hd_fusion_flatten(f->fusion, anchor);
  const hd_candidates_t *all = product ? candidates_of(f, product->flat) : NULL;
  const hd_candidate_t *has =
      all ? hd_candidates_with_rows(all, rows.element.points) : NULL;
  return has && has->us < all->data[0].us + options->machine.launch;
}

// What of a group a node reads is an epilogue, or rows of neighbours.
static const char *add_reader(hd_former_t *f, uint32_t node, uint32_t group) {
  hd_group_t *g = f->groups.data[group].group;
  return f->nodes[node].why ? hd_group_add_rows(g, f->nodes[node].node)
                            : hd_group_add_epilogue(g, f->nodes[node].node);
}

static void drop_reader(hd_former_t *f, uint32_t node, uint32_t group) {
  hd_group_t *g = f->groups.data[group].group;
  if (f->nodes[node].why)
    hd_group_drop_rows(g, f->nodes[node].node);
  else
    hd_group_drop_epilogue(g, f->nodes[node].node);
}

static const char *try_epilogue(hd_former_t *f, uint32_t node, uint32_t group) {
  const char *why = f->nodes[node].why;
  if (why && may_be_rows(f, node, group))
    why = NULL;
  const hd_refusal_t *before = refusal_of(f, node, group);
  if (!why && before && (before->why == by_bytes || before->why == by_readers))
    why = before->why;
  if (!why)
    why = hd_former_cycle(f, node, group);
  if (!why)
    why = add_reader(f, node, group);
  if (!why && !hd_former_asks(f, node, group)) {
    drop_reader(f, node, group);
    why = "it was not asked for";
  }
  return why;
}

// A node may be tried again for the same group.
static void refuse(hd_former_t *f, uint32_t node, uint32_t group,
                   const char *why) {
  hd_refusal_t *before = refusal_of(f, node, group), refusal = {group, why};
  if (before)
    before->why = why;
  else
    hd_vec_push(f->arena, &f->nodes[node].no_epilogue, refusal);
}

// Those that read what a member gives, as far as they can be joined. A node
// that was refused is asked again where more of what it reads has joined.
static void grow_from(hd_former_t *f, const hd_value_t *value, uint32_t group) {
  const hd_numbers_t *users = &hd_former_uses(f, value)->nodes;
  for (size_t i = 0; i < users->size; i++) {
    uint32_t user = users->data[i];
    if (f->nodes[user].group)
      continue;
    hd_budget_check(&f->module->context->budget);
    const char *why = try_epilogue(f, user, group);
    if (why) {
      refuse(f, user, group, why);
      continue;
    }
    hd_former_plant(f, user, group, true);
    hd_former_join(f, user, group);
  }
}

const char *hd_former_read_again(hd_former_t *f, const hd_node_t *anchor,
                                 uint32_t output) {
  const hd_flattened_t *flattened = anchor->task && !anchor->schedule
                                        ? hd_fusion_flatten(f->fusion, anchor)
                                        : NULL;
  if (!flattened)
    return NULL;
  const hd_task_t *flat = flattened->flat;
  for (size_t i = 0; i < flat->definitions.size; i++)
    if (hd_flat_reads(flat->definitions.data[i]->term,
                      flat->outputs.data[output]))
      return "it reads its own results again";
  return NULL;
}

static void refuse_readers(hd_former_t *f, const hd_value_t *value,
                           uint32_t group, const char *why) {
  const hd_numbers_t *users = &hd_former_uses(f, value)->nodes;
  for (size_t i = 0; i < users->size; i++)
    refuse(f, users->data[i], group, why);
}

static void take_epilogues(hd_former_t *f, uint32_t group) {
  for (size_t i = 0; i < f->groups.data[group].members.size; i++) {
    const hd_node_t *node =
        f->nodes[f->groups.data[group].members.data[i]].node;
    for (uint32_t k = 0; k < node->num_outputs; k++) {
      const char *why = i == 0 ? hd_former_read_again(f, node, k) : NULL;
      if (node->outputs[k] && why)
        refuse_readers(f, node->outputs[k], group, why);
      else if (node->outputs[k])
        grow_from(f, node->outputs[k], group);
    }
  }
}

// Elements below a byte may be computed on the way, but not stored one by one.
static bool is_stored_by_bytes(const hd_forming_t *g, const hd_node_t *node) {
  return hd_value_is_packed(node->outputs[0]) &&
         hd_group_is_kept(g->group, node->outputs[0]);
}

// What a node computes of its first operand's elements.
typedef struct places {
  const hd_node_t *node;
  const hd_task_t *flat;
  const hd_definition_t *d;
  unsigned terms;
  bool kept; // Each by the element at the same place, and by little else.
} places_t;

enum {
  MOST_TERMS = 24,      // Of what is as soon computed again as loaded.
  LEAST_READERS = 1024, // Elements that an element of others serves: a scale.
};

static bool is_same_place(const hd_definition_t *d, const hd_term_t *load) {
  if (load->num_operands != d->num_indices)
    return false;
  for (uint32_t i = 0; i < d->num_indices; i++) {
    const hd_term_t *at = load->operands[i];
    if (!(at->kind == HD_TERM_INDEX && at->u.index == d->indices[i]) &&
        !(hd_flat_is_int(at, 0) && hd_flat_range(d->indices[i]) == 1))
      return false;
  }
  return true;
}

static bool note_place(void *argument, const hd_term_t *term) {
  places_t *p = argument;
  p->terms++;
  p->kept &= term->kind != HD_TERM_LOADELSE; // There are places without one.
  if (term->kind != HD_TERM_LOAD)
    return true;
  double all = hd_scheduled_count(p->node->outputs[0]);
  bool is_first = term->u.value == p->flat->inputs.data[0];
  for (size_t i = 1; i < p->flat->inputs.size; i++)
    if (term->u.value == p->flat->inputs.data[i])
      p->kept &= hd_scheduled_count(p->node->inputs[i]) * LEAST_READERS <= all;
  p->kept &= !is_first || is_same_place(p->d, term);
  return !is_first; // Its indices are known.
}

// Whether a node computes each element of its first operand's at the same
// place.
static bool keeps_places(hd_former_t *f, const hd_node_t *node) {
  hd_pointwise_t p;
  if (hd_fusion_pointwise(f->fusion, node, &p) || !p.definition ||
      p.flat->inputs.size != node->num_inputs)
    return false;
  places_t places = {node, p.flat, p.definition, 0, true};
  hd_flat_walk(p.definition->term, note_place, &places);
  return places.kept && places.terms <= MOST_TERMS;
}

// Whether a node reduces a few elements for each of its result, which its
// kernel loads one by one: a pool. Products copy what they read.
static bool reduces_few(hd_former_t *f, const hd_node_t *node) {
  const hd_flattened_t *flattened =
      node->task && !node->schedule ? hd_fusion_flatten(f->fusion, node) : NULL;
  if (!flattened || flattened->flat->definitions.size != 1)
    return false;
  const hd_definition_t *d = flattened->flat->definitions.data[0];
  hd_contraction_t sum;
  hd_slide_t slide;
  return d->kind == HD_DEFINE &&
         !hd_product_contraction_find(f->arena, d, &sum) &&
         hd_slide_find(f->arena, d, &slide);
}

// Whether a node is made of rows, whose kernel loads each element by itself.
static bool is_of_rows(hd_former_t *f, const hd_node_t *node) {
  hd_flattened_t *flattened =
      node->task && !node->schedule ? hd_fusion_flatten(f->fusion, node) : NULL;
  hd_rows_t *rows = flattened ? HD_ARENA_NEW(f->arena, hd_rows_t) : NULL;
  return rows && !hd_flattened_attention(f->arena, flattened) &&
         hd_rows_first(f->arena, flattened->flat, rows);
}

// Whether every reader computes with single elements, at places that it knows;
// in rows, too, where those are bytes in memory.
static bool is_read_by_elements(hd_former_t *f, const hd_value_t *value,
                                bool of_bytes) {
  const hd_uses_t *uses = hd_former_uses(f, value);
  hd_concatenation_t c;
  for (size_t i = 0; i < uses->nodes.size; i++) {
    const hd_formed_t *reader = &f->nodes[uses->nodes.data[i]];
    if ((reader->why && !reduces_few(f, reader->node) &&
         !(of_bytes && is_of_rows(f, reader->node))) ||
        hd_node_is_reshape(reader->node) ||
        hd_fusion_reads_by_data(f->fusion, reader->node, value) ||
        hd_node_concatenates(f->fusion->scheduler, reader->node, &c))
      return false;
  }
  return !uses->is_output;
}

// A value in a wider type is not stored beside the value: a residual in f16 or
// i8, which a product reads, is converted where it is added in f32. Nor is it
// stored in the value's place.
static bool is_wider_copy(hd_former_t *f, const hd_forming_t *g,
                          const hd_node_t *node) {
  const hd_value_t *from = node->inputs[0], *to = node->outputs[0];
  size_t more = hd_scalar_bits(to->type), less = hd_scalar_bits(from->type);
  return (hd_group_is_kept(g->group, from) ? more >= less : more > less) &&
         keeps_places(f, node) && hd_group_is_kept(g->group, to) &&
         !hd_group_reader(g->group, to, 0) &&
         hd_former_uses(f, from)->giver >= 0 &&
         is_read_by_elements(f, to, less <= 8);
}

// The first epilogue that is better not one, and why; the number of members:
// there is none.
static size_t first_unwanted(hd_former_t *f, uint32_t group, const char **why) {
  const hd_forming_t *g = &f->groups.data[group];
  for (size_t i = 1; i < g->members.size; i++) {
    const hd_node_t *node = f->nodes[g->members.data[i]].node;
    if (is_stored_by_bytes(g, node))
      *why = by_bytes;
    else if (node->num_outputs == 1 &&
             (is_wider_copy(f, g, node) || hd_former_is_spread(f, g, node)))
      *why = by_readers;
    else
      continue;
    return i;
  }
  return g->members.size;
}

// Whether one is taken out again, with all that came after it.
static bool withdraw(hd_former_t *f, uint32_t group) {
  hd_forming_t *g = &f->groups.data[group];
  const char *why;
  size_t first = first_unwanted(f, group, &why);
  if (first == g->members.size)
    return false;
  refuse(f, g->members.data[first], group, why);
  while (g->members.size > first) {
    uint32_t last = g->members.data[--g->members.size];
    drop_reader(f, last, group);
    f->nodes[last].group = 0;
  }
  return true;
}

void hd_former_grow(hd_former_t *f, uint32_t group) {
  if (f->groups.data[group].closed)
    return;
  do
    take_epilogues(f, group);
  while (withdraw(f, group));
}
