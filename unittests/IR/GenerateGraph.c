// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random valid graphs.
#include "IR/Generator.h"
#include "IR/Text/Library.h"

#include <math.h>
#include <string.h>

// Values of the graph being made and of those around it, the latter first.
typedef struct maker {
  hd_generator_t *g;
  hd_graph_t *graph;
  HD_VEC(const hd_value_t *) values;
  HD_VEC(const hd_var_t *) dims;
  unsigned names, depth;
  unsigned group, groups; // Of the node being made, 0 for none; so far.
} maker_t;

static hd_graph_t *make_graph(maker_t *m, const char *name);

static bool chance(maker_t *m, unsigned of) {
  return hd_random_below(m->g, of) == 0;
}

// Words that mean something elsewhere, made unique by a number.
static const char *new_name(maker_t *m) {
  static const char *const words[] = {
      "as",      "file", "seq", "v",      "_",    "t",    "x_",
      "reshape", "Conv", "exp", "anchor", "with", "group"};
  const char *word =
      words[hd_random_below(m->g, sizeof words / sizeof words[0])];
  return hd_arena_printf(m->g->arena, "%s%u", word, m->names++);
}

static const char *any_text(maker_t *m) {
  static const char *const texts[] = {
      "",         "input.1",  "/conv1/Conv", "a \"b\" \\ c", "\n\t\r\x01\x7f",
      "\xc3\xa9", "\xff\xc3", "as \"x\""};
  return texts[hd_random_below(m->g, sizeof texts / sizeof texts[0])];
}

static hd_scalar_t any_scalar(maker_t *m) {
  hd_scalar_t type;
  do
    type = (hd_scalar_t)hd_random_below(m->g, HD_SCALAR_COUNT);
  while (hd_scalar_class(type) == HD_CLASS_VOID ||
         hd_scalar_class(type) == HD_CLASS_OPAQUE);
  m->g->counts->scalars[type]++;
  return type;
}

static const hd_expr_t *any_size(maker_t *m, int depth) {
  static const hd_expr_kind_t kinds[] = {HD_EXPR_ADD, HD_EXPR_SUB, HD_EXPR_MUL,
                                         HD_EXPR_DIV, HD_EXPR_MOD, HD_EXPR_MIN,
                                         HD_EXPR_MAX};
  hd_arena_t *arena = m->g->arena;
  if (depth == 0 || m->dims.size == 0 || chance(m, 3)) {
    if (m->dims.size && chance(m, 2))
      return hd_expr_var(
          arena, m->dims.data[hd_random_below(m->g, (unsigned)m->dims.size)]);
    return hd_expr_int(arena, hd_type(HD_I64), hd_random_below(m->g, 5));
  }
  if (chance(m, 8))
    return hd_expr_unary(arena, HD_EXPR_NEG,
                         hd_expr_var(arena, m->dims.data[0]));
  const hd_expr_t *a = any_size(m, depth - 1), *b = any_size(m, depth - 1);
  const hd_expr_t *size = hd_expr_binary(
      arena, kinds[hd_random_below(m->g, sizeof kinds / sizeof kinds[0])], a,
      b);
  // What is a number is written as one.
  return hd_expr_fold(arena, size) ? hd_expr_int(arena, hd_type(HD_I64), 7)
                                   : size;
}

static void any_type(maker_t *m, hd_value_t *value) {
  if (chance(m, 6))
    value->form = chance(m, 2) ? HD_HOLDS_SEQUENCE : HD_HOLDS_OPTIONAL;
  m->g->counts->forms[value->form]++;
  value->type = chance(m, 5) ? HD_VOID : any_scalar(m);
  value->rank = (int)hd_random_below(m->g, 5) - 1;
  if (value->rank <= 0)
    return;
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(m->g->arena, const hd_expr_t *, value->rank);
  for (int i = 0; i < value->rank; i++)
    shape[i] = chance(m, 5) ? NULL : any_size(m, 3);
  value->shape = shape;
}

