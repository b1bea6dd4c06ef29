// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes of a task: its inputs are values that are there, others made from such
// ones (reshaped, transposed, sliced, converted), or new leaves.
#include "Pick.h"

#include "IR/Text/Library.h"
#include "IR/Text/Parser.h"

#include <math.h>
#include <string.h>

enum { MOST_LISTED = 6 };

// --- One value from another ---

static hd_attribute_t *attribute(fuzz_graph_t *g, const char *name) {
  hd_attribute_t *a = HD_ARENA_NEW(&g->arena, hd_attribute_t);
  a->name = name;
  return a;
}

static const hd_attribute_t *of_ints(fuzz_graph_t *g, const char *name,
                                     const int64_t *values, unsigned count) {
  hd_attribute_t *a = attribute(g, name);
  int64_t *copy = HD_ARENA_ARRAY(&g->arena, int64_t, count + 1);
  if (count)
    memcpy(copy, values, count * sizeof *values);
  a->kind = HD_ATTRIBUTE_INTS;
  a->count = count;
  a->u.ints = copy;
  return a;
}

static const hd_attribute_t *of_float(fuzz_graph_t *g, const char *name,
                                      double value) {
  hd_attribute_t *a = attribute(g, name);
  a->kind = HD_ATTRIBUTE_FLOAT;
  a->u.f = value;
  return a;
}

static const hd_attribute_t *of_type(fuzz_graph_t *g, const char *name,
                                     hd_scalar_t type) {
  hd_attribute_t *a = attribute(g, name);
  a->kind = HD_ATTRIBUTE_TYPE;
  a->u.type = type;
  return a;
}

static fuzz_value_t *one(fuzz_graph_t *g, const char *task, fuzz_value_t *x,
                         const hd_attribute_t *const *attributes,
                         uint32_t count) {
  fuzz_node_t *node = fuzz_node(g, task, &x, 1, attributes, count, 1);
  return node ? node->outputs[0] : NULL;
}

static fuzz_value_t *sliced(fuzz_graph_t *g, fuzz_value_t *x,
                            const hd_tensor_type_t *want) {
  const hd_tensor_type_t have = fuzz_type_of(x);
  int64_t start[HD_MAX_RANK], stride[HD_MAX_RANK];
  for (unsigned i = 0; i < want->rank; i++) {
    start[i] = fuzz_in(g, 0, have.shape[i] - want->shape[i]);
    stride[i] = 1;
  }
  const hd_attribute_t *attributes[] = {
      of_ints(g, "start", start, want->rank),
      of_ints(g, "stride", stride, want->rank),
      of_ints(g, "size", want->shape, want->rank)};
  return one(g, "slice", x, attributes, 3);
}

// A permutation that gives the shape, or NULL.
static fuzz_value_t *transposed(fuzz_graph_t *g, fuzz_value_t *x,
                                const hd_tensor_type_t *want) {
  const hd_tensor_type_t have = fuzz_type_of(x);
  int64_t order[HD_MAX_RANK];
  unsigned used = 0;
  for (unsigned i = 0; i < want->rank; i++) {
    unsigned k = 0;
    while (k < have.rank && (used >> k & 1 || have.shape[k] != want->shape[i]))
      k++;
    if (k == have.rank)
      return NULL;
    used |= 1u << k;
    order[i] = k;
  }
  const hd_attribute_t *attribute = of_ints(g, "order", order, want->rank);
  return one(g, "transpose", x, &attribute, 1);
}

