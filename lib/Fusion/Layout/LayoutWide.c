// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that are copied to longer rows (LayoutRows.c), and made by kernels
// from constants along these:
//
//   x[i, j: 18] = max(sum(p) a[i, p] * w[j, p] + b[j], 0)
//   x_rows[i, e: 24] = x[i, e] else 0
//
// are made in such rows at once, by constants that are filled up instead:
//
//   x_wide[i, j: 24] = j < 18 ? max(sum(p) a[i, p] * w_wide[j, p] + b_wide[j],
//   0)
//                             : 0
//
// and so is what is between, and what is added on the way, if it is such a
// value itself; else zeros stand for what it lacks. Who reads x element by
// element reads x_wide. What is a view of x is none of longer rows: then the
// copy stays.
#include "Fusion/Fuse.h"
#include "Fusion/Layout/LayoutState.h"

#include <string.h>

typedef struct wide {
  const hd_value_t *value;
  int64_t width;
  bool is_shown; // Behind its own elements are zeros, for the sums that
  const hd_value_t *made; // go on there. What stands for it.
} wide_t;

typedef struct widening {
  hd_layouts_t *l;
  hd_ptr_map_t givers; // Numbers of nodes, and 1, by the values they give.
  hd_ptr_map_t wides;  // By values: wide_t.
  HD_VEC(wide_t *) tried;
  hd_ptr_map_t made; // What stands for copies.
} widening_t;

static int64_t size_of(const hd_value_t *value, unsigned axis) {
  return hd_scheduled_type(value).shape[axis];
}

static int64_t last_size(const hd_value_t *value) {
  return size_of(value, (unsigned)value->rank - 1);
}

// The definition of a node that is one, of one tensor in memory; NULL.
static const hd_definition_t *only_definition(const widening_t *w, size_t n) {
  const hd_task_t *flat = w->l->flats[n];
  const hd_node_t *node = w->l->graph->nodes.data[n];
  return flat && !node->pin && !node->schedule && node->num_outputs == 1 &&
                 node->outputs[0] && flat->definitions.size == 1 &&
                 flat->definitions.data[0]->kind == HD_DEFINE &&
                 flat->definitions.data[0]->num_targets == 1
             ? flat->definitions.data[0]
             : NULL;
}

// What a node copies to longer rows, zeros behind it; NULL: it does not.
static const hd_value_t *copied(const widening_t *w, size_t n) {
  const hd_definition_t *d = only_definition(w, n);
  if (!d || d->term->kind != HD_TERM_LOADELSE || d->num_indices < 2)
    return NULL;
  const hd_task_value_t *x = d->term->u.value;
  const hd_term_t *behind = d->term->operands[x->rank];
  if (x->rank != d->num_indices || behind->kind != HD_TERM_CONST ||
      (hd_type_is_float(hd_type(behind->type.scalar)) ? behind->u.f != 0
                                                      : behind->u.i != 0))
    return NULL;
  for (uint32_t a = 0; a < x->rank; a++) {
    const hd_term_t *place = d->term->operands[a];
    int64_t range = hd_flat_range(d->indices[a]);
    bool is_same = place->kind == HD_TERM_INDEX
                       ? place->u.index == d->indices[a]
                       : hd_flat_is_int(place, 0) && range == 1;
    if (!is_same || (a + 1 < x->rank ? range != hd_flat_size(x, a)
                                     : range <= hd_flat_size(x, a)))
      return NULL;
  }
  return hd_node_input_of(w->l->graph->nodes.data[n], w->l->flats[n], x);
}

// --- Which values ---

typedef struct look {
  widening_t *w;
  size_t node;
  const hd_index_t *last; // Of the result.
  int64_t width;
  bool ok;
} look_t;

static bool try_widening(widening_t *w, const hd_value_t *value, int64_t width);

