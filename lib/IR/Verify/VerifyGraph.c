// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs: values and their names, in the order in which they are given.
#include "IR/Graph/Loop.h"
#include "IR/Keywords.h"
#include "IR/Rewrite.h"
#include "IR/Verify/GraphVerifier.h"
#include "Support/Map.h"

#include <math.h>
#include <string.h>

typedef HD_VEC(const char *) names_t;

static void verify_graph(hd_graph_verifier_t *g, const hd_graph_t *graph);

bool hd_verify_is_name(const char *name) {
  static const char letters[] =
      "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return name && *name && name[strspn(name, letters)] == '\0' &&
         !(*name >= '0' && *name <= '9') && strcmp(name, "_") != 0 &&
         !hd_is_reserved(name);
}

static bool is_arithmetic(void *argument, const hd_expr_t *e) {
  const hd_graph_verifier_t *g = argument;
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_CONST:
  case HD_EXPR_NEG:
  case HD_EXPR_ADD:
  case HD_EXPR_SUB:
  case HD_EXPR_MUL:
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
  case HD_EXPR_MIN:
  case HD_EXPR_MAX:
    return hd_type_equal(e->type, hd_type(HD_I64));
  case HD_EXPR_VAR:
    return hd_verifier_sees(&g->v, e->u.var);
  default:
    return false;
  }
}

static bool is_size(hd_graph_verifier_t *g, const hd_expr_t *size) {
  return size->height <= HD_MAX_HEIGHT && hd_walk_expr(size, is_arithmetic, g);
}

static bool is_element(hd_scalar_t type) {
  hd_scalar_class_t class = hd_scalar_class(type);
  return class != HD_CLASS_VOID && class != HD_CLASS_OPAQUE;
}

static void verify_type(hd_graph_verifier_t *g, const hd_value_t *value) {
  if (value->type == HD_VOID && value->rank < 0)
    return;
  if (value->type != HD_VOID && !is_element(value->type))
    hd_verify_fault(&g->v, value->loc, "'%s' has elements of type %s",
                    value->name, hd_scalar_name(value->type));
  if (value->rank > HD_MAX_RANK) {
    hd_error(g->v.diags, value->loc, HD_E0307, "a rank", 0LL,
             (long long)HD_MAX_RANK, (long long)value->rank);
    g->v.errors++;
    return;
  }
  for (int i = 0; i < value->rank; i++) {
    const hd_expr_t *size = value->shape[i];
    int64_t number;
    if (size && !is_size(g, size))
      hd_verify_fault(&g->v, value->loc,
                      "size %d of '%s' is not arithmetic (+ - * / %% min max) "
                      "on dimensions of the graph",
                      i, value->name);
    else if (size && hd_expr_fold_int(size, &number) && number < 0)
      hd_verify_fault(&g->v, value->loc, "size %d of '%s' is %lld", i,
                      value->name, (long long)number);
  }
}

static void give(hd_graph_verifier_t *g, names_t *names,
                 const hd_value_t *value) {
  if (!hd_verify_is_name(value->name)) {
    hd_verify_fault(&g->v, value->loc, "'%s' is no name for a value",
                    value->name ? value->name : "");
    return;
  }
  const hd_value_t *other = hd_key_map_find_name(&g->names, value->name);
  if (other) {
    hd_error(g->v.diags, value->loc, HD_E0202, value->name);
    hd_note(g->v.diags, other->loc, "declared here");
    g->v.errors++;
    return;
  }
  hd_key_map_set_name(&g->v.arena, &g->names, value->name, value);
  hd_vec_push(&g->v.arena, names, value->name);
  verify_type(g, value);
}

static void verify_use(hd_graph_verifier_t *g, const hd_value_t *value,
                       hd_loc_t loc) {
  if (!value->name || hd_key_map_find_name(&g->names, value->name) != value)
    hd_verify_fault(&g->v, loc, "'%s' is not given before it is used",
                    value->name ? value->name : "");
}

