// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TreeEnsemble: all rows go down all trees at once, a step at a time, as many
// steps as the deepest tree has. A node that asks for membership becomes a
// chain of nodes that ask for equality.
#include "Graph/Expand/Lower/Lower.h"

#include "Support/Budget.h"

#include <math.h>
#include <string.h>

enum { MEMBER = 6, MAX_DEPTH = 1000 };

typedef struct tree_node {
  int64_t feature, mode, yes, no, missing; // yes, no: leaf n as -1 - n.
  double split;
} tree_node_t;

typedef struct trees {
  hd_lowering_t *l;
  HD_VEC(tree_node_t) nodes;
  int64_t leaves;
  const int64_t *roots;
  size_t num_roots;
} trees_t;

static const hd_host_tensor_t *read_tensor(hd_lowering_t *l, const char *name) {
  const hd_attribute_t *a = hd_lower_attribute(l, name, HD_ATTRIBUTE_TENSOR);
  return a ? hd_lower_find_data(l, a->u.tensor) : NULL;
}

// The entries are one for each node.
static const int64_t *read_list(hd_lowering_t *l, const char *name,
                                size_t expected) {
  size_t count;
  const int64_t *list = hd_lower_ints(l, name, &count);
  if (list && count == expected)
    return list;
  hd_lower_invalid(l, "%s has %zu entries, and not %zu", name, count, expected);
  return NULL;
}

// Node i asks whether the feature is among values[*at ..] up to a NaN.
static bool expand_member(trees_t *t, size_t i, const hd_host_tensor_t *values,
                          int64_t *at) {
  tree_node_t node = t->nodes.data[i];
  size_t place = i;
  bool any = false;
  for (; values && *at < values->count; ++*at) {
    double value = hd_host_tensor_get(values, *at);
    if (isnan(value))
      break;
    node.mode = 4;
    node.split = value;
    if (any) {
      hd_vec_push(hd_lower_arena(t->l), &t->nodes, node);
      t->nodes.data[place].no = (int64_t)t->nodes.size - 1;
      place = t->nodes.size - 1;
    } else {
      t->nodes.data[i] = node;
    }
    any = true;
  }
  if (!values || *at == values->count)
    return hd_lower_invalid(t->l, "membership_values end too early");
  ++*at;
  if (!any) { // A set without members holds nothing.
    t->nodes.data[i].mode = 4;
    t->nodes.data[i].split = NAN;
  }
  return true;
}

static bool read_nodes(trees_t *t) {
  static const char *const names[] = {"nodes_featureids", "nodes_truenodeids",
                                      "nodes_falsenodeids", "nodes_trueleafs",
                                      "nodes_falseleafs"};
  hd_lowering_t *l = t->l;
  const hd_host_tensor_t *splits = read_tensor(l, "nodes_splits");
  const hd_host_tensor_t *modes = read_tensor(l, "nodes_modes");
  const hd_host_tensor_t *members = read_tensor(l, "membership_values");
  const int64_t *lists[5], *missing = NULL;
  if (!splits || !modes || splits->count != modes->count)
    return hd_lower_invalid(l, "nodes_splits and nodes_modes do not fit");
  size_t count = (size_t)splits->count, ignored;
  for (int i = 0; i < 5; i++)
    if (!(lists[i] = read_list(l, names[i], count)))
      return false;
  if (hd_lower_ints(l, "nodes_missing_value_tracks_true", &ignored) &&
      !(missing = read_list(l, "nodes_missing_value_tracks_true", count)))
    return false;
  for (size_t i = 0; i < count; i++) {
    tree_node_t node = {.feature = lists[0][i],
                        .mode = hd_host_tensor_get_int(modes, (int64_t)i),
                        .missing = missing ? missing[i] : 0,
                        .split = hd_host_tensor_get(splits, (int64_t)i)};
    int64_t *branches[] = {&node.yes, &node.no};
    for (int b = 0; b < 2; b++) {
      int64_t to = lists[1 + b][i];
      bool is_leaf = lists[3 + b][i] != 0;
      if (to < 0 || to >= (is_leaf ? t->leaves : (int64_t)count))
        return hd_lower_invalid(l, "node %zu leads nowhere", i);
      *branches[b] = is_leaf ? -1 - to : to;
    }
    if (node.mode < 0 || node.mode > MEMBER)
      return hd_lower_invalid(l, "a node of mode %lld", (long long)node.mode);
    hd_vec_push(hd_lower_arena(l), &t->nodes, node);
  }
  int64_t at = 0;
  for (size_t i = 0; i < count; i++)
    if (t->nodes.data[i].mode == MEMBER && !expand_member(t, i, members, &at))
      return false;
  return true;
}