// An operand along the result's rows is a constant, or as wide itself, or read
// as far as it goes.
static bool look_at_operand(void *argument, const hd_term_t *term) {
  look_t *k = argument;
  hd_layouts_t *l = k->w->l;
  k->ok &= term->kind != HD_TERM_INDEX || term->u.index != k->last;
  if (!k->ok || !hd_flat_is_load(term))
    return k->ok;
  const hd_task_value_t *tensor = term->u.value;
  if (hd_layout_count_places(term, k->last) == 0)
    return true;
  uint32_t axis = 0;
  while (!hd_flat_uses(term->operands[axis], k->last))
    axis++;
  const hd_value_t *value = hd_node_input_of(l->graph->nodes.data[k->node],
                                             l->flats[k->node], tensor);
  int64_t size = hd_flat_size(tensor, axis);
  bool prepared = value && hd_laid_value(l, value)->prepared;
  k->ok = value && hd_layout_count_places(term, k->last) == 1 &&
          term->operands[axis]->kind == HD_TERM_INDEX &&
          (size == hd_flat_range(k->last) || (prepared && size >= k->width)) &&
          !hd_value_is_packed(value);
  if (k->ok && axis + 1 == tensor->rank && !prepared)
    try_widening(k->w, value, k->width);
  for (uint32_t a = 0; k->ok && a < term->num_operands; a++)
    if (a != axis)
      hd_flat_walk(term->operands[a], look_at_operand, k);
  return false;
}

static bool is_output(const hd_graph_t *graph, const hd_value_t *value) {
  for (size_t i = 0; i < graph->outputs.size; i++)
    if (graph->outputs.data[i] == value)
      return true;
  return false;
}

typedef struct reader {
  const hd_task_value_t *tensor;
  bool ok;
} reader_t;

static bool look_at_reader(void *argument, const hd_term_t *term) {
  reader_t *r = argument;
  if (hd_flat_is_load(term) && term->u.value == r->tensor) {
    const hd_term_t *last = term->operands[r->tensor->rank - 1];
    r->ok &= last->kind == HD_TERM_INDEX || last->kind == HD_TERM_CONST;
  }
  return r->ok;
}

// Whether a node may read the value in longer rows.
static bool may_read(const widening_t *w, size_t n, const wide_t *wide) {
  const hd_node_t *node = w->l->graph->nodes.data[n];
  const hd_task_t *flat = w->l->flats[n];
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    if (node->inputs[i] != wide->value)
      continue;
    if (copied(w, n) == wide->value &&
        last_size(node->outputs[0]) == wide->width)
      continue;
    if (!flat || node->pin || node->schedule || hd_node_is_reshape(node))
      return false;
    reader_t r = {flat->inputs.data[i], true};
    for (size_t k = 0; k < flat->definitions.size; k++)
      hd_flat_walk(flat->definitions.data[k]->term, look_at_reader, &r);
    if (!r.ok)
      return false;
  }
  return true;
}

static bool may_all_read(const widening_t *w, const wide_t *wide) {
  for (size_t n = 0; n < w->l->graph->nodes.size; n++)
    if (!may_read(w, n, wide))
      return false;
  return true;
}

static void undo(widening_t *w, size_t size) {
  for (; w->tried.size > size; w->tried.size--)
    hd_ptr_map_set(w->l->arena, &w->wides,
                   w->tried.data[w->tried.size - 1]->value, NULL);
}

// Whether a value is made so wide from here on, and with it what it is made of
// where that can be.
static bool try_widening(widening_t *w, const hd_value_t *value,
                         int64_t width) {
  const wide_t *known = hd_ptr_map_get(&w->wides, value);
  if (known)
    return known->width == width;
  size_t number = (size_t)(uintptr_t)hd_ptr_map_get(&w->givers, value);
  const hd_definition_t *d = number ? only_definition(w, number - 1) : NULL;
  if (!d || d->num_indices < 2 || hd_value_is_packed(value) ||
      is_output(w->l->graph, value) ||
      hd_node_is_reshape(w->l->graph->nodes.data[number - 1]))
    return false;
  wide_t *wide = HD_ARENA_NEW(w->l->arena, wide_t);
  *wide = (wide_t){.value = value, .width = width};
  if (!may_all_read(w, wide))
    return false;
  size_t before = w->tried.size;
  hd_ptr_map_set(w->l->arena, &w->wides, value, wide);
  hd_vec_push(w->l->arena, &w->tried, wide);
  look_t k = {w, number - 1, d->indices[d->num_indices - 1], width, true};
  hd_flat_walk(d->term, look_at_operand, &k);
  if (!k.ok)
    undo(w, before);
  return k.ok;
}

