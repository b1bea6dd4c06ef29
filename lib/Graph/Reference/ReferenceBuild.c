// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From terms to nodes: sizes and attributes become constants, packs become
// their axes.
#include "Graph/Reference/ReferenceState.h"

#include <assert.h>
#include <math.h>

size_t hd_ref_tensor_at(const hd_task_t *task, const hd_task_value_t *value) {
  size_t i = 0;
  while (i < task->inputs.size && task->inputs.data[i] != value)
    i++;
  if (i < task->inputs.size)
    return i;
  for (size_t n = 0; n < task->outputs.size; n++)
    if (task->outputs.data[n] == value)
      return i + n;
  i += task->outputs.size;
  for (size_t n = 0; task->locals.data[n] != value; n++)
    i++;
  return i;
}

static bool unsupported(hd_ref_t *r, const char *text) {
  return hd_error(&r->context->diags, r->loc, HD_E1104, r->binding->task->name,
                  text);
}

static int add_level(hd_ref_t *r, const hd_index_t *index, unsigned axis,
                     int64_t extent) {
  if (r->num_levels == HD_REF_LEVELS) {
    unsupported(r, "the device ref goes no further than 64 axes of indices");
    return HD_REF_NO_LEVEL;
  }
  unsigned level = r->num_levels++;
  r->levels[level] = (hd_ref_level_t){index, axis, 0, extent, r->clock};
  return (int)level;
}

bool hd_ref_add_index(hd_ref_t *r, const hd_index_t *index) {
  const hd_pack_t *pack = index->range->pack;
  unsigned rank = pack ? hd_binding_rank(r->binding, pack) : 1;
  for (unsigned i = 0; i < rank; i++) {
    int64_t extent = 0;
    bool known = hd_binding_extent(r->binding, index->range, i, &extent);
    assert(known && "asked when it was bound");
    (void)known;
    if (add_level(r, index, i, extent) < 0)
      return false;
  }
  return true;
}

static hd_ref_node_t *make_node(hd_ref_t *r, hd_term_kind_t kind,
                                hd_scalar_t type,
                                hd_ref_node_t *const *operands,
                                unsigned count) {
  hd_ref_node_t *node =
      hd_arena_alloc(r->arena, sizeof *node + count * sizeof node->operands[0]);
  node->kind = (uint8_t)kind;
  node->type = type;
  node->from = type;
  node->num_operands = (uint8_t)count;
  for (unsigned i = 0; i < count; i++) {
    node->operands[i] = operands[i];
    node->deps |= operands[i]->deps;
  }
  return node;
}

static hd_ref_node_t *make_constant(hd_ref_t *r, hd_scalar_t type,
                                    hd_number_t number) {
  hd_ref_node_t *node = make_node(r, HD_TERM_CONST, type, NULL, 0);
  node->u.number = number;
  return node;
}

static hd_ref_node_t *build_index(hd_ref_t *r, const hd_index_t *index,
                                  unsigned axis) {
  unsigned level = r->num_levels;
  do
    level--;
  while (r->levels[level].index != index || r->levels[level].axis != axis);
  hd_ref_node_t *node = make_node(r, HD_TERM_INDEX, HD_I64, NULL, 0);
  node->u.level = level;
  node->deps = UINT64_C(1) << level;
  return node;
}

// --- Accesses ---

static hd_ref_node_t **build_indices(hd_ref_t *r, const hd_task_value_t *value,
                                     const hd_term_t *const *operands,
                                     unsigned *rank) {
  hd_ref_node_t **nodes =
      HD_ARENA_ARRAY(r->arena, hd_ref_node_t *, HD_MAX_RANK);
  *rank = 0;
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_pack_t *axes = value->shape[i]->pack, *pack = operands[i]->pack;
    unsigned count = axes ? hd_binding_rank(r->binding, axes) : 1;
    // A broadcast's axes are aligned at the right, and 1 is stretched.
    unsigned skip = axes ? hd_binding_rank(r->binding, pack) - count : 0;
    for (unsigned n = 0; n < count; n++) {
      int64_t size = 0;
      hd_ref_node_t *node;
      if (axes && pack != axes &&
          hd_binding_extent(r->binding, value->shape[i], n, &size) && size == 1)
        node = make_constant(r, HD_I64, (hd_number_t){.i = 0});
      else
        node = hd_ref_build(r, operands[i], skip + n);
      if (!node)
        return NULL;
      nodes[(*rank)++] = node;
    }
  }
  if (!value->by)
    return nodes;
  hd_ref_node_t **placed =
      HD_ARENA_ARRAY(r->arena, hd_ref_node_t *, HD_MAX_RANK);
  for (unsigned i = 0; i < *rank; i++)
    placed[hd_binding_place(r->binding, value, *rank, i)] = nodes[i];
  return placed;
}

