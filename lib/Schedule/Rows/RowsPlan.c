// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows: which phase computes what, which threads take what, and what stays in
// their registers.
//
// Where the elements of a row lie side by side in memory, so many threads take
// a row that each has EACH of them or more, in vectors, as long as threads have
// work; short rows share a block. Else neighbouring threads take neighbouring
// rows.
//
// What several phases read stays in registers where a thread has KEEP elements
// at most: inputs, and what costs more to compute again than a few operations.
// Longer rows are read once for each phase.
#include "Schedule/Rows/Rows.h"

enum {
  EACH = 16,        // Elements of a thread; up to
  MOST_EACH = 32,   // where there are so many that
  PLENTY = 1 << 13, // threads have work. On a GPU a thread that waits costs
  GPU_EACH = 8,     // nothing, and what it waits for is the time: so few, and
  GPU_PLENTY = 512, // threads for each multiprocessor.
  KEEP = 32,        // Elements of a thread,
  KEPT_BITS = 2048, // and bits of all that it keeps at a time,
  EARLY_BITS = 768, // of what it asks for before all else.
  WARP = 32,
  THREADS = 128,     // Of a block of several rows.
  MOST = 512,        // Of any block.
  HOST_BLOCKS = 128, // That there are at least; of a GPU one for each
  IDLE_PART = 16,    // multiprocessor, but for a sixteenth of them.
  NEIGHBOURS = 8,    // Rows that lie side by side: 32 bytes.
  VECTOR_BITS = 128,
  MAX_LANES = 8,
  FEW = 64, // Rows of LONG points are better made in parts.
  LONG = 1 << 16,
  // Points that pay for a reduction alone, of elements side by side and others:
  SHORT = 16,
  SERIAL = 64,
};

// --- Phases ---

typedef struct planner {
  hd_rows_t *rows;
  hd_ptr_map_t makers;         // Values to steps.
  unsigned phase;              // In which what is looked at could be computed,
  uint32_t phases;             // in which it is needed.
  const hd_row_step_t *vector; // That it reads,
  bool several;                // and others.
  bool costs;
} planner_t;

static hd_row_step_t *maker_of(const planner_t *p, const hd_term_t *term) {
  hd_row_step_t *const *maker = term->kind == HD_TERM_LOAD
                                    ? hd_ptr_map_get(&p->makers, term->u.value)
                                    : NULL;
  return maker ? *maker : NULL;
}

static bool look_at_phase(void *argument, const hd_term_t *term) {
  planner_t *p = argument;
  const hd_row_step_t *maker = maker_of(p, term);
  unsigned phase = maker ? maker->phase + (maker->kind == HD_ROW_REDUCE) : 0;
  p->phase = phase > p->phase ? phase : p->phase;
  return true;
}

static void note_maker(planner_t *p, hd_row_step_t *step) {
  hd_row_step_t **box = HD_ARENA_NEW(p->rows->arena, hd_row_step_t *);
  *box = step;
  for (uint32_t k = 0; k < step->num_values; k++)
    hd_ptr_map_set(p->rows->arena, &p->makers, step->values[k], box);
}

static void note_makers(planner_t *p) {
  for (size_t i = 0; i < p->rows->steps.size; i++)
    note_maker(p, p->rows->steps.data[i]);
}

static bool find_phases(planner_t *p) {
  hd_rows_t *rows = p->rows;
  for (size_t i = 0; i < rows->steps.size; i++) {
    hd_row_step_t *step = rows->steps.data[i];
    p->phase = 0;
    hd_flat_walk(step->term, look_at_phase, p);
    step->phase = p->phase;
    note_maker(p, step);
    if (step->kind == HD_ROW_REDUCE && step->phase >= rows->phases)
      rows->phases = step->phase + 1;
  }
  return rows->phases <= HD_MAX_PHASES;
}

// --- What is kept ---

static bool look_at_cost(void *argument, const hd_term_t *term) {
  planner_t *p = argument;
  const hd_row_step_t *maker = maker_of(p, term);
  p->costs |= term->kind == HD_TERM_FUNCTION || term->kind == HD_TERM_REDUCE ||
              term->kind == HD_TERM_LOADELSE ||
              (term->kind == HD_TERM_LOAD && !maker);
  if (maker && maker->kind == HD_ROW_VECTOR) {
    p->several |= p->vector && p->vector != maker;
    p->vector = maker;
  }
  return true;
}