static void try_copy(widening_t *w, size_t n, bool explain) {
  hd_layouts_t *l = w->l;
  const hd_value_t *x = copied(w, n);
  int64_t width = x ? last_size(l->graph->nodes.data[n]->outputs[0]) : 0;
  if (!x || hd_laid_value(l, x)->prepared)
    return;
  w->tried.size = 0;
  if (!try_widening(w, x, width))
    return;
  if (!hd_step(&l->module->context->steps, HD_STEP_FUSION,
               "of '%s', whose rows are made longer", hd_value_label(x))) {
    undo(w, 0);
    return;
  }
  wide_t *wide = hd_ptr_map_find(&w->wides, x);
  wide->is_shown = true;
  if (explain)
    hd_remark(&l->module->context->diags, x->loc,
              "layout: '%s' is made in rows of %lld, and not copied to such",
              hd_value_label(x), (long long)width);
}

// --- The graph ---

typedef struct rewiring {
  widening_t *w;
  const hd_index_t *last, *longer; // NULL: the node's own result stays.
  hd_ptr_map_t tensors;            // Of the task, to those of the new one.
} rewiring_t;

static const hd_term_t *zero(hd_arena_t *arena, hd_scalar_t type) {
  return hd_type_is_float(hd_type(type)) ? hd_flat_float(arena, type, 0)
                                         : hd_flat_int(arena, type, 0);
}

static bool is_shorter(const rewiring_t *r, const hd_term_t *load) {
  for (uint32_t a = 0; r->last && a < load->u.value->rank; a++)
    if (hd_flat_uses(load->operands[a], r->longer))
      return hd_flat_size(load->u.value, a) < hd_flat_range(r->longer);
  return false;
}

// A load of a tensor that has no such long rows: zeros behind its own.
static const hd_term_t *load_else(const rewiring_t *r, const hd_term_t *term) {
  hd_arena_t *arena = r->w->l->arena;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  uint32_t rank = term->u.value->rank;
  if (term->kind == HD_TERM_LOADELSE || !is_shorter(r, term))
    return term;
  for (uint32_t a = 0; a < rank; a++)
    operands[a] = term->operands[a];
  operands[rank] = zero(arena, term->type.scalar);
  hd_term_t *made =
      hd_term_make(arena, HD_TERM_LOADELSE, term->type, operands, rank + 1);
  made->u.value = term->u.value;
  return made;
}

// For hd_flat_rewrite().
static const hd_term_t *rewire(void *argument, const hd_term_t *term) {
  const rewiring_t *r = argument;
  hd_arena_t *arena = r->w->l->arena;
  if (term->kind == HD_TERM_INDEX && r->last && term->u.index == r->last)
    return hd_flat_index(arena, r->longer);
  if (!hd_flat_is_load(term))
    return term;
  const hd_task_value_t *tensor = hd_ptr_map_get(&r->tensors, term->u.value);
  if (!tensor)
    return load_else(r, term);
  hd_term_t *made = hd_flat_like(arena, term, term->operands);
  made->u.value = tensor;
  return made;
}

static const hd_task_value_t *like_tensor(hd_arena_t *arena,
                                          const hd_task_value_t *tensor,
                                          uint32_t axis, int64_t size) {
  int64_t shape[HD_MAX_RANK];
  for (uint32_t a = 0; a < tensor->rank; a++)
    shape[a] = a == axis ? size : hd_flat_size(tensor, a);
  return hd_flat_value_make(arena, tensor->name, tensor->kind,
                            tensor->type.scalar, shape, tensor->rank);
}

