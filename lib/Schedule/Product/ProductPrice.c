// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a product is expected to take by a candidate, from the figures in its
// head and the machine's. A step of a block is bound by the tensor cores, by
// what the L2 cache gives a multiprocessor, by how fast its warps issue their
// instructions, or, where too little is under way, by the latency of a load;
// blocks that are on a multiprocessor together share the first three and hide
// the last.
//
// What stands here is of the model: shares, and how often something is waited
// for. It was fitted, as the machine's cycles were (Machines.def), to what an
// H200 takes for pairs of products of 128 and 512 rows, 768 to 3072 columns and
// back, by 60 candidates each; what blocks that share cost and spare, to
// products of 1,000 to 4,096 rows with and without; how results leave by
// mma.sync, to those and to 96 of 128 x 128 x 64, 197 x 197 x 64 and 4096 x 320
// x 64.
#include "Schedule/Product/PriceState.h"
#include "Schedule/Template/Fits.h"

#include <math.h>

enum {
  BATCH = 16,        // Loads of a thread through registers at once.
  OWN_REGISTERS = 48 // Of a thread, beside its sums.
};

static double at_most(double a, double b) { return a < b ? a : b; }
static double at_least(double a, double b) { return a > b ? a : b; }

// Blocks that share a multiprocessor, by shared memory and threads.
static double residents(const hd_machine_t *machine, const hd_candidate_t *c) {
  // Half of the registers' file for accumulators is what kernels come to.
  double sums =
      (double)(c->figures[HD_FIGURE_TILE_M] * c->figures[HD_FIGURE_TILE_N]);
  double threads = (double)c->figures[HD_FIGURE_THREADS];
  double registers = c->figures[HD_FIGURE_REGISTERS]
                         ? (double)c->figures[HD_FIGURE_REGISTERS] * threads
                         : sums * 1.6 + OWN_REGISTERS * threads;
  return hd_machine_residents(machine, threads, registers,
                              (double)c->figures[HD_FIGURE_SHARED]);
}

static double figure(const hd_candidate_t *c, hd_figure_t which) {
  return (double)c->figures[which];
}

// Blocks walk over tiles; else each has one.
static bool walks(const hd_load_t *l) {
  return figure(l->c, HD_FIGURE_WALKS) > 0;
}

// The copy engine brings the operands of such.
static bool tours(const hd_load_t *l) {
  return walks(l) && l->c->template->maps[0];
}

// Where a piece of a window is has to be computed, by threads.
static bool finds_windows(const hd_load_t *l) {
  const bool *maps = l->c->template->maps;
  return l->form->image && !maps[0] && !maps[HD_PRODUCT_IMAGE] &&
         !hd_load_reads_image(l);
}

// Tiles of places that all images have.
static double tiles_of(const hd_load_t *l) {
  const hd_product_image_t *image = l->form->image;
  return (double)image->pixels.shape[0] *
         ceil((double)image->places[0] / figure(l->c, HD_FIGURE_HIGH)) *
         ceil((double)image->places[1] / figure(l->c, HD_FIGURE_WIDE));
}

// False where a multiprocessor has no room for a block.
static bool place_blocks(hd_load_t *l) {
  const int64_t *sizes = l->form->sizes;
  double rows = ceil((double)sizes[HD_AXIS_M] / (l->bm * l->share)) * l->share;
  double blocks = (double)sizes[HD_AXIS_BATCH] *
                  (hd_load_reads_image(l) ? tiles_of(l) : rows) *
                  ceil((double)sizes[HD_AXIS_N] / l->bn) * l->split;
  double most = residents(l->machine, l->c);
  if (most < 1)
    return false;
  double reach =
      hd_machine_reach(l->machine, l->c->figures[HD_FIGURE_SPLIT] *
                                       l->c->figures[HD_FIGURE_SHARE]);
  l->together = at_most(most, ceil(blocks / reach));
  l->waves = hd_load_computes_narrow(l) ? ceil(blocks / reach) / l->together
                                        : ceil(blocks / (reach * l->together));
  l->at_once = at_most(blocks, reach * l->together);
  return true;
}

// That the hardware copies of so many bytes of an operand.
static double pieces_of(const hd_form_tensor_t *tensor, double bytes) {
  return tensor->piece ? bytes / tensor->piece : 0;
}