// What x has to be for one step to make it what is wanted.
static fuzz_value_t *adapt(fuzz_graph_t *g, fuzz_value_t *x,
                           const hd_tensor_type_t *want) {
  const hd_tensor_type_t have = fuzz_type_of(x);
  bool same_rank = have.rank == want->rank, larger = same_rank,
       same = same_rank, divides = same_rank;
  for (unsigned i = 0; same_rank && i < want->rank; i++) {
    larger &= have.shape[i] >= want->shape[i];
    same &= have.shape[i] == want->shape[i];
    divides &= have.shape[i] > 0 && want->shape[i] % have.shape[i] == 0;
  }
  if (same && have.type != want->type) {
    const hd_attribute_t *to = of_type(g, "U", want->type);
    return one(g, "cast", x, &to, 1);
  }
  if (have.type != want->type || same)
    return NULL;
  if (fuzz_count(&have) == fuzz_count(want)) {
    fuzz_value_t *y =
        same_rank && want->rank > 1 ? transposed(g, x, want) : NULL;
    return y ? y : fuzz_reshape(g, x, want);
  }
  if (larger)
    return sliced(g, x, want);
  if (!divides || want->rank == 0)
    return NULL;
  const hd_attribute_t *sizes = of_ints(g, "sizes", want->shape, want->rank);
  return one(g, "expand", x, &sizes, 1);
}

fuzz_value_t *fuzz_bring(fuzz_graph_t *g, fuzz_value_t *x, double low,
                         double high) {
  hd_tensor_type_t type = fuzz_type_of(x), scalar = {type.type, 0, {0}};
  if (fuzz_is_float(type.type)) {
    double margin = (high - low) / 16;
    const hd_attribute_t *attributes[] = {
        of_float(g, "alpha", (double)(float)(high - low - 2 * margin)),
        of_float(g, "beta", (double)(float)(low + margin))};
    fuzz_value_t *y = one(g, "sigmoid", x, NULL, 0);
    return y ? one(g, "affine", y, attributes, 2) : NULL;
  }
  if (type.type == HD_BOOL)
    return NULL;
  fuzz_value_t *inputs[] = {x, fuzz_leaf(g, &scalar, low, low, true),
                            fuzz_leaf(g, &scalar, high, high, true)};
  fuzz_node_t *node = fuzz_node(g, "clip", inputs, 3, NULL, 0, 1);
  return node ? node->outputs[0] : NULL;
}

// --- Inputs ---

// One that is there; the later and the less used, the rather.
static fuzz_value_t *some_value(fuzz_graph_t *g) {
  size_t size = g->values.size;
  double u = fuzz_real(g, 0, 1);
  fuzz_value_t *v = g->values.data[size - 1 - (size_t)(u * u * (double)size)];
  return v->users && !fuzz_once_in(g, 3) ? NULL : v;
}

static bool take(fuzz_pick_t *p, size_t i, fuzz_value_t *value) {
  hd_tensor_type_t type = fuzz_type_of(value);
  if (!fuzz_pick_match(p, i, &type))
    return false;
  p->values[i] = value;
  return true;
}

static fuzz_value_t *find_exact(fuzz_pick_t *p, size_t i) {
  fuzz_graph_t *g = p->g;
  size_t size = g->values.size;
  int64_t from = fuzz_in(g, 0, (int64_t)size - 1);
  for (size_t k = 0; k < size; k++) {
    fuzz_value_t *v = g->values.data[((size_t)from + size - k) % size];
    if (take(p, i, v))
      return v;
  }
  return NULL;
}

static void find_adapted(fuzz_pick_t *p, size_t i) {
  fuzz_graph_t *g = p->g;
  hd_tensor_type_t want;
  if (!fuzz_pick_complete(p, i, &want))
    return;
  for (int tries = 0; tries < 12; tries++) {
    fuzz_value_t *v = some_value(g);
    v = v ? adapt(g, v, &want) : NULL;
    if (v && take(p, i, v))
      return;
  }
}

// Where a value is not found, leaves[i] says what is to be made.
static bool choose_input(fuzz_pick_t *p, size_t i) {
  fuzz_graph_t *g = p->g;
  const char *name = p->task->inputs.data[i]->name;
  // Indices and the like are rarely what a value happens to be.
  bool ranged = fuzz_rule_find(p->rule, name, ':') != NULL;
  if (g->values.size && !fuzz_once_in(g, ranged ? 2 : 6)) {
    for (int tries = 0; !p->values[i] && tries < 8; tries++) {
      fuzz_value_t *v = some_value(g);
      if (v)
        take(p, i, v);
    }
    bool settled = fuzz_pick_is_settled(p, i);
    if (!p->values[i] && settled && !fuzz_once_in(g, 3))
      find_exact(p, i);
    if (!p->values[i] && settled && fuzz_once_in(g, 2))
      find_adapted(p, i);
  }
  return p->values[i] || fuzz_pick_complete(p, i, &p->leaves[i]);
}

