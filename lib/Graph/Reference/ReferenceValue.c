// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a node is worth where the levels stand.
#include "Graph/Reference/ReferenceState.h"

#include "Support/Float.h"

#include <math.h>
#include <string.h>

// Steps until the budget is asked; it asks a clock.
enum { STEPS = 1 << 16 };

void hd_ref_check_budget(hd_ref_t *r) {
  if (r->steps-- > 0)
    return;
  r->steps = STEPS;
  hd_budget_check(&r->context->budget);
}

// --- Elements ---

static bool is_float(hd_scalar_t type) {
  return hd_scalar_class(type) == HD_CLASS_FLOAT;
}

hd_number_t hd_ref_get(const hd_host_tensor_t *tensor, int64_t i) {
  if (tensor->type == HD_F32) { // NaN keeps its payload.
    float value;
    memcpy(&value, tensor->data + (size_t)i * sizeof value, sizeof value);
    return (hd_number_t){.f = (double)value};
  }
  return is_float(tensor->type)
             ? (hd_number_t){.f = hd_host_tensor_get(tensor, i)}
             : (hd_number_t){.i = hd_host_tensor_get_int(tensor, i)};
}

void hd_ref_set(hd_host_tensor_t *tensor, int64_t i, hd_number_t number) {
  if (tensor->type == HD_F32) {
    float value = (float)number.f;
    memcpy(tensor->data + (size_t)i * sizeof value, &value, sizeof value);
  } else if (tensor->type == HD_F8E5M2 && isinf(number.f)) {
    // Stays so: conversions saturate, and have done so before.
    tensor->data[i] = number.f < 0 ? 0xfc : 0x7c;
  } else if (is_float(tensor->type)) {
    hd_host_tensor_set(tensor, i, number.f);
  } else {
    hd_host_tensor_set_int(tensor, i, number.i);
  }
}

// What an index comes to, computed where a level has moved that it depends on.
static bool find_index(hd_ref_t *r, const hd_ref_node_t *index,
                       hd_ref_known_t *known) {
  if (hd_ref_is_current(r, index->deps, known->computed))
    return true;
  uint64_t now = r->clock;
  if (!hd_ref_value(r, index, &known->at))
    return false;
  known->computed = now;
  return true;
}

bool hd_ref_place(hd_ref_t *r, const hd_ref_access_t *access, int64_t *place) {
  bool inside = true;
  int64_t element = 0;
  for (unsigned i = 0; i < access->rank; i++) {
    int64_t size = access->tensor->shape[i];
    const hd_ref_node_t *index = access->indices[i];
    int64_t at;
    if (index->kind == HD_TERM_INDEX) // Most are; it saves a call.
      at = r->levels[index->u.level].at;
    else if (find_index(r, index, &access->known[i]))
      at = access->known[i].at.i;
    else
      return false;
    inside &= at >= 0 && at < size;
    element = inside ? element * size + at : -1;
  }
  *place = element;
  return true;
}

bool hd_ref_report_outside(hd_ref_t *r, const hd_ref_access_t *access,
                           const char *what) {
  int64_t at[HD_MAX_RANK];
  char index[HD_MAX_RANK * 24], shape[HD_MAX_RANK * 24];
  for (unsigned i = 0; i < access->rank; i++) {
    hd_number_t number;
    if (!hd_ref_value(r, access->indices[i], &number))
      return false;
    at[i] = number.i;
  }
  hd_shape_text(at, access->rank, index, sizeof index);
  hd_shape_text(access->tensor->shape, access->rank, shape, sizeof shape);
  return hd_error(
      &r->context->diags, r->loc, HD_E0708,
      hd_arena_printf(r->arena, "%s: '%s' is %s at %s, outside of its shape %s",
                      r->binding->task->name, access->name, what, index,
                      shape));
}

static bool load(hd_ref_t *r, const hd_ref_access_t *access, hd_number_t *out) {
  int64_t place;
  if (!hd_ref_place(r, access, &place))
    return false;
  if (place < 0)
    return access->otherwise ? hd_ref_value(r, access->otherwise, out)
                             : hd_ref_report_outside(r, access, "read");
  *out = hd_ref_get(access->tensor, place);
  return true;
}

// --- Arithmetic ---

