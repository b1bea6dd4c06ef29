// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of products whose rows are no multiples of 16 bytes. No tensor maps
// take them, copies of 8 or 4 bytes are many, and where rows are no multiples
// of these either each of their elements would pass through registers, once for
// every tile that needs it. They are copied once, to rows that are multiples of
// 16 bytes:
//
//   y[i, j] = sum(p: 1021) a[i, p] * b[p, j: 1021]
//
// becomes
//
//   a_rows[i, e: 1024] = a[i, e] else 0
//   b_rows[e: 1024, f: 1024] = b[e, f] else 0
//   y[i, j] = sum(p: 1024) a_rows[i, p] * b_rows[p, j]
//
// The sum goes over the zeros, too, and of rows along the result what is behind
// them is not used. So are the channels of an image whose windows are summed
// over, which are its rows then. It is done where the product is expected to
// take so much less that it pays for the copies; those of constants are made
// once, for all runs. What will be one kernel with other products stays as it
// is.
#include "Fusion/Compose/Compose.h"
#include "Fusion/Fuse.h"
#include "Fusion/Layout/LayoutState.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Template/Candidates.h"
#include "Schedule/Terms/Side.h"

#include <string.h>

enum {
  LINE_BITS = 1024,
  LAUNCHES = 2 // That a kernel before another takes as long as, to be there.
};

typedef struct operand {
  const hd_term_t *load;
  const hd_value_t *value;
  int64_t shape[HD_MAX_RANK]; // Of the copy.
  bool changes;
  const hd_task_value_t *made; // That the new task reads.
} operand_t;

typedef struct row_padding {
  hd_layouts_t *l;
  const hd_node_t *node;
  const hd_task_t *flat;
  const hd_definition_t *d;
  const hd_index_t *k, *filled; // Of the sum; what stands for it, or itself.
  operand_t operands[2];
} row_padding_t;

// --- Which products ---

// What rows run along: the last axis that is not of one element.
static uint32_t row_axis(const hd_task_value_t *tensor) {
  uint32_t axis = tensor->rank - 1;
  while (axis > 0 && hd_flat_size(tensor, axis) == 1)
    axis--;
  return axis;
}

// An operand that is an element of an input, at plain places.
static bool find_operand(const row_padding_t *p, const hd_term_t *term,
                         operand_t *o) {
  o->load = term->kind == HD_TERM_CAST ? term->operands[0] : term;
  if (!hd_is_image(o->load))
    return false;
  const hd_task_value_t *tensor = o->load->u.value;
  o->value = hd_node_input_of(p->node, p->flat, tensor);
  if (!o->value || hd_value_is_packed(o->value) || tensor->rank < 2 ||
      !hd_layout_is_read_once(p->d->term, tensor))
    return false;
  for (uint32_t a = 0; a < tensor->rank; a++)
    o->shape[a] = hd_flat_size(tensor, a);
  uint32_t last = row_axis(tensor);
  const hd_term_t *place = o->load->operands[last];
  return place->kind == HD_TERM_INDEX &&
         hd_flat_range(place->u.index) == o->shape[last];
}

static int64_t multiple_of(int64_t size, int64_t piece) {
  return (size + piece - 1) / piece * piece;
}

// Elements of a row that is a multiple of 16 bytes; where it has to be made
// longer, and that is little, of lines of the L2 cache, for pieces of two take
// longer.
static int64_t filled_up(int64_t size, hd_scalar_t type) {
  int64_t bits = (int64_t)hd_scalar_bits(type);
  int64_t filled = multiple_of(size, HD_LAYOUT_PIECE_BITS / bits);
  int64_t lines = multiple_of(size, LINE_BITS / bits);
  return filled != size && lines - size <= size / 8 ? lines : filled;
}

// What is last in memory is filled up.
static void fill_rows(row_padding_t *p, operand_t *o) {
  const hd_task_value_t *tensor = o->load->u.value;
  uint32_t last = row_axis(tensor);
  int64_t size = filled_up(o->shape[last], tensor->type.scalar);
  if (size == o->shape[last])
    return;
  const hd_index_t *index = o->load->operands[last]->u.index;
  o->shape[last] = size;
  o->changes = true;
  if (index == p->k)
    p->filled = hd_flat_index_make(p->l->arena, p->k->name, size);
}