static hd_value_t *new_value(maker_t *m) {
  hd_value_t *value = HD_ARENA_NEW(m->g->arena, hd_value_t);
  value->name = new_name(m);
  value->label = chance(m, 3) ? any_text(m) : NULL;
  value->rank = -1;
  return value;
}

static void numbers(maker_t *m, hd_value_t *value) {
  const hd_expr_t **shape = HD_ARENA_ARRAY(m->g->arena, const hd_expr_t *, 2);
  value->type = any_scalar(m);
  value->rank = (int)hd_random_below(m->g, 3);
  value->shape = shape;
  for (int i = 0; i < value->rank; i++)
    shape[i] =
        hd_expr_int(m->g->arena, hd_type(HD_I64), hd_random_below(m->g, 4));
}

static double any_float(maker_t *m) {
  static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-3};
  if (chance(m, 3))
    return odd[hd_random_below(m->g, 6)];
  return ldexp((double)(int64_t)hd_random(m->g),
               (int)hd_random_below(m->g, 80) - 100);
}

// Fills in what a constant of the value's type holds.
static void elements(maker_t *m, hd_value_t *value) {
  hd_constant_t *constant = HD_ARENA_NEW(m->g->arena, hd_constant_t);
  int64_t shape[2] = {0};
  value->constant = constant;
  if (chance(m, 4)) {
    constant->file = "a file.bin";
    constant->offset = (int64_t)(hd_random(m->g) >> 1);
    return;
  }
  for (int i = 0; i < value->rank; i++)
    shape[i] = value->shape[i]->u.i;
  hd_host_tensor_t *tensor = hd_host_tensor_make(m->g->arena, value->type,
                                                 shape, (unsigned)value->rank);
  constant->tensor = tensor;
  bool repeated = chance(m, 3);
  for (int64_t i = 0; i < tensor->count; i++) {
    size_t size = hd_host_element_bytes(value->type);
    if (repeated && i > 0)
      memcpy(tensor->data + (size_t)i * size, tensor->data, size);
    else if (hd_scalar_class(value->type) == HD_CLASS_FLOAT)
      hd_host_tensor_set(tensor, i, any_float(m));
    else
      hd_host_tensor_set_int(tensor, i, (int64_t)hd_random(m->g));
  }
}

static void list(maker_t *m, hd_attribute_t *a, hd_scalar_t floats) {
  a->count = hd_random_below(m->g, 4);
  int64_t *ints = HD_ARENA_ARRAY(m->g->arena, int64_t, 4);
  double *numbers = HD_ARENA_ARRAY(m->g->arena, double, 4);
  const char **strings = HD_ARENA_ARRAY(m->g->arena, const char *, 4);
  for (size_t i = 0; i < a->count; i++) {
    ints[i] = (int64_t)hd_random(m->g);
    numbers[i] = hd_float_round(floats, any_float(m));
    strings[i] = any_text(m);
  }
  if (a->kind == HD_ATTRIBUTE_INTS)
    a->u.ints = ints;
  else if (a->kind == HD_ATTRIBUTE_FLOATS)
    a->u.floats = numbers;
  else
    a->u.strings = strings;
}

// The first one names a dimension: numbers alone are integers.
static void sizes(maker_t *m, hd_attribute_t *a) {
  hd_arena_t *arena = m->g->arena;
  const hd_expr_t **list = HD_ARENA_ARRAY(arena, const hd_expr_t *, 4);
  a->count = a->kind == HD_ATTRIBUTE_SIZE ? 1 : 1 + hd_random_below(m->g, 4);
  for (size_t i = 0; i < a->count; i++)
    list[i] = any_size(m, 3);
  list[0] = hd_expr_binary(arena, HD_EXPR_ADD,
                           hd_expr_var(arena, m->dims.data[0]), list[0]);
  a->u.sizes = list;
}

