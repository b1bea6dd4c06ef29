// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Linear.h"

#include "Support/Gcd.h"

// Factors beyond this are left alone, so that ranges never overflow 128 bits.
static const int64_t max_factor = INT64_C(1) << 40;

bool hd_linear_is_zero(const hd_linear_t *sum) {
  return sum->size == 0 && sum->constant == 0;
}

// --- Sums ---

static bool fits(int64_t factor) {
  return factor >= -max_factor && factor <= max_factor;
}

// Sets *result to a + b * c. False where numbers with a sign would wrap.
static bool multiply_add(hd_type_t type, int64_t a, int64_t b, int64_t c,
                         int64_t *result) {
  int64_t product, sum;
  hd_wide_t exact;
  if (__builtin_mul_overflow(b, c, &product) ||
      __builtin_add_overflow(a, product, &sum))
    exact = (hd_wide_t)a + (hd_wide_t)b * c;
  else
    exact = sum;
  *result = hd_linear_wrap(type, (int64_t)exact);
  return exact == *result || hd_type_is_unsigned(type);
}

bool hd_linear_add_term(hd_linear_t *sum, const void *atom, int64_t factor) {
  for (unsigned i = 0; i < sum->size; ++i) {
    hd_linear_term_t *term = &sum->terms[i];
    if (term->atom != atom && !sum->atoms->equal(term->atom, atom))
      continue;
    if (!multiply_add(sum->type, term->factor, factor, 1, &factor) ||
        !fits(factor))
      return false;
    term->factor = factor;
    if (factor == 0) {
      for (unsigned j = i + 1; j < sum->size; ++j)
        sum->terms[j - 1] = sum->terms[j];
      --sum->size;
    }
    return true;
  }
  if (!multiply_add(sum->type, 0, factor, 1, &factor))
    return false;
  if (factor == 0)
    return true;
  if (sum->size == HD_LINEAR_MAX_TERMS || !fits(factor))
    return false;
  sum->terms[sum->size++] = (hd_linear_term_t){.atom = atom, .factor = factor};
  return true;
}

bool hd_linear_add(hd_linear_t *sum, const hd_linear_t *other, int64_t factor) {
  if (!multiply_add(sum->type, sum->constant, other->constant, factor,
                    &sum->constant))
    return false;
  for (unsigned i = 0; i < other->size; ++i) {
    int64_t product;
    if (!multiply_add(sum->type, 0, other->terms[i].factor, factor, &product) ||
        !hd_linear_add_term(sum, other->terms[i].atom, product))
      return false;
  }
  return true;
}

bool hd_linear_equal(const hd_linear_t *a, const hd_linear_t *b) {
  bool equal = a->size == b->size && a->constant == b->constant;
  for (unsigned i = 0; equal && i < a->size; ++i)
    equal = a->terms[i].factor == b->terms[i].factor &&
            a->atoms->equal(a->terms[i].atom, b->terms[i].atom);
  return equal;
}

// --- Ranges ---

hd_range_t hd_linear_range(void *known, const hd_linear_t *sum) {
  hd_range_t range = hd_range_one(sum->constant);
  for (unsigned i = 0; i < sum->size; ++i) {
    hd_range_t atom = sum->atoms->range(known, sum->terms[i].atom);
    int64_t factor = sum->terms[i].factor;
    range.least += factor * (factor > 0 ? atom.least : atom.greatest);
    range.greatest += factor * (factor > 0 ? atom.greatest : atom.least);
  }
  return range;
}

bool hd_linear_is_exact(void *known, const hd_linear_t *sum) {
  return hd_range_inside(hd_linear_range(known, sum), hd_type_range(sum->type));
}

bool hd_linear_is_below(void *known, const hd_linear_t *sum, int64_t c) {
  return hd_range_inside(hd_linear_range(known, sum), (hd_range_t){0, c - 1});
}

// --- Quotients and remainders ---

