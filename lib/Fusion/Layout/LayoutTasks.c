// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph in which chosen values lie otherwise: their axes change places, in
// their shapes and wherever a task's terms name one of their elements.
#include "Fusion/Fuse.h"
#include "Fusion/Layout/LayoutState.h"
#include "Graph/Names.h"
#include "IR/Text/Library.h"
#include "Schedule/Schedule.h"
#include "Schedule/Terms/Affine.h"

#include <string.h>

// A node, and for each tensor of its flat task the axes that are last in
// memory.
typedef struct laid_node {
  hd_layouts_t *l;
  const hd_node_t *node;
  const hd_task_t *flat;
  hd_last_t *inputs, *outputs;
  hd_ptr_map_t tensors;             // Of the task, to moved_t.
  HD_VEC(const hd_index_t *) along; // Indices that run along last axes.
} laid_node_t;

typedef struct moved {
  const hd_task_value_t *tensor;
  hd_last_t last;
} moved_t;

// order[i]: which axis comes to place i.
static void order_of(unsigned rank, hd_last_t last, unsigned *order) {
  unsigned n = 0, first = (unsigned)last.axis + 1 - last.count;
  for (unsigned i = 0; i < rank; i++)
    if (i < first || i > (unsigned)last.axis)
      order[n++] = i;
  for (unsigned i = first; i <= (unsigned)last.axis; i++)
    order[n++] = i;
}

// --- Values ---

static hd_value_t *moved_value(hd_layouts_t *l, const hd_value_t *value,
                               hd_last_t last) {
  hd_value_t *moved = HD_ARENA_NEW(l->arena, hd_value_t);
  unsigned rank = (unsigned)value->rank, order[HD_MAX_RANK];
  const hd_expr_t **shape = HD_ARENA_ARRAY(l->arena, const hd_expr_t *, rank);
  order_of(rank, last, order);
  for (unsigned i = 0; i < rank; i++)
    shape[i] = value->shape[order[i]];
  *moved = *value;
  moved->constant = NULL;
  moved->shape = shape;
  return moved;
}

hd_value_t *hd_layouts_value(hd_layouts_t *l, const hd_value_t *like,
                             const int64_t *sizes, unsigned rank,
                             const char *suffix) {
  return hd_value_make(
      l->arena,
      hd_name_unique(l->arena, &l->names,
                     hd_arena_printf(l->arena, "%s_%s", like->name, suffix)),
      like->type, sizes, rank, like->loc);
}

// What stands for a value in the new graph.
static const hd_value_t *made_of(hd_layouts_t *l, const hd_value_t *value) {
  hd_laid_value_t *laid = hd_laid_value(l, value);
  if (!laid || laid->last.axis < 0)
    return value;
  if (!laid->made)
    laid->made = moved_value(l, value, laid->last);
  return laid->made;
}

// A transposed copy of what depends on constants alone, one for all who want
// it.
static const hd_value_t *copy_of(hd_layouts_t *l, const hd_value_t *value,
                                 hd_last_t last) {
  const char *key =
      hd_arena_printf(l->arena, "%s %d %u", value->name, last.axis, last.count);
  const hd_value_t *known = hd_key_map_find_name(&l->copies, key);
  if (known)
    return known;
  hd_value_t *copy = moved_value(l, value, last);
  copy->label = NULL;
  copy->name = hd_name_unique(
      l->arena, &l->names, hd_arena_printf(l->arena, "%s_moved", value->name));
  hd_key_map_set_name(l->arena, &l->copies, key, copy);
  unsigned order[HD_MAX_RANK];
  order_of((unsigned)value->rank, last, order);
  hd_vec_push(l->arena, &l->made->nodes,
              hd_node_transposing(l->module->context, l->arena, value, copy,
                                  order, value->loc));
  return copy;
}

// --- What weights want ---

static int input_number(const laid_node_t *n, const hd_task_value_t *tensor) {
  for (size_t i = 0; i < n->flat->inputs.size; i++)
    if (n->flat->inputs.data[i] == tensor)
      return (int)i;
  return -1;
}

static bool note_along(void *argument, const hd_term_t *term) {
  laid_node_t *n = argument;
  int i = hd_flat_is_load(term) ? input_number(n, term->u.value) : -1;
  if (i < 0 || n->inputs[i].axis < 0)
    return true;
  const hd_index_t *index =
      hd_layout_index(n->l->arena, term->operands[n->inputs[i].axis]);
  if (index)
    hd_vec_push(n->l->arena, &n->along, index);
  return true;
}

static bool runs_along(const laid_node_t *n, const hd_index_t *index) {
  for (size_t i = 0; i < n->along.size; i++)
    if (n->along.data[i] == index)
      return true;
  return false;
}