static bool operate(hd_ref_t *r, const hd_ref_node_t *node, hd_number_t *out) {
  hd_number_t a, b = {0};
  if (!hd_ref_value(r, node->operands[0], &a))
    return false;
  bool is_and = node->u.op == HD_EXPR_AND, is_or = node->u.op == HD_EXPR_OR;
  if ((is_and && !a.i) || (is_or && a.i)) {
    out->i = is_or;
    return true;
  }
  if (node->num_operands > 1 && !hd_ref_value(r, node->operands[1], &b))
    return false;
  out->i = 0; // What a division by zero gives.
  hd_scalar_operate(node->u.op, node->from, a, b, out);
  return true;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// x times a gate that is 0 at minus infinity: the limit there.
static double gated(double x, double gate) {
  return gate == 0 ? -0.0 : x * gate;
}

static double function_of(hd_task_function_t function, double x, double y,
                          double z) {
  // clang-format off
  switch (function) {
  case HD_TASK_ABS: return fabs(x);
  case HD_TASK_ACOS: return acos(x);
  case HD_TASK_ACOSH: return acosh(x);
  case HD_TASK_ASIN: return asin(x);
  case HD_TASK_ASINH: return asinh(x);
  case HD_TASK_ATAN: return atan(x);
  case HD_TASK_ATAN2: return atan2(x, y);
  case HD_TASK_ATANH: return atanh(x);
  case HD_TASK_CEIL: return ceil(x);
  case HD_TASK_COS: return cos(x);
  case HD_TASK_COSH: return cosh(x);
  case HD_TASK_ERF: return erf(x);
  case HD_TASK_EXP: return exp(x);
  case HD_TASK_EXP_COARSE: return exp(x);
  case HD_TASK_EXPM1: return expm1(x);
  case HD_TASK_FLOOR: return floor(x);
  case HD_TASK_FMA: return fma(x, y, z);
  case HD_TASK_FMOD: return fmod(x, y);
  case HD_TASK_GELU: return gated(x, erfc(-x * 0.70710678118654752) / 2);
  case HD_TASK_GELU_TANH:
    return gated(x, sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x)));
  case HD_TASK_LOG: return log(x);
  case HD_TASK_LOG1P: return log1p(x);
  case HD_TASK_POW: return pow(x, y);
  case HD_TASK_QUOTIENT: return x / y;
  case HD_TASK_ROUND_EVEN: return roundeven(x);
  case HD_TASK_RSQRT: return 1 / sqrt(x);
  case HD_TASK_SIGMOID: return sigmoid(x);
  case HD_TASK_SIN: return sin(x);
  case HD_TASK_SINH: return sinh(x);
  case HD_TASK_SQRT: return sqrt(x);
  case HD_TASK_TAN: return tan(x);
  case HD_TASK_TANH: return tanh(x);
  case HD_TASK_TRUNC: return trunc(x);
  case HD_TASK_FUNCTION_COUNT: break;
  }
  // clang-format on
  return 0;
}

static bool call(hd_ref_t *r, const hd_ref_node_t *node, hd_number_t *out) {
  hd_number_t x[3] = {{0}};
  for (unsigned i = 0; i < node->num_operands; i++)
    if (!hd_ref_value(r, node->operands[i], &x[i]))
      return false;
  double value;
  if (node->u.function == HD_TASK_FMA && node->type != HD_F64)
    // Once: a double would round twice.
    value = (double)fmaf((float)x[0].f, (float)x[1].f, (float)x[2].f);
  else
    value = function_of(node->u.function, x[0].f, x[1].f, x[2].f);
  // What is narrower is computed in f32.
  if (node->type != HD_F64)
    value = (double)(float)value;
  *out = hd_scalar_convert(node->type, HD_F64, (hd_number_t){.f = value});
  return true;
}

// By way of memory, where a value has the bits of its type.
static hd_number_t bitcast(hd_scalar_t to, hd_scalar_t from, hd_number_t a) {
  uint64_t bits = 0;
  hd_host_tensor_t cell = {
      .type = from, .data = (unsigned char *)&bits, .count = 1};
  hd_ref_set(&cell, 0, a);
  cell.type = to;
  return hd_ref_get(&cell, 0);
}

// --- All nodes ---

bool hd_ref_value(hd_ref_t *r, const hd_ref_node_t *node, hd_number_t *out) {
  hd_number_t a;
  switch ((hd_term_kind_t)node->kind) {
  case HD_TERM_CONST:
    *out = node->u.number;
    return true;
  case HD_TERM_INDEX:
    out->i = r->levels[node->u.level].at;
    return true;
  case HD_TERM_BOUND:
    *out = *node->u.bound;
    return true;
  case HD_TERM_OPERATOR:
    return operate(r, node, out);
  case HD_TERM_SELECT:
    return hd_ref_value(r, node->operands[0], &a) &&
           hd_ref_value(r, node->operands[a.i ? 1 : 2], out);
  case HD_TERM_CAST:
  case HD_TERM_BITCAST:
    if (!hd_ref_value(r, node->operands[0], &a))
      return false;
    *out = node->kind == HD_TERM_CAST
               ? hd_scalar_convert(node->type, node->from, a)
               : bitcast(node->type, node->from, a);
    return true;
  case HD_TERM_FUNCTION:
    return call(r, node, out);
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    return load(r, node->u.access, out);
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
    if (node->kind == HD_TERM_SCAN ? !hd_ref_scan(r, node->u.fold)
                                   : !hd_ref_reduce(r, node->u.fold))
      return false;
    *out = node->u.fold->sums[0];
    return true;
  case HD_TERM_LIMIT:
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_PERMUTE:
  case HD_TERM_ATTRIBUTE: // Constants by now.
  case HD_TERM_COUNT:
    break;
  }
  return false;
}