static bool mark_need(void *argument, const hd_term_t *term) {
  planner_t *p = argument;
  hd_row_step_t *maker = maker_of(p, term);
  if (maker)
    maker->phases |= p->phases;
  return true;
}

// To compute it again takes little and no more registers.
static bool is_cheap(planner_t *p, const hd_row_step_t *step) {
  p->vector = NULL;
  p->several = p->costs = false;
  hd_flat_walk(step->term, look_at_cost, p);
  return !p->costs && !p->several;
}

static void find_needs(planner_t *p, bool keep) {
  hd_rows_t *rows = p->rows;
  bool is_taken = false;
  for (size_t i = 0; i < rows->steps.size; i++)
    rows->steps.data[i]->phases = 0;
  for (size_t i = rows->steps.size; i-- > 0;) {
    hd_row_step_t *step = rows->steps.data[i];
    if (step->kind == HD_ROW_SCALAR)
      continue;
    if (step->kind == HD_ROW_REDUCE)
      step->phases = UINT32_C(1) << step->phase;
    else if (step->stored)
      step->phases |= UINT32_C(1) << rows->phases;
    uint32_t first = step->phases & (0 - step->phases);
    bool is_worth = step->kind == HD_ROW_VECTOR &&
                    !(rows->is_given && step == rows->main) &&
                    step->phases != first && !is_cheap(p, step);
    step->is_kept = keep && is_worth;
    step->in_place = !keep && is_worth && !is_taken &&
                     step->values[0]->type.scalar == rows->place;
    is_taken |= step->in_place;
    p->phases = step->is_kept || step->in_place ? first : step->phases;
    hd_flat_walk(step->term, mark_need, p);
  }
}

// Whether nobody reads main's elements when another step has their place.
static bool leaves_place(const hd_rows_t *rows) {
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_row_step_t *step = rows->steps.data[i];
    uint32_t first = step->phases & (0 - step->phases);
    if (step->in_place && rows->main->phases >= first << 1)
      return false;
  }
  return true;
}

static bool fits_registers(const hd_rows_t *rows, int64_t each) {
  for (unsigned phase = 0; phase < rows->phases; phase++) {
    int64_t bits = 0;
    uint32_t done = (UINT32_C(2) << phase) - 1;
    for (size_t i = 0; i < rows->steps.size; i++) {
      const hd_row_step_t *step = rows->steps.data[i];
      int64_t own = hd_scalar_bits(step->values[0]->type.scalar);
      if (step->is_kept && (step->phases & done) && (step->phases & ~done))
        bits += each * (own < 32 ? 32 : own);
    }
    if (bits > KEPT_BITS)
      return false;
  }
  return true;
}

// --- Who takes what ---

// How far apart in memory a load's neighbours along an index lie; 0: they are
// the same.
static int64_t stride_along(const hd_term_t *load, const hd_index_t *index) {
  int64_t stride = 1, found = 0;
  for (uint32_t i = load->u.value->rank; i-- > 0;) {
    const hd_term_t *at = load->operands[i];
    if (at->kind == HD_TERM_INDEX && at->u.index == index)
      found = stride;
    stride *= hd_flat_size(load->u.value, i);
  }
  return found;
}

// Those that lie closest together last.
static void sort_axes(hd_row_axes_t *axes, const hd_term_t *load) {
  for (unsigned i = 1; i < axes->count; i++)
    for (unsigned k = i; k > 0; k--) {
      const hd_index_t *a = axes->indices[k - 1], *b = axes->indices[k];
      if (stride_along(load, a) == 0 || stride_along(load, b) == 0 ||
          stride_along(load, a) >= stride_along(load, b))
        break;
      axes->indices[k - 1] = b;
      axes->indices[k] = a;
    }
}