// The constant, filled up along an axis.
static const hd_value_t *fill(widening_t *w, const hd_value_t *value,
                              const hd_task_value_t *tensor, uint32_t axis,
                              int64_t size, hd_loc_t loc) {
  hd_layouts_t *l = w->l;
  const char *key = hd_arena_printf(l->arena, "%s %u wide %lld", value->name,
                                    axis, (long long)size);
  const hd_value_t *known = hd_key_map_find_name(&l->copies, key);
  if (known)
    return known;
  const hd_index_t *indices[HD_MAX_RANK];
  const hd_term_t *places[HD_MAX_RANK];
  int64_t shape[HD_MAX_RANK];
  for (uint32_t a = 0; a < tensor->rank; a++) {
    shape[a] = a == axis ? size : hd_flat_size(tensor, a);
    indices[a] = hd_flat_index_make(
        l->arena, hd_arena_printf(l->arena, "at%u", a), shape[a]);
    places[a] = hd_layout_index_term(l->arena, indices[a]);
  }
  const hd_index_t **kept =
      HD_ARENA_ARRAY(l->arena, const hd_index_t *, tensor->rank);
  memcpy(kept, indices, tensor->rank * sizeof(*kept));
  const hd_value_t *copy =
      hd_layouts_put_copy(l, value,
                          hd_layouts_copying_task(l->arena, tensor, shape,
                                                  tensor->rank, kept, places),
                          "wide", loc);
  hd_key_map_set_name(l->arena, &l->copies, key, copy);
  return copy;
}

typedef struct along {
  const hd_task_value_t *tensor;
  const hd_index_t *index;
  int axis;
} along_t;

static bool find_axis(void *argument, const hd_term_t *term) {
  along_t *f = argument;
  if (hd_flat_is_load(term) && term->u.value == f->tensor)
    for (uint32_t a = 0; a < f->tensor->rank; a++)
      if (hd_flat_uses(term->operands[a], f->index))
        f->axis = (int)a;
  return true;
}

// What a node reads instead of input number i, and the new task's tensor.
static const hd_value_t *reread(rewiring_t *r, const hd_node_t *node,
                                const hd_task_t *flat, uint32_t i,
                                hd_task_t *task) {
  hd_layouts_t *l = r->w->l;
  const hd_value_t *value = node->inputs[i];
  const hd_task_value_t *tensor = flat->inputs.data[i], *made = tensor;
  const wide_t *wide = value ? hd_ptr_map_get(&r->w->wides, value) : NULL;
  const hd_value_t *copy = value ? hd_ptr_map_get(&r->w->made, value) : NULL;
  along_t along = {tensor, r->last, -1};
  if (wide) {
    made = like_tensor(l->arena, tensor, tensor->rank - 1, wide->width);
    value = wide->made;
  } else if (copy) {
    value = copy;
  } else if (r->last) {
    hd_flat_walk(flat->definitions.data[0]->term, find_axis, &along);
    int64_t size = hd_flat_range(r->longer);
    if (along.axis >= 0 && hd_laid_value(l, value)->prepared &&
        hd_flat_size(tensor, (unsigned)along.axis) < size) {
      made = like_tensor(l->arena, tensor, (uint32_t)along.axis, size);
      value = fill(r->w, value, tensor, (uint32_t)along.axis, size, node->loc);
    }
  }
  if (made != tensor)
    hd_ptr_map_set(l->arena, &r->tensors, tensor, made);
  hd_vec_push(l->arena, &task->inputs, made);
  return value;
}

static const hd_definition_t *redefine(rewiring_t *r, const hd_definition_t *d,
                                       const wide_t *wide) {
  hd_arena_t *arena = r->w->l->arena;
  hd_definition_t *made = HD_ARENA_COPY(arena, hd_definition_t, d);
  if (wide) {
    const hd_index_t **indices =
        HD_ARENA_ARRAY(arena, const hd_index_t *, d->num_indices);
    const hd_task_value_t **targets =
        HD_ARENA_ARRAY(arena, const hd_task_value_t *, 1);
    memcpy(indices, d->indices, d->num_indices * sizeof(*indices));
    indices[d->num_indices - 1] = r->longer;
    targets[0] =
        like_tensor(arena, d->targets[0], d->num_indices - 1, wide->width);
    made->indices = indices;
    made->targets = targets;
  }
  made->term = hd_flat_rewrite(arena, d->term, rewire, r);
  if (wide && wide->is_shown) {
    made->term = hd_flat_select(
        arena,
        hd_flat_operate_int(arena, HD_EXPR_LT, hd_flat_index(arena, r->longer),
                            hd_flat_range(r->last)),
        made->term, zero(arena, made->term->type.scalar));
  }
  return made;
}