static bool has_extent(const hd_task_value_t *tensor, uint32_t from) {
  for (uint32_t i = from; i < tensor->rank; i++)
    if (hd_flat_size(tensor, i) > 1)
      return true;
  return false;
}

// The axis of a weight along which the operands beside it now run. Of a sum of
// products that is the one that both are summed over.
static bool note_weight(void *argument, const hd_term_t *term) {
  laid_node_t *n = argument;
  int i = hd_flat_is_load(term) ? input_number(n, term->u.value) : -1;
  if (i < 0 || n->inputs[i].axis >= 0 || !n->node->inputs[i] ||
      !hd_laid_value(n->l, n->node->inputs[i])->prepared)
    return true;
  for (uint32_t a = 0; a < term->u.value->rank; a++)
    if (has_extent(term->u.value, a + 1) &&
        runs_along(n, hd_layout_index(n->l->arena, term->operands[a])))
      n->inputs[i] = (hd_last_t){(int)a, 1};
  return true;
}

static hd_last_t last_of(const hd_layouts_t *l, const hd_value_t *value) {
  const hd_laid_value_t *laid = hd_laid_value(l, value);
  return laid ? laid->last : (hd_last_t){-1, 0};
}

// Which layouts a node's tensors have; false where they are all as they were.
static bool find_layouts(laid_node_t *n) {
  hd_arena_t *arena = n->l->arena;
  bool any = false;
  n->inputs = HD_ARENA_ARRAY(arena, hd_last_t, n->flat->inputs.size + 1);
  n->outputs = HD_ARENA_ARRAY(arena, hd_last_t, n->flat->outputs.size + 1);
  for (size_t i = 0; i < n->flat->inputs.size; i++)
    any |= (n->inputs[i] = last_of(n->l, n->node->inputs[i])).axis >= 0;
  for (size_t i = 0; i < n->flat->outputs.size; i++)
    any |= (n->outputs[i] = last_of(n->l, n->node->outputs[i])).axis >= 0;
  for (size_t i = 0; any && i < n->flat->definitions.size; i++)
    hd_flat_walk(n->flat->definitions.data[i]->term, note_along, n);
  for (size_t i = 0; any && i < n->flat->definitions.size; i++)
    hd_flat_walk(n->flat->definitions.data[i]->term, note_weight, n);
  return any;
}

// --- Tasks ---

static void move_tensor(laid_node_t *n, const hd_task_value_t *tensor,
                        hd_last_t last, hd_task_t *task) {
  hd_arena_t *arena = n->l->arena;
  const hd_task_value_t *made = tensor;
  if (last.axis >= 0) {
    int64_t shape[HD_MAX_RANK];
    unsigned order[HD_MAX_RANK];
    order_of(tensor->rank, last, order);
    for (unsigned i = 0; i < tensor->rank; i++)
      shape[i] = hd_flat_size(tensor, order[i]);
    made = hd_flat_value_make(arena, tensor->name, tensor->kind,
                              tensor->type.scalar, shape, tensor->rank);
    moved_t *moved = HD_ARENA_NEW(arena, moved_t);
    *moved = (moved_t){made, last};
    hd_ptr_map_set(arena, &n->tensors, tensor, moved);
  }
  if (tensor->kind == HD_VALUE_INPUT)
    hd_vec_push(arena, &task->inputs, made);
  else
    hd_vec_push(arena, &task->outputs, made);
}

static const hd_term_t *move_load(void *argument, const hd_term_t *term) {
  laid_node_t *n = argument;
  const moved_t *moved =
      hd_flat_is_load(term) ? hd_ptr_map_get(&n->tensors, term->u.value) : NULL;
  if (!moved)
    return term;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  unsigned order[HD_MAX_RANK], rank = moved->tensor->rank;
  order_of(rank, moved->last, order);
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] = term->operands[i < rank ? order[i] : i];
  hd_term_t *made = hd_flat_like(n->l->arena, term, operands);
  made->u.value = moved->tensor;
  return made;
}

static const hd_definition_t *move_definition(laid_node_t *n,
                                              const hd_definition_t *d) {
  hd_arena_t *arena = n->l->arena;
  hd_definition_t *made = HD_ARENA_COPY(arena, hd_definition_t, d);
  const moved_t *moved = hd_ptr_map_get(&n->tensors, d->targets[0]);
  made->term = hd_flat_rewrite(arena, d->term, move_load, n);
  if (!moved)
    return made;
  unsigned order[HD_MAX_RANK];
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, d->num_indices);
  const hd_task_value_t **targets =
      HD_ARENA_ARRAY(arena, const hd_task_value_t *, 1);
  order_of(d->num_indices, moved->last, order);
  for (uint32_t i = 0; i < d->num_indices; i++)
    indices[i] = d->indices[order[i]];
  targets[0] = moved->tensor;
  made->indices = indices;
  made->targets = targets;
  return made;
}