// The largest tensor of which each element is read once.
static const hd_row_step_t *find_main(const hd_rows_t *rows) {
  const hd_row_step_t *found = NULL;
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_term_t *term = rows->steps.data[i]->term;
    bool loads = rows->steps.data[i]->kind == HD_ROW_VECTOR &&
                 term->kind == HD_TERM_LOAD && term->num_operands;
    if (loads && (!found || hd_flat_count(term->u.value) >
                                hd_flat_count(found->term->u.value)))
      found = rows->steps.data[i];
  }
  return found;
}

static int64_t closest(const hd_row_axes_t *axes, const hd_term_t *load) {
  int64_t stride =
      axes->count ? stride_along(load, axes->indices[axes->count - 1]) : 0;
  return stride ? stride : INT64_MAX;
}

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static void choose_lanes(hd_rows_t *rows, const hd_term_t *load) {
  rows->lanes = 1;
  rows->along = true;
  if (!load)
    return;
  if (!rows->ordered)
    sort_axes(&rows->element, load);
  sort_axes(&rows->row, load);
  rows->along = closest(&rows->element, load) <= closest(&rows->row, load);
  if (closest(&rows->element, load) != 1)
    return;
  rows->lanes = VECTOR_BITS / hd_scalar_bits(load->type.scalar);
  rows->lanes = rows->lanes > MAX_LANES ? MAX_LANES : rows->lanes;
  while (hd_flat_range(rows->element.indices[rows->element.count - 1]) %
         rows->lanes)
    rows->lanes /= 2;
}

static int64_t least_blocks(int multiprocessors) {
  return multiprocessors ? multiprocessors - multiprocessors / IDLE_PART
                         : HOST_BLOCKS;
}

static void choose_along(hd_rows_t *rows, int multiprocessors) {
  int64_t count = rows->row.points, points = rows->element.points;
  int64_t each = multiprocessors ? GPU_EACH : EACH;
  int64_t plenty =
      multiprocessors ? (int64_t)multiprocessors * GPU_PLENTY : PLENTY;
  while (each < MOST_EACH && each < count * points / plenty)
    each *= 2;
  int64_t chunks = points / rows->lanes, threads = 1;
  while (threads < MOST && threads * each < points && threads < chunks)
    threads *= 2;
  if (chunks % threads && chunks % (threads / 2) == 0)
    threads /= 2; // So that nobody waits.
  rows->threads = threads;
  rows->rows = threads < THREADS ? THREADS / threads : 1;
  while (rows->rows * threads > WARP && rows->rows > 1 &&
         divide_up(count, rows->rows) < least_blocks(multiprocessors))
    rows->rows /= 2;
}

static void choose_across(hd_rows_t *rows, int multiprocessors) {
  int64_t count = rows->row.points, points = rows->element.points;
  int64_t blocks = least_blocks(multiprocessors);
  rows->rows = WARP;
  while (rows->rows > NEIGHBOURS && divide_up(count, rows->rows) < blocks)
    rows->rows /= 2;
  rows->threads = 1;
  while (rows->threads * rows->rows < MOST && rows->threads * EACH < points &&
         (rows->threads * count < blocks * THREADS ||
          rows->threads * rows->rows < WARP))
    rows->threads *= 2;
  while (rows->threads * rows->rows < WARP)
    rows->rows *= 2;
  if (rows->threads == 1 && count >= THREADS * blocks)
    rows->rows = THREADS;
}

static bool look_for_division(void *argument, const hd_term_t *term) {
  bool *found = argument;
  *found |= term->kind == HD_TERM_OPERATOR &&
            (term->u.op == HD_EXPR_DIV || term->u.op == HD_EXPR_MOD) &&
            !hd_type_is_float(hd_type(term->type.scalar)) &&
            term->operands[1]->kind != HD_TERM_CONST;
  return !*found;
}

// Whether a term may not be computed of just any numbers.
static bool may_fail(const hd_term_t *term) {
  bool divides = false;
  hd_flat_walk(term, look_for_division, &divides);
  return divides || hd_flat_is_risky(term);
}

// Whether numbers for each row are all that is made of the last reductions, and
// nobody minds what they are elsewhere.
static bool ends_in_numbers(const hd_rows_t *rows) {
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_row_step_t *step = rows->steps.data[i];
    if ((step->kind == HD_ROW_VECTOR && step->stored) ||
        (step->kind == HD_ROW_SCALAR && may_fail(step->term)))
      return false;
  }
  return true;
}