// Cycles that warps take to issue the instructions of a step. The copy engine
// needs none of them.
static double issue_cycles(const hd_load_t *l, double warps) {
  const bool *maps = l->c->template->maps;
  bool by_map = maps[0] || maps[HD_PRODUCT_IMAGE];
  double pieces =
      (by_map ? 0 : pieces_of(l->a, l->bm * l->bk * l->bytes)) +
      (maps[1] ? 0 : pieces_of(&l->form->b, l->bn * l->bk * l->bytes));
  double copies = hd_load_reads_image(l) ? 0 : pieces / l->threads;
  if (finds_windows(l))
    copies += pieces_of(l->a, l->bm * l->bk * l->bytes) / l->threads;
  double each = figure(l->c, HD_FIGURE_ISSUE) + copies * l->machine->copy_issue;
  return at_least(warps / l->machine->schedulers * each,
                  hd_load_computes_narrow(l) ? each / hd_fits.product_alone
                                             : 0);
}

// How much longer an operand takes to come than whole lines of the L2 cache do:
// by the copy engine where its rows begin where no line does; by copies of less
// than 16 bytes.
static double slowness(const hd_load_t *l, const hd_form_tensor_t *tensor,
                       bool by_map) {
  int64_t bytes = tensor->pitch * (int64_t)hd_scalar_bits(l->form->type) / 8;
  if (!by_map && tensor->piece && tensor->piece < HD_FORM_WIDE)
    return l->machine->l2_shared / l->machine->narrow_bytes;
  bool is_walked = tensor == l->a && l->c->template->maps[HD_PRODUCT_IMAGE];
  if (!by_map)
    return bytes % l->machine->sector_bytes != 0 ? hd_fits.product_astride
           : is_walked || bytes % l->machine->line_bytes == 0
               ? 1
               : hd_fits.product_crossing;
  return bytes % l->machine->line_bytes == 0     ? 1
         : bytes % l->machine->sector_bytes == 0 ? l->machine->skewed
                                                 : l->machine->most_skewed;
}

// How much longer steps take where the copy engine fills a ring of few stages:
// the fewer, the more often all of them wait for what was asked for last. Of 64
// and 128 rows with 2048 to 14336 along k, 8 stages take 4 to 17 % less than 6,
// and those 3 to 20 % less than 4. A part of that decides between candidates
// that are alike else. Beyond HD_LOAD_DEEP stages what is gained goes to the
// launch behind, which finds less room to begin early.
static double depth_factor(const hd_load_t *l) {
  double stages = at_most(figure(l->c, HD_FIGURE_STAGES), HD_LOAD_DEEP);
  return 1 + (l->c->template->maps[1] ? hd_fits.product_shallow / stages : 0);
}

// Cycles of a step's tensor cores, for all blocks that are there together.
static double multiply_cycles(const hd_load_t *l) {
  double warps = l->threads / 32 * l->together;
  return l->together * l->bm * l->bn * l->bk /
         (figure(l->c, HD_FIGURE_RATE) *
          at_most(1, warps / l->machine->full_warps));
}

// Of a step's bytes of b, those that a block asks for: where b stays, of one
// tile.
static double asked_of_b(const hd_load_t *l) {
  bool stays = figure(l->c, HD_FIGURE_STAYS) > 0 &&
               (double)l->form->sizes[HD_AXIS_N] <= l->bn;
  return stays ? 1 / l->waves : 1;
}

// Of a step's size, that a pixel's channels come in.
static double pieces_of_pixel(const hd_load_t *l) {
  return ceil((double)l->form->image->channels / l->bk);
}

// The copy engine walks over an image pixel by pixel, however many bytes of
// each it brings; but where a step goes on past the last channel a pixel costs
// more. It brings rows of b in the same time, and those more slowly whose box
// goes on past the last.
static double walk_cycles(const hd_load_t *l) {
  const hd_machine_t *machine = l->machine;
  bool is_part = l->form->image->channels % (int64_t)l->bk != 0;
  double longer =
      is_part ? (hd_fits.product_vacant - 1) / pieces_of_pixel(l) : 0;
  double beyond = (double)(l->form->sizes[HD_AXIS_N] % (int64_t)l->bn);
  double rows = l->bn * machine->row_cycles + beyond * hd_fits.product_beyond;
  return l->bm * machine->pixel_cycles * (1 + longer) +
         rows / l->share * asked_of_b(l);
}

