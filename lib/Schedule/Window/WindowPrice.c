// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a sum over windows is expected to take by a candidate.
//
// Where threads compute each by itself: their instructions, what they load
// through the L1 cache, and what one thread takes by itself, whichever is the
// longest. Where blocks bring their part of the image to shared memory: what
// the blocks of a multiprocessor take one after the other, instructions or the
// bytes of the L2 cache, or what one takes that waits for nobody but itself.
// Neither takes less than the bytes from memory and a share of the rest, which
// they do not hide.
#include "Schedule/Template/Fits.h"
#include "Schedule/Window/Window.h"

#include <math.h>

enum {
  THREAD_INSTRUCTIONS = 60,
  ACCESS_INSTRUCTIONS = 5, // Of a load or a store: its place, and whether it is
                           // inside.
  OWN_REGISTERS = 32,
  MOST_REGISTERS = 255,
};

static double at_most(double a, double b) { return a < b ? a : b; }
static double at_least(double a, double b) { return a > b ? a : b; }

static double figure(const hd_candidate_t *c, hd_figure_t which) {
  return (double)c->figures[which];
}

// Rows (0) of the image from the first that a window reads to the last, or
// columns (1).
static int64_t span(const hd_window_form_t *form, int side) {
  return (form->sizes[HD_WINDOW_HEIGHT + side] - 1) * form->dilations[side] + 1;
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
  double high =
      (rows - 1) * (double)s[HD_WINDOW_ROW_STEP] + (double)span(form, 0);
  double wide =
      (columns - 1) * (double)s[HD_WINDOW_COLUMN_STEP] + (double)span(form, 1);
  return (work_t){.outputs = rows * columns,
                  .loads = at_most(high, rows * (double)s[HD_WINDOW_HEIGHT]) *
                           at_most(wide, columns * (double)s[HD_WINDOW_WIDTH]),
                  .weights = taps,
                  .sums = rows * columns * taps};
}

// What candidates of either kind are priced by.
typedef struct pricing {
  const hd_machine_t *machine;
  const hd_window_form_t *form;
  const hd_candidate_t *c;
  double bytes;            // Of an element.
  double blocks, together; // Of all, and at one time on a multiprocessor.
} pricing_t;

static double tiles_of(const hd_window_form_t *form, const hd_candidate_t *c) {
  const int64_t *s = form->sizes;
  return ceil((double)s[HD_WINDOW_BATCH] / figure(c, HD_FIGURE_IMAGES)) *
         ceil((double)s[HD_WINDOW_ROWS] / figure(c, HD_FIGURE_TILE_M)) *
         ceil((double)s[HD_WINDOW_COLUMNS] / figure(c, HD_FIGURE_TILE_N)) *
         ceil((double)s[HD_WINDOW_CHANNELS] / figure(c, HD_FIGURE_TILE_K));
}

// Cycles of threads that compute each by itself.
static double run_threads(const pricing_t *p) {
  const hd_machine_t *machine = p->machine;
  double lanes = figure(p->c, HD_FIGURE_TILE_K);
  double threads = figure(p->c, HD_FIGURE_THREADS);
  work_t work = work_of(p->form, p->c);
  double warps = p->blocks * threads / 32 / machine->count;
  double converted = p->bytes < 4 ? work.loads + work.weights : 0;
  double issue =
      THREAD_INSTRUCTIONS + (work.sums + converted + work.outputs) * lanes +
      (work.loads + work.weights + work.outputs) * ACCESS_INSTRUCTIONS;
  double cache = (work.loads + work.weights + work.outputs) *
                 at_least(lanes * p->bytes * 32 /
                              (machine->l1_bytes * hd_fits.window_loaded),
                          1);
  // Warps of few blocks leave schedulers idle.
  double busy = at_most(1, p->together * threads / 32 /
                               (hd_fits.window_busy * machine->schedulers));
  double turns = ceil(p->blocks / (machine->count * p->together)) *
                 (machine->count * p->together) / p->blocks;
  double run = warps * at_least(turns, 1) *
               at_least(issue / machine->schedulers / busy, cache);
  return at_least(run, issue);
}

// How often a line of either cache or of memory is asked for, over once: pieces
// of a line are asked for one by one.
static double pieces(const pricing_t *p) {
  double line = (double)p->machine->line_bytes;
  return line / at_most(figure(p->c, HD_FIGURE_TILE_K) * p->bytes, line) - 1;
}

// Cycles of blocks that bring what they read to shared memory.
static double run_tiles(const pricing_t *p) {
  const int64_t *s = p->form->sizes;
  double high =
      (figure(p->c, HD_FIGURE_TILE_M) - 1) * (double)s[HD_WINDOW_ROW_STEP] +
      (double)span(p->form, 0);
  double wide =
      (figure(p->c, HD_FIGURE_TILE_N) - 1) * (double)s[HD_WINDOW_COLUMN_STEP] +
      (double)span(p->form, 1);
  double read = figure(p->c, HD_FIGURE_IMAGES) * high * wide *
                figure(p->c, HD_FIGURE_TILE_K) * p->bytes / p->machine->l2 *
                (1 + hd_fits.window_pieces * pieces(p));
  double each = at_least(figure(p->c, HD_FIGURE_ISSUE) *
                             ceil(figure(p->c, HD_FIGURE_THREADS) / 32) /
                             p->machine->schedulers,
                         read);
  double alone = figure(p->c, HD_FIGURE_BARRIER) + read;
  // Those of a full house take turns; the last ones are fewer.
  double house = p->machine->count * p->together;
  double full = floor(p->blocks / house);
  double last = ceil((p->blocks - full * house) / p->machine->count);
  return full * at_least(p->together * each, alone) +
         (last > 0 ? at_least(last * each, alone) : 0);
}