static const hd_attribute_t *attribute(maker_t *m, const char *name,
                                       hd_attribute_kind_t kind,
                                       hd_scalar_t floats) {
  hd_attribute_t *a = HD_ARENA_NEW(m->g->arena, hd_attribute_t);
  a->name = name;
  a->kind = kind;
  m->g->counts->attributes[kind]++;
  switch (kind) {
  case HD_ATTRIBUTE_INT:
    a->u.i = (int64_t)hd_random(m->g);
    break;
  case HD_ATTRIBUTE_FLOAT:
    a->u.f = hd_float_round(floats, any_float(m));
    break;
  case HD_ATTRIBUTE_STRING:
    a->u.s = any_text(m);
    break;
  case HD_ATTRIBUTE_INTS:
  case HD_ATTRIBUTE_FLOATS:
  case HD_ATTRIBUTE_STRINGS:
    list(m, a, floats);
    break;
  case HD_ATTRIBUTE_TENSOR: {
    hd_value_t *value = HD_ARENA_NEW(m->g->arena, hd_value_t);
    value->name = name;
    numbers(m, value);
    elements(m, value);
    a->u.tensor = value;
    break;
  }
  case HD_ATTRIBUTE_GRAPH:
    a->u.graph = make_graph(m, NULL);
    break;
  case HD_ATTRIBUTE_TYPE:
    a->u.type = any_scalar(m);
    break;
  case HD_ATTRIBUTE_SIZE:
  case HD_ATTRIBUTE_SIZES:
    sizes(m, a);
    break;
  case HD_ATTRIBUTE_KINDS:
    break;
  }
  return a;
}

static void add_attributes(maker_t *m, hd_node_t *node) {
  static const char *const names[] = {"axis", "in", "graph", "f32"};
  unsigned count = hd_random_below(m->g, 5);
  const hd_attribute_t **list =
      HD_ARENA_ARRAY(m->g->arena, const hd_attribute_t *, 4);
  for (unsigned i = 0; i < count; i++) {
    hd_attribute_kind_t kind =
        (hd_attribute_kind_t)hd_random_below(m->g, HD_ATTRIBUTE_KINDS);
    bool is_size = kind == HD_ATTRIBUTE_SIZE || kind == HD_ATTRIBUTE_SIZES;
    if ((kind == HD_ATTRIBUTE_GRAPH && m->depth >= 2) ||
        (is_size && !m->dims.size))
      kind = HD_ATTRIBUTE_INT;
    list[i] = attribute(m, names[i], kind, hd_node_float_type(node));
  }
  node->num_attributes = count;
  node->attributes = list;
}

static const hd_value_t *any_value(maker_t *m) {
  return m->values.size
             ? m->values.data[hd_random_below(m->g, (unsigned)m->values.size)]
             : NULL;
}

static void add_operands(maker_t *m, hd_node_t *node, unsigned inputs,
                         unsigned outputs, bool complete) {
  const hd_value_t **in = HD_ARENA_ARRAY(m->g->arena, const hd_value_t *, 8);
  const hd_value_t **out = HD_ARENA_ARRAY(m->g->arena, const hd_value_t *, 8);
  for (unsigned i = 0; i < inputs; i++)
    in[i] = !complete && chance(m, 4) ? NULL : any_value(m);
  for (unsigned i = 0; i < outputs; i++) {
    hd_value_t *value = !complete && chance(m, 4) ? NULL : new_value(m);
    if (value && !complete && chance(m, 2))
      any_type(m, value);
    out[i] = value;
  }
  node->num_inputs = inputs;
  node->inputs = in;
  node->num_outputs = outputs;
  node->outputs = out;
}

static bool is_tensor(const hd_value_t *value) {
  return value && value->form == HD_HOLDS_TENSOR && value->type != HD_VOID;
}

