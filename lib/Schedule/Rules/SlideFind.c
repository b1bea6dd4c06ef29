// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which neighbours one thread makes of a function of a reduction.
#include "Schedule/Rules/Slide.h"
#include "Schedule/Terms/Affine.h"

enum {
  VECTOR_BYTES = 16,
  LINE_BYTES = 128,
  MAX_LANES = 8,
  MAX_TILE = 8,
  MAX_WINDOW = 16,       // Elements of a window that a thread has at once.
  MIN_THREADS = 1 << 14, // Fewer leave a GPU waiting: then they take less,
  MIN_TILED = 1 << 16,   // and with tiles, which wait for more, these.
  MOST_REGISTERS = 64,   // Of what is at hand.
};

// --- What the lanes are ---

// How many neighbours along the last axis lie side by side in all that is read
// and stored.
static bool look_at_lanes(void *argument, const hd_term_t *term) {
  hd_slide_t *s = argument;
  if (!hd_flat_is_load(term))
    return s->lanes > 1;
  uint32_t rank = term->u.value->rank;
  bool runs = false;
  for (uint32_t i = 0; i < rank; i++) {
    const hd_term_t *at = term->operands[i];
    bool alone = at->kind == HD_TERM_INDEX && at->u.index == s->last;
    if (hd_flat_uses(at, s->last) && !(alone && i + 1 == rank))
      s->lanes = 1;
    runs |= alone;
  }
  unsigned bits = hd_scalar_bits(term->u.value->type.scalar);
  while (runs && s->lanes > 1 &&
         (bits < 8 || hd_flat_size(term->u.value, rank - 1) % s->lanes))
    s->lanes /= 2;
  return s->lanes > 1;
}

// 16 bytes of what is reduced, in registers. Wide numbers beside it, such as
// places, have several accesses.
static void find_lanes(hd_slide_t *s, int64_t elements) {
  const hd_term_t *reduced = s->reduced.reduction->operands[0];
  s->last = s->definition->indices[s->definition->num_indices - 1];
  s->lanes = VECTOR_BYTES * 8 / hd_scalar_bits(reduced->type.scalar);
  s->lanes = s->lanes < MAX_LANES ? s->lanes : MAX_LANES;
  while (s->lanes > 1 && (hd_flat_range(s->last) % s->lanes ||
                          elements / s->lanes < MIN_THREADS))
    s->lanes /= 2;
  hd_flat_walk(s->definition->term, look_at_lanes, s);
}

// --- What the tile is ---

// The factors of the two indices in a place; false where they are used in
// another way.
static bool factors_of(hd_arena_t *arena, const hd_slide_t *s,
                       const hd_term_t *place, int64_t *step,
                       int64_t *dilation) {
  hd_linear_t sum;
  if (!hd_affine_of(arena, place, &sum))
    return false;
  *step = *dilation = 0;
  for (unsigned i = 0; i < sum.size; i++) {
    const hd_term_t *term = sum.terms[i].term;
    bool is_index = term->kind == HD_TERM_INDEX;
    if (is_index && term->u.index == s->at)
      *step = sum.terms[i].factor;
    else if (is_index && term->u.index == s->in)
      *dilation = sum.terms[i].factor;
    else if (hd_flat_uses(term, s->at) || hd_flat_uses(term, s->in))
      return false;
  }
  return true;
}

// Whether a term knows the two indices by step * at + dilation * in alone,
// which the first place says.
static bool moves_along(hd_arena_t *arena, hd_slide_t *s,
                        const hd_term_t *term) {
  bool is_load = hd_flat_is_load(term);
  if (term->kind == HD_TERM_INDEX)
    return term->u.index != s->at && term->u.index != s->in;
  for (unsigned i = 0; i < term->num_operands; i++) {
    const hd_term_t *operand = term->operands[i];
    int64_t step, dilation;
    if (!is_load || i >= term->u.value->rank) {
      if (!moves_along(arena, s, operand))
        return false;
      continue;
    }
    if (!factors_of(arena, s, operand, &step, &dilation))
      return false;
    if (step == 0 && dilation == 0)
      continue;
    if (step <= 0 || dilation <= 0 ||
        (s->step && (step != s->step || dilation != s->dilation)))
      return false;
    s->step = step;
    s->dilation = dilation;
  }
  return true;
}

static bool is_along(hd_arena_t *arena, hd_slide_t *s, const hd_index_t *at) {
  const hd_term_t *r = s->reduced.reduction;
  s->at = at;
  s->step = s->dilation = 0;
  for (unsigned i = 0; i < r->num_operands; i++)
    if (!moves_along(arena, s, r->operands[i]))
      return false;
  return s->step > 0;
}

