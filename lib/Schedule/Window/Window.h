// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normal form of a sum over windows of each channel by itself, a depthwise
// convolution above all:
//
//   y[z, i, j, f] = sum(u, v) x[z, i * s + u * e, j * t + v * d, f] * w[u, v,
//   f]
//
// x is the image with the borders that windows reach: its places are counted
// from the first that is read, and there are zeros behind the last. In a line i
// and u have one value.
#ifndef HIDET_SCHEDULE_WINDOW_WINDOW_H
#define HIDET_SCHEDULE_WINDOW_WINDOW_H

#include "Schedule/Template/Candidates.h"
#include "Schedule/Template/FormTensor.h"

typedef enum hd_window_axis {
  HD_WINDOW_BATCH,
  HD_WINDOW_ROWS,        // i
  HD_WINDOW_COLUMNS,     // j
  HD_WINDOW_CHANNELS,    // f
  HD_WINDOW_HEIGHT,      // u
  HD_WINDOW_WIDTH,       // v
  HD_WINDOW_ROW_STEP,    // s
  HD_WINDOW_COLUMN_STEP, // t
  HD_WINDOW_SIZES
} hd_window_axis_t;

typedef struct hd_window_form {
  hd_form_result_t result; // In y.
  int64_t sizes[HD_WINDOW_SIZES];
  int64_t dilations[2]; // e, d
  hd_scalar_t type;     // Of x and w.
  // So many channels lie side by side, and aligned, wherever a multiple of them
  // begins, in x and in w, up to 16 bytes; 0: neighbours lie apart.
  int64_t lanes;
  hd_form_tensor_t x, w, y; // [z, rows, columns, f], [u, v, f], [z, i, j, f]
  // The image without its borders, a tensor of the task: [z, row, column, f],
  // where its no_map is NULL.
  hd_form_tensor_t image;
  int64_t pads[2]; // Rows above it, and columns before it, that windows read.
} hd_window_form_t;

// NULL, or why a definition has no such form; summed in f32.
const char *hd_window_form_find(hd_arena_t *arena, const hd_definition_t *d,
                                hd_window_form_t *form);

// Of a form whose task's inputs, those of a flat task, are computed where they
// are loaded, a bit each: the image has no map then.
void hd_window_form_mark(hd_window_form_t *form, const hd_task_t *flat,
                         uint64_t computed);

// The form as templates are asked about it.
hd_form_t hd_window_form_ask(hd_arena_t *arena, const hd_window_form_t *form);

#endif