// Blocks that the registers have room for: each scheduler has its share of
// them, and warps take theirs in eights. 0: a thread has not so many.
static double by_registers(const hd_machine_t *machine, double registers,
                           double threads) {
  if (registers > MOST_REGISTERS)
    return 0;
  double each = (double)machine->registers / machine->schedulers;
  double warps =
      machine->schedulers * floor(each / 32 / 8 / ceil(registers / 8));
  return floor(warps / ceil(threads / 32));
}

static double price(const hd_machine_t *machine, const hd_form_t *asked,
                    const hd_candidate_t *c) {
  const hd_window_form_t *form = asked->of;
  const int64_t *s = form->sizes;
  pricing_t p = {machine, form, c, hd_scalar_bits(form->type) / 8.0, 0, 0};
  bool shares = figure(c, HD_FIGURE_SHARED) > 0;
  double threads = figure(c, HD_FIGURE_THREADS);
  double registers = at_least(figure(c, HD_FIGURE_REGISTERS), OWN_REGISTERS);
  double most =
      at_most(hd_machine_residents(machine, threads, registers * threads,
                                   figure(c, HD_FIGURE_SHARED)),
              by_registers(machine, registers, threads));
  if (most < 1)
    return INFINITY;
  p.blocks = ceil(tiles_of(form, c) / (shares ? 1 : threads));
  p.together = at_most(most, ceil(p.blocks / machine->count));
  double run = shares ? run_tiles(&p) : run_threads(&p);
  double begin =
      machine->begin_cycles + figure(c, HD_FIGURE_SETUP) + machine->l2_cycles;
  double moved = p.bytes * (double)s[HD_WINDOW_BATCH] *
                 (double)s[HD_WINDOW_CHANNELS] *
                 ((double)(form->x.shape[1] * form->x.shape[2]) +
                  (double)(s[HD_WINDOW_ROWS] * s[HD_WINDOW_COLUMNS]));
  // The L2 cache keeps some of what the one before has stored.
  double memory = moved / machine->gbs * 1e-3 * machine->mhz *
                  at_most(moved / (double)hd_machine_kept(machine), 1);
  if (shares)
    memory *= 1 + hd_fits.window_narrow * pieces(&p);
  memory += run * (shares ? hd_fits.window_unhidden : hd_fits.window_waiting);
  return machine->launch + (begin + at_least(run, memory)) / machine->mhz;
}

// Of a thread's tile, or of a block's with shared memory.
static double turns(const hd_form_t *form, const hd_candidate_t *c) {
  double threads = figure(c, HD_FIGURE_THREADS);
  return 2 * tiles_of(form->of, c) *
         (figure(c, HD_FIGURE_SHARED) > 0 ? threads : 1);
}

static const char *given_by(hd_arena_t *arena, const hd_window_form_t *form) {
  const int64_t *s = form->sizes;
  return hd_arena_printf(
      arena,
      "T = %s, O = %s, KH = %lld, KW = %lld, SH = %lld, SW = %lld, DH = %lld, "
      "DW = %lld",
      hd_scalar_name(form->type), hd_scalar_name(form->result.type),
      (long long)s[HD_WINDOW_HEIGHT], (long long)s[HD_WINDOW_WIDTH],
      (long long)s[HD_WINDOW_ROW_STEP], (long long)s[HD_WINDOW_COLUMN_STEP],
      (long long)form->dilations[0], (long long)form->dilations[1]);
}

// To a kernel that has a map of the image.
static const char *image_given_by(hd_arena_t *arena,
                                  const hd_window_form_t *form) {
  return hd_arena_printf(arena, "IH = %lld, IW = %lld, PH = %lld, PW = %lld",
                         (long long)form->image.shape[1],
                         (long long)form->image.shape[2],
                         (long long)form->pads[0], (long long)form->pads[1]);
}

hd_form_t hd_window_form_ask(hd_arena_t *arena, const hd_window_form_t *form) {
  hd_form_t asked = {.kind = HD_FORM_KIND_WINDOW,
                     .type = form->type,
                     .names = {[HD_TEMPLATE_LANES] = form->lanes,
                               [HD_TEMPLATE_HIGH] = span(form, 0),
                               [HD_TEMPLATE_WIDE] = span(form, 1),
                               [HD_TEMPLATE_LINE] = form->image.shape[2]},
                     .no_map = {form->image.no_map},
                     .values = given_by(arena, form),
                     .given = {image_given_by(arena, form)},
                     .price = price,
                     .turns = turns,
                     .of = form};
  for (int i = 0; i < HD_WINDOW_SIZES; i++)
    asked.sizes[i] = form->sizes[i];
  return asked;
}
