// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an attention is expected to take by a candidate, as ProductPrice.c does
// for products: a step is bound by the tensor cores, by what the L2 cache gives
// a multiprocessor, by how fast its warps issue (exponentials are most of that)
// or by the latency of a load; blocks go in waves. From memory comes no more
// than all blocks have asked for at a time, in the time that a load takes, and
// to a multiprocessor no more than its path to memory carries: what the busiest
// has to read is not read sooner. Where data says where rows are, pages, say, a
// thread finds that out for each piece before it asks for it. Clusters do not
// find room everywhere; parts that blocks of any place leave cost a launch that
// puts them together.
#include "Schedule/Attention/Attention.h"
#include "Schedule/Template/Fits.h"

#include <math.h>

// Elements that a kernel's D and E are filled up to, and rows of a warp.
enum { FRAGMENT = 16 };

static double at_most(double a, double b) { return a < b ? a : b; }
static double at_least(double a, double b) { return a > b ? a : b; }

static double figure(const hd_candidate_t *c, hd_figure_t which) {
  return (double)c->figures[which];
}

// Blocks that share a multiprocessor.
static double residents(const hd_machine_t *machine, const hd_candidate_t *c) {
  double threads = figure(c, HD_FIGURE_THREADS);
  double registers = at_least(figure(c, HD_FIGURE_REGISTERS), 1) * threads;
  return hd_machine_residents(machine, threads, registers,
                              figure(c, HD_FIGURE_SHARED));
}

// Instructions by which a thread finds out where data says that its pieces of a
// step are, which has so many bytes.
static double price_placing(const hd_form_t *form, const hd_candidate_t *c,
                            double step) {
  const hd_attention_form_t *of = form->of;
  return of->gathered ? step / HD_FORM_WIDE / figure(c, HD_FIGURE_THREADS) *
                            hd_fits.attention_placed
                      : 0;
}

// Microseconds that reading takes by itself. blocks, together: at all, and on a
// multiprocessor at a time; step: bytes that a block asks for in a step;
// placed: cycles in which it finds out where they are.
static double price_reading(const hd_machine_t *machine, double moved,
                            double blocks, double reach, double together,
                            double step, double placed) {
  double asked = at_most(blocks, reach * together) * step;
  double wait = machine->memory_crowd_cycles + placed;
  double far = at_least(moved / machine->gbs * 1e-3,
                        moved / asked * wait / machine->mhz);
  double busiest = ceil(blocks / reach) * moved / blocks;
  return at_least(far, busiest / machine->memory_bytes / machine->mhz);
}

// Microseconds that putting parts of rows together takes, once they are all
// there: a launch, which has begun before, and two loads one after the other.
static double price_merging(const hd_machine_t *machine, double rows,
                            double parts, double width) {
  double bytes = rows * parts * width * sizeof(float);
  return machine->launch + 2 * bytes / machine->gbs * 1e-3 +
         2 * machine->l2_cycles / machine->mhz;
}