static void verify_constant(hd_graph_verifier_t *g, const hd_value_t *value) {
  const hd_constant_t *constant = value->constant;
  if (!constant ||
      (!constant->tensor && !constant->mapped && !constant->file)) {
    hd_verify_fault(&g->v, value->loc, "constant '%s' has no elements",
                    value->name);
    return;
  }
  if (!hd_value_is_concrete(value)) {
    hd_verify_fault(&g->v, value->loc,
                    "the type and shape of constant '%s' must be constants",
                    value->name);
    return;
  }
  const hd_host_tensor_t *tensor = constant->tensor;
  bool differs = tensor && (tensor->type != value->type ||
                            tensor->rank != (unsigned)value->rank);
  for (int i = 0; tensor && !differs && i < value->rank; i++)
    differs = !hd_expr_is_int(value->shape[i], tensor->shape[i]);
  if (differs)
    hd_verify_fault(&g->v, value->loc,
                    "the elements of constant '%s' have another type or shape",
                    value->name);
  if (constant->file && constant->offset < 0)
    hd_verify_fault(&g->v, value->loc,
                    "constant '%s' lies before the start of its file",
                    value->name);
}

// The dimensions that are sizes of inputs.
static void find_bound(hd_graph_verifier_t *g, const hd_graph_t *graph,
                       hd_ptr_map_t *bound) {
  for (size_t i = 0; i < graph->inputs.size; i++) {
    const hd_value_t *value = graph->inputs.data[i];
    for (int n = 0; n < value->rank; n++)
      if (value->shape[n] && value->shape[n]->kind == HD_EXPR_VAR)
        hd_ptr_map_set(&g->v.arena, bound, value->shape[n]->u.var, value);
  }
}

static void declare_dims(hd_graph_verifier_t *g, const hd_graph_t *graph) {
  hd_ptr_map_t bound = {0};
  find_bound(g, graph, &bound);
  for (size_t i = 0; i < graph->dims.size; i++) {
    const hd_var_t *dim = graph->dims.data[i];
    if (dim->tensor || !hd_type_equal(dim->type, hd_type(HD_I64)) ||
        !hd_verify_is_name(dim->name))
      hd_verify_fault(&g->v, dim->loc, "'%s' is no dimension: a name, i64",
                      dim->name);
    if (!hd_ptr_map_get(&bound, dim))
      hd_verify_fault(&g->v, dim->loc, "dimension '%s' is no size of an input",
                      dim->name);
    if (hd_visible_find(&g->v.visible, dim->name)) {
      hd_error(g->v.diags, dim->loc, HD_E0202, dim->name);
      g->v.errors++;
    }
    hd_visible_push(&g->v.visible, dim, dim->name);
  }
}

static bool is_rounded(const hd_attribute_t *a, hd_scalar_t type) {
  bool ok = a->kind != HD_ATTRIBUTE_FLOAT || isnan(a->u.f) ||
            hd_float_round(type, a->u.f) == a->u.f;
  for (size_t i = 0; a->kind == HD_ATTRIBUTE_FLOATS && i < a->count; i++)
    ok &= isnan(a->u.floats[i]) ||
          hd_float_round(type, a->u.floats[i]) == a->u.floats[i];
  return ok;
}

// Each is looked for among the others.
enum { MAX_ATTRIBUTES = 1000 };

// A loop's body sees nothing of what is around it.
static void verify_body(hd_graph_verifier_t *g, const hd_graph_t *body) {
  hd_key_map_t names = g->names;
  g->names = (hd_key_map_t){0};
  if (body->name || body->outer)
    hd_verify_fault(&g->v, body->loc, "a loop's body has a name");
  else
    verify_graph(g, body);
  g->names = names;
}

static void verify_sizes(hd_graph_verifier_t *g, const hd_attribute_t *a) {
  bool ok = a->count > 0;
  for (size_t i = 0; i < a->count; i++)
    ok &= is_size(g, a->u.sizes[i]);
  if (!ok)
    hd_verify_fault(&g->v, a->loc,
                    "attribute '%s' is not arithmetic (+ - * / %% min max) on "
                    "dimensions of the graph",
                    a->name);
}

