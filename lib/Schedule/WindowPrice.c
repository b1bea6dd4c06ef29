// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a sum over windows is expected to take by a candidate: instructions of
// its threads, what they load through the L1 cache, bytes from memory, and
// what one thread takes by itself, whichever is the longest.
#include "Schedule/Window.h"

#include <math.h>

enum {
  BEGIN_CYCLES = 1300, // Until the first operands are there, behind the last
                       // store.
  THREAD_INSTRUCTIONS = 60,
  ACCESS_INSTRUCTIONS = 4, // Of a load or a store: its place, and whether it is
                           // inside.
  SCHEDULERS = 4,
  L1_BYTES = 64, // A cycle.
  OWN_REGISTERS = 32,
};

static double at_most(double a, double b) { return a < b ? a : b; }
static double at_least(double a, double b) { return a > b ? a : b; }

static double figure(const hd_candidate_t *c, hd_figure_t which) {
  return (double)c->figures[which];
}

// Of a thread.
typedef struct work {
  double outputs, loads, weights, sums; // In vectors.
} work_t;

static work_t work_of(const hd_window_form_t *form, const hd_candidate_t *c) {
  const int64_t *s = form->sizes;
  double rows = figure(c, HD_FIGURE_TILE_M),
         columns = figure(c, HD_FIGURE_TILE_N);
  double taps = (double)(s[HD_WINDOW_HEIGHT] * s[HD_WINDOW_WIDTH]);
  double high = (rows - 1) * (double)s[HD_WINDOW_ROW_STEP] +
                (double)((s[HD_WINDOW_HEIGHT] - 1) * form->dilations[0]) + 1;
  double wide = (columns - 1) * (double)s[HD_WINDOW_COLUMN_STEP] +
                (double)((s[HD_WINDOW_WIDTH] - 1) * form->dilations[1]) + 1;
  return (work_t){.outputs = rows * columns,
                  .loads = at_most(high, rows * (double)s[HD_WINDOW_HEIGHT]) *
                           at_most(wide, columns * (double)s[HD_WINDOW_WIDTH]),
                  .weights = taps,
                  .sums = rows * columns * taps};
}

static double price(const hd_machine_t *machine, const hd_form_t *asked,
                    const hd_candidate_t *c) {
  const hd_window_form_t *form = asked->of;
  const int64_t *s = form->sizes;
  double lanes = figure(c, HD_FIGURE_TILE_K),
         bytes = hd_scalar_bits(form->type) / 8.0;
  double threads = figure(c, HD_FIGURE_THREADS);
  work_t work = work_of(form, c);
  double m = ceil((double)s[HD_WINDOW_ROWS] / figure(c, HD_FIGURE_TILE_M));
  double n = ceil((double)s[HD_WINDOW_COLUMNS] / figure(c, HD_FIGURE_TILE_N));
  double f = ceil((double)s[HD_WINDOW_CHANNELS] / lanes);
  double workers = (double)s[HD_WINDOW_BATCH] * m * n * f;
  double blocks = ceil(workers / threads);
  double registers = at_least(figure(c, HD_FIGURE_REGISTERS), OWN_REGISTERS);
  double most = hd_machine_residents(machine, threads, registers * threads, 0);
  if (most < 1)
    return INFINITY;
  double together = at_most(most, ceil(blocks / machine->count));
  double warps = blocks * threads / 32 / machine->count;
  double converted = bytes < 4 ? work.loads + work.weights : 0;
  double issue =
      THREAD_INSTRUCTIONS + (work.sums + converted + work.outputs) * lanes +
      (work.loads + work.weights + work.outputs) * ACCESS_INSTRUCTIONS;
  double cache = (work.loads + work.weights + work.outputs) *
                 at_least(lanes * bytes * 32 / L1_BYTES, 1);
  // Warps of few blocks leave schedulers idle.
  double busy = at_most(1, together * threads / 32 / (2 * SCHEDULERS));
  double turns = ceil(blocks / (machine->count * together)) *
                 (machine->count * together) / blocks;
  double run =
      warps * at_least(turns, 1) * at_least(issue / SCHEDULERS / busy, cache);
  double moved = bytes * (double)s[HD_WINDOW_BATCH] *
                 (double)s[HD_WINDOW_CHANNELS] *
                 ((double)(form->x.shape[1] * form->x.shape[2]) +
                  (double)(s[HD_WINDOW_ROWS] * s[HD_WINDOW_COLUMNS]));
  double memory = moved < (double)hd_machine_kept(machine)
                      ? 0
                      : moved / machine->gbs * 1e-3;
  return machine->launch +
         at_least((BEGIN_CYCLES + at_least(run, issue)) / machine->mhz, memory);
}

hd_form_t hd_window_form_ask(const hd_window_form_t *form) {
  hd_form_t asked = {.kind = HD_FORM_KIND_WINDOW,
                     .type = form->type,
                     .names = {[HD_TEMPLATE_LANES] = form->lanes},
                     .price = price,
                     .of = form};
  for (int i = 0; i < HD_WINDOW_SIZES; i++)
    asked.sizes[i] = form->sizes[i];
  return asked;
}
