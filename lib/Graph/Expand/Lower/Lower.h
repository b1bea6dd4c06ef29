// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that the rows of ONNX/Operators.def name, each declared, and
// what several of them use.
#ifndef HIDET_GRAPH_EXPAND_LOWER_LOWER_H
#define HIDET_GRAPH_EXPAND_LOWER_LOWER_H

#include "Graph/Expand/Lowering.h"

#define HD_ONNX(domain, op, since, function, argument, min_inputs, max_inputs) \
  bool hd_onnx_##function(hd_lowering_t *l);
#include "Graph/ONNX/Operators.def"
#undef HD_ONNX

typedef struct hd_axes {
  bool given; // By the attribute or the input.
  size_t count;
  int64_t axes[HD_MAX_RANK]; // As they are listed, counted from the front.
  bool chosen[HD_MAX_RANK];  // For each axis of the tensor.
} hd_axes_t;

// Axes of a tensor of that rank: the elements of input or, where that is NULL,
// of the attribute. False after an error (out of range, twice), or where the
// input is not known yet.
bool hd_lower_axes(hd_lowering_t *l, const hd_value_t *input,
                   const char *attribute, int rank, hd_axes_t *axes);

// Counts a negative axis from the end of a tensor of that rank. False, with an
// error, where there is no such axis.
bool hd_lower_wrap_axis(hd_lowering_t *l, int rank, int64_t *axis);

// x as [before, size, after] around an axis.
const hd_value_t *hd_lower_around(hd_lowering_t *l, const hd_value_t *x,
                                  int64_t axis);

// y has the elements of an [outer, n, inner] around axis; gives it like's shape
// with n at the axis.
const hd_value_t *hd_lower_unfold(hd_lowering_t *l, const hd_value_t *y,
                                  const hd_value_t *like, int64_t axis,
                                  int64_t n);

// A part of x: size[i] elements of axis i from start[i] on, every step[i]-th;
// step NULL: each.
const hd_value_t *hd_lower_slice(hd_lowering_t *l, const hd_value_t *x,
                                 const int64_t *start, const int64_t *size,
                                 const int64_t *step);

// x repeated along each axis.
const hd_value_t *hd_lower_tile(hd_lowering_t *l, const hd_value_t *x,
                                const int64_t *repeats);

// Joined along an axis.
const hd_value_t *hd_lower_concat(hd_lowering_t *l,
                                  const hd_value_t *const *items, size_t count,
                                  int64_t axis);

// With more around it (or less where it is negative): before[i] elements before
// axis i, size[i] in all. value: a scalar of x's type; NULL: zero.
const hd_value_t *hd_lower_pad(hd_lowering_t *l, const hd_value_t *x,
                               const int64_t *before, const int64_t *size,
                               const hd_value_t *value);

// Places along an axis that go on evenly: place i is (i * step + add) / every,
// none of them less than 0.
typedef struct hd_spacing {
  int64_t step, add, every;
} hd_spacing_t;

// That are looked at to find one, at most.
enum { HD_SPACING_PLACES = 1 << 16 };

// Whether `count` places, none less than 0, are such.
bool hd_spacing_find(const int64_t *places, int64_t count,
                     hd_spacing_t *spacing);

// Elements of x: along each axis size[i], at its steps.
const hd_value_t *hd_lower_sample(hd_lowering_t *l, const hd_value_t *x,
                                  const hd_spacing_t *spacing,
                                  const int64_t *size);

// Rows of x at indices along an axis.
const hd_value_t *hd_lower_gather(hd_lowering_t *l, const hd_value_t *x,
                                  const hd_value_t *index, int64_t axis);

// The constant 0, 1, 2, ... of a shape.
const hd_value_t *hd_lower_iota(hd_lowering_t *l, hd_scalar_t type,
                                const int64_t *shape, unsigned rank);

// The element type that an attribute names by ONNX's number, otherwise where
// it is absent. HD_VOID, reported, where it is none that is supported.
hd_scalar_t hd_lower_scalar_type(hd_lowering_t *l, const char *attribute,
                                 hd_scalar_t otherwise);

// Converted by ONNX's rules with saturation.
const hd_value_t *hd_lower_convert(hd_lowering_t *l, const hd_value_t *x,
                                   hd_scalar_t type);

#endif