static bool is_vector_value(const hd_rows_t *rows,
                            const hd_task_value_t *value) {
  for (size_t i = 0; i < rows->steps.size; i++)
    if (rows->steps.data[i]->kind == HD_ROW_VECTOR &&
        rows->steps.data[i]->values[0] == value)
      return true;
  return false;
}

typedef struct number {
  const hd_rows_t *rows;
  bool is_row;
} number_t;

static bool look_at_number(void *argument, const hd_term_t *term) {
  number_t *n = argument;
  if (hd_flat_is_load(term))
    n->is_row &= !is_vector_value(n->rows, term->u.value);
  for (unsigned i = 0; i < n->rows->element.count; i++)
    n->is_row &= term->kind != HD_TERM_INDEX ||
                 term->u.index != n->rows->element.indices[i];
  return n->is_row;
}

bool hd_rows_is_number(const hd_rows_t *rows, const hd_term_t *term) {
  number_t n = {rows, true};
  hd_flat_walk(term, look_at_number, &n);
  return n.is_row;
}

bool hd_rows_order(hd_rows_t *rows) {
  rows->phases = 0;
  if (!find_phases(&(planner_t){.rows = rows}))
    return false;
  rows->main = find_main(rows);
  rows->first_alone = ends_in_numbers(rows);
  choose_lanes(rows, rows->main ? rows->main->term : NULL);
  if (!rows->along)
    rows->lanes = 1;
  return true;
}

void hd_rows_keep(hd_rows_t *rows, int64_t each) {
  planner_t p = {.rows = rows};
  note_makers(&p);
  find_needs(&p, each <= KEEP);
  if (!fits_registers(rows, each))
    find_needs(&p, false);
  if (!leaves_place(rows)) {
    rows->place = HD_VOID;
    find_needs(&p, false);
  }
}

// It reads one element of a row of an input, which all rows have in common:
// not what a step before it gives, where there is one row alone.
static bool is_common(const hd_rows_t *rows, const hd_row_step_t *step) {
  if (step->kind != HD_ROW_VECTOR || step->term->kind != HD_TERM_LOAD ||
      !step->term->num_operands || step == rows->main ||
      is_vector_value(rows, step->term->u.value))
    return false;
  for (unsigned i = 0; i < rows->row.count; i++)
    if (hd_flat_uses(step->term, rows->row.indices[i]))
      return false;
  return true;
}

void hd_rows_ask_early(hd_rows_t *rows, int64_t each) {
  int64_t bits = 0;
  rows->has_early = false;
  for (size_t i = 0; i < rows->steps.size; i++) {
    hd_row_step_t *step = rows->steps.data[i];
    int64_t own = hd_scalar_bits(step->values[0]->type.scalar);
    step->is_early = is_common(rows, step) && bits + own * each <= EARLY_BITS;
    if (!step->is_early)
      continue;
    bits += own * each;
    step->is_kept = rows->has_early = true;
  }
}

bool hd_rows_plan(hd_rows_t *rows, int multiprocessors) {
  if (rows->row.points < FEW && rows->element.points >= LONG)
    return false;
  if (rows->along)
    choose_along(rows, multiprocessors);
  else
    choose_across(rows, multiprocessors);
  rows->turns = divide_up(rows->element.points, rows->lanes * rows->threads);
  hd_rows_keep(rows, rows->turns * rows->lanes);
  return true;
}

typedef struct payer {
  const hd_rows_t *rows;
  bool plain;
} payer_t;

static bool look_at_access(void *argument, const hd_term_t *term) {
  payer_t *p = argument;
  if (hd_flat_is_load(term))
    for (unsigned i = 0; i < p->rows->element.count; i++)
      p->plain &= !hd_flat_uses(term, p->rows->element.indices[i]);
  return p->plain;
}

bool hd_rows_pay(const hd_rows_t *rows) {
  payer_t p = {rows, true};
  for (size_t i = 0; i < rows->steps.size; i++)
    if (rows->steps.data[i]->kind == HD_ROW_REDUCE)
      hd_flat_walk(rows->steps.data[i]->term, look_at_access, &p);
  return p.plain && rows->main &&
         rows->element.points >= (rows->along ? SHORT : SERIAL);
}
