// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses. Where every index is affine the lanes lie a fixed step apart, and
// those inside of the tensor are one run; else each lane is looked at by
// itself.
#include "Graph/Reference/ReferenceState.h"

#include "Support/Float.h"

#include <math.h>
#include <string.h>

// One loop for each type, simple enough to be quick.
#define READ(T, member, expression)                                            \
  do {                                                                         \
    const T *data = (const T *)(const void *)tensor->data + first;             \
    for (int i = 0; i < count; i++) {                                          \
      T x = data[i * step];                                                    \
      out.member[i] = expression;                                              \
    }                                                                          \
  } while (0)

void hd_ref_read(const hd_host_tensor_t *tensor, int64_t first, int64_t step,
                 int count, hd_ref_lanes_t out) {
  // clang-format off
  switch (tensor->type) {
  case HD_F32:  READ(float, f, x); return;
  case HD_F64:  READ(double, d, x); return;
  case HD_F16:  READ(uint16_t, f, hd_f16_to_f32(x)); return;
  case HD_BF16: READ(uint16_t, f, hd_bf16_to_f32(x)); return;
  case HD_BOOL: READ(uint8_t, i, x != 0); return;
  case HD_I8:   READ(int8_t, i, x); return;
  case HD_U8:   READ(uint8_t, i, x); return;
  case HD_I16:  READ(int16_t, i, x); return;
  case HD_U16:  READ(uint16_t, i, x); return;
  case HD_I32:  READ(int32_t, i, x); return;
  case HD_U32:  READ(uint32_t, i, x); return;
  case HD_I64:
  case HD_U64:  READ(int64_t, i, x); return;
  default: break;
  }
  // clang-format on
  bool is_float = hd_ref_form(tensor->type) == HD_REF_FLOAT;
  for (int i = 0; i < count; i++) {
    if (is_float)
      out.f[i] = (float)hd_host_tensor_get(tensor, first + i * step);
    else
      out.i[i] = hd_host_tensor_get_int(tensor, first + i * step);
  }
}

#define WRITE(T, member, expression)                                           \
  do {                                                                         \
    T *data = (T *)(void *)tensor->data + first;                               \
    for (int i = 0; i < count; i++) {                                          \
      __auto_type x = in.member[varies ? i : 0];                               \
      data[i * step] = (T)(expression);                                        \
    }                                                                          \
  } while (0)

// A value of f8e5m2 that is infinite stays so: conversions saturate, and have
// done so before.
static void write_float(hd_host_tensor_t *tensor, int64_t i, double value) {
  if (tensor->type == HD_F8E5M2 && isinf(value))
    tensor->data[i] = value < 0 ? 0xfc : 0x7c;
  else
    hd_host_tensor_set(tensor, i, value);
}

void hd_ref_write(const hd_host_tensor_t *tensor, int64_t first, int64_t step,
                  int count, hd_ref_lanes_t in, bool varies) {
  // clang-format off
  switch (tensor->type) {
  case HD_F32:  WRITE(float, f, x); return;
  case HD_F64:  WRITE(double, d, x); return;
  case HD_F16:  WRITE(uint16_t, f, hd_f16_from_f32(x)); return;
  case HD_BF16: WRITE(uint16_t, f, hd_bf16_from_f32(x)); return;
  case HD_BOOL: WRITE(uint8_t, i, x != 0); return;
  case HD_I8:
  case HD_U8:   WRITE(uint8_t, i, x); return;
  case HD_I16:
  case HD_U16:  WRITE(uint16_t, i, x); return;
  case HD_I32:
  case HD_U32:  WRITE(uint32_t, i, x); return;
  case HD_I64:
  case HD_U64:  WRITE(int64_t, i, x); return;
  default: break;
  }
  // clang-format on
  hd_host_tensor_t copy = *tensor; // Its data is what is written.
  bool is_float = hd_ref_form(tensor->type) == HD_REF_FLOAT;
  for (int i = 0; i < count; i++) {
    if (is_float)
      write_float(&copy, first + i * step, (double)in.f[varies ? i : 0]);
    else
      hd_host_tensor_set_int(&copy, first + i * step, in.i[varies ? i : 0]);
  }
}

// The index on an axis in a lane, when the indices have been computed.
static int64_t index_at(const hd_ref_t *r, const hd_ref_node_t *index,
                        int lane) {
  if (index->affine) {
    int64_t step, at = hd_ref_affine_at(r, index->affine, &step);
    return at + lane * step;
  }
  return index->out.i[index->varies ? lane : 0];
}

static bool report_outside(hd_ref_t *r, const hd_ref_access_t *access,
                           int lane) {
  int64_t at[HD_MAX_RANK];
  char index[HD_MAX_RANK * 24], shape[HD_MAX_RANK * 24];
  for (unsigned i = 0; i < access->rank; i++)
    at[i] = index_at(r, access->indices[i], lane);
  hd_shape_text(at, access->rank, index, sizeof index);
  hd_shape_text(access->tensor->shape, access->rank, shape, sizeof shape);
  return hd_error(&r->context->diags, r->loc, HD_E1103, r->binding->task->name,
                  hd_arena_printf(r->arena,
                                  "'%s' is read at %s, outside of its shape %s",
                                  access->name, index, shape));
}