// A tensor that may be copied by a kernel, or by a plan: of constant shape, or
// with a size for each axis. NULL: nothing can say the shape.
static const hd_func_t *make_schedule(maker_t *m, const hd_value_t *value) {
  hd_arena_t *arena = m->g->arena;
  hd_func_t *func = HD_ARENA_NEW(arena, hd_func_t);
  unsigned rank = value->rank < 0 ? 0 : (unsigned)value->rank;
  bool symbolic = value->rank > 0 && chance(m, 2);
  const hd_var_t **params = HD_ARENA_ARRAY(arena, const hd_var_t *, rank + 2);
  const hd_expr_t **shape = HD_ARENA_ARRAY(arena, const hd_expr_t *, rank + 1);
  for (unsigned i = 0; i < rank; i++) {
    int64_t size = 1;
    if (value->shape[i] && hd_expr_fold_int(value->shape[i], &size) && !size)
      return NULL;
    if (symbolic) {
      params[func->num_params++] =
          hd_var_make(arena, hd_arena_printf(arena, "n%u", i), HD_VAR_PARAM,
                      hd_type(chance(m, 2) ? HD_I64 : HD_I32), (hd_loc_t){0});
      shape[i] = hd_expr_var(arena, params[i]);
      continue;
    }
    if (value->shape[i] && !hd_expr_fold_int(value->shape[i], &size))
      return NULL;
    shape[i] = hd_expr_int(arena, hd_type(HD_I32), size);
  }
  for (unsigned i = 0; i < 2; i++) {
    hd_tensor_t *tensor = HD_ARENA_NEW(arena, hd_tensor_t);
    *tensor = (hd_tensor_t){.scope = HD_SCOPE_GLOBAL,
                            .element = hd_type(value->type),
                            .rank = rank,
                            .shape = shape};
    hd_var_t *param =
        hd_var_make_tensor(arena, i ? "y" : "x", tensor, (hd_loc_t){0});
    param->direction = i ? HD_DIR_OUT : HD_DIR_IN;
    params[func->num_params++] = param;
  }
  func->kind = chance(m, 3) ? HD_FUNC_PLAN : HD_FUNC_KERNEL;
  func->name = hd_arena_printf(arena, "s%zu", m->g->module->items.size);
  func->params = params;
  func->result = hd_type(HD_VOID);
  func->has_body = true;
  m->g->counts->schedules++;
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = func};
  hd_vec_push(arena, &m->g->module->items, item);
  return func;
}

// An operator of a standard, a task or a reshape; in a group a task or a
// reshape.
static hd_node_t *add_node(maker_t *m, const hd_value_t *x) {
  static const char *const domains[] = {"onnx", "microsoft", "v1x"};
  hd_node_t *node = HD_ARENA_NEW(m->g->arena, hd_node_t);
  node->label = chance(m, 3) ? any_text(m) : NULL;
  node->group = m->group;
  unsigned which = is_tensor(x) ? hd_random_below(m->g, m->group ? 2 : 4) : 2;
  m->g->counts->nodes[which < 2 ? which : 2]++;
  if (which >= 2) {
    node->domain = domains[hd_random_below(m->g, 3)];
    node->version = 1 + (int)hd_random_below(m->g, 30);
    node->op = hd_random_name(m->g);
    add_attributes(m, node);
    add_operands(m, node, hd_random_below(m->g, 4), hd_random_below(m->g, 4),
                 m->values.size == 0);
  } else {
    const hd_value_t **in = HD_ARENA_ARRAY(m->g->arena, const hd_value_t *, 1);
    const hd_attribute_t **list =
        HD_ARENA_ARRAY(m->g->arena, const hd_attribute_t *, 1);
    in[0] = x;
    node->op = which ? "copy" : "reshape";
    node->task =
        which ? hd_library_task(m->g->module->context, node->op) : NULL;
    add_operands(m, node, 0, 1, true);
    node->num_inputs = 1;
    node->inputs = in;
    node->num_attributes = which && chance(m, 2);
    node->attributes = list;
    hd_value_t *y = new_value(m);
    y->type = x->type;
    y->rank = x->rank;
    y->shape = x->shape;
    if (!which && y->rank < 0)
      y->rank = 0;
    hd_attribute_t *type = HD_ARENA_NEW(m->g->arena, hd_attribute_t);
    *type = (hd_attribute_t){.name = "T", .kind = HD_ATTRIBUTE_TYPE};
    type->u.type = x->type;
    list[0] = type;
    const hd_value_t **out = HD_ARENA_ARRAY(m->g->arena, const hd_value_t *, 1);
    out[0] = y;
    node->outputs = out;
    if (which && chance(m, 3))
      node->schedule = make_schedule(m, x);
  }
  for (unsigned i = 0; i < node->num_outputs; i++)
    if (node->outputs[i])
      hd_vec_push(m->g->arena, &m->values, node->outputs[i]);
  hd_vec_push(m->g->arena, &m->graph->nodes, (const hd_node_t *)node);
  return node;
}

