// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models whose shapes depend on what is in their inputs, by the public
// interface: after the first run of each bucket of what was found nothing is
// compiled, and after a while no memory is taken. Elements are small integers,
// whose sums are exact.
#include "World.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEPS_FREED 1 // What is freed is kept, to be looked at.
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KEEPS_FREED 1
#endif
#endif
#ifndef KEEPS_FREED
#define KEEPS_FREED 0
#endif

enum { N = 64, ROWS = 8, BOXES = 24 };

// Buckets of a number up to N: 0, 1, up to 4, 8, .. N.
enum { BUCKETS = 7 };

static uint64_t drawn; // What comes next is drawn from this.

static void begin(world_t *w, const char *text) {
  *w = (world_t){0};
  drawn = 1;
  world_open(w, "sim");
  world_load(w, text);
}

static size_t compiled(const world_t *w) {
  return hidet_model_num_compiled(w->model, w->device);
}

static unsigned draw(unsigned below) {
  drawn = drawn * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((drawn >> 33) % below);
}

// So many of them, at places that are drawn, are 1, or NaN.
static void draw_mask(float *mask, unsigned count, unsigned n) {
  memset(mask, 0, n * sizeof(*mask));
  for (unsigned left = n; left && count; left--)
    if (draw(left) < count) {
      mask[left - 1] = draw(5) ? 1 : NAN;
      count--;
    }
}

static void draw_numbers(float *x, unsigned n) {
  for (unsigned i = 0; i < n; i++)
    x[i] = (float)((int)draw(11) - 5);
}

// In KiB: pages that are the process's own.
static long held(void) {
  long kib = -1;
  char line[256];
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof(line), file))
    if (!strncmp(line, "RssAnon:", 8))
      kib = strtol(line + 8, NULL, 10);
  if (file)
    fclose(file);
  return kib;
}

// In bytes, in use: what is freed may stay the process's own.
static long allocated(void) {
  struct mallinfo2 info = mallinfo2();
  return (long)(info.uordblks + info.hblkhd);
}

static void run(world_t *w, const hidet_array_t *in, size_t num_in,
                hidet_array_t *out, size_t num_out) {
  if (hidet_session_run(w->session, in, num_in, out, num_out))
    fail_msg("%s", hidet_messages());
}

// --- One size ---

static const char one_text[] =
    "graph main(x: f32[64], w: f32[64, 8]) -> y, s, i {\n"
    "  i = onnx13.NonZero(x)\n"
    "  t = onnx13.Transpose(i)\n"
    "  q = onnx13.GatherND(w, t)\n"
    "  r = onnx13.Relu(q)\n"
    "  y = onnx13.Mul(r, r)\n"
    "  const axis: i64[1] = [0]\n"
    "  s = onnx13.ReduceSum(y, axis) { keepdims = 0 }\n"
    "}\n";

static void run_one(world_t *w, unsigned count) {
  float x[N], rows[N * ROWS], sums[ROWS] = {0};
  draw_mask(x, count, N);
  draw_numbers(rows, N * ROWS);
  const hidet_array_t in[] = {{"f32", 1, {N}, x}, {"f32", 2, {N, ROWS}, rows}};
  hidet_array_t out[3];
  run(w, in, 2, out, 3);
  assert_true(out[0].rank == 2 && out[0].shape[0] == count &&
              out[1].rank == 1 && out[1].shape[0] == ROWS && out[2].rank == 2 &&
              out[2].shape[1] == count);
  const float *y = out[0].data;
  const int64_t *found = out[2].data;
  for (unsigned i = 0, at = 0; i < N; i++) {
    if (x[i] == 0)
      continue;
    assert_int_equal(found[at], i);
    for (unsigned k = 0; k < ROWS; k++) {
      float r = rows[i * ROWS + k] > 0 ? rows[i * ROWS + k] : 0;
      assert_true(y[at * ROWS + k] == r * r);
      sums[k] += r * r;
    }
    at++;
  }
  assert_memory_equal(out[1].data, sums, sizeof(sums));
}

