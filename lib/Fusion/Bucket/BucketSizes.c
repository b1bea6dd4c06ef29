// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Bucket/BucketSizes.h"

#include "IR/Rewrite.h"

#include <string.h>

// --- Sizes by name ---

static int find_size(const hd_bucket_sizes_t *sizes, const char *name) {
  for (size_t i = 0; i < sizes->count; i++)
    if (!strcmp(sizes->names[i], name))
      return (int)i;
  return -1;
}

// What an axis is called, where it has the size of a name alone.
static const char *name_of(hd_arena_t *arena, const hd_value_t *input,
                           int axis) {
  const hd_expr_t *size = input->shape[axis];
  return !size                       ? hd_value_axis_name(arena, input, axis)
         : size->kind == HD_EXPR_VAR ? size->u.var->name
                                     : NULL;
}

bool hd_bucket_has_size(hd_arena_t *arena, const hd_graph_t *graph,
                        const char *name) {
  for (size_t i = 0; i < graph->inputs.size; i++)
    for (int axis = 0; axis < graph->inputs.data[i]->rank; axis++) {
      const char *found = name_of(arena, graph->inputs.data[i], axis);
      if (found && !strcmp(found, name))
        return true;
    }
  return false;
}

static bool add_size(hd_bucket_sizes_t *sizes, const char *name,
                     int64_t value) {
  int known = find_size(sizes, name);
  if (known >= 0)
    return sizes->values[known] == value;
  if (sizes->count == HD_BUCKET_SIZES)
    return false;
  sizes->names[sizes->count] = name;
  sizes->values[sizes->count++] = value;
  return true;
}

static bool same_type(const hd_tensor_type_t *a, const hd_tensor_type_t *b) {
  return a->type == b->type && a->rank == b->rank &&
         memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) == 0;
}

bool hd_bucket_sizes_find(hd_arena_t *arena, const hd_graph_t *graph,
                          const hd_tensor_type_t *types,
                          hd_bucket_sizes_t *sizes) {
  const char *missing;
  *sizes = (hd_bucket_sizes_t){0};
  for (size_t i = 0; i < graph->inputs.size; i++) {
    const hd_value_t *input = graph->inputs.data[i];
    if (input->rank < 0 || (unsigned)input->rank != types[i].rank)
      return false;
    for (int axis = 0; axis < input->rank; axis++) {
      const char *name = name_of(arena, input, axis);
      if (name && !add_size(sizes, name, types[i].shape[axis]))
        return false;
    }
  }
  hd_tensor_type_t *found =
      HD_ARENA_ARRAY(arena, hd_tensor_type_t, graph->inputs.size + 1);
  bool same =
      sizes->count > 0 && hd_bucket_types(arena, graph, sizes, found, &missing);
  for (size_t i = 0; same && i < graph->inputs.size; i++)
    same = same_type(&found[i], &types[i]);
  return same;
}

typedef struct lookup {
  const hd_bucket_sizes_t *sizes;
  const char *missing;
} lookup_t;

static bool size_of(void *argument, const hd_expr_t *leaf, hd_number_t *value) {
  lookup_t *l = argument;
  if (leaf->kind != HD_EXPR_VAR)
    return false;
  int i = find_size(l->sizes, leaf->u.var->name);
  if (i < 0)
    l->missing = leaf->u.var->name;
  else
    value->i = l->sizes->values[i];
  return i >= 0;
}

static bool axis_size(hd_arena_t *arena, const hd_value_t *input, int axis,
                      lookup_t *l, int64_t *size) {
  const hd_expr_t *e = input->shape[axis];
  if (!e) {
    const char *name = hd_value_axis_name(arena, input, axis);
    int i = find_size(l->sizes, name);
    if (i < 0)
      l->missing = name;
    else
      *size = l->sizes->values[i];
    return i >= 0;
  }
  const hd_fold_t fold = {.leaf = size_of, .argument = l};
  hd_number_t number = {0};
  bool known = hd_expr_value(&fold, e, &number);
  *size = number.i;
  return known && *size >= 0;
}

