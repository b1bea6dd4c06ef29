// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From terms to nodes: sizes and attributes become constants, packs become
// their axes, and what is affine in the levels is seen to be.
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
  r->indices[level] = index;
  r->axes[level] = axis;
  r->levels[level] = (hd_ref_level_t){0, extent, r->clock};
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
  node->form = (uint8_t)hd_ref_form(type);
  node->num_operands = (uint8_t)count;
  node->simple = true;
  for (unsigned i = 0; i < count; i++) {
    node->operands[i] = operands[i];
    node->deps |= operands[i]->deps;
    node->simple &= operands[i]->simple;
  }
  return node;
}

// --- Affine terms ---

enum { MAX_SUMMANDS = 16 };

// What a sum over all points of the levels may reach, at most.
static const int64_t limit = INT64_C(1) << 60;

static int64_t magnitude(int64_t value) {
  return value < 0 ? (value < -limit ? limit : -value)
                   : (value > limit ? limit : value);
}

// a * by_a + b * by_b (b may be NULL), or NULL where it is too large.
static const hd_ref_affine_t *affine_sum(hd_ref_t *r, const hd_ref_affine_t *a,
                                         int64_t by_a, const hd_ref_affine_t *b,
                                         int64_t by_b) {
  unsigned most = a->count + (b ? b->count : 0);
  hd_ref_affine_t *sum =
      hd_arena_alloc(r->arena, sizeof *sum + most * sizeof sum->terms[0]);
  const hd_ref_affine_t *parts[] = {a, b};
  int64_t factors[] = {by_a, by_b};
  double reach = 0; // Exact enough: the limit is far from what overflows.
  for (unsigned p = 0; p < 2 && parts[p]; p++) {
    reach += (double)magnitude(parts[p]->base) * (double)magnitude(factors[p]);
    for (unsigned i = 0; i < parts[p]->count; i++)
      reach += (double)magnitude(parts[p]->terms[i].by) *
               (double)magnitude(factors[p]) *
               (double)r->levels[parts[p]->terms[i].level].extent;
  }
  if (reach >= (double)limit)
    return NULL;
  for (unsigned p = 0; p < 2 && parts[p]; p++) {
    sum->base += parts[p]->base * factors[p];
    for (unsigned i = 0; i < parts[p]->count; i++) {
      unsigned n = 0;
      while (n < sum->count && sum->terms[n].level != parts[p]->terms[i].level)
        n++;
      if (n == sum->count)
        sum->terms[sum->count++].level = parts[p]->terms[i].level;
      sum->terms[n].by += parts[p]->terms[i].by * factors[p];
    }
  }
  return sum->count <= MAX_SUMMANDS ? sum : NULL;
}

static const hd_ref_affine_t *affine_of(hd_ref_t *r,
                                        const hd_ref_node_t *node) {
  if (node->type != HD_I64)
    return NULL;
  if (node->kind == HD_TERM_CONST) {
    hd_ref_affine_t *constant = HD_ARENA_NEW(r->arena, hd_ref_affine_t);
    constant->base = node->u.number.i;
    return magnitude(constant->base) < limit ? constant : NULL;
  }
  if (node->kind != HD_TERM_OPERATOR)
    return node->affine;
  const hd_ref_affine_t *a = node->operands[0]->affine, *b = NULL;
  if (node->num_operands > 1)
    b = node->operands[1]->affine;
  if (!a || (node->num_operands > 1 && !b))
    return NULL;
  switch (node->u.op) {
  case HD_EXPR_ADD:
    return affine_sum(r, a, 1, b, 1);
  case HD_EXPR_SUB:
    return affine_sum(r, a, 1, b, -1);
  case HD_EXPR_NEG:
    return affine_sum(r, a, -1, NULL, 0);
  case HD_EXPR_MUL:
    return b->count == 0   ? affine_sum(r, a, b->base, NULL, 0)
           : a->count == 0 ? affine_sum(r, b, a->base, NULL, 0)
                           : NULL;
  default:
    return NULL;
  }
}

static hd_ref_node_t *make_constant(hd_ref_t *r, hd_scalar_t type,
                                    hd_number_t number) {
  hd_ref_node_t *node = make_node(r, HD_TERM_CONST, type, NULL, 0);
  node->u.number = number;
  node->affine = affine_of(r, node);
  return node;
}

static hd_ref_node_t *build_index(hd_ref_t *r, const hd_index_t *index,
                                  unsigned axis) {
  unsigned level = r->num_levels;
  do
    level--;
  while (r->indices[level] != index || r->axes[level] != axis);
  if (r->levels[level].extent == 1)
    return make_constant(r, HD_I64, (hd_number_t){.i = 0});
  hd_ref_node_t *node = make_node(r, HD_TERM_INDEX, HD_I64, NULL, 0);
  hd_ref_affine_t *affine =
      hd_arena_alloc(r->arena, sizeof *affine + sizeof affine->terms[0]);
  affine->count = 1;
  affine->terms[0].level = level;
  affine->terms[0].by = 1;
  node->u.level = level;
  node->deps = UINT64_C(1) << level;
  node->affine = affine;
  return node;
}