// And what is summed over in both operands alike.
static bool fill_sum(const row_padding_t *p, operand_t *o) {
  const hd_task_value_t *tensor = o->load->u.value;
  unsigned found = 0;
  for (uint32_t a = 0; a < tensor->rank; a++) {
    const hd_term_t *place = o->load->operands[a];
    if (place->kind != HD_TERM_INDEX || place->u.index != p->k ||
        hd_flat_size(tensor, a) != hd_flat_range(p->k))
      continue;
    o->changes |= p->filled != p->k;
    o->shape[a] = hd_flat_range(p->filled);
    found++;
  }
  return found == 1 && hd_layout_count_places(o->load, p->k) == 1;
}

// Of a sum over several indices the one that rows run along: channels.
static const hd_index_t *find_summed(const row_padding_t *p,
                                     const hd_axis_t *k) {
  for (int i = 0; i < 2; i++) {
    const hd_term_t *load = p->operands[i].load;
    const hd_index_t *last = load->operands[row_axis(load->u.value)]->u.index;
    for (unsigned n = 0; n < k->count; n++)
      if (k->indices[n] == last)
        return last;
  }
  return k->indices[0];
}

static bool find_product(row_padding_t *p) {
  hd_contraction_t sum;
  if (!p->flat || p->flat->definitions.size != 1 || p->node->pin)
    return false;
  p->d = p->flat->definitions.data[0];
  if (p->d->kind != HD_DEFINE ||
      !hd_contraction_find_few(p->l->arena, p->d, &sum) || sum.k.count < 1 ||
      !find_operand(p, sum.a, &p->operands[0]) ||
      !find_operand(p, sum.b, &p->operands[1]))
    return false;
  p->filled = p->k = find_summed(p, &sum.k);
  fill_rows(p, &p->operands[0]);
  fill_rows(p, &p->operands[1]);
  return (p->operands[0].changes || p->operands[1].changes) &&
         fill_sum(p, &p->operands[0]) && fill_sum(p, &p->operands[1]);
}

// --- The tasks ---

static const hd_task_t *copy_task(hd_arena_t *arena, const operand_t *o) {
  const hd_task_value_t *x = o->load->u.value;
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, x->rank);
  const hd_term_t *places[HD_MAX_RANK];
  for (uint32_t a = 0; a < x->rank; a++) {
    indices[a] = hd_flat_index_make(arena, hd_arena_printf(arena, "at%u", a),
                                    o->shape[a]);
    places[a] = hd_layout_index_term(arena, indices[a]);
  }
  return hd_layouts_copying_task(arena, x, o->shape, x->rank, indices, places);
}

// For hd_flat_rewrite().
static const hd_term_t *read_rows(void *argument, const hd_term_t *term) {
  const row_padding_t *p = argument;
  hd_arena_t *arena = p->l->arena;
  if (term->kind == HD_TERM_INDEX && term->u.index == p->k)
    return hd_flat_index(arena, p->filled);
  hd_term_t *made = hd_flat_like(arena, term, term->operands);
  for (int i = 0; i < 2; i++)
    if (hd_flat_is_load(term) &&
        term->u.value == p->operands[i].load->u.value) {
      made->u.value = p->operands[i].made;
      return made;
    }
  if (term->kind != HD_TERM_REDUCE)
    return term;
  hd_reduction_t *reduction =
      HD_ARENA_COPY(arena, hd_reduction_t, term->u.reduction);
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, reduction->num_indices);
  for (uint32_t i = 0; i < reduction->num_indices; i++)
    indices[i] =
        reduction->indices[i] == p->k ? p->filled : reduction->indices[i];
  reduction->indices = indices;
  made->u.reduction = reduction;
  return made;
}

static const hd_task_t *product_task(row_padding_t *p) {
  hd_arena_t *arena = p->l->arena;
  hd_task_t *task = hd_flat_emptied(arena, p->flat);
  for (size_t i = 0; i < p->flat->inputs.size; i++) {
    const hd_task_value_t *input = p->flat->inputs.data[i];
    for (int k = 0; k < 2; k++) {
      operand_t *o = &p->operands[k];
      if (o->load->u.value == p->flat->inputs.data[i])
        input = o->made =
            o->changes
                ? hd_flat_value_make(arena, input->name, HD_VALUE_INPUT,
                                     input->type.scalar, o->shape, input->rank)
                : input;
    }
    hd_vec_push(arena, &task->inputs, input);
  }
  hd_definition_t *d = HD_ARENA_COPY(arena, hd_definition_t, p->d);
  d->term = hd_flat_rewrite(arena, p->d->term, read_rows, p);
  hd_vec_push(arena, &task->definitions, (const hd_definition_t *)d);
  return task;
}

// --- What it is worth ---

double hd_layouts_price(hd_layouts_t *l, const hd_task_t *flat) {
  return hd_task_price(l->module->context, l->arena, flat, l->arena,
                       &l->prices);
}