// Along k: the copy engine takes each element of a window by itself.
static double steps_of(const hd_load_t *l) {
  const hd_product_image_t *image = l->form->image;
  return image && l->c->template->maps[HD_PRODUCT_IMAGE]
             ? (double)(image->window[0] * image->window[1]) *
                   pieces_of_pixel(l)
             : ceil((double)l->form->sizes[HD_AXIS_K] / l->bk);
}

static double step_cycles(const hd_load_t *l) {
  const hd_machine_t *machine = l->machine;
  double warps = l->threads / 32 * l->together;
  double multiply = multiply_cycles(l);
  const hd_product_form_t *form = l->form;
  double passing = figure(l->c, HD_FIGURE_PASSING);
  bool direct = hd_load_is_direct(l);
  double rows = direct ? at_most(l->bm, (double)form->sizes[HD_AXIS_M]) : l->bm;
  const bool *maps = l->c->template->maps;
  // An element that several windows have is asked for by each of them.
  double load =
      l->together *
      (rows * l->a->kept * slowness(l, l->a, maps[0]) +
       l->bn * asked_of_b(l) * form->b.kept * slowness(l, &form->b, maps[1])) /
      8 * l->bk / (machine->l2_shared * (direct ? hd_fits.product_direct : 1));
  double walk = maps[HD_PRODUCT_IMAGE] ? l->together * walk_cycles(l) : 0;
  // Nothing is under way beside a step that is the only one at a time; one that
  // is all, in shared memory, is waited for where a block begins.
  double ahead = figure(l->c, HD_FIGURE_STAGES) - 1;
  double issue = issue_cycles(l, warps);
  bool whole =
      direct && steps_of(l) <= l->split &&
      figure(l->c, HD_FIGURE_SHARED) >= l->bn * l->bk * form->b.kept / 8;
  double alone = direct ? at_least(multiply, issue) : multiply;
  double wait = ahead > 0 ? machine->l2_cycles / ahead
                : whole   ? 0
                          : machine->l2_cycles + alone;
  // What passes through registers is waited for, a batch at a time.
  double elements =
      (l->a->piece ? 0 : l->bm * l->bk) + (form->b.piece ? 0 : l->bn * l->bk);
  double by_thread = direct ? 0 : elements / l->threads;
  return at_least(at_least(multiply, issue),
                  at_least(at_least(load, walk), wait)) *
             depth_factor(l) +
         figure(l->c, HD_FIGURE_BARRIER) + by_thread * l->together * passing +
         ceil(by_thread / BATCH) * machine->l2_crowd_cycles;
}

// Of the steps of all waves. The last one has the tiles at the edges; the copy
// engine takes longer for rows of b that are outside, too.
static double walk_steps(const hd_load_t *l, double steps) {
  const bool *maps = l->c->template->maps;
  double n = (double)l->form->sizes[HD_AXIS_N];
  double outside =
      maps[0] && maps[1] && !walks(l) ? ceil(n / l->bn) * l->bn - n : 0;
  double step = step_cycles(l);
  return steps *
         ((l->waves - 1) * step + at_least(step, figure(l->c, HD_FIGURE_EDGE)) +
          outside * hd_fits.product_beyond);
}