// Values outside of what the rule asks are brought there, or given up for a
// leaf.
static bool settle_input(fuzz_pick_t *p, size_t i) {
  fuzz_graph_t *g = p->g;
  const hd_task_value_t *input = p->task->inputs.data[i];
  const char *text = fuzz_rule_find(p->rule, input->name, ':');
  double low = 1, high = 0; // Whatever suits the type.
  if (text &&
      !fuzz_rule_range(text, &g->random, fuzz_pick_lookup, p, 0, &low, &high))
    return false;
  fuzz_value_t *v = p->values[i];
  if (v && text && (v->low < low || v->high > high)) {
    p->leaves[i] = fuzz_type_of(v);
    v = fuzz_once_in(g, 3) ? NULL : fuzz_bring(g, v, low, high);
  }
  p->values[i] =
      v ? v : fuzz_leaf(g, &p->leaves[i], low, high, fuzz_once_in(g, 2));
  return true;
}

// --- Attributes ---

static double lowest_of(hd_scalar_t type) {
  if (fuzz_is_float(type))
    return -INFINITY;
  return hd_scalar_class(type) == HD_CLASS_SIGNED
             ? -ldexp(1, (int)hd_scalar_bits(type) - 1)
             : 0;
}

static bool draw_attribute(fuzz_pick_t *p, size_t i) {
  const hd_task_value_t *value = p->task->inputs.data[i];
  hd_scalar_t type = fuzz_pick_type(p, &value->type);
  const char *text = fuzz_rule_find(p->rule, value->name, '=');
  bool real = fuzz_is_float(type);
  p->counts[i] = value->pack ? fuzz_pick_rank(p, value->pack) : 1;
  if (text && strncmp(text, "lowest", 6) == 0) {
    p->numbers[i][0] = lowest_of(type);
    return true;
  }
  for (unsigned k = 0; k < p->counts[i]; k++) {
    double low = real ? 0.5 : 0, high = real ? 1.5 : type == HD_BOOL ? 1 : 2;
    if (text && !fuzz_rule_range(text, &p->g->random, fuzz_pick_lookup, p, k,
                                 &low, &high))
      return false;
    high = fmax(low, high);
    p->numbers[i][k] =
        real ? (double)(float)fuzz_real(p->g, low, high)
             : (double)fuzz_in(p->g, (int64_t)ceil(low), (int64_t)floor(high));
  }
  return true;
}

static const hd_attribute_t *make_attribute(fuzz_pick_t *p, size_t i) {
  fuzz_graph_t *g = p->g;
  const hd_task_value_t *value = p->task->inputs.data[i];
  bool real = fuzz_is_float(fuzz_pick_type(p, &value->type));
  hd_attribute_t *a = attribute(g, value->name);
  if (!value->pack) {
    a->kind = real ? HD_ATTRIBUTE_FLOAT : HD_ATTRIBUTE_INT;
    if (real)
      a->u.f = p->numbers[i][0];
    else
      a->u.i = (int64_t)p->numbers[i][0];
    return a;
  }
  int64_t values[FUZZ_MAX_AXES];
  for (unsigned k = 0; k < p->counts[i]; k++)
    values[k] = (int64_t)p->numbers[i][k];
  return of_ints(g, value->name, values, p->counts[i]);
}

typedef HD_VEC(const hd_attribute_t *) attributes_t;