static const char *copy_key(hd_layouts_t *l, const operand_t *o) {
  const char *key = o->value->name;
  for (uint32_t a = 0; a < o->load->u.value->rank; a++)
    key = hd_arena_printf(l->arena, "%s %lld", key, (long long)o->shape[a]);
  return key;
}

double hd_layouts_price_of_copy(const hd_layouts_t *l,
                                const hd_task_value_t *from,
                                const hd_task_value_t *to) {
  const hd_machine_t *machine = &l->module->context->schedules->machine;
  double bytes = ((double)hd_flat_count(to) + (double)hd_flat_count(from)) *
                 (double)hd_scalar_bits(to->type.scalar) / 8;
  return LAUNCHES * machine->launch + bytes / machine->gbs * 1e-3;
}

static double price_of_copy(hd_layouts_t *l, const operand_t *o) {
  if (!o->changes || hd_laid_value(l, o->value)->prepared ||
      hd_key_map_find_name(&l->copies, copy_key(l, o)))
    return 0;
  return hd_layouts_price_of_copy(l, o->load->u.value, o->made);
}

static bool is_worth_it(row_padding_t *p, const hd_task_t *task, bool explain) {
  hd_layouts_t *l = p->l;
  double before = hd_layouts_price(l, p->flat),
         after = hd_layouts_price(l, task);
  if (before == 0 || after == 0)
    return false;
  double copies =
      price_of_copy(l, &p->operands[0]) + price_of_copy(l, &p->operands[1]);
  bool worth = after + copies < before;
  if (explain)
    hd_remark(&l->module->context->diags, p->node->loc,
              "layout: %.2f us are expected of %s '%s' by rows of whole 16 "
              "bytes and %.2f us of copies to such, %.2f us as it is: %s",
              after, p->node->op, hd_node_label(p->node), copies, before,
              worth ? "copied" : "left");
  return worth && hd_step(&l->module->context->steps, HD_STEP_FUSION,
                          "of %s '%s', whose operands get rows of whole 16 "
                          "bytes",
                          p->node->op, hd_node_label(p->node));
}

// --- The graph ---

static const hd_value_t *copy_of(row_padding_t *p, const operand_t *o) {
  hd_layouts_t *l = p->l;
  if (!o->changes)
    return o->value;
  const char *key = copy_key(l, o);
  const hd_value_t *known = hd_key_map_find_name(&l->copies, key);
  if (known)
    return known;
  const hd_value_t *copy = hd_layouts_put_copy(
      l, o->value, copy_task(l->arena, o), "rows", p->node->loc);
  hd_key_map_set_name(l->arena, &l->copies, key, copy);
  return copy;
}

static void put_product(row_padding_t *p, const hd_task_t *task) {
  hd_layouts_t *l = p->l;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(l->arena, const hd_value_t *, p->node->num_inputs);
  for (uint32_t i = 0; i < p->node->num_inputs; i++) {
    inputs[i] = p->node->inputs[i];
    for (int k = 0; k < 2; k++)
      if (p->operands[k].load->u.value == p->flat->inputs.data[i])
        inputs[i] = copy_of(p, &p->operands[k]);
  }
  hd_layouts_put_task(l, p->node, task, "rows", inputs, p->node->outputs);
}

// Whether any product could be meant, before others are asked about them.
static bool any_product(hd_layouts_t *l) {
  for (size_t i = 0; i < l->graph->nodes.size; i++) {
    row_padding_t p = {
        .l = l, .node = l->graph->nodes.data[i], .flat = l->flats[i]};
    if (find_product(&p))
      return true;
  }
  return false;
}

const hd_graph_t *hd_layouts_pad_rows(hd_layouts_t *l, bool explain) {
  hd_ptr_map_t composed = {0};
  bool any = false;
  if (!any_product(l))
    return l->graph;
  hd_fusion_t *fusion = hd_fusion_create(
      l->module, hd_scheduler_create(l->module, l->arena), l->graph);
  hd_graph_find_composed(fusion, l->graph, &composed);
  hd_layouts_begin(l);
  for (size_t i = 0; i < l->graph->nodes.size; i++) {
    row_padding_t p = {
        .l = l, .node = l->graph->nodes.data[i], .flat = l->flats[i]};
    const hd_task_t *task =
        !hd_ptr_map_get(&composed, p.node) && find_product(&p)
            ? product_task(&p)
            : NULL;
    if (task && is_worth_it(&p, task, explain)) {
      put_product(&p, task);
      any = true;
    } else {
      hd_vec_push(l->arena, &l->made->nodes, p.node);
    }
  }
  return any ? l->made : l->graph;
}