// Where a block loads what windows reach of an image, and all of its rows of b,
// and multiplies then: a wave of blocks. Threads wait for a batch of elements
// at a time, behind the first, and in each step for what that reads; what
// blocks that are there together do besides is shared.
static double image_cycles(const hd_load_t *l) {
  const hd_machine_t *machine = l->machine;
  const hd_product_image_t *image = l->form->image;
  double high = (figure(l->c, HD_FIGURE_HIGH) - 1) * (double)image->steps[0] +
                (double)hd_product_image_span(image, 0);
  double wide = (figure(l->c, HD_FIGURE_WIDE) - 1) * (double)image->steps[1] +
                (double)hd_product_image_span(image, 1);
  double elements = high * wide * (double)image->channels;
  double matrix = l->bn * (double)l->form->sizes[HD_AXIS_K];
  double by_thread = ceil(high * wide / l->threads) * (double)image->channels +
                     (l->form->b.piece ? 0 : matrix / l->threads);
  double warps = l->threads / 32 * l->together;
  double come = l->together * l->bytes *
                (elements / machine->l2 + matrix / machine->l2_shared);
  double pass =
      warps / machine->schedulers * by_thread * figure(l->c, HD_FIGURE_PASSING);
  double work = at_least(multiply_cycles(l), issue_cycles(l, warps));
  return machine->l2_crowd_cycles * (ceil(by_thread / (2 * BATCH)) - 1) +
         at_least(come, pass) +
         steps_of(l) * (work + figure(l->c, HD_FIGURE_BARRIER)) +
         (1 - 1 / l->waves) * l->together * hd_fits.product_begins;
}

// More than others' that an element takes on its way out. Kernels that are told
// how wide rows of shared memory should be have it there, from where neighbours
// store 16 bytes each wherever it goes. Of others with maps neighbours store
// neighbours; of what is computed of sums first, or of other kernels' results
// that go elsewhere than where they have them, nothing is known.
static double alone_cycles(const hd_load_t *l) {
  const hd_product_form_t *form = l->form;
  const bool *maps = l->c->template->maps;
  if (l->c->template->takes_leaving)
    return 0;
  if (maps[0] || maps[1] || maps[HD_PRODUCT_IMAGE])
    return form->c.same || form->result.value ? 0 : l->machine->near_store;
  int64_t bits = form->sizes[HD_AXIS_N] * hd_scalar_bits(form->result.type);
  if (!form->c.same || bits % (HD_FORM_WIDE * 8) == 0)
    return 0;
  return l->c->template->takes_aligned ? l->machine->near_store
                                       : l->machine->scattered_store;
}

// Behind the last step, of all waves. What leaves is waited for by threads side
// by side, whichever block they are of; its way out is one for all.
static double end_cycles(const hd_load_t *l) {
  double sums = l->waves * l->together * l->bm * l->bn;
  double cycles = sums / l->split *
                  (figure(l->c, HD_FIGURE_RESULT) * 0.01 + alone_cycles(l) +
                   figure(l->c, HD_FIGURE_LATENCY) / l->threads / l->together);
  if (l->split > 1)
    cycles += (figure(l->c, HD_FIGURE_PASSING) > 0
                   ? l->machine->cluster_cycles
                   : hd_machine_cluster_reduce(l->machine) * l->waves) +
              sums * 4 * ((l->split - 1) / l->split) / l->machine->remote_bytes;
  return cycles;
}

// What is hidden of that: the copy engine walks on over windows while a tile's
// results leave, to the next tile's, as far as the ring goes.
static double hidden_cycles(const hd_load_t *l, double steps, double made,
                            double end) {
  if (!l->c->template->maps[HD_PRODUCT_IMAGE] || !walks(l))
    return 0;
  double idle = at_least(made - steps * multiply_cycles(l), 0);
  double room = figure(l->c, HD_FIGURE_STAGES) * made / steps;
  return (l->waves - 1) * at_most(end / l->waves, at_most(idle, room));
}

// Before the first step, of all waves. What is read to registers is waited for
// by each block; so is the first step of any that has one tile alone, but for
// what those beside it do meanwhile. Threads find first where the windows are
// that they copy.
static double begin_cycles(const hd_load_t *l) {
  double begin = l->machine->begin_cycles + figure(l->c, HD_FIGURE_SETUP) +
                 l->machine->l2_cycles;
  if (hd_load_reads_image(l) || hd_load_computes_narrow(l))
    return begin;
  if (hd_load_is_direct(l))
    return begin * l->waves;
  double pieces = pieces_of(l->a, l->bm * l->bk * l->bytes) / 32;
  double placed = finds_windows(l)
                      ? l->waves * l->together * pieces /
                            l->machine->schedulers * hd_fits.product_placed
                      : 0;
  return walks(l) ? begin : begin * (1 + (l->waves - 1) / l->together) + placed;
}

