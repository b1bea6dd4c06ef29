// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The largest magnitudes in a constant. A rule asks for them before it folds a
// factor into a weight, whose elements are many: without the sign, floats
// compare as their bits do, NaN above all.
#include "Graph/Rewrite/RewriteState.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 16 };

// The largest of count elements that lie side by side, anywhere.
#define LARGEST(name, word, mask)                                              \
  static uint64_t name(const unsigned char *at, int64_t count) {               \
    word most[BLOCK] = {0}, some[BLOCK], result = 0;                           \
    for (; count >= BLOCK; count -= BLOCK, at += sizeof some) {                \
      memcpy(some, at, sizeof some);                                           \
      for (int i = 0; i < BLOCK; i++) {                                        \
        word x = some[i] & (mask);                                             \
        most[i] = x > most[i] ? x : most[i];                                   \
      }                                                                        \
    }                                                                          \
    memset(some, 0, sizeof some);                                              \
    memcpy(some, at, (size_t)count * sizeof some[0]);                          \
    for (int i = 0; i < BLOCK; i++) {                                          \
      word x = some[i] & (mask);                                               \
      x = x > most[i] ? x : most[i];                                           \
      result = x > result ? x : result;                                        \
    }                                                                          \
    return result;                                                             \
  }

LARGEST(largest_of_16, uint16_t, 0x7fff)
LARGEST(largest_of_32, uint32_t, 0x7fffffff)
LARGEST(largest_of_64, uint64_t, INT64_MAX)

// The same of each of count places.
#define EACH(name, word, mask)                                                 \
  static void name(const unsigned char *at, int64_t count, uint64_t *most) {   \
    for (int64_t i = 0; i < count; i++) {                                      \
      word x;                                                                  \
      memcpy(&x, at + (size_t)i * sizeof x, sizeof x);                         \
      x &= (mask);                                                             \
      most[i] = x > most[i] ? x : most[i];                                     \
    }                                                                          \
  }

EACH(each_of_16, uint16_t, 0x7fff)
EACH(each_of_32, uint32_t, 0x7fffffff)
EACH(each_of_64, uint64_t, INT64_MAX)

typedef struct walk {
  const hd_host_tensor_t *x;
  hd_host_tensor_t *out;
  int64_t strides[HD_MAX_RANK]; // In out; 0 where all of an axis is one.
  unsigned outer;               // Axes around what is done at once.
  int64_t inner;                // Elements of that.
  bool reduces;                 // They are one in out.
} walk_t;

static void plan(walk_t *w) {
  int64_t stride = 1;
  for (unsigned i = w->x->rank; i-- > 0;) {
    w->strides[i] = w->out->shape[i] == 1 ? 0 : stride;
    stride *= w->out->shape[i];
  }
  w->outer = w->x->rank;
  w->inner = 1;
  w->reduces = w->outer && w->strides[w->outer - 1] == 0;
  while (w->outer && (w->strides[w->outer - 1] == 0) == w->reduces)
    w->inner *= w->x->shape[--w->outer];
}

static bool advance(const walk_t *w, int64_t *at, int64_t *place) {
  for (unsigned i = w->outer; i-- > 0;) {
    *place += w->strides[i];
    if (++at[i] < w->x->shape[i])
      return true;
    *place -= w->strides[i] * at[i];
    at[i] = 0;
  }
  return false;
}

// Types of a byte and less: there are few such weights.
static void compare_each(const walk_t *w, int64_t first, int64_t place) {
  for (int64_t i = 0; i < w->inner; i++) {
    int64_t to = place + (w->reduces ? 0 : i);
    double x = fabs(hd_host_tensor_get(w->x, first + i));
    if (!(x <= hd_host_tensor_get(w->out, to)))
      hd_host_tensor_set(w->out, to, x);
  }
}

static void compare(const walk_t *w, unsigned bytes, int64_t first,
                    int64_t place, uint64_t *most) {
  const unsigned char *at = w->x->data + (size_t)first * bytes;
  if (w->reduces) {
    uint64_t bits = bytes == 2   ? largest_of_16(at, w->inner)
                    : bytes == 4 ? largest_of_32(at, w->inner)
                                 : largest_of_64(at, w->inner);
    most[place] = bits > most[place] ? bits : most[place];
  } else if (bytes == 2) {
    each_of_16(at, w->inner, most + place);
  } else if (bytes == 4) {
    each_of_32(at, w->inner, most + place);
  } else {
    each_of_64(at, w->inner, most + place);
  }
}

void hd_magnitudes(hd_arena_t *arena, const hd_host_tensor_t *x,
                   hd_host_tensor_t *out) {
  walk_t w = {.x = x, .out = out};
  int64_t at[HD_MAX_RANK] = {0}, place = 0, first = 0;
  unsigned bytes = hd_host_element_bytes(x->type);
  plan(&w);
  uint64_t *most = HD_ARENA_ARRAY(arena, uint64_t, out->count + 1);
  if (x->count)
    do {
      if (bytes == 1)
        compare_each(&w, first, place);
      else
        compare(&w, bytes, first, place, most);
      first += w.inner;
    } while (advance(&w, at, &place));
  hd_host_tensor_t *one = hd_host_tensor_make(arena, x->type, NULL, 0);
  for (int64_t i = 0; bytes > 1 && i < out->count; i++) {
    memcpy(one->data, &most[i], bytes); // Little-endian.
    hd_host_tensor_set(out, i, hd_host_tensor_get(one, 0));
  }
}