hd_ref_access_t *hd_ref_build_access(hd_ref_t *r, const hd_task_value_t *value,
                                     const hd_term_t *const *operands) {
  hd_ref_access_t *access = HD_ARENA_NEW(r->arena, hd_ref_access_t);
  access->tensor = r->tensors[hd_ref_tensor_at(r->binding->task, value)];
  access->name = value->name;
  access->indices = build_indices(r, value, operands, &access->rank);
  access->known = HD_ARENA_ARRAY(r->arena, hd_ref_known_t, access->rank + 1);
  return access->indices ? access : NULL;
}

static hd_ref_node_t *build_load(hd_ref_t *r, const hd_term_t *term) {
  hd_ref_access_t *access =
      hd_ref_build_access(r, term->u.value, term->operands);
  if (!access)
    return NULL;
  hd_ref_node_t *node =
      make_node(r, (hd_term_kind_t)term->kind,
                hd_binding_type(r->binding, term->type), NULL, 0);
  node->u.access = access;
  for (unsigned i = 0; i < access->rank; i++)
    node->deps |= access->indices[i]->deps;
  if (term->kind == HD_TERM_LOAD)
    return node;
  access->otherwise =
      hd_ref_build(r, term->operands[term->num_operands - 1], 0);
  if (!access->otherwise)
    return NULL;
  node->deps |= access->otherwise->deps;
  return node;
}

// --- Reductions ---

static hd_ref_node_t *make_identity(hd_ref_t *r, hd_builtin_monoid_t monoid,
                                    hd_scalar_t type) {
  bool is_float = hd_scalar_class(type) == HD_CLASS_FLOAT;
  bool is_max = monoid == HD_MONOID_MAX, is_min = monoid == HD_MONOID_MIN;
  hd_number_t number = {0};
  if (is_max || is_min) {
    double far = is_max ? -INFINITY : INFINITY;
    number = hd_scalar_convert(type, HD_F64, (hd_number_t){.f = far});
  } else {
    bool one = monoid == HD_MONOID_PROD || monoid == HD_MONOID_ALL;
    number = hd_scalar_convert(type, is_float ? HD_F64 : HD_I64,
                               is_float ? (hd_number_t){.f = one}
                                        : (hd_number_t){.i = one});
  }
  return make_constant(r, type, number);
}

static bool build_declared(hd_ref_t *r, hd_ref_fold_t *fold,
                           const hd_monoid_t *monoid) {
  const hd_monoid_t *outer_monoid = r->monoid;
  hd_ref_fold_t *outer = r->fold;
  int level = add_level(r, NULL, 0, 1);
  bool ok = level >= 0;
  fold->bound_level = (unsigned)level;
  r->monoid = monoid;
  r->fold = fold;
  for (uint32_t i = 0; ok && i < monoid->size; i++)
    ok = (fold->identities[i] = hd_ref_build(r, monoid->identity[i], 0)) &&
         (fold->results[i] = hd_ref_build(r, monoid->result[i], 0));
  r->monoid = outer_monoid;
  r->fold = outer;
  return ok;
}

hd_ref_fold_t *hd_ref_build_monoid(hd_ref_t *r, const hd_monoid_t *monoid,
                                   hd_scalar_t type) {
  hd_ref_fold_t *fold = HD_ARENA_NEW(r->arena, hd_ref_fold_t);
  bool declared = monoid->builtin == HD_MONOID_COUNT;
  unsigned size = declared ? monoid->size : 1;
  fold->builtin = monoid->builtin;
  fold->type = type;
  fold->size = size;
  fold->identities = HD_ARENA_ARRAY(r->arena, hd_ref_node_t *, size);
  fold->results = HD_ARENA_ARRAY(r->arena, hd_ref_node_t *, size);
  fold->left = HD_ARENA_ARRAY(r->arena, hd_number_t, size);
  fold->right = HD_ARENA_ARRAY(r->arena, hd_number_t, size);
  fold->sums = HD_ARENA_ARRAY(r->arena, hd_number_t, size);
  fold->values = HD_ARENA_ARRAY(r->arena, hd_number_t, size);
  if (!declared)
    fold->identities[0] = make_identity(r, monoid->builtin, type);
  else if (!build_declared(r, fold, monoid))
    return NULL;
  return fold;
}

