// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vectors of floats that are computed from narrow integers (pass vectorize):
//
//   r[e] = f16((f32(q[i + e]) - 8.0) * f32(s[j]))
//
// becomes
//
//   let q = q[i +: 8]
//   let r = (f16x8(q) - f16x8(8.0)) * f16x8(s[j])
//
// which the GPU does two lanes at a time. It gives the same bits: integers of a
// few bits, their sums and differences are numbers of f16, so nothing is
// rounded before the product; the product of two numbers of f16 has 22 bits,
// which f32 holds, so it is rounded once on either way.
#include "IR/Passes/Vectorizer.h"

#include <math.h>

static const double EXACT = 2048; // f16 holds every integer up to here.

typedef struct narrower {
  hd_vectorizer_t *v;
  hd_type_t type; // Of the vector.
  bool converts;  // Integers.
} narrower_t;

static hd_type_t lane_of(const narrower_t *n) {
  return hd_type((hd_scalar_t)n->type.scalar);
}

static const hd_expr_t *make_lanes(narrower_t *n, hd_expr_kind_t kind,
                                   hd_type_t type,
                                   const hd_expr_t *const *operands,
                                   unsigned count) {
  return hd_expr_make(n->v->arena, kind, type, NULL, operands, count);
}

static const hd_expr_t *in_all_lanes(narrower_t *n, const hd_expr_t *scalar) {
  return make_lanes(n, HD_EXPR_VECTOR, n->type, &scalar, 1);
}

// The whole vector of a load; NULL: it is none.
static const hd_expr_t *whole(const narrower_t *n, const hd_expr_t *load) {
  hd_vectorizer_t *v = n->v;
  for (unsigned i = 0; i < v->num_loads; ++i)
    if (v->loads[i].width == v->width && hd_expr_equal(v->loads[i].load, load))
      return v->loads[i].values[0];
  return NULL;
}

// An element that is the same for all lanes, as the first has it.
static const hd_expr_t *fixed(const narrower_t *n, const hd_expr_t *load) {
  hd_vectorizer_t *v = n->v;
  if (!hd_vector_is_same(v, load))
    return NULL;
  v->turn = v->first;
  v->lane = 0;
  const hd_expr_t *element = hd_vector_copy(v, load, true);
  v->lane = -1;
  return element;
}

static const hd_expr_t *behind_names(const narrower_t *n, const hd_expr_t *e) {
  const hd_expr_t *value;
  while (e->kind == HD_EXPR_VAR &&
         (value = hd_ptr_map_get(&n->v->lets, e->u.var)))
    e = value;
  return e;
}

// An integer, or a number of the narrow type, in all lanes.
static const hd_expr_t *element_of(narrower_t *n, const hd_expr_t *load,
                                   double *most) {
  hd_type_t type = load->type;
  bool is_integer = hd_type_is_integer(type) && hd_type_bits(type) <= 8;
  if (load->kind != HD_EXPR_LOAD ||
      !(is_integer || hd_type_equal(type, lane_of(n))))
    return NULL;
  *most = is_integer ? ldexp(1, (int)hd_type_bits(type)) : INFINITY;
  const hd_expr_t *vector = whole(n, load);
  n->converts |= vector && is_integer;
  if (vector)
    return is_integer ? hd_expr_cast(n->v->arena, n->type, vector) : vector;
  const hd_expr_t *element = fixed(n, load);
  if (!element)
    return NULL;
  return in_all_lanes(
      n, is_integer ? hd_expr_cast(n->v->arena, lane_of(n), element) : element);
}

// e in all lanes, where the narrow type holds exactly what it is. *most: no
// lane is an integer beyond; infinite: lanes may be other numbers.
static const hd_expr_t *exactly(narrower_t *n, const hd_expr_t *e,
                                double *most) {
  e = behind_names(n, e);
  if (e->kind == HD_EXPR_CONST && hd_type_is_float(e->type)) {
    *most = fabs(e->u.f);
    if (!(*most <= EXACT) || e->u.f != nearbyint(e->u.f))
      return NULL;
    return in_all_lanes(n, hd_expr_float(n->v->arena, lane_of(n), e->u.f));
  }
  if (e->kind == HD_EXPR_CAST && e->type.scalar == HD_F32)
    return element_of(n, behind_names(n, e->operands[0]), most);
  if (e->kind != HD_EXPR_SUB && e->kind != HD_EXPR_ADD)
    return element_of(n, e, most);
  if (e->type.scalar != HD_F32) // Integers wrap.
    return NULL;
  double parts[2];
  const hd_expr_t *operands[2];
  for (unsigned i = 0; i < 2; ++i)
    if (!(operands[i] = exactly(n, e->operands[i], &parts[i])))
      return NULL;
  *most = parts[0] + parts[1];
  return *most <= EXACT
             ? make_lanes(n, (hd_expr_kind_t)e->kind, n->type, operands, 2)
             : NULL;
}

const hd_expr_t *hd_vector_narrow(hd_vectorizer_t *v, const hd_expr_t *value) {
  narrower_t n = {.v = v, .type = hd_type_vector(HD_F16, (unsigned)v->width)};
  double most;
  value = behind_names(&n, value);
  if (!hd_type_equal(value->type, hd_type(HD_F16)) ||
      value->kind != HD_EXPR_CAST)
    return NULL;
  const hd_expr_t *e = behind_names(&n, value->operands[0]), *all;
  if (e->kind == HD_EXPR_MUL && e->type.scalar == HD_F32) {
    const hd_expr_t *operands[2];
    for (unsigned i = 0; i < 2; ++i)
      if (!(operands[i] = exactly(&n, e->operands[i], &most)))
        return NULL;
    all = make_lanes(&n, HD_EXPR_MUL, n.type, operands, 2);
  } else {
    all = exactly(&n, e, &most);
  }
  return n.converts ? all : NULL;
}