// --- Accesses ---

// Whether an index lies in 0 .. size - 1 wherever the levels stand.
static bool is_inside(const hd_ref_t *r, const hd_ref_affine_t *affine,
                      int64_t size) {
  int64_t low = affine->base, high = affine->base;
  for (unsigned i = 0; i < affine->count; i++) {
    int64_t far =
        affine->terms[i].by * (r->levels[affine->terms[i].level].extent - 1);
    low += far < 0 ? far : 0;
    high += far > 0 ? far : 0;
  }
  return low >= 0 && high < size;
}

hd_ref_node_t **hd_ref_build_indices(hd_ref_t *r, const hd_task_value_t *value,
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

static hd_ref_node_t *build_load(hd_ref_t *r, const hd_term_t *term,
                                 unsigned axis) {
  (void)axis; // One value, whatever its operands are.
  hd_ref_access_t *access = HD_ARENA_NEW(r->arena, hd_ref_access_t);
  hd_ref_node_t *node =
      make_node(r, (hd_term_kind_t)term->kind,
                hd_binding_type(r->binding, term->type), NULL, 0);
  access->tensor =
      r->tensors[hd_ref_tensor_at(r->binding->task, term->u.value)];
  access->name = term->u.value->name;
  access->indices =
      hd_ref_build_indices(r, term->u.value, term->operands, &access->rank);
  if (!access->indices)
    return NULL;
  int64_t *strides = HD_ARENA_ARRAY(r->arena, int64_t, access->rank + 1);
  int64_t stride = 1;
  access->affine = access->inside = true;
  for (unsigned i = access->rank; i-- > 0;) {
    const hd_ref_node_t *index = access->indices[i];
    strides[i] = stride;
    stride *= access->tensor->shape[i];
    node->deps |= index->deps;
    access->affine &= index->affine != NULL;
    access->inside &=
        index->affine && is_inside(r, index->affine, access->tensor->shape[i]);
  }
  access->strides = strides;
  if (term->kind == HD_TERM_LOADELSE) {
    access->otherwise =
        hd_ref_build(r, term->operands[term->num_operands - 1], 0);
    if (!access->otherwise)
      return NULL;
    node->deps |= access->otherwise->deps;
  }
  node->simple = access->inside;
  node->u.access = access;
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
  r->monoid = monoid;
  r->fold = fold;
  bool ok = true;
  for (uint32_t i = 0; ok && i < monoid->size; i++) {
    hd_scalar_t type = hd_binding_type(r->binding, monoid->left[i]->type);
    fold->identities[i] = hd_ref_build(r, monoid->identity[i], 0);
    fold->left[i] = make_node(r, HD_TERM_BOUND, type, NULL, 0);
    fold->right[i] = make_node(r, HD_TERM_BOUND, type, NULL, 0);
    fold->left[i]->deps = fold->right[i]->deps = UINT64_C(1)
                                                 << fold->bound_level;
    ok = fold->identities[i] != NULL;
  }
  for (uint32_t i = 0; ok && i < monoid->size; i++)
    ok = (fold->results[i] = hd_ref_build(r, monoid->result[i], 0)) != NULL;
  r->monoid = outer_monoid;
  r->fold = outer;
  return ok;
}

hd_ref_fold_t *hd_ref_build_monoid(hd_ref_t *r, const hd_monoid_t *monoid,
                                   hd_scalar_t type) {
  hd_ref_fold_t *fold = HD_ARENA_NEW(r->arena, hd_ref_fold_t);
  bool declared = monoid->builtin == HD_MONOID_COUNT;
  unsigned size = declared ? monoid->size : 1;
  hd_ref_node_t **nodes =
      HD_ARENA_ARRAY(r->arena, hd_ref_node_t *, (size_t)size * 4);
  fold->builtin = monoid->builtin;
  fold->size = size;
  fold->identities = nodes;
  fold->left = nodes + size;
  fold->right = nodes + 2 * (size_t)size;
  fold->results = nodes + 3 * (size_t)size;
  fold->lane_level = HD_REF_NO_LEVEL;
  if (declared) {
    int level = add_level(r, NULL, 0, 1);
    if (level < 0)
      return NULL;
    fold->bound_level = (unsigned)level;
    if (!build_declared(r, fold, monoid))
      return NULL;
  } else {
    fold->identities[0] = make_identity(r, monoid->builtin, type);
  }
  fold->sums = HD_ARENA_ARRAY(r->arena, hd_ref_lanes_t, size);
  for (unsigned i = 0; i < size; i++)
    fold->sums[i].any = HD_ARENA_ARRAY(r->arena, int64_t, HD_REF_LANES);
  return fold;
}

static hd_ref_node_t *build_reduction(hd_ref_t *r, const hd_term_t *term) {
  const hd_reduction_t *reduction = term->u.reduction;
  hd_scalar_t type = hd_binding_type(r->binding, term->type);
  hd_ref_fold_t *fold = hd_ref_build_monoid(r, reduction->monoid, type);
  if (!fold)
    return NULL;
  fold->part = reduction->part;
  if (term->kind == HD_TERM_SCAN) {
    fold->tables = HD_ARENA_ARRAY(r->arena, hd_ref_lanes_t, fold->size);
    if (!(fold->at = hd_ref_build(r, reduction->at, 0)))
      return NULL;
  }
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
  node->simple = false;
  node->u.fold = fold;
  return node;
}

// --- The others ---

static hd_ref_node_t *build_variable(hd_ref_t *r, const hd_variable_t *v) {
  uint32_t i = 0;
  while (r->monoid->left[i] != v && r->monoid->right[i] != v)
    i++;
  return r->monoid->left[i] == v ? r->fold->left[i] : r->fold->right[i];
}

static bool build_operands(hd_ref_t *r, const hd_term_t *term, unsigned axis,
                           hd_ref_node_t **operands) {
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!(operands[i] = hd_ref_build(r, term->operands[i], axis)))
      return false;
  return true;
}