static void takes_nothing_after_the_first_of_a_bucket(void **state) {
  (void)state;
  enum { RUNS = 10000 };
  world_t w;
  begin(&w, one_text);
  for (unsigned count = 0; count <= N; count++)
    run_one(&w, count);
  assert_int_equal(compiled(&w), BUCKETS);
  long before = 0;
  for (int i = 0; i < RUNS; i++) {
    if (i == RUNS / 2)
      before = held();
    run_one(&w, draw(N + 1));
  }
  assert_int_equal(compiled(&w), BUCKETS);
  if (!KEEPS_FREED)
    assert_in_range(held() - before + 64, 0, 64 + 64);
  world_end(&w);
}

// --- Two sizes, the second of what is behind the first ---

static const char two_text[] = "graph main(x: f32[64], w: f32[64]) -> v, s {\n"
                               "  i = onnx13.NonZero(x)\n"
                               "  it = onnx13.Transpose(i)\n"
                               "  a = onnx13.GatherND(w, it)\n"
                               "  const zero: f32[] = 0\n"
                               "  p = onnx13.Greater(a, zero)\n"
                               "  j = onnx13.NonZero(p)\n"
                               "  jt = onnx13.Transpose(j)\n"
                               "  v = onnx13.GatherND(a, jt)\n"
                               "  s = onnx13.ReduceSum(a) { keepdims = 0 }\n"
                               "}\n";

static void run_two(world_t *w) {
  float x[N], numbers[N], sum = 0, v[N];
  unsigned at = 0;
  draw_mask(x, draw(N + 1), N);
  draw_numbers(numbers, N);
  const hidet_array_t in[] = {{"f32", 1, {N}, x}, {"f32", 1, {N}, numbers}};
  hidet_array_t out[2];
  run(w, in, 2, out, 2);
  for (unsigned i = 0; i < N; i++) {
    if (x[i] == 0)
      continue;
    sum += numbers[i];
    if (numbers[i] > 0)
      v[at++] = numbers[i];
  }
  assert_true(out[0].rank == 1 && out[0].shape[0] == at);
  assert_memory_equal(out[0].data, v, at * sizeof(*v));
  assert_memory_equal(out[1].data, &sum, sizeof(sum));
}

// Segments: before the second look those of the first one's buckets; behind it
// those of both, of which the second is not the larger.
static void has_a_bucket_for_each_of_both(void **state) {
  (void)state;
  world_t w;
  begin(&w, two_text);
  for (int i = 0; i < 300; i++)
    run_two(&w);
  // Pairs of numbers that are new go on to come, mostly in buckets that are
  // there: then next to nothing is taken.
  long taken = 0;
  for (int i = 0; i < 100; i++) {
    size_t count = compiled(&w);
    long before = allocated();
    for (int k = 0; k < 100; k++)
      run_two(&w);
    if (compiled(&w) == count)
      taken += allocated() - before;
  }
  assert_in_range(compiled(&w), 2 * BUCKETS - 1,
                  BUCKETS + BUCKETS * (BUCKETS + 1) / 2);
  if (!KEEPS_FREED)
    assert_in_range(taken + (64 << 10), 0, (64 + 1024) << 10);
  world_end(&w);
}

// --- Boxes ---

static const char boxes_text[] =
    "graph main(boxes: f32[1, 24, 4], scores: f32[1, 2, 24]) -> kept, b {\n"
    "  const most: i64[1] = [6]\n"
    "  const overlap: f32[1] = [0.5]\n"
    "  const least: f32[1] = [0]\n"
    "  const last: i64[1] = [2]\n"
    "  const flat: i64[1] = [-1]\n"
    "  const none: i64[1] = [0]\n"
    "  kept = onnx13.NonMaxSuppression(boxes, scores, most, overlap, least)\n"
    "  column = onnx13.Gather(kept, last) { axis = 1 }\n"
    "  at = onnx13.Reshape(column, flat)\n"
    "  all = onnx13.Squeeze(boxes, none)\n"
    "  chosen = onnx13.Gather(all, at)\n"
    "  b = onnx13.Add(chosen, chosen)\n"
    "}\n";

