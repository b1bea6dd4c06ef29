// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NonMaxSuppression: how many boxes are left, and which, is found here, from
// boxes and scores that are known.
#include "Graph/Expand/Lower/Lower.h"

#include "Support/Budget.h"

#include <math.h>
#include <stdlib.h>

typedef struct box {
  float low[2], high[2];
} box_t;

typedef struct candidate {
  float score;
  int64_t index;
} candidate_t;

// By score, the first among equals first.
static int compare(const void *a, const void *b) {
  const candidate_t *x = a, *y = b;
  if (x->score != y->score)
    return x->score > y->score ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

// Corners in any order, or the centre and the extents.
static box_t read_box(const hd_host_tensor_t *boxes, int64_t at, bool centred) {
  float v[4];
  box_t box;
  for (int i = 0; i < 4; i++)
    v[i] = (float)hd_host_tensor_get(boxes, at * 4 + i);
  for (int i = 0; i < 2; i++) {
    float a = centred ? v[i] - v[i + 2] / 2 : v[i];
    float b = centred ? v[i] + v[i + 2] / 2 : v[i + 2];
    box.low[i] = fminf(a, b);
    box.high[i] = fmaxf(a, b);
  }
  return box;
}

static float area(const box_t *b) {
  return (b->high[0] - b->low[0]) * (b->high[1] - b->low[1]);
}

// How much of two boxes together they have in common.
static bool overlap(const box_t *a, const box_t *b, float threshold) {
  box_t common;
  for (int i = 0; i < 2; i++) {
    common.low[i] = fmaxf(a->low[i], b->low[i]);
    common.high[i] = fminf(a->high[i], b->high[i]);
    if (!(common.high[i] > common.low[i]))
      return false;
  }
  float both = area(&common), one = area(a), other = area(b);
  float all = one + other - both;
  return both > 0 && one > 0 && other > 0 && all > 0 && both / all > threshold;
}

typedef struct suppression {
  hd_lowering_t *l;
  const hd_host_tensor_t *boxes, *scores;
  int64_t batch, classes, count, most;
  float overlap, least;
  bool filters, centred;
  HD_VEC(int64_t) chosen; // Batch, class, box.
} suppression_t;

static void choose(suppression_t *s, int64_t b, int64_t c) {
  hd_arena_t *arena = hd_lower_arena(s->l);
  candidate_t *list = HD_ARENA_ARRAY(arena, candidate_t, s->count + 1);
  box_t *kept = HD_ARENA_ARRAY(arena, box_t, s->count + 1);
  int64_t candidates = 0, number = 0;
  for (int64_t i = 0; i < s->count; i++) {
    float score = (float)hd_host_tensor_get(
        s->scores, (b * s->classes + c) * s->count + i);
    if (!isnan(score) && (!s->filters || score > s->least))
      list[candidates++] = (candidate_t){score, i};
  }
  qsort(list, (size_t)candidates, sizeof *list, compare);
  for (int64_t i = 0; i < candidates && number < s->most; i++) {
    hd_budget_check(&hd_lower_context(s->l)->budget);
    box_t box = read_box(s->boxes, b * s->count + list[i].index, s->centred);
    bool free = true;
    for (int64_t n = 0; free && n < number; n++)
      free = !overlap(&box, &kept[n], s->overlap);
    if (!free)
      continue;
    kept[number++] = box;
    hd_vec_push(arena, &s->chosen, b);
    hd_vec_push(arena, &s->chosen, c);
    hd_vec_push(arena, &s->chosen, list[i].index);
  }
}

// Input i of one element; false where it is not known yet.
static bool read_number(hd_lowering_t *l, uint32_t i, double otherwise,
                        bool *given, double *number) {
  const hd_value_t *x = hd_lower_input(l, i);
  *given = x && hd_lower_count(x) > 0;
  *number = otherwise;
  if (!*given)
    return true;
  const hd_host_tensor_t *data = hd_lower_data(l, x);
  if (data)
    *number = hd_host_tensor_get(data, 0);
  return data != NULL;
}

bool hd_onnx_non_max_suppression(hd_lowering_t *l) {
  const hd_value_t *boxes = hd_lower_input(l, 0),
                   *scores = hd_lower_input(l, 1);
  double most, threshold, least;
  bool given;
  if (boxes->rank != 3 || scores->rank != 3 || hd_lower_size(boxes, 2) != 4 ||
      hd_lower_size(boxes, 0) != hd_lower_size(scores, 0) ||
      hd_lower_size(boxes, 1) != hd_lower_size(scores, 2))
    return hd_lower_invalid(l, "boxes and scores that do not fit");
  suppression_t s = {.l = l,
                     .batch = hd_lower_size(scores, 0),
                     .classes = hd_lower_size(scores, 1),
                     .count = hd_lower_size(scores, 2),
                     .centred = hd_lower_int(l, "center_point_box", 0) != 0};
  if (!read_number(l, 2, 0, &given, &most) ||
      !read_number(l, 3, 0, &given, &threshold) ||
      !read_number(l, 4, 0, &s.filters, &least) ||
      !(s.boxes = hd_lower_data(l, boxes)) ||
      !(s.scores = hd_lower_data(l, scores)))
    return false;
  s.most = most < (double)s.count ? (int64_t)most : s.count;
  s.overlap = (float)threshold;
  s.least = (float)least;
  for (int64_t b = 0; b < s.batch; b++)
    for (int64_t c = 0; c < s.classes; c++)
      choose(&s, b, c);
  int64_t shape[] = {(int64_t)s.chosen.size / 3, 3};
  hd_host_tensor_t *data;
  const hd_value_t *y = hd_lower_constant(l, HD_I64, shape, 2, &data);
  for (size_t i = 0; y && i < s.chosen.size; i++)
    hd_host_tensor_set_int(data, (int64_t)i, s.chosen.data[i]);
  return hd_lower_output(l, 0, y);
}
