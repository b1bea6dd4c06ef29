// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What rows are expected to take by a candidate. Bytes come from device memory,
// or from the L2 cache where everything fits there, as fast as those that are
// under way allow; elements take instructions in each phase; between phases the
// threads of a row meet. Blocks that share a multiprocessor hide each other's
// waiting.
#include "Schedule/Rows/Rows.h"
#include "Schedule/Template/Fits.h"

#include <math.h>

// Instructions are those that the library's functions are made of, and others
// that the statements of rows are (RowsKernel.c).
enum {
  STEP_INSTRUCTIONS = 1,      // Of an element: for each step of a term,
  DIVIDE_INSTRUCTIONS = 12,   // for a division of floats,
  FUNCTION_INSTRUCTIONS = 24, // for a function; where they may be coarse,
  COARSE_INSTRUCTIONS = 4,
  ACCESS_INSTRUCTIONS = 8,  // for each access of all lanes.
  THREAD_INSTRUCTIONS = 40, // Of a thread, beside those;
  LANE_INSTRUCTIONS = 2,    // each time that lanes meet,
  WARPS_INSTRUCTIONS = 14,  // that warps do by shared memory, and
  WARP_INSTRUCTIONS = 2,    // for each of them.
  WARP = 32,
  OWN_REGISTERS = 36, // Of a thread, beside what it keeps.
};

static double at_most(double a, double b) { return a < b ? a : b; }
static double at_least(double a, double b) { return a > b ? a : b; }

// A number for each thread counts, and each element: that is what a host does
// one after the other.
static double price_on_host(const hd_rows_t *rows, const hd_candidate_t *c) {
  double blocks =
      ceil((double)rows->row.points / (double)c->figures[HD_FIGURE_TILE_M]) *
      (double)c->figures[HD_FIGURE_SPLIT];
  double threads = blocks * (double)c->figures[HD_FIGURE_THREADS];
  double elements = (double)rows->row.points * (double)rows->element.points;
  return threads * 0.1 * (rows->phases + 1) +
         elements * 0.01 * (double)c->figures[HD_FIGURE_PASSES];
}

typedef struct share {
  double blocks;
  double rows, threads, split, elements; // Of a block; elements of each row,
  double each;                           // and those of a thread.
  double together;                       // On a multiprocessor at a time,
  double turns;                          // so often.
  bool meets;                            // Blocks of a cluster do.
} share_t;

// Blocks anywhere have a row, and each reduction ends a launch.
static bool is_in_launches(const hd_candidate_t *c) {
  return c->figures[HD_FIGURE_LAUNCHES] > 0;
}

static double reach_of(const hd_machine_t *machine, const hd_candidate_t *c) {
  return hd_machine_reach(machine,
                          is_in_launches(c) ? 1 : c->figures[HD_FIGURE_SPLIT]);
}

static bool place_blocks(const hd_machine_t *machine, const hd_rows_t *rows,
                         const hd_candidate_t *c, share_t *s) {
  s->rows = (double)c->figures[HD_FIGURE_TILE_M];
  s->threads = (double)c->figures[HD_FIGURE_THREADS];
  s->split = (double)c->figures[HD_FIGURE_SPLIT];
  if (s->rows < 1 || s->threads < 1 || s->split < 1)
    return false;
  s->meets = s->split > 1 && !is_in_launches(c);
  s->elements = ceil((double)rows->element.points / s->split);
  double blocks = ceil((double)rows->row.points / s->rows) * s->split;
  s->blocks = blocks;
  // In whole vectors.
  double chunk = (double)rows->lanes * s->threads / s->rows;
  s->each = ceil(s->elements / chunk) * (double)rows->lanes;
  double shared = (double)c->figures[HD_FIGURE_SHARED];
  bool keeps = c->figures[HD_FIGURE_PASSES] == 1 && shared <= 0;
  double registers = (double)c->figures[HD_FIGURE_REGISTERS];
  if (registers <= 0)
    registers = OWN_REGISTERS + (keeps ? s->each * (double)rows->kept : 0);
  if (registers > 255)
    return false;
  double most =
      hd_machine_residents(machine, s->threads, registers * s->threads, shared);
  double reach = reach_of(machine, c);
  s->together = at_most(most, ceil(blocks / reach));
  // A block begins when another ends: of the last turn, a part is idle.
  double turns = most < 1 ? 0 : blocks / (reach * s->together);
  s->turns = turns <= 1 ? 1 : turns + (ceil(turns) - turns) * hd_fits.rows_idle;
  return most >= 1;
}