static hd_ref_node_t *build_reduction(hd_ref_t *r, const hd_term_t *term) {
  const hd_reduction_t *reduction = term->u.reduction;
  hd_scalar_t type = hd_binding_type(r->binding, term->type);
  hd_ref_fold_t *fold = hd_ref_build_monoid(r, reduction->monoid, type);
  if (!fold)
    return NULL;
  fold->part = reduction->part;
  if (term->kind == HD_TERM_SCAN &&
      !(fold->at = hd_ref_build(r, reduction->at, 0)))
    return NULL;
  fold->first_level = r->num_levels;
  for (uint32_t i = 0; i < reduction->num_indices; i++)
    if (!hd_ref_add_index(r, reduction->indices[i]))
      return NULL;
  fold->num_levels = r->num_levels - fold->first_level;
  hd_ref_node_t **bodies =
      HD_ARENA_ARRAY(r->arena, hd_ref_node_t *, fold->size);
  for (unsigned i = 0; i < fold->size; i++) {
    if (!(bodies[i] = hd_ref_build(r, term->operands[i], 0)))
      return NULL;
    fold->deps |= bodies[i]->deps;
  }
  fold->bodies = bodies;
  for (unsigned i = 0; i < fold->num_levels; i++)
    fold->deps &= ~(UINT64_C(1) << (fold->first_level + i));
  hd_ref_node_t *node = make_node(r, (hd_term_kind_t)term->kind, type, NULL, 0);
  node->deps = fold->deps | (fold->at ? fold->at->deps : 0);
  node->u.fold = fold;
  return node;
}

// --- The others ---

static hd_ref_node_t *build_variable(hd_ref_t *r, const hd_variable_t *v) {
  hd_ref_node_t *node = make_node(
      r, HD_TERM_BOUND, hd_binding_type(r->binding, v->type), NULL, 0);
  uint32_t i = 0;
  while (r->monoid->left[i] != v && r->monoid->right[i] != v)
    i++;
  node->deps = UINT64_C(1) << r->fold->bound_level;
  node->u.bound =
      r->monoid->left[i] == v ? &r->fold->left[i] : &r->fold->right[i];
  return node;
}

// One that is worth what its operands make of it; NULL after an error.
static hd_ref_node_t *build_node(hd_ref_t *r, const hd_term_t *term,
                                 unsigned axis) {
  hd_ref_node_t *operands[3];
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!(operands[i] = hd_ref_build(r, term->operands[i], axis)))
      return NULL;
  hd_ref_node_t *node = make_node(r, (hd_term_kind_t)term->kind,
                                  hd_binding_type(r->binding, term->type),
                                  operands, term->num_operands);
  node->from = hd_binding_type(r->binding, term->operands[0]->type);
  if (term->kind == HD_TERM_OPERATOR)
    node->u.op = term->u.op;
  else if (term->kind == HD_TERM_FUNCTION)
    node->u.function = term->u.function;
  return node->kind == HD_TERM_CAST && node->type == node->from ? operands[0]
                                                                : node;
}

hd_ref_node_t *hd_ref_build(hd_ref_t *r, const hd_term_t *term, unsigned axis) {
  hd_scalar_t type = hd_binding_type(r->binding, term->type);
  hd_number_t number = {0};
  if (!term->pack)
    axis = 0;
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
    return make_constant(r, type, hd_binding_constant(r->binding, term));
  case HD_TERM_LIMIT:
    return make_constant(r, type, hd_scalar_limit(term->u.limit, type));
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
    hd_binding_extent(r->binding, term, axis, &number.i);
    return make_constant(r, HD_I64, number);
  case HD_TERM_ATTRIBUTE:
    return make_constant(r, type,
                         hd_binding_attribute(r->binding, term->u.value, axis));
  case HD_TERM_PERMUTE:
    hd_binding_extent(r->binding, term->operands[1], axis, &number.i);
    return hd_ref_build(r, term->operands[0], (unsigned)number.i);
  case HD_TERM_INDEX:
    return build_index(r, term->u.index, axis);
  case HD_TERM_BOUND:
    return build_variable(r, term->u.variable);
  case HD_TERM_OPERATOR:
  case HD_TERM_SELECT:
  case HD_TERM_CAST:
  case HD_TERM_BITCAST:
  case HD_TERM_FUNCTION:
    return build_node(r, term, axis);
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    return build_load(r, term);
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
    return build_reduction(r, term);
  case HD_TERM_COUNT:
    break;
  }
  return NULL;
}