static double price(const hd_machine_t *machine, const hd_form_t *form,
                    const hd_candidate_t *c) {
  const int64_t *sizes = form->sizes;
  double z = (double)sizes[HD_ATTENTION_BATCH],
         m = (double)sizes[HD_ATTENTION_QUERY],
         n = (double)sizes[HD_ATTENTION_KEY];
  double widths =
      (double)(sizes[HD_ATTENTION_INNER] + sizes[HD_ATTENTION_VALUE]);
  double bytes = hd_scalar_bits(form->type) / 8.0;
  double bm = figure(c, HD_FIGURE_TILE_M), bn = figure(c, HD_FIGURE_TILE_K);
  double split = figure(c, HD_FIGURE_SPLIT);
  double blocks = z * ceil(m / bm) * split, most = residents(machine, c);
  if (most < 1)
    return INFINITY;
  bool merges = c->template->then; // Its blocks are no cluster.
  double reach =
      merges ? machine->count : hd_machine_reach(machine, (int64_t)split);
  double together = at_most(most, ceil(blocks / reach));
  double waves = ceil(blocks / (reach * together));
  double warps = figure(c, HD_FIGURE_THREADS) / 32 * together;
  double multiply = together * bm * bn * widths / figure(c, HD_FIGURE_RATE);
  double load = together * bn * widths * bytes / machine->l2_shared;
  // One step has nothing to wait for but what all wait for in the beginning.
  double stages = figure(c, HD_FIGURE_STAGES);
  double wait = stages > 1 ? machine->l2_cycles / (stages - 1) : 0;
  double placed = price_placing(form, c, bn * widths * bytes);
  double issued = figure(c, HD_FIGURE_ISSUE) + placed;
  double issue = warps / machine->schedulers * issued;
  double alone = issued / hd_fits.attention_alone;
  double step = at_least(at_least(multiply, load),
                         at_least(at_least(issue, alone), wait)) +
                figure(c, HD_FIGURE_BARRIER);
  double results = together * at_most(bm, m) * figure(c, HD_FIGURE_TILE_N) *
                   figure(c, HD_FIGURE_RESULT) * 0.01;
  double begin =
      machine->begin_cycles + figure(c, HD_FIGURE_SETUP) + machine->l2_cycles;
  double looked = ceil(ceil(n / bn) / split);
  if (form->kind == HD_FORM_KIND_WEIGHED)
    looked += looked - 1; // Two passes, of which one begins where one ends.
  double steps = waves * (looked * step + results);
  if (split > 1 && !merges)
    begin +=
        hd_machine_cluster_reduce(machine) +
        (split > machine->portable_cluster ? machine->large_cluster_cycles : 0);
  double far = price_reading(
      machine, bytes * z * (m + n) * widths, blocks, reach, together,
      at_least(stages - 1, 1) * bn * widths * bytes, placed);
  double work = steps / machine->mhz;
  double us = machine->launch + at_least(work, far);
  // Blocks of few rows wait for memory, and have nothing else to do while
  // others begin.
  us += bm > FRAGMENT ? begin / machine->mhz
                      : waves * begin / machine->mhz +
                            hd_fits.attention_unhidden * at_most(work, far);
  return merges ? us + price_merging(machine, z * m, split,
                                     (double)sizes[HD_ATTENTION_VALUE])
                : us;
}

static double turns(const hd_form_t *form, const hd_candidate_t *c) {
  const int64_t *n = form->sizes;
  return (double)n[HD_ATTENTION_BATCH] *
         ceil((double)n[HD_ATTENTION_QUERY] / figure(c, HD_FIGURE_TILE_M)) *
         (1 + ceil((double)n[HD_ATTENTION_KEY] / figure(c, HD_FIGURE_TILE_K))) *
         figure(c, HD_FIGURE_THREADS);
}

static int64_t filled(int64_t size) {
  return (size + FRAGMENT - 1) / FRAGMENT * FRAGMENT;
}

// What the form gives of the kernel's compile-time parameters.
static const char *given_by(hd_arena_t *arena,
                            const hd_attention_form_t *form) {
  return hd_arena_printf(arena, "T = %s, O = %s, D = %lld, E = %lld",
                         hd_scalar_name(form->type),
                         hd_scalar_name(form->result.type),
                         (long long)filled(form->sizes[HD_ATTENTION_INNER]),
                         (long long)filled(form->sizes[HD_ATTENTION_VALUE]));
}

hd_form_kind_t hd_attention_form_kind(const hd_attention_form_t *form) {
  return form->weighed ? HD_FORM_KIND_WEIGHED : HD_FORM_KIND_ATTENTION;
}

hd_form_t hd_attention_form_ask(hd_arena_t *arena,
                                const hd_attention_form_t *form) {
  hd_form_t asked = {
      .kind = hd_attention_form_kind(form),
      .type = form->type,
      .price = price,
      .turns = turns,
      .no_map = {form->q.no_map, form->map_k.no_map, form->map_v.no_map},
      .values = given_by(arena, form),
      .given = {NULL, form->given},
      .of = form};
  for (int i = 0; i < HD_ATTENTION_AXES; i++)
    asked.sizes[i] = form->sizes[i];
  return asked;
}