// Cycles in which the threads of a row meet, once.
static double meeting_cycles(const hd_machine_t *machine, const share_t *s) {
  double workers = s->threads / s->rows, warps = ceil(workers / WARP);
  double cycles = ceil(log2(at_most(workers, WARP))) * machine->lane_cycles;
  if (warps > 1)
    cycles += machine->meet_cycles + warps * machine->meet_warp_cycles;
  return cycles +
         (s->meets ? hd_fits.rows_meetings * machine->exchange_cycles : 0);
}

// Instructions of a thread beside those of its elements.
static double thread_instructions(const hd_rows_t *rows, const share_t *s) {
  double workers = s->threads / s->rows, warps = ceil(workers / WARP);
  double meet = ceil(log2(at_most(workers, WARP))) * LANE_INSTRUCTIONS;
  if (warps > 1)
    meet += WARPS_INSTRUCTIONS + warps * WARP_INSTRUCTIONS;
  return THREAD_INSTRUCTIONS + rows->phases * meet;
}

static double price_of_launch(const hd_machine_t *machine,
                              const hd_form_t *form, const hd_rows_t *rows,
                              const hd_candidate_t *c) {
  share_t s;
  if (!place_blocks(machine, rows, c, &s))
    return INFINITY;
  double phases = rows->phases + 1;
  double passes = c->figures[HD_FIGURE_PASSES]
                      ? (double)c->figures[HD_FIGURE_PASSES]
                      : phases;
  double all = rows->bytes + rows->main_bytes * (passes - 1);
  bool is_far = rows->bytes > (double)hd_machine_kept(machine);
  double reach = reach_of(machine, c);
  double wide =
      is_far ? machine->gbs * 1e3 / machine->mhz / reach : machine->l2;
  double latency = is_far ? machine->memory_cycles : machine->l2_cycles;
  double bytes = all / s.blocks * s.together; // Of a turn.
  double asked = s.together * s.rows *
                 at_most((double)c->figures[HD_FIGURE_TILE_N], s.elements) *
                 hd_scalar_bits(form->type) / 8.0;
  double threads = s.together * s.threads;
  double work = threads *
                (s.each * (rows->instructions +
                           passes / (double)rows->lanes * ACCESS_INSTRUCTIONS) +
                 thread_instructions(rows, &s)) /
                (machine->schedulers * WARP);
  double moving = at_least(bytes / wide, bytes / asked * latency);
  double waiting = latency * passes +
                   rows->phases * meeting_cycles(machine, &s) +
                   s.each * phases * machine->step_cycles;
  double begins = s.together * machine->block_cycles;
  // What several blocks do hides behind the longest, but for a little. A block
  // alone does one after the other, and so do a few that bring all of their
  // rows to shared memory first, for they begin together.
  double longest = at_least(at_least(moving, work), at_least(begins, waiting));
  double others = moving + work + begins + waiting - longest;
  bool is_staged = c->figures[HD_FIGURE_SHARED] > 0 || s.together <= 1;
  double turn = longest + others * (is_staged ? at_least(hd_fits.rows_unhidden,
                                                         1 / s.together)
                                              : hd_fits.rows_unhidden);
  return machine->launch +
         (machine->begin_cycles + waiting + s.turns * turn) / machine->mhz;
}