int64_t hd_slide_width(const hd_slide_t *s, int64_t tile) {
  return (tile - 1) * s->step + (hd_flat_range(s->in) - 1) * s->dilation + 1;
}

bool hd_slide_reader(const hd_slide_t *s, int64_t tile, int64_t place,
                     int64_t *t, int64_t *q) {
  for (*t = 0; *t < tile; ++*t) {
    int64_t rest = place - *t * s->step;
    *q = rest / s->dilation;
    if (rest >= 0 && rest % s->dilation == 0 && *q < hd_flat_range(s->in))
      return true;
  }
  return false;
}

int64_t hd_slide_count(const hd_slide_t *s, int64_t tile) {
  int64_t count = 0, t, q;
  for (int64_t place = 0; place < hd_slide_width(s, tile); place++)
    count += hd_slide_reader(s, tile, place, &t, &q);
  return count;
}

int64_t hd_slide_bits(const hd_slide_t *s, int64_t tile) {
  const hd_term_t *r = s->reduced.reduction;
  int64_t bits = 0;
  for (unsigned i = 0; i < r->num_operands; i++)
    bits += hd_scalar_bits(r->operands[i]->type.scalar) *
            (hd_slide_count(s, tile) + tile) * s->lanes;
  return bits;
}

// The tile for which the fewest lines of the cache are touched by what all
// threads together read: where neighbouring threads run along the tile, tiles
// leave gaps between what they read at a time.
static void choose_tile(hd_slide_t *s, int64_t elements) {
  int64_t size = hd_flat_range(s->at), outer = elements / size / s->lanes;
  int64_t run = (s->at == s->last ? 1 : hd_flat_range(s->last)) *
                hd_scalar_bits(s->definition->targets[0]->type.scalar) / 8;
  int64_t most = run < LINE_BYTES ? LINE_BYTES / run : 1;
  int64_t least = INT64_MAX;
  for (int64_t tile = 1; tile <= MAX_TILE; tile *= 2) {
    int64_t threads = outer * ((size + tile - 1) / tile);
    int64_t apart = tile * s->step < most ? tile * s->step : most;
    int64_t lines = threads * hd_slide_count(s, tile) * apart;
    bool fits = tile == 1 || (tile <= size && threads >= MIN_TILED &&
                              hd_slide_bits(s, tile) <= MOST_REGISTERS * 32);
    if (fits && lines < least) {
      least = lines;
      s->tile = tile;
    }
  }
}

// An index of the result that moves with the innermost of the reduction, where
// windows overlap along it.
static void find_tile(hd_arena_t *arena, hd_slide_t *s, int64_t elements) {
  const hd_reduction_t *r = s->reduced.reduction->u.reduction;
  s->tile = 1;
  s->in = r->indices[r->num_indices - 1];
  bool found = false;
  for (uint32_t i = s->definition->num_indices; i-- > 0 && !found;)
    found = hd_flat_range(s->definition->indices[i]) > 1 &&
            (s->lanes == 1 || s->definition->indices[i] != s->last) &&
            is_along(arena, s, s->definition->indices[i]);
  if (found && hd_flat_range(s->in) <= MAX_WINDOW) {
    choose_tile(s, elements);
    return;
  }
  s->at = NULL;
  s->step = 0;
  s->dilation = 1;
}

bool hd_slide_find(hd_arena_t *arena, const hd_definition_t *d, hd_slide_t *s) {
  s->definition = d;
  if (d->num_indices == 0 || !hd_reduced_find(arena, d, &s->reduced) ||
      s->reduced.reduction->u.reduction->num_indices == 0 ||
      hd_flat_has(d->term, HD_TERM_SCAN))
    return false;
  const hd_term_t *r = s->reduced.reduction;
  for (unsigned i = 0; i < r->num_operands; i++)
    if (hd_flat_has(r->operands[i], HD_TERM_REDUCE) ||
        hd_scalar_bits(r->operands[i]->type.scalar) < 8)
      return false;
  int64_t elements = hd_flat_points(d->indices, d->num_indices);
  if (elements == 0 || elements > INT32_MAX ||
      hd_flat_points(r->u.reduction->indices, r->u.reduction->num_indices) == 0)
    return false;
  for (uint32_t i = 0; i < d->num_targets; i++)
    if (hd_scalar_bits(d->targets[i]->type.scalar) < 8)
      return false;
  find_lanes(s, elements);
  find_tile(arena, s, elements);
  return s->lanes * s->tile > 1;
}
