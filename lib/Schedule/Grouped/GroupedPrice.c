// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a grouped product is expected to take by a candidate: a small kernel
// orders the rows; then blocks go over tiles of the rows of each matrix, bound
// by the tensor cores, by what the L2 cache gives a multiprocessor, or by the
// matrices that come from memory. Rows are taken to be drawn: how many matrices
// have some, and how many tiles they come to, is what is expected then.
#include "Schedule/Grouped/Grouped.h"
#include "Schedule/Template/Fits.h"

#include <math.h>

enum {
  HALF = 64, // Rows that are multiplied at a time.
  LOADS = 3  // Before the first step, each of what the one before it says.
};

static double at_least(double a, double b) { return a > b ? a : b; }

static double figure(const hd_candidate_t *c, hd_figure_t which) {
  return (double)c->figures[which];
}

static double price(const hd_machine_t *machine, const hd_form_t *asked,
                    const hd_candidate_t *c) {
  const hd_grouped_form_t *form = asked->of;
  double z = (double)form->sizes[HD_GROUPED_MATRIX],
         m = (double)form->sizes[HD_GROUPED_M],
         n = (double)form->sizes[HD_GROUPED_N],
         k = (double)form->sizes[HD_GROUPED_K];
  double bm = figure(c, HD_FIGURE_TILE_M), bn = figure(c, HD_FIGURE_TILE_N),
         bk = figure(c, HD_FIGURE_TILE_K);
  double bytes = hd_scalar_bits(form->type) / 8.0;
  double touched = z * (1 - pow(1 - 1 / z, m)), each = m / touched;
  double below = ceil(each / bm); // Tiles of a matrix' rows.
  double turns = ceil(touched * below * ceil(n / bn) / machine->count);
  double rows = ceil(each / below / HALF) * HALF;
  double multiply = rows * bn * bk / figure(c, HD_FIGURE_RATE);
  double load = (rows + bn) * bk * bytes / machine->l2_shared;
  double tile = ceil(k / bk) * at_least(multiply, load) +
                rows * bn * figure(c, HD_FIGURE_RESULT) * 0.01;
  double order =
      figure(c, HD_FIGURE_ORDER) +
      figure(c, HD_FIGURE_ROUND) * ceil(m / figure(c, HD_FIGURE_THREADS));
  double begin = machine->begin_cycles + figure(c, HD_FIGURE_SETUP) +
                 LOADS * machine->l2_cycles;
  double work = (begin + turns * tile) / machine->mhz;
  // Memory gives all, and the busiest multiprocessor has its tiles to read.
  double moved =
      (touched * n * k + m / (double)form->sharing * k + m * n) * bytes;
  double far =
      at_least(moved / machine->gbs * 1e-3,
               turns * bn * k * bytes / machine->memory_bytes / machine->mhz);
  return 2 * machine->launch + order / machine->mhz +
         at_least(work, far + hd_fits.grouped_unhidden * work);
}

// As if each matrix that has rows had a tile that is not full.
static double turns(const hd_form_t *form, const hd_candidate_t *c) {
  const int64_t *n = form->sizes;
  double z = (double)n[HD_GROUPED_MATRIX], m = (double)n[HD_GROUPED_M];
  return (fmin(z, m) + m / figure(c, HD_FIGURE_TILE_M)) *
         ceil((double)n[HD_GROUPED_N] / figure(c, HD_FIGURE_TILE_N)) *
         (1 + ceil((double)n[HD_GROUPED_K] / figure(c, HD_FIGURE_TILE_K))) *
         figure(c, HD_FIGURE_THREADS);
}

hd_form_t hd_grouped_form_ask(hd_arena_t *arena,
                              const hd_grouped_form_t *form) {
  const char *values = hd_arena_printf(
      arena, "T = %s, O = %s, SHARING = %lld", hd_scalar_name(form->type),
      hd_scalar_name(form->result.type), (long long)form->sharing);
  hd_form_t asked = {.kind = HD_FORM_KIND_GROUPED,
                     .values = values,
                     .type = form->type,
                     .no_map = {form->a.no_map, form->b.no_map},
                     .price = price,
                     .turns = turns,
                     .of = form};
  for (int i = 0; i < HD_GROUPED_AXES; i++)
    asked.sizes[i] = form->sizes[i];
  return asked;
}