void hd_linear_split(const hd_linear_t *sum, int64_t c, hd_linear_t *quotient,
                     hd_linear_t *rest) {
  hd_linear_set_like(quotient, sum, 0);
  hd_linear_set_like(rest, sum, 0);
  for (unsigned i = 0; i < sum->size; ++i) {
    hd_linear_term_t term = sum->terms[i];
    if (term.factor % c == 0) {
      term.factor /= c;
      quotient->terms[quotient->size++] = term;
    } else {
      rest->terms[rest->size++] = term;
    }
  }
  rest->constant = sum->constant % c;
  if (rest->constant < 0)
    rest->constant += c;
  quotient->constant =
      (int64_t)(((hd_wide_t)sum->constant - rest->constant) / c);
}

// sum = g outer + low with the largest g that divides c for which low is in 0
// .. g - 1; 1 always does.
static void split_common(void *known, const hd_linear_t *sum, int64_t c,
                         hd_linear_digits_t *digits) {
  digits->g = 1;
  for (unsigned i = 0; i < sum->size; ++i) {
    int64_t g = hd_gcd(c, sum->terms[i].factor);
    if (g <= digits->g)
      continue;
    hd_linear_split(sum, g, &digits->outer, &digits->low);
    if (hd_linear_is_below(known, &digits->low, g))
      digits->g = g;
  }
  hd_linear_split(sum, digits->g, &digits->outer, &digits->low);
}

// What a term is known to be a multiple of.
static int64_t divisor_of(void *known, const hd_linear_t *sum, unsigned i) {
  const hd_linear_term_t *term = &sum->terms[i];
  int64_t product;
  return __builtin_mul_overflow(sum->atoms->divisor(known, term->atom),
                                term->factor, &product)
             ? term->factor
             : product;
}

// sum = outer + low with the largest g' that divides c for which low is in 0 ..
// g' - 1 and more than nothing, and outer a multiple of g' by what is known of
// its atoms. Otherwise outer and low stay as they are.
static void split_known(void *known, const hd_linear_t *sum, int64_t c,
                        hd_linear_digits_t *digits) {
  int64_t best = 1;
  for (unsigned i = 0; i < sum->size; ++i) {
    int64_t g = hd_gcd(c, divisor_of(known, sum, i));
    if (g <= best)
      continue;
    hd_linear_t high, low;
    int64_t below = (sum->constant % g + g) % g;
    hd_linear_set_like(&high, sum, sum->constant - below);
    hd_linear_set_like(&low, sum, below);
    for (unsigned k = 0; k < sum->size; ++k) {
      hd_linear_t *to = divisor_of(known, sum, k) % g == 0 ? &high : &low;
      to->terms[to->size++] = sum->terms[k];
    }
    if (hd_linear_is_zero(&low) || !hd_linear_is_below(known, &low, g))
      continue;
    best = g;
    digits->outer = high;
    digits->low = low;
  }
}

bool hd_linear_divide(void *known, const hd_linear_t *sum, int64_t c,
                      hd_linear_digits_t *digits) {
  hd_linear_t rest;
  hd_linear_split(sum, c, &digits->quotient, &rest);
  hd_range_t range = hd_linear_range(known, &rest);
  if (range.least >= 0 && range.greatest < c) {
    digits->g = c;
    digits->low = rest;
    hd_linear_set_like(&digits->outer, sum, 0);
    return true;
  }
  if (range.least < 0 || !hd_range_inside(range, hd_type_range(sum->type))) {
    hd_linear_set_like(&digits->quotient, sum, 0);
    rest = *sum;
  }
  split_common(known, &rest, c, digits);
  if (digits->g == 1 && sum->atoms->divisor)
    split_known(known, &rest, c, digits);
  return digits->g > 1 || !hd_linear_is_zero(&digits->quotient) ||
         !hd_linear_is_zero(&digits->low);
}