// && and || whose right side is not to be computed for nothing are choices.
static hd_ref_node_t *build_operator(hd_ref_t *r, const hd_term_t *term,
                                     hd_ref_node_t **operands) {
  hd_scalar_t type = hd_binding_type(r->binding, term->type);
  bool is_and = term->u.op == HD_EXPR_AND, is_or = term->u.op == HD_EXPR_OR;
  if ((is_and || is_or) && !operands[1]->simple) {
    hd_ref_node_t *settled =
        make_constant(r, HD_BOOL, (hd_number_t){.i = is_or});
    hd_ref_node_t *choice[] = {operands[0], is_and ? operands[1] : settled,
                               is_and ? settled : operands[1]};
    return make_node(r, HD_TERM_SELECT, type, choice, 3);
  }
  hd_ref_node_t *node =
      make_node(r, HD_TERM_OPERATOR, type, operands, term->num_operands);
  node->u.op = term->u.op;
  node->from = hd_binding_type(r->binding, term->operands[0]->type);
  node->affine = affine_of(r, node);
  return node;
}

// Whether every value of a type is one of the other, held in the same form.
static bool is_widening(hd_scalar_t to, hd_scalar_t from) {
  if (to == from)
    return true;
  if (hd_ref_form(to) != hd_ref_form(from))
    return false;
  if (hd_ref_form(to) == HD_REF_FLOAT)
    return to == HD_F32;
  unsigned to_bits = hd_scalar_bits(to), from_bits = hd_scalar_bits(from);
  if (to == HD_BOOL || from == HD_BOOL)
    return from == HD_BOOL && to_bits > 2;
  bool same = hd_scalar_class(to) == hd_scalar_class(from);
  return same ? to_bits >= from_bits
              : hd_scalar_class(to) == HD_CLASS_SIGNED && to_bits > from_bits;
}

static hd_ref_node_t *build_cast(hd_ref_t *r, const hd_term_t *term,
                                 hd_ref_node_t **operands) {
  hd_scalar_t to = hd_binding_type(r->binding, term->type);
  hd_scalar_t from = hd_binding_type(r->binding, term->operands[0]->type);
  if (is_widening(to, from)) // Whoever uses it knows the type from the term.
    return operands[0];
  hd_ref_node_t *node = make_node(r, HD_TERM_CAST, to, operands, 1);
  node->from = from;
  return node;
}

static hd_ref_node_t *build_bitcast(hd_ref_t *r, const hd_term_t *term,
                                    hd_ref_node_t **operands) {
  hd_scalar_t to = hd_binding_type(r->binding, term->type);
  hd_ref_node_t *node = make_node(r, HD_TERM_BITCAST, to, operands, 1);
  node->from = hd_binding_type(r->binding, term->operands[0]->type);
  return node;
}

hd_ref_node_t *hd_ref_build(hd_ref_t *r, const hd_term_t *term, unsigned axis) {
  hd_ref_node_t *operands[3], *node;
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
    return build_operands(r, term, axis, operands)
               ? build_operator(r, term, operands)
               : NULL;
  case HD_TERM_SELECT:
    return build_operands(r, term, axis, operands)
               ? make_node(r, HD_TERM_SELECT, type, operands, 3)
               : NULL;
  case HD_TERM_CAST:
    return build_operands(r, term, axis, operands)
               ? build_cast(r, term, operands)
               : NULL;
  case HD_TERM_BITCAST:
    return build_operands(r, term, axis, operands)
               ? build_bitcast(r, term, operands)
               : NULL;
  case HD_TERM_FUNCTION:
    if (!build_operands(r, term, axis, operands))
      return NULL;
    node = make_node(r, HD_TERM_FUNCTION, type, operands, term->num_operands);
    node->u.function = term->u.function;
    node->simple = false;
    return node;
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    return build_load(r, term, axis);
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
    return build_reduction(r, term);
  case HD_TERM_COUNT:
    break;
  }
  return NULL;
}