static bool reads_other(const widening_t *w, const hd_node_t *node) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (node->inputs[i] && (hd_ptr_map_get(&w->wides, node->inputs[i]) ||
                            hd_ptr_map_get(&w->made, node->inputs[i])))
      return true;
  return false;
}

static void put_node(widening_t *w, size_t n) {
  hd_layouts_t *l = w->l;
  const hd_node_t *node = l->graph->nodes.data[n];
  const hd_task_t *flat = l->flats[n];
  const hd_value_t *x = copied(w, n);
  const wide_t *from = x ? hd_ptr_map_get(&w->wides, x) : NULL;
  if (from && from->width == last_size(node->outputs[0])) {
    hd_ptr_map_set(l->arena, &w->made, node->outputs[0], from->made);
    return;
  }
  wide_t *wide = node->num_outputs == 1 && node->outputs[0]
                     ? hd_ptr_map_find(&w->wides, node->outputs[0])
                     : NULL;
  if (!wide && !reads_other(w, node)) {
    hd_vec_push(l->arena, &l->made->nodes, node);
    return;
  }
  rewiring_t r = {.w = w};
  if (wide) {
    const hd_definition_t *d = flat->definitions.data[0];
    r.last = d->indices[d->num_indices - 1];
    r.longer = hd_flat_index_make(l->arena, r.last->name, wide->width);
  }
  hd_task_t *task = hd_flat_emptied(l->arena, flat);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(l->arena, const hd_value_t *, node->num_inputs);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    inputs[i] = reread(&r, node, flat, i, task);
  for (size_t i = 0; i < flat->definitions.size; i++)
    hd_vec_push(l->arena, &task->definitions,
                redefine(&r, flat->definitions.data[i], wide));
  if (!wide) {
    hd_layouts_put_task(l, node, task, "wide", inputs, node->outputs);
    return;
  }
  memset(&task->outputs, 0, sizeof(task->outputs));
  hd_vec_push(l->arena, &task->outputs, task->definitions.data[0]->targets[0]);
  int64_t shape[HD_MAX_RANK];
  unsigned rank = (unsigned)wide->value->rank;
  for (unsigned a = 0; a < rank; a++)
    shape[a] = a + 1 < rank ? size_of(wide->value, a) : wide->width;
  const hd_value_t **outputs = HD_ARENA_ARRAY(l->arena, const hd_value_t *, 1);
  wide->made = outputs[0] =
      hd_layouts_value(l, wide->value, shape, rank, "wide");
  hd_layouts_put_task(l, node, task, "wide", inputs, outputs);
}

const hd_graph_t *hd_layouts_widen(hd_layouts_t *l, bool explain) {
  widening_t w = {.l = l};
  const hd_graph_t *graph = l->graph;
  for (size_t n = 0; n < graph->nodes.size; n++) {
    const hd_node_t *node = graph->nodes.data[n];
    for (uint32_t i = 0; i < node->num_outputs; i++)
      if (node->outputs[i])
        hd_ptr_map_set(l->arena, &w.givers, node->outputs[i],
                       (void *)(uintptr_t)(n + 1));
  }
  bool any = false;
  for (size_t n = 0; n < graph->nodes.size; n++) {
    try_copy(&w, n, explain);
    const hd_value_t *x = copied(&w, n);
    any |= x && hd_ptr_map_get(&w.wides, x);
  }
  if (!any)
    return graph;
  hd_layouts_begin(l);
  for (size_t n = 0; n < graph->nodes.size; n++)
    put_node(&w, n);
  return l->made;
}