// Some nodes, of which one task at least is an anchor.
static void add_group(maker_t *m) {
  unsigned limit = 1 + hd_random_below(m->g, 4), anchors = 0;
  const hd_value_t *x = any_value(m);
  if (!is_tensor(x))
    return;
  m->group = ++m->groups;
  for (unsigned i = 0; i < limit || !anchors; i++) {
    hd_node_t *node = add_node(m, x);
    node->anchor = node->task && chance(m, 2);
    anchors += node->anchor;
    if (chance(m, 2))
      x = node->outputs[0];
  }
  m->g->counts->groups++;
  m->g->counts->anchors += anchors;
  m->group = 0;
}

// Declares a dimension by an input of that size, or gives any other.
static void add_input(maker_t *m) {
  static const char *const names[] = {"n", "batch", "c0", "c1", "x"};
  hd_value_t *value = new_value(m);
  any_type(m, value);
  const char *name = names[hd_random_below(m->g, 5)];
  bool taken = !chance(m, 2);
  for (size_t i = 0; i < m->dims.size; i++)
    taken |= strcmp(m->dims.data[i]->name, name) == 0;
  if (!taken) {
    const hd_var_t *dim = hd_var_make(m->g->arena, name, HD_VAR_PARAM,
                                      hd_type(HD_I64), (hd_loc_t){0});
    const hd_expr_t **shape = HD_ARENA_ARRAY(m->g->arena, const hd_expr_t *, 1);
    shape[0] = hd_expr_var(m->g->arena, dim);
    value->rank = 1;
    value->shape = shape;
    hd_vec_push(m->g->arena, &m->graph->dims, dim);
    hd_vec_push(m->g->arena, &m->dims, dim);
  }
  hd_vec_push(m->g->arena, &m->values, (const hd_value_t *)value);
  hd_vec_push(m->g->arena, &m->graph->inputs, (const hd_value_t *)value);
}

static hd_graph_t *make_graph(maker_t *m, const char *name) {
  hd_graph_t *graph = HD_ARENA_NEW(m->g->arena, hd_graph_t);
  size_t values = m->values.size, dims = m->dims.size;
  unsigned groups = m->groups;
  graph->name = name;
  graph->outer = m->graph;
  m->graph = graph;
  m->groups = 0;
  m->depth++;
  for (unsigned i = hd_random_below(m->g, 4); i-- > 0;)
    add_input(m);
  for (unsigned i = hd_random_below(m->g, 4); i-- > 0;) {
    hd_value_t *value = new_value(m);
    numbers(m, value);
    elements(m, value);
    hd_vec_push(m->g->arena, &m->values, (const hd_value_t *)value);
    hd_vec_push(m->g->arena, &graph->constants, (const hd_value_t *)value);
  }
  for (unsigned i = hd_random_below(m->g, 5); i-- > 0;)
    if (chance(m, 4))
      add_group(m);
    else
      add_node(m, any_value(m));
  for (unsigned i = hd_random_below(m->g, 3); i-- > 0 && m->values.size;)
    hd_vec_push(m->g->arena, &graph->outputs, any_value(m));
  m->values.size = values;
  m->dims.size = dims;
  m->groups = groups;
  m->graph = (hd_graph_t *)(uintptr_t)graph->outer;
  m->depth--;
  return graph;
}

void hd_generate_graph(hd_generator_t *g, const char *name) {
  maker_t m = {.g = g};
  hd_item_t item = {.kind = HD_ITEM_GRAPH, .u.graph = make_graph(&m, name)};
  g->counts->graphs++;
  hd_vec_push(g->arena, &g->module->items, item);
}