// Of a step whose bytes go on past k, which the copy engine brings row by row.
static double outside_cycles(const hd_load_t *l) {
  return l->form->sizes[HD_AXIS_K] % (int64_t)l->bk != 0
             ? (l->bm + l->bn / l->share * asked_of_b(l)) *
                   hd_fits.product_outside
             : 0;
}

// Of blocks that walk over tiles whose operands the copy engine brings: what
// leaves of a tile is waited for, but for that of the next steps; or all wait
// for device memory, which is slow at first, and that hides a part of what
// leaves between them.
static double tour_cycles(const hd_load_t *l, double made, double end) {
  const hd_machine_t *machine = l->machine;
  const int64_t *sizes = l->form->sizes;
  double leave = end / l->waves + hd_fits.product_leaves;
  double between = (l->waves - 1) * leave;
  double bytes = (double)sizes[HD_AXIS_BATCH] * (double)sizes[HD_AXIS_K] *
                 (double)(sizes[HD_AXIS_M] + sizes[HD_AXIS_N]) * l->bytes;
  double read = bytes / machine->gbs * 1e-3 * machine->mhz;
  double first = figure(l->c, HD_FIGURE_SETUP) + machine->memory_crowd_cycles +
                 at_most(read / 2, machine->memory_crowd_cycles);
  return machine->begin_cycles +
         at_least(made + l->waves * outside_cycles(l) + between,
                  first + read + between * hd_fits.product_between) +
         leave;
}

// What it costs that blocks bring b once for all of a cluster, less what that
// spares: the L2 cache's time is hidden, but for a little.
static double share_cycles(const hd_load_t *l, double steps) {
  if (l->share <= 1)
    return 0;
  double spared = l->together * l->bn * (1 - 1 / l->share) * asked_of_b(l) *
                  l->form->b.kept / 8 * l->bk / l->machine->l2_shared;
  return (tours(l) ? l->machine->cluster_cycles : l->machine->exchange_cycles) -
         hd_fits.product_shared * spared * l->waves * steps;
}

double hd_product_price(const hd_machine_t *machine, const hd_form_t *asked,
                        const hd_candidate_t *c) {
  const hd_product_form_t *form = asked->of;
  hd_load_t l = {.machine = machine,
                 .form = form,
                 .c = c,
                 .a = hd_product_form_a(form, c->template),
                 .bm = figure(c, HD_FIGURE_TILE_M),
                 .bn = figure(c, HD_FIGURE_TILE_N),
                 .bk = figure(c, HD_FIGURE_TILE_K),
                 .split = figure(c, HD_FIGURE_SPLIT),
                 .share = figure(c, HD_FIGURE_SHARE),
                 .threads = figure(c, HD_FIGURE_THREADS),
                 .bytes = hd_scalar_bits(form->type) / 8.0};
  if (!place_blocks(&l))
    return INFINITY;
  double steps = ceil(steps_of(&l) / l.split);
  double made = hd_load_reads_image(&l) ? l.waves * image_cycles(&l)
                                        : walk_steps(&l, steps);
  double end = end_cycles(&l);
  double cycles = tours(&l) ? tour_cycles(&l, made, end)
                            : begin_cycles(&l) + made + end -
                                  hidden_cycles(&l, steps, made / l.waves, end);
  cycles += share_cycles(&l, steps);
  double work = cycles / machine->mhz;
  double moving = hd_load_memory_us(&l);
  // What waits for device memory hides the rest, but for a little, and but for
  // the ends and beginnings of blocks that are alone.
  double alone = walks(&l) || l.together > 1
                     ? 0
                     : (l.waves - 1) / l.waves * (begin_cycles(&l) + end);
  return machine->launch +
         at_least(work, moving + hd_fits.product_unhidden * work +
                            alone / machine->mhz);
}

double hd_product_turns(const hd_form_t *form, const hd_candidate_t *c) {
  const int64_t *n = form->sizes;
  return (double)n[HD_AXIS_BATCH] *
         ceil((double)n[HD_AXIS_M] / figure(c, HD_FIGURE_TILE_M)) *
         ceil((double)n[HD_AXIS_N] / figure(c, HD_FIGURE_TILE_N)) *
         (1 + ceil((double)n[HD_AXIS_K] / figure(c, HD_FIGURE_TILE_K))) *
         figure(c, HD_FIGURE_THREADS);
}
