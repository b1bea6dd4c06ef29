// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which places of an axis are real. [b, n] of extents as one axis of b * n has
// two digits, for there are holes behind each n; [n, 64] has one, of the extent
// n * 64. A reshape takes digits from the right, and cuts them where it has to.

#include "Fusion/Bucket/BucketState.h"

#include <string.h>

int hd_bucket_slot(hd_bucketer_t *b, const int64_t *values) {
  size_t bytes = sizeof(*values) * b->count;
  for (size_t i = 0; i < b->slots.size; i++)
    if (memcmp(b->slots.data[i].values, values, bytes) == 0)
      return (int)i;
  hd_slot_values_t made = {{0}};
  memcpy(made.values, values, bytes);
  hd_vec_push(b->arena, &b->slots, made);
  return (int)b->slots.size - 1;
}

static const int64_t *values_of(const hd_bucketer_t *b, int slot) {
  return b->slots.data[slot].values;
}

hd_digits_t hd_digits_of(hd_extent_t size) {
  return (hd_digits_t){.count = 1, .digits = {size}};
}

static bool extents_equal(hd_extent_t a, hd_extent_t b) {
  return a.bound == b.bound && a.slot == b.slot;
}

bool hd_digits_equal(const hd_digits_t *a, const hd_digits_t *b) {
  bool equal = a->count == b->count;
  for (unsigned i = 0; equal && i < a->count; i++)
    equal = extents_equal(a->digits[i], b->digits[i]);
  return equal;
}

static void add_rule(hd_bucketer_t *b, hd_slot_rule_t rule) {
  hd_vec_push(b->arena, &b->record->rules, rule);
}

// --- Arithmetic ---

static bool times(hd_bucketer_t *b, hd_extent_t *extent, int64_t factor) {
  int64_t values[HD_BUCKET_GRAPHS];
  if (__builtin_mul_overflow(extent->bound, factor, &extent->bound))
    return false;
  if (extent->slot < 0)
    return true;
  for (size_t i = 0; i < b->count; i++)
    values[i] = values_of(b, extent->slot)[i] * factor;
  int of = extent->slot;
  extent->slot = hd_bucket_slot(b, values);
  add_rule(b, (hd_slot_rule_t){.kind = HD_SLOT_TIMES,
                               .slot = extent->slot,
                               .of = of,
                               .factor = factor});
  return true;
}

// Without a rest, at the bound and in all graphs.
static bool over(hd_bucketer_t *b, hd_extent_t *extent, int64_t factor) {
  int64_t values[HD_BUCKET_GRAPHS];
  bool divides = extent->bound % factor == 0;
  for (size_t i = 0; extent->slot >= 0 && i < b->count; i++) {
    divides &= values_of(b, extent->slot)[i] % factor == 0;
    values[i] = values_of(b, extent->slot)[i] / factor;
  }
  if (!divides)
    return false;
  extent->bound /= factor;
  if (extent->slot < 0)
    return true;
  int of = extent->slot;
  extent->slot = hd_bucket_slot(b, values);
  add_rule(b, (hd_slot_rule_t){.kind = HD_SLOT_OVER,
                               .slot = extent->slot,
                               .of = of,
                               .factor = factor});
  return true;
}

// Behind the others. What is the same at all sizes belongs to the one before.
static bool append(hd_bucketer_t *b, hd_digits_t *axis, hd_extent_t digit) {
  if (digit.bound == 1 && digit.slot < 0)
    return true;
  if (axis->count && digit.slot < 0)
    return times(b, &axis->digits[axis->count - 1], digit.bound);
  if (axis->count == HD_BUCKET_DIGITS)
    return false;
  axis->digits[axis->count++] = digit;
  return true;
}

// Whether an axis' size is the product of its digits' extents.
static bool check_size(hd_bucketer_t *b, hd_extent_t size,
                       const hd_digits_t *axis) {
  for (size_t i = 0; i < b->count; i++) {
    int64_t product = 1;
    for (unsigned k = 0; k < axis->count; k++) {
      hd_extent_t d = axis->digits[k];
      product *= d.slot < 0 ? d.bound : values_of(b, d.slot)[i];
    }
    if (product != (size.slot < 0 ? size.bound : values_of(b, size.slot)[i]))
      return false;
  }
  add_rule(b, (hd_slot_rule_t){
                  .kind = HD_SLOT_PRODUCT, .size = size, .axis = *axis});
  return true;
}

