// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values: random ones, and how far apart two are.
#include "Fuzz.h"

#include <math.h>
#include <string.h>

int64_t fuzz_in(fuzz_graph_t *g, int64_t least, int64_t greatest) {
  return random_in(&g->random, least, greatest);
}

bool fuzz_once_in(fuzz_graph_t *g, unsigned times) {
  return fuzz_in(g, 1, times) == 1;
}

double fuzz_real(fuzz_graph_t *g, double low, double high) {
  return low +
         (high - low) * ((double)(random_bits(&g->random) >> 11) * 0x1p-53);
}

int64_t fuzz_size(fuzz_graph_t *g) {
  static const int64_t large[] = {16, 31, 33, 64, 65, 130};
  if (g->hollow && fuzz_once_in(g, 10))
    return 0;
  if (fuzz_once_in(g, 40))
    return large[fuzz_in(g, 0, 5)];
  return fuzz_once_in(g, 4) ? fuzz_in(g, 1, 7) : g->sizes[fuzz_in(g, 0, 3)];
}

hd_scalar_t fuzz_type(fuzz_graph_t *g, uint32_t scalars) {
  static const hd_scalar_t usual[] = {HD_F32, HD_F16, HD_BF16, HD_F64,
                                      HD_I64, HD_I32, HD_U8,   HD_I8};
  scalars &= hd_scalar_set("any");
  if (!g->wide && !fuzz_once_in(g, 6)) {
    if (scalars >> g->type & 1)
      return g->type;
    for (int tries = 0; tries < 4; tries++) {
      hd_scalar_t type = usual[fuzz_in(g, 0, 7)];
      if (scalars >> type & 1)
        return type;
    }
  }
  int64_t skip = fuzz_in(g, 0, __builtin_popcount(scalars) - 1);
  for (; skip > 0; skip--)
    scalars &= scalars - 1;
  return (hd_scalar_t)__builtin_ctz(scalars);
}

bool fuzz_is_float(hd_scalar_t type) {
  return hd_scalar_class(type) == HD_CLASS_FLOAT;
}

double fuzz_epsilon(hd_scalar_t type) {
  return ldexp(1, -(int)hd_scalar_digits(type));
}

hd_tensor_type_t fuzz_type_of(const fuzz_value_t *value) {
  return hd_tensor_type_of(value->data);
}

int64_t fuzz_count(const hd_tensor_type_t *type) {
  int64_t count = 1;
  for (unsigned i = 0; i < type->rank; i++)
    count *= type->shape[i];
  return count;
}

static hd_host_tensor_t *new_tensor(fuzz_graph_t *g,
                                    const hd_tensor_type_t *type) {
  hd_host_tensor_t *tensor =
      hd_host_tensor_make(&g->arena, type->type, type->shape, type->rank);
  if (!tensor)
    abort(); // Sizes are small.
  return tensor;
}

static hd_host_tensor_t *copy_of(fuzz_graph_t *g, const hd_host_tensor_t *x) {
  hd_tensor_type_t type = hd_tensor_type_of(x);
  hd_host_tensor_t *copy = new_tensor(g, &type);
  memcpy(copy->data, x->data, x->bytes);
  return copy;
}

static void measure(fuzz_value_t *v) {
  bool any = false;
  for (int64_t i = 0; i < v->data->count; i++) {
    double x = hd_host_tensor_get(v->data, i);
    if (!isfinite(x)) {
      v->infinite = true;
      continue;
    }
    v->low = any ? fmin(v->low, x) : x;
    v->high = any ? fmax(v->high, x) : x;
    any = true;
  }
}

static hd_value_t *new_value(fuzz_graph_t *g, const char *name,
                             const hd_host_tensor_t *data) {
  hd_value_t *value = HD_ARENA_NEW(&g->arena, hd_value_t);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(&g->arena, const hd_expr_t *, data->rank + 1);
  for (unsigned i = 0; i < data->rank; i++)
    shape[i] = hd_expr_int(&g->arena, hd_type(HD_I64), data->shape[i]);
  value->name = hd_arena_printf(&g->arena, "%s", name);
  value->type = data->type;
  value->rank = (int)data->rank;
  value->shape = shape;
  return value;
}

fuzz_value_t *fuzz_result(fuzz_graph_t *g, const char *name,
                          hd_host_tensor_t *data,
                          hd_host_tensor_t *const *noisy) {
  fuzz_value_t *v = HD_ARENA_NEW(&g->arena, fuzz_value_t);
  v->value = new_value(g, name, data);
  v->data = data;
  memcpy(v->noisy, noisy, sizeof v->noisy);
  measure(v);
  return v;
}

// What suits a type where nobody says.
static void usual_range(hd_scalar_t type, double *low, double *high) {
  switch (hd_scalar_class(type)) {
  case HD_CLASS_BOOL:
    *low = 0;
    *high = 1;
    return;
  case HD_CLASS_SIGNED:
    *low = -8;
    *high = 7;
    return;
  case HD_CLASS_UNSIGNED:
    *low = 0;
    *high = 15;
    return;
  case HD_CLASS_FLOAT:
    *low = type == HD_F8E8M0 ? 0.25 : -2;
    *high = 2;
    return;
  case HD_CLASS_VOID:
  case HD_CLASS_OPAQUE:
    break;
  }
  abort();
}