static bool choose_attributes(fuzz_pick_t *p, attributes_t *list) {
  fuzz_graph_t *g = p->g;
  const hd_task_t *task = p->task;
  for (size_t i = 0; i < task->packs.size; i++)
    if (p->said[i]) {
      hd_attribute_t *a = attribute(g, task->packs.data[i]->name);
      a->kind = HD_ATTRIBUTE_INT;
      a->u.i = fuzz_pick_rank(p, task->packs.data[i]);
      hd_vec_push(&g->arena, list, a);
    }
  for (size_t i = 0; i < task->types.size; i++) {
    hd_task_type_t type = {HD_VOID, task->types.data[i]};
    if (type.var->accumulates || p->types[i] != HD_VOID)
      continue;
    if (type.var->either[0]) { // Given, or left to be the first one.
      type.var = type.var->either[fuzz_once_in(g, 2)];
      if (fuzz_once_in(g, 2))
        continue;
      p->types[i] = fuzz_pick_type(p, &type);
      hd_vec_push(&g->arena, list,
                  of_type(g, task->types.data[i]->name, p->types[i]));
      continue;
    }
    hd_vec_push(&g->arena, list,
                of_type(g, type.var->name, fuzz_pick_type(p, &type)));
  }
  for (size_t i = 0; i < task->inputs.size; i++) {
    const hd_task_value_t *value = task->inputs.data[i];
    if (value->kind != HD_VALUE_ATTRIBUTE)
      continue;
    bool is_order = p->counts[i] > 0; // The inputs' axes lie so.
    bool is_default = is_order ? p->numbers[i][0] == 0 : true;
    if (value->initial && is_default && fuzz_once_in(g, 2))
      continue;
    if (!is_order && !draw_attribute(p, i))
      return false;
    hd_vec_push(&g->arena, list, make_attribute(p, i));
  }
  return true;
}

// --- The whole ---

static bool is_tensor(const hd_task_t *task, size_t i) {
  return task->inputs.data[i]->kind == HD_VALUE_INPUT;
}

static bool choose_inputs(fuzz_pick_t *p, fuzz_value_t *first) {
  const hd_task_t *task = p->task;
  bool taken = !first;
  // Now and then the first is not what comes first in the signature.
  size_t from = fuzz_once_in(p->g, 4) && task->inputs.size
                    ? (size_t)fuzz_in(p->g, 0, (int64_t)task->inputs.size - 1)
                    : 0;
  for (size_t k = 0; !taken && k < task->inputs.size; k++) {
    size_t i = (from + k) % task->inputs.size;
    taken = is_tensor(task, i) && take(p, i, first);
  }
  for (size_t i = 0; taken && i < task->inputs.size; i++)
    if (is_tensor(task, i) && !p->values[i] && !choose_input(p, i))
      return false;
  return taken;
}

fuzz_node_t *fuzz_pick(fuzz_graph_t *g, const char *name, fuzz_value_t *first) {
  const hd_task_t *task = hd_library_task(g->context, name);
  if (task && task->text) // A list of operands.
    task = hd_task_for(task, (uint32_t)fuzz_in(g, 1, MOST_LISTED));
  if (!task || task->inputs.size > FUZZ_MAX_INPUTS)
    return NULL;
  fuzz_pick_t p;
  attributes_t attributes = {0};
  fuzz_pick_begin(&p, g, task);
  if (!choose_inputs(&p, first) || !choose_attributes(&p, &attributes))
    return NULL;
  fuzz_value_t *inputs[FUZZ_MAX_INPUTS];
  uint32_t count = 0;
  for (size_t i = 0; i < task->inputs.size; i++) {
    if (!is_tensor(task, i))
      continue;
    if (!settle_input(&p, i))
      return NULL;
    inputs[count++] = p.values[i];
  }
  unsigned wanted = (1u << task->outputs.size) - 1;
  if (task->outputs.size > 1 && fuzz_once_in(g, 4))
    wanted &= ~(1u << fuzz_in(g, 0, (int64_t)task->outputs.size - 1));
  return fuzz_node(g, name, inputs, count, attributes.data,
                   (uint32_t)attributes.size, wanted);
}