static void verify_attributes(hd_graph_verifier_t *g, const hd_node_t *node) {
  if (node->num_attributes > MAX_ATTRIBUTES) {
    hd_error(g->v.diags, node->loc, HD_E0307, "the number of attributes", 0LL,
             (long long)MAX_ATTRIBUTES, (long long)node->num_attributes);
    g->v.errors++;
    return;
  }
  for (uint32_t i = 0; i < node->num_attributes; i++) {
    const hd_attribute_t *a = node->attributes[i];
    if (hd_node_attribute(node, a->name) != a) {
      hd_error(g->v.diags, a->loc, HD_E0303, a->name);
      g->v.errors++;
    }
    if (!is_rounded(a, hd_node_float_type(node)))
      hd_verify_fault(&g->v, a->loc, "the floats of attribute '%s' are not %s",
                      a->name, hd_scalar_name(hd_node_float_type(node)));
    if (a->kind == HD_ATTRIBUTE_TENSOR)
      verify_constant(g, a->u.tensor);
    if (a->kind == HD_ATTRIBUTE_SIZE || a->kind == HD_ATTRIBUTE_SIZES)
      verify_sizes(g, a);
    if (a->kind == HD_ATTRIBUTE_TYPE && !is_element(a->u.type))
      hd_verify_fault(&g->v, a->loc, "attribute '%s' is no type of elements",
                      a->name);
    if (a->kind != HD_ATTRIBUTE_GRAPH)
      continue;
    if (hd_node_is_loop(node)) {
      verify_body(g, a->u.graph);
      continue;
    }
    if (a->u.graph->outer != g->graph || a->u.graph->name)
      hd_verify_fault(&g->v, a->loc,
                      "the graph of '%s' is not one of this graph", a->name);
    else
      verify_graph(g, a->u.graph);
  }
}

static void verify_graph(hd_graph_verifier_t *g, const hd_graph_t *graph) {
  const hd_graph_t *outer = g->graph;
  size_t dims = hd_visible_size(&g->v.visible);
  names_t names = {0};
  g->graph = graph;
  declare_dims(g, graph);
  for (size_t i = 0; i < graph->inputs.size; i++)
    give(g, &names, graph->inputs.data[i]);
  for (size_t i = 0; i < graph->constants.size; i++) {
    give(g, &names, graph->constants.data[i]);
    verify_constant(g, graph->constants.data[i]);
  }
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    for (uint32_t n = 0; n < node->num_inputs; n++)
      if (node->inputs[n])
        verify_use(g, node->inputs[n], node->loc);
    verify_attributes(g, node);
    hd_verify_node(g, node);
    for (uint32_t n = 0; n < node->num_outputs; n++)
      if (node->outputs[n])
        give(g, &names, node->outputs[n]);
  }
  hd_verify_groups(g);
  for (size_t i = 0; i < graph->outputs.size; i++)
    verify_use(g, graph->outputs.data[i], graph->loc);
  for (size_t i = 0; i < names.size; i++)
    hd_key_map_set_name(&g->v.arena, &g->names, names.data[i], NULL);
  hd_visible_pop(&g->v.visible, dims);
  g->graph = outer;
}

bool hd_graph_verify(hd_context_t *context, const hd_graph_t *graph) {
  hd_graph_verifier_t g = {.v = {.diags = &context->diags}};
  hd_arena_init_local(&g.v.arena, &context->budget);
  g.v.visible.arena = &g.v.arena;
  if (!hd_verify_is_name(graph->name))
    hd_verify_fault(&g.v, graph->loc, "'%s' is no name for a graph",
                    graph->name ? graph->name : "");
  verify_graph(&g, graph);
  hd_arena_fini(&g.v.arena);
  return g.v.errors == 0;
}