// What integers hold, up to what is drawn.
static void cut_to_type(hd_scalar_t type, double *low, double *high) {
  unsigned bits = hd_scalar_bits(type);
  double most = bits > 40 ? 0x1p40 : ldexp(1, (int)bits);
  if (hd_scalar_class(type) == HD_CLASS_SIGNED) {
    *low = fmax(*low, -most / 2);
    *high = fmin(*high, most / 2 - 1);
  } else if (hd_scalar_class(type) == HD_CLASS_UNSIGNED) {
    *low = fmax(*low, 0);
    *high = fmin(*high, most - 1);
  }
  if (!fuzz_is_float(type)) {
    *low = ceil(*low);
    *high = floor(*high);
  }
  *high = fmax(*low, *high);
}

fuzz_value_t *fuzz_leaf_of(fuzz_graph_t *g, hd_host_tensor_t *data,
                           bool constant) {
  hd_host_tensor_t *noisy[FUZZ_NOISY];
  for (int k = 0; k < FUZZ_NOISY; k++) {
    noisy[k] = copy_of(g, data);
    fuzz_disturb(noisy[k], false, 1, random_bits(&g->random));
  }
  fuzz_value_t *v = fuzz_result(
      g,
      hd_arena_printf(&g->arena, "%c%zu", constant ? 'w' : 'x', g->values.size),
      data, noisy);
  v->constant = constant;
  if (constant) {
    hd_constant_t *held = HD_ARENA_NEW(&g->arena, hd_constant_t);
    held->tensor = data;
    v->value->constant = held;
  }
  hd_vec_push(&g->arena, &g->values, v);
  return v;
}

fuzz_value_t *fuzz_leaf(fuzz_graph_t *g, const hd_tensor_type_t *type,
                        double low, double high, bool constant) {
  hd_host_tensor_t *data = new_tensor(g, type);
  if (low > high)
    usual_range(type->type, &low, &high);
  cut_to_type(type->type, &low, &high);
  if (fuzz_once_in(g, 40)) { // All alike: a variance of 0, ties everywhere.
    low = fuzz_is_float(type->type)
              ? fuzz_real(g, low, high)
              : (double)fuzz_in(g, (int64_t)low, (int64_t)high);
    high = low;
  }
  for (int64_t i = 0; i < data->count; i++)
    if (fuzz_is_float(type->type))
      hd_host_tensor_set(data, i, fuzz_real(g, low, high));
    else
      hd_host_tensor_set_int(data, i, fuzz_in(g, (int64_t)low, (int64_t)high));
  return fuzz_leaf_of(g, data, constant);
}

// Sums in another order differ by units of the last place of their greatest
// parts, of which the greatest element is a measure. Types narrower than f32
// are rounded once, from f32: of them an element moves now and then, by one
// unit; of few elements each does. One after the other, terms that are alike
// are rounded alike: the sum of n is off by up to n / 2 units, and noise in the
// terms does not show that. What is below a unit of the greatest may be all
// that is left of parts that cancel, as far from zero in gelu and erf: in a
// type that rounded them it may be nothing.
void fuzz_disturb(hd_host_tensor_t *tensor, bool single, double terms,
                  uint64_t seed) {
  enum { TERMS_A_UNIT = 256 };
  random_t random = {seed};
  if (!fuzz_is_float(tensor->type))
    return;
  double unit =
      2 *
      fuzz_epsilon(single && tensor->type == HD_F64 ? HD_F32 : tensor->type);
  double scale = fuzz_scale(tensor);
  bool narrow = hd_scalar_bits(tensor->type) < 32;
  if (!narrow)
    unit *= 1 + terms / TERMS_A_UNIT;
  for (int64_t i = 0; i < tensor->count; i++) {
    double x = hd_host_tensor_get(tensor, i);
    // Of few elements each moves: else none of them might.
    bool few = tensor->count <= 8;
    double sign = few ? (random_bits(&random) & 1 ? 1 : -1)
                      : (double)random_in(&random, -1, 1);
    bool moves = !narrow || few || random_bits(&random) % 8 == 0;
    if (!isfinite(x) || !moves)
      continue;
    if (narrow && fabs(x) < unit * scale && sign < 0)
      x = 0;
    else
      x += sign * unit * (narrow ? fabs(x) : 2 * fabs(x) + scale / 2);
    hd_host_tensor_set(tensor, i, x);
  }
}

double fuzz_scale(const hd_host_tensor_t *tensor) {
  double scale = 0;
  for (int64_t i = 0; i < tensor->count; i++) {
    double x = fabs(hd_host_tensor_get(tensor, i));
    if (isfinite(x) && x > scale)
      scale = x;
  }
  return scale;
}

// Of integers of 64 bits a double is not enough to tell neighbours apart.
static double apart_at(const hd_host_tensor_t *a, const hd_host_tensor_t *b,
                       int64_t i) {
  if (!fuzz_is_float(a->type)) {
    int64_t x = hd_host_tensor_get_int(a, i), y = hd_host_tensor_get_int(b, i);
    return x == y ? 0 : fmax(1, fabs((double)x - (double)y));
  }
  double x = hd_host_tensor_get(a, i), y = hd_host_tensor_get(b, i);
  if (x == y || (isnan(x) && isnan(y)))
    return 0;
  return isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
}

double fuzz_apart(const hd_host_tensor_t *a, const hd_host_tensor_t *b) {
  double most = 0;
  for (int64_t i = 0; i < a->count; i++)
    most = fmax(most, apart_at(a, b, i));
  return most;
}