// Steps to the deepest leaf; 0, reported, where nodes go round or too deep. The
// nodes that some root reaches in so many steps, until there are none.
static int64_t find_depth(trees_t *t, int64_t features) {
  hd_arena_t *arena = hd_lower_arena(t->l);
  size_t count = t->nodes.size;
  bool *here = HD_ARENA_ARRAY(arena, bool, count + 1);
  bool *next = HD_ARENA_ARRAY(arena, bool, count + 1);
  for (size_t i = 0; i < t->num_roots; i++) {
    if (t->roots[i] < 0 || t->roots[i] >= (int64_t)count)
      return hd_lower_invalid(t->l, "a root %lld", (long long)t->roots[i]);
    here[t->roots[i]] = true;
  }
  for (int64_t depth = 1; depth <= MAX_DEPTH; depth++) {
    hd_budget_check(&hd_lower_context(t->l)->budget);
    bool any = false;
    memset(next, 0, count * sizeof *next);
    for (size_t i = 0; i < count; i++) {
      if (!here[i])
        continue;
      const tree_node_t *node = &t->nodes.data[i];
      if (node->feature < 0 || node->feature >= features)
        return hd_lower_invalid(t->l, "feature %lld of %lld",
                                (long long)node->feature, (long long)features);
      if (node->yes >= 0)
        any = next[node->yes] = true;
      if (node->no >= 0)
        any = next[node->no] = true;
    }
    if (!any)
      return depth;
    bool *swap = here;
    here = next;
    next = swap;
  }
  hd_lower_unsupported(t->l, "trees of more than %d levels", (int)MAX_DEPTH);
  return 0;
}

// feature, split, mode, yes, no, missing, each [n].
static bool make_tables(trees_t *t, hd_scalar_t type,
                        const hd_value_t **tables) {
  hd_host_tensor_t *data[6];
  int64_t count = (int64_t)t->nodes.size;
  for (int i = 0; i < 6; i++)
    if (!(tables[i] = hd_lower_constant(t->l, i == 1 ? type : HD_I64, &count, 1,
                                        &data[i])))
      return false;
  for (int64_t i = 0; i < count; i++) {
    const tree_node_t *node = &t->nodes.data[i];
    hd_host_tensor_set_int(data[0], i, node->feature);
    hd_host_tensor_set(data[1], i, node->split);
    hd_host_tensor_set_int(data[2], i, node->mode);
    hd_host_tensor_set_int(data[3], i, node->yes);
    hd_host_tensor_set_int(data[4], i, node->no);
    hd_host_tensor_set_int(data[5], i, node->missing);
  }
  return true;
}

static const hd_value_t *descend(trees_t *t, const hd_value_t *x) {
  hd_lowering_t *l = t->l;
  const hd_value_t *inputs[8] = {x};
  int64_t depth = find_depth(t, hd_lower_size(x, 1));
  int64_t shape[] = {hd_lower_size(x, 0), (int64_t)t->num_roots};
  if (depth == 0 || !make_tables(t, x->type, inputs + 2))
    return NULL;
  const hd_value_t *node = hd_lower_ints_constant(l, t->roots, t->num_roots);
  node = node ? hd_lower_expand(l, node, shape, 2) : NULL;
  for (int64_t i = 0; node && i < depth; i++) {
    inputs[1] = node;
    node = hd_lower_task(l, "tree_step", inputs, 8, NULL, NULL);
  }
  return node;
}

static const hd_value_t *transform(hd_lowering_t *l, const hd_value_t *y) {
  int64_t mode = hd_lower_int(l, "post_transform", 0);
  if (mode == 2)
    return hd_lower_unary(l, "sigmoid", y);
  if (mode != 0 && mode != 1)
    return hd_lower_unsupported(l, "post_transform %lld", (long long)mode),
           NULL;
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "s", 1);
  return mode ? hd_lower_task(l, "softmax", &y, 1, &list, NULL) : y;
}

bool hd_onnx_tree_ensemble(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  const hd_attribute_t *weight =
      hd_lower_attribute(l, "leaf_weights", HD_ATTRIBUTE_TENSOR);
  int64_t targets = hd_lower_int(l, "n_targets", 0);
  int64_t aggregate = hd_lower_int(l, "aggregate_function", 1);
  trees_t t = {.l = l, .leaves = weight ? hd_lower_count(weight->u.tensor) : 0};
  t.roots = hd_lower_ints(l, "tree_roots", &t.num_roots);
  if (x->rank != 2 || t.num_roots == 0 || targets < 1 || aggregate < 0 ||
      aggregate > 3)
    return hd_lower_invalid(l, "an input of rank %d for %zu trees", x->rank,
                            t.num_roots);
  if (!read_nodes(&t))
    return false;
  const int64_t *target = read_list(l, "leaf_targetids", (size_t)t.leaves);
  const hd_value_t *leaf = target ? descend(&t, x) : NULL;
  const hd_value_t *inputs[] = {
      leaf, leaf ? hd_lower_ints_constant(l, target, (size_t)t.leaves) : NULL,
      leaf ? hd_lower_cast(l, weight->u.tensor, x->type) : NULL};
  if (!leaf || !inputs[1] || !inputs[2])
    return false;
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "targets", targets);
  if (aggregate < 2)
    hd_attributes_float(l, &list, "divisor",
                        aggregate ? 1 : (double)t.num_roots);
  const hd_value_t *y = hd_lower_task(l,
                                      aggregate < 2    ? "tree_sum"
                                      : aggregate == 2 ? "tree_least"
                                                       : "tree_greatest",
                                      inputs, 3, &list, NULL);
  y = y ? transform(l, y) : NULL;
  return hd_lower_output(l, 0, y);
}