static int64_t ceil_div(int64_t a, int64_t b) { // b > 0
  return a / b + (a % b > 0);
}

// Narrows the run of lanes to those where 0 <= at + lane * step < size.
static void narrow(int64_t at, int64_t step, int64_t size, int *low,
                   int *high) {
  int64_t least = 0, most = HD_REF_LANES;
  if (step == 0) {
    most = at >= 0 && at < size ? most : 0;
  } else if (step > 0) {
    least = ceil_div(-at, step);
    most = ceil_div(size - at, step);
  } else {
    least = ceil_div(at - size + 1, -step);
    most = ceil_div(at + 1, -step);
  }
  if (least > *low)
    *low = least < *high ? (int)least : *high;
  if (most < *high)
    *high = most > *low ? (int)most : *low;
}

// The lanes outside take the other value: mask says which are wanted.
static bool take_otherwise(hd_ref_t *r, hd_ref_node_t *node,
                           const uint8_t *mask, const uint8_t *inside,
                           int count) {
  hd_ref_node_t *otherwise = node->u.access->otherwise;
  hd_ref_form_t form = (hd_ref_form_t)node->form;
  uint8_t wanted[HD_REF_LANES];
  bool any = false;
  for (int i = 0; i < count; i++) {
    wanted[i] = !inside[i] && (!mask || mask[i]);
    any |= wanted[i];
  }
  if (!any)
    return true;
  if (!hd_ref_run(r, otherwise, otherwise->varies ? wanted : NULL))
    return false;
  for (int i = 0; i < count; i++) {
    if (!wanted[i])
      continue;
    int from = otherwise->varies ? i : 0;
    if (form == HD_REF_FLOAT)
      node->out.f[i] = otherwise->out.f[from];
    else
      node->out.i[i] = otherwise->out.i[from];
  }
  return true;
}

static bool load_run(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask,
                     int count) {
  const hd_ref_access_t *access = node->u.access;
  int low = 0, high = count;
  int64_t first = 0, step = 0, ats[HD_MAX_RANK], steps[HD_MAX_RANK];
  for (unsigned i = 0; i < access->rank; i++) {
    ats[i] = hd_ref_affine_at(r, access->indices[i]->affine, &steps[i]);
    if (!node->varies)
      steps[i] = 0;
    if (!access->inside)
      narrow(ats[i], steps[i], access->tensor->shape[i], &low, &high);
  }
  for (unsigned i = 0; i < access->rank && low < high; i++) {
    first += (ats[i] + low * steps[i]) * access->strides[i];
    step += steps[i] * access->strides[i];
  }
  if (low < high)
    hd_ref_read(access->tensor, first, step, high - low,
                hd_ref_lane(node->out, (hd_ref_form_t)node->form, (size_t)low));
  if (high - low == count)
    return true;
  uint8_t inside[HD_REF_LANES] = {0};
  memset(inside + low, 1, (size_t)(high - low));
  if (access->otherwise)
    return take_otherwise(r, node, mask, inside, count);
  for (int i = 0; i < count; i++)
    if (!inside[i] && (!mask || mask[i]))
      return report_outside(r, access, i);
  return true;
}

static bool load_each(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask,
                      int count) {
  const hd_ref_access_t *access = node->u.access;
  int64_t offsets[HD_REF_LANES] = {0};
  uint8_t inside[HD_REF_LANES];
  memset(inside, 1, sizeof inside);
  for (unsigned n = 0; n < access->rank; n++) {
    hd_ref_node_t *index = access->indices[n];
    int64_t size = access->tensor->shape[n], by = access->strides[n];
    if (!hd_ref_run(r, index, index->varies ? mask : NULL))
      return false;
    for (int i = 0; i < count; i++) {
      int64_t at = index->out.i[index->varies ? i : 0];
      bool is_inside = at >= 0 && at < size;
      inside[i] &= is_inside;
      offsets[i] += is_inside ? at * by : 0;
    }
  }
  bool all = true;
  for (int i = 0; i < count; i++) {
    all &= inside[i];
    if (inside[i] && (!mask || mask[i]))
      hd_ref_read(access->tensor, offsets[i], 0, 1,
                  hd_ref_lane(node->out, (hd_ref_form_t)node->form, (size_t)i));
    else if (!access->otherwise && (!mask || mask[i]))
      return report_outside(r, access, i);
  }
  return all || !access->otherwise ||
         take_otherwise(r, node, mask, inside, count);
}

bool hd_ref_load(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask) {
  int count = hd_ref_count(r, node);
  return node->u.access->affine ? load_run(r, node, mask, count)
                                : load_each(r, node, mask, count);
}