bool hd_bucket_types(hd_arena_t *arena, const hd_graph_t *graph,
                     const hd_bucket_sizes_t *sizes, hd_tensor_type_t *types,
                     const char **missing) {
  lookup_t l = {sizes, NULL};
  bool ok = true;
  for (size_t i = 0; ok && i < graph->inputs.size; i++) {
    const hd_value_t *input = graph->inputs.data[i];
    ok = input->form == HD_HOLDS_TENSOR && input->type != HD_VOID &&
         input->rank >= 0;
    if (!ok)
      break;
    types[i] =
        (hd_tensor_type_t){.type = input->type, .rank = (unsigned)input->rank};
    for (int axis = 0; ok && axis < input->rank; axis++)
      ok = axis_size(arena, input, axis, &l, &types[i].shape[axis]);
  }
  *missing = l.missing;
  return ok;
}

// --- Expansion ---

const hd_graph_t *hd_bucket_expand(hd_module_t *module, hd_arena_t *arena,
                                   const hd_graph_t *graph,
                                   const hd_tensor_type_t *types,
                                   const hd_expander_t *leader,
                                   hd_expander_t **expander) {
  const hd_graph_t *made;
  hd_expander_t *x = hd_expander_create(module, arena, graph, types, NULL);
  hd_expander_follow(x, leader);
  *expander = x;
  if (hd_expander_run(x, &made) != HD_EXPAND_DONE)
    return NULL;
  hd_graph_t *whole = HD_ARENA_COPY(arena, hd_graph_t, made);
  memset(&whole->inputs, 0, sizeof(whole->inputs));
  for (size_t i = 0; i < graph->inputs.size; i++)
    hd_vec_push(arena, &whole->inputs, hd_expander_input(x, i));
  return whole;
}

// --- Probes ---

typedef struct prober {
  hd_module_t *module;
  const hd_graph_t *graph;
  hd_bucket_sizes_t sizes;
  const hd_expander_t *leader;
  const hd_graph_t *graphs[HD_BUCKET_GRAPHS];
  size_t count;
} prober_t;

static const hd_graph_t *probe(prober_t *p, hd_expander_t **expander) {
  hd_arena_t *arena = &p->module->arena;
  const char *missing;
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(arena, hd_tensor_type_t, p->graph->inputs.size + 1);
  return hd_bucket_types(arena, p->graph, &p->sizes, types, &missing)
             ? hd_bucket_expand(p->module, arena, p->graph, types, p->leader,
                                expander)
             : NULL;
}

// The graph where size i is another one. Perhaps there is none: a model may ask
// for multiples.
static bool add_probe(prober_t *p, size_t i, int64_t value) {
  hd_diagnostics_t *diags = &p->module->context->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  int64_t bound = p->sizes.values[i];
  hd_expander_t *expander;
  p->sizes.values[i] = value;
  const hd_graph_t *graph = probe(p, &expander);
  p->sizes.values[i] = bound;
  hd_diagnostics_rewind(diags, mark);
  if (graph)
    p->graphs[p->count++] = graph;
  return graph != NULL;
}

const hd_bucket_t *hd_bucket_of(hd_module_t *module, const hd_graph_t *graph,
                                const hd_bucket_sizes_t *bounds,
                                const hd_inouts_t *inouts,
                                hd_expander_t **leader,
                                hd_bucket_refusal_t *refusal) {
  prober_t p = {.module = module, .graph = graph, .sizes = *bounds};
  *refusal = (hd_bucket_refusal_t){0};
  p.graphs[0] = probe(&p, leader);
  if (!p.graphs[0]) {
    if (hd_expander_wanted(*leader))
      refusal->why = "shapes depend on data";
    return NULL;
  }
  p.leader = *leader;
  p.count = 1;
  for (size_t i = 0; i < bounds->count; i++) {
    int64_t bound = bounds->values[i];
    if (bounds->fixed[i] || bound < HD_BUCKET_LEAST)
      continue;
    bool any = add_probe(&p, i, bound - 1);
    if (bound / 2 + 1 < bound - 1)
      any |= add_probe(&p, i, bound / 2 + 1);
    for (int64_t half = bound / 2; !any && half >= 2; half /= 2)
      any = add_probe(&p, i, half);
    if (!any) {
      refusal->why = "it takes no smaller size";
      return NULL;
    }
  }
  return hd_bucket_make(module, p.graphs, p.count, inouts, refusal);
}