// Boxes that lie apart: of each class the six best above 0.
static void run_boxes(world_t *w) {
  float boxes[BOXES * 4], scores[2 * BOXES];
  for (unsigned i = 0; i < BOXES; i++) {
    const float box[4] = {(float)i * 2, 0, (float)i * 2 + 1, 1};
    memcpy(boxes + i * 4, box, sizeof(box));
  }
  unsigned above = 0, spread = draw(2 * BOXES + 1);
  for (unsigned i = 0; i < 2 * BOXES; i++)
    scores[i] = draw(2 * BOXES) < spread ? (float)(i + 1) : -1;
  scores[draw(2 * BOXES)] = NAN;
  const hidet_array_t in[] = {{"f32", 3, {1, BOXES, 4}, boxes},
                              {"f32", 3, {1, 2, BOXES}, scores}};
  hidet_array_t out[2];
  run(w, in, 2, out, 2);
  const int64_t *kept = out[0].data;
  const float *b = out[1].data;
  for (unsigned c = 0; c < 2; c++)
    for (unsigned i = BOXES, most = 6; i-- > 0 && most;) {
      if (!(scores[c * BOXES + i] > 0))
        continue;
      assert_true(above < out[0].shape[0]);
      assert_true(kept[above * 3] == 0 && kept[above * 3 + 1] == c &&
                  kept[above * 3 + 2] == i);
      for (unsigned k = 0; k < 4; k++)
        assert_true(b[above * 4 + k] == 2 * boxes[i * 4 + k]);
      above++;
      most--;
    }
  assert_int_equal(out[0].shape[0], above);
  assert_int_equal(out[1].shape[0], above);
}

// 0, 1, up to 4, 8 and 16: there are 12 at most.
static void keeps_boxes(void **state) {
  (void)state;
  world_t w;
  begin(&w, boxes_text);
  for (int i = 0; i < 1000; i++)
    run_boxes(&w);
  assert_in_range(compiled(&w), 4, 5);
  world_end(&w);
}

// --- Numbers that are elements, and what has no bucket ---

static const char range_text[] = "graph main(n: i64[], w: f32[64]) -> y, z {\n"
                                 "  const zero: i64[] = 0\n"
                                 "  const one: i64[] = 1\n"
                                 "  m = onnx13.Add(n, one)\n"
                                 "  r = onnx13.Range(zero, m, one)\n"
                                 "  y = onnx13.Gather(w, r)\n"
                                 "  const axis: i64[1] = [1]\n"
                                 "  at = onnx13.Unsqueeze(r, axis)\n"
                                 "  z = onnx13.ScatterND(w, at, y)\n"
                                 "}\n";

static void run_range(world_t *w, int64_t n) {
  float numbers[N];
  draw_numbers(numbers, N);
  const hidet_array_t in[] = {{"i64", 0, {0}, &n}, {"f32", 1, {N}, numbers}};
  hidet_array_t out[2];
  run(w, in, 2, out, 2);
  assert_true(out[0].rank == 1 && out[0].shape[0] == n + 1);
  assert_memory_equal(out[0].data, numbers, (size_t)(n + 1) * sizeof(*numbers));
  assert_memory_equal(out[1].data, numbers, sizeof(numbers));
}

// A scatter has no bucket: each number has a program, which is kept.
static void keeps_what_is_for_one_number_alone(void **state) {
  (void)state;
  world_t w;
  begin(&w, range_text);
  for (int round = 0; round < 3; round++)
    for (int64_t n = 3; n < 11; n++)
      run_range(&w, n);
  // Adding one is the first of them.
  assert_in_range(compiled(&w), 1 + 8, 1 + 8);
  world_end(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_nothing_after_the_first_of_a_bucket),
      cmocka_unit_test(has_a_bucket_for_each_of_both),
      cmocka_unit_test(keeps_boxes),
      cmocka_unit_test(keeps_what_is_for_one_number_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