void hd_layouts_begin(hd_layouts_t *l) {
  l->made = hd_graph_without_nodes(l->arena, l->graph);
}

void hd_layouts_put_task(hd_layouts_t *l, const hd_node_t *node,
                         const hd_task_t *task, const char *what,
                         const hd_value_t *const *inputs,
                         const hd_value_t *const *outputs) {
  hd_node_t *made = HD_ARENA_COPY(l->arena, hd_node_t, node);
  if (task) {
    made->task =
        hd_task_shared(l->arena, l->module, &l->tasks, task,
                       hd_arena_printf(l->arena, "%s_%s", node->op, what));
    made->op = made->task->name;
  }
  made->inputs = inputs;
  made->outputs = outputs;
  made->num_attributes = 0;
  hd_vec_push(l->arena, &l->made->nodes, (const hd_node_t *)made);
}

static const hd_task_t *move_task(laid_node_t *n) {
  hd_arena_t *arena = n->l->arena;
  hd_task_t *task = hd_flat_emptied(arena, n->flat);
  memset(&task->outputs, 0, sizeof(task->outputs));
  for (size_t i = 0; i < n->flat->inputs.size; i++)
    move_tensor(n, n->flat->inputs.data[i], n->inputs[i], task);
  for (size_t i = 0; i < n->flat->outputs.size; i++)
    move_tensor(n, n->flat->outputs.data[i], n->outputs[i], task);
  for (size_t i = 0; i < n->flat->definitions.size; i++)
    hd_vec_push(arena, &task->definitions,
                move_definition(n, n->flat->definitions.data[i]));
  return task;
}

// Whether a task moves nothing: each element has the number that it had.
static bool moves_nothing(hd_arena_t *arena, const hd_task_t *task) {
  const hd_definition_t *d = task->definitions.data[0];
  const hd_task_value_t *x = task->inputs.data[0], *y = task->outputs.data[0];
  const hd_term_t *at[HD_MAX_RANK];
  int64_t from[HD_MAX_RANK], to[HD_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++)
    from[i] = hd_flat_size(x, i);
  for (uint32_t i = 0; i < y->rank; i++) {
    to[i] = hd_flat_size(y, i);
    at[i] = hd_layout_index_term(arena, d->indices[i]);
  }
  hd_index_place_t before = {x->rank, from, d->term->operands};
  hd_index_place_t after = {y->rank, to, at};
  return hd_index_same_number(arena, &before, &after);
}

static void put_node(laid_node_t *n) {
  hd_layouts_t *l = n->l;
  if (!n->flat || !find_layouts(n)) {
    hd_vec_push(l->arena, &l->made->nodes, n->node);
    return;
  }
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(l->arena, const hd_value_t *, n->node->num_inputs + 1);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(l->arena, const hd_value_t *, n->node->num_outputs + 1);
  for (uint32_t i = 0; i < n->node->num_inputs; i++) {
    const hd_value_t *value = n->node->inputs[i];
    bool copies = n->inputs[i].axis >= 0 && last_of(l, value).axis < 0;
    inputs[i] = copies ? copy_of(l, value, n->inputs[i]) : made_of(l, value);
  }
  for (uint32_t i = 0; i < n->node->num_outputs; i++)
    outputs[i] = made_of(l, n->node->outputs[i]);
  const hd_task_t *task = move_task(n);
  bool keeps = !n->node->task && moves_nothing(l->arena, task);
  hd_layouts_put_task(l, n->node, keeps ? NULL : task, "moved", inputs,
                      outputs);
}

const hd_graph_t *hd_layouts_apply(hd_layouts_t *l) {
  hd_layouts_begin(l);
  for (size_t i = 0; i < l->graph->nodes.size; i++) {
    laid_node_t n = {
        .l = l, .node = l->graph->nodes.data[i], .flat = l->flats[i]};
    put_node(&n);
  }
  return l->made;
}

// --- What tasks read ---

unsigned hd_layout_count_places(const hd_term_t *load,
                                const hd_index_t *index) {
  unsigned count = 0;
  for (uint32_t a = 0; a < load->u.value->rank; a++)
    count += hd_flat_uses(load->operands[a], index);
  return count;
}

typedef struct counting {
  const hd_task_value_t *tensor;
  unsigned loads;
} counting_t;

static bool count_load(void *argument, const hd_term_t *term) {
  counting_t *c = argument;
  c->loads += hd_flat_is_load(term) && term->u.value == c->tensor;
  return true;
}

bool hd_layout_is_read_once(const hd_term_t *term,
                            const hd_task_value_t *tensor) {
  counting_t c = {tensor, 0};
  hd_flat_walk(term, count_load, &c);
  return c.loads == 1;
}
