// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows that convolutions and pools move over the axes behind batch and
// channels: what the attributes kernel_shape, strides, pads, dilations,
// auto_pad and ceil_mode come to for a tensor at hand.
#ifndef HIDET_GRAPH_EXPAND_LOWER_WINDOW_H
#define HIDET_GRAPH_EXPAND_LOWER_WINDOW_H

#include "Graph/Expand/Lower/Lower.h"

// One entry for each axis.
typedef struct hd_window {
  unsigned rank;
  int64_t inputs[HD_MAX_RANK]; // Sizes of what the window moves over.
  int64_t kernel[HD_MAX_RANK];
  int64_t strides[HD_MAX_RANK];
  int64_t dilations[HD_MAX_RANK];
  int64_t begin[HD_MAX_RANK], end[HD_MAX_RANK]; // Padding.
  int64_t sizes[HD_MAX_RANK];                   // Places of the window.
} hd_window_t;

// Reads all but pads, auto_pad and what follows from them. kernel: where the
// attribute kernel_shape may be left out, the sizes that stand for it, else
// NULL.
bool hd_window_read(hd_lowering_t *l, const hd_value_t *x,
                    const int64_t *kernel, hd_window_t *window);
// Padding, and the places of the window.
bool hd_window_place(hd_lowering_t *l, hd_window_t *window);
// Reads the attribute pads; zeros where it is absent.
bool hd_window_pads(hd_lowering_t *l, hd_window_t *window);
// Leaves out what meets the padding at all places: windows may be much larger
// than what they move over.
void hd_window_trim(hd_window_t *window);
// A list of as many integers as axes, each least or more; otherwise where it
// is absent.
bool hd_window_ints(hd_lowering_t *l, const char *name, int64_t least,
                    int64_t otherwise, unsigned rank, int64_t *values);
// The attributes strides, pads and dilations of tasks, and sizes.
void hd_window_attributes(hd_lowering_t *l, const hd_window_t *window,
                          hd_attributes_t *list);

// x + bias, bias along axis 1; bias NULL: x.
const hd_value_t *hd_lower_channel_bias(hd_lowering_t *l, const hd_value_t *x,
                                        const hd_value_t *bias);
// The convolution of x with w by the node's attributes, without bias.
const hd_value_t *hd_lower_convolution(hd_lowering_t *l, const hd_value_t *x,
                                       const hd_value_t *w);

#endif