static double price(const hd_machine_t *machine, const hd_form_t *form,
                    const hd_candidate_t *c) {
  const hd_rows_t *rows = form->of;
  if (rows->is_simulated)
    return price_on_host(rows, c);
  if (!is_in_launches(c))
    return price_of_launch(machine, form, rows, c);
  // Each puts together what the one before left, and has a phase of its own.
  double launches = rows->phases + 1;
  hd_rows_t each = *rows;
  each.phases = 1;
  each.bytes = (rows->bytes + rows->main_bytes * rows->phases) / launches;
  each.instructions = rows->instructions / launches;
  return launches * price_of_launch(machine, form, &each, c);
}

static double turns(const hd_form_t *form, const hd_candidate_t *c) {
  double rows = (double)form->sizes[0] / (double)c->figures[HD_FIGURE_TILE_M];
  return 2 * ceil(rows) * (double)c->figures[HD_FIGURE_SPLIT] *
         (double)c->figures[HD_FIGURE_THREADS];
}

// --- The form ---

static double bytes_of(const hd_task_value_t *value) {
  return (double)hd_flat_count(value) * hd_scalar_bits(value->type.scalar) / 8;
}

typedef struct counter {
  const hd_rows_t *rows;
  double instructions;
} counter_t;

static bool count_term(void *argument, const hd_term_t *term) {
  counter_t *c = argument;
  if (hd_rows_is_number(c->rows, term))
    return false;
  bool divides = term->kind == HD_TERM_OPERATOR && term->u.op == HD_EXPR_DIV;
  if (term->kind == HD_TERM_FUNCTION)
    c->instructions +=
        c->rows->is_coarse ? COARSE_INSTRUCTIONS : FUNCTION_INSTRUCTIONS;
  else if (divides)
    c->instructions += DIVIDE_INSTRUCTIONS;
  else if (term->kind != HD_TERM_LOAD && term->kind != HD_TERM_INDEX)
    c->instructions += STEP_INSTRUCTIONS;
  return true;
}

// Of an element, each step once.
static double count_instructions(const hd_rows_t *rows) {
  counter_t c = {rows, 0};
  for (size_t i = 0; i < rows->steps.size; i++)
    if (rows->steps.data[i]->kind != HD_ROW_SCALAR)
      hd_flat_walk(rows->steps.data[i]->term, count_term, &c);
  return c.instructions;
}

// Bytes of all that is read by elements, or stored.
static void count_bytes(hd_rows_t *rows) {
  rows->bytes = 0;
  rows->kept = 0;
  rows->main_bytes = bytes_of(rows->main->term->u.value);
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_row_step_t *step = rows->steps.data[i];
    bool reads = step->kind == HD_ROW_VECTOR &&
                 step->term->kind == HD_TERM_LOAD && step->term->num_operands;
    if (reads)
      rows->bytes += bytes_of(step->term->u.value);
    for (uint32_t k = 0; k < step->num_values; k++)
      if (step->stored >> k & 1)
        rows->bytes += bytes_of(step->values[k]);
    if (step->is_kept)
      rows->kept += hd_scalar_bits(step->values[0]->type.scalar) / 32.0;
  }
}

const char *hd_rows_ask(hd_arena_t *arena, hd_rows_t *rows, bool simulated,
                        hd_form_t *form) {
  if (!rows->main)
    return "it reads no tensor element by element";
  if (rows->ordered)
    return "it combines what does not commute";
  rows->is_simulated = simulated;
  hd_rows_keep(rows, 1);
  count_bytes(rows);
  rows->instructions = count_instructions(rows);
  hd_scalar_t type = rows->main->values[0]->type.scalar;
  *form = (hd_form_t){
      .kind = HD_FORM_KIND_ROWS,
      .sizes = {rows->row.points, rows->element.points},
      .type = type,
      .names = {[HD_TEMPLATE_LANES] = rows->along ? rows->lanes : 0},
      .values = hd_arena_printf(
          arena, "T = %s, N = %lld, LANES = %lld", hd_scalar_name(type),
          (long long)rows->element.points, (long long)rows->lanes),
      .price = price,
      .turns = turns,
      .of = rows};
  return NULL;
}