// --- Reshapes ---

typedef struct taker {
  hd_bucketer_t *b;
  const hd_bucket_tensor_t *from;
  unsigned axis, digit; // Those before it are left.
  hd_extent_t now;      // What is left of the one at hand.
} taker_t;

static bool next(taker_t *t) {
  while (t->now.bound == 1 && t->now.slot < 0) {
    while (t->digit == 0) {
      if (t->axis == 0)
        return false;
      t->digit = t->from->axes[--t->axis].count;
    }
    t->now = t->from->axes[t->axis].digits[--t->digit];
  }
  return true;
}

// The digits of an axis of so many places, from the right; the taken ones are
// put in their order. Where there are none at all, nothing says which were
// whose.
static bool take_axis(taker_t *t, int64_t want, hd_digits_t *axis) {
  hd_extent_t taken[64];
  unsigned count = 0;
  while (want > 1) {
    if (count == 64 || !next(t) || t->now.bound == 0)
      return false;
    if (want % t->now.bound == 0) {
      want /= t->now.bound;
      taken[count++] = t->now;
      t->now = (hd_extent_t){1, -1};
    } else if (over(t->b, &t->now, want)) {
      taken[count++] = (hd_extent_t){want, -1};
      want = 1;
    } else {
      return false;
    }
  }
  axis->count = 0;
  while (count)
    if (!append(t->b, axis, taken[--count]))
      return false;
  if (axis->count == 0)
    *axis = hd_digits_of((hd_extent_t){1, -1});
  return true;
}

// What is past an extent stays what it is where the axis stays one.
static void keep_past(const hd_bucket_tensor_t *from, hd_bucket_tensor_t *to) {
  for (unsigned i = 0; i < to->rank; i++) {
    unsigned same = 0, known = 0;
    for (unsigned k = 0; k < from->rank; k++) {
      if (!hd_digits_equal(&from->axes[k], &to->axes[i]))
        continue;
      same++;
      known += from->known[k] && (!known || to->past[i] == from->past[k]);
      to->past[i] = from->past[k];
    }
    to->known[i] = known && known == same;
  }
}

bool hd_bucket_reshape(hd_bucketer_t *b, const hd_node_t *node) {
  hd_bucket_tensor_t *to = hd_bucket_tensor(b, node->outputs[0]);
  const hd_bucket_tensor_t *from = hd_bucket_tensor(b, node->inputs[0]);
  taker_t t = {.b = b, .from = from, .axis = from->rank, .now = {1, -1}};
  size_t rules = b->record->rules.size;
  bool fits = true;
  for (unsigned i = to->rank; fits && i-- > 0;)
    fits = take_axis(&t, to->sizes[i].bound, &to->axes[i]) &&
           check_size(b, to->sizes[i], &to->axes[i]);
  if (!fits) // It has not to be so.
    b->record->rules.size = rules;
  else
    keep_past(from, to);
  return fits;
}

// --- Other sizes ---

static bool set_slot(int64_t *slots, bool *known, int slot, int64_t value) {
  if (known[slot])
    return slots[slot] == value;
  slots[slot] = value;
  known[slot] = true;
  return true;
}

static bool settle_rule(const hd_slot_rule_t *rule, int64_t *slots,
                        bool *known) {
  int64_t value = 1;
  if (rule->kind == HD_SLOT_PRODUCT) {
    for (unsigned k = 0; k < rule->axis.count; k++) {
      hd_extent_t d = rule->axis.digits[k];
      if ((d.slot >= 0 && !known[d.slot]) ||
          __builtin_mul_overflow(value, d.slot < 0 ? d.bound : slots[d.slot],
                                 &value))
        return false;
    }
    return rule->size.slot < 0 ? value == rule->size.bound
                               : set_slot(slots, known, rule->size.slot, value);
  }
  if (!known[rule->of])
    return false;
  if (rule->kind == HD_SLOT_TIMES)
    return !__builtin_mul_overflow(slots[rule->of], rule->factor, &value) &&
           set_slot(slots, known, rule->slot, value);
  return slots[rule->of] % rule->factor == 0 &&
         set_slot(slots, known, rule->slot, slots[rule->of] / rule->factor);
}

bool hd_bucket_settle(const hd_bucket_record_t *record, int64_t *slots,
                      bool *known) {
  for (size_t i = 0; i < record->rules.size; i++)
    if (!settle_rule(&record->rules.data[i], slots, known))
      return false;
  return true;
}
