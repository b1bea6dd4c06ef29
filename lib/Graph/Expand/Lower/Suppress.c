// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NonMaxSuppression: how many boxes are left, and which, is found on the host,
// once boxes and scores are known (hd_find_t).
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
  hd_finding_t *f;
  const hd_host_tensor_t *boxes, *scores;
  int64_t batch, classes, count, most;
  float overlap, least;
  bool filters, centred;
  HD_VEC(int64_t) chosen; // Batch, class, box.
} suppression_t;

static void choose(suppression_t *s, int64_t b, int64_t c) {
  hd_arena_t *arena = s->f->arena;
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
    hd_budget_check(&s->f->context->budget);
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

// Input i of one element; whether it is given.
static bool read_number(const hd_finding_t *f, uint32_t i, double *number) {
  const hd_host_tensor_t *data = f->inputs[i];
  *number = data && data->count > 0 ? hd_host_tensor_get(data, 0) : 0;
  return data && data->count > 0;
}

// options: whether boxes are given by their centres.
static bool find_kept(hd_finding_t *f) {
  const hd_host_tensor_t *scores = f->inputs[1];
  double most, threshold, least;
  suppression_t s = {.f = f,
                     .boxes = f->inputs[0],
                     .scores = scores,
                     .batch = scores->shape[0],
                     .classes = scores->shape[1],
                     .count = scores->shape[2],
                     .centred = f->find->options[0] != 0};
  read_number(f, 2, &most);
  read_number(f, 3, &threshold);
  s.filters = read_number(f, 4, &least);
  s.most = most < (double)s.count ? (int64_t)most : s.count;
  s.overlap = (float)threshold;
  s.least = (float)least;
  for (int64_t b = 0; b < s.batch; b++)
    for (int64_t c = 0; c < s.classes; c++)
      choose(&s, b, c);
  int64_t shape[] = {(int64_t)s.chosen.size / 3, 3};
  hd_host_tensor_t *kept = hd_host_tensor_make(f->arena, HD_I64, shape, 2);
  for (size_t i = 0; i < s.chosen.size; i++)
    hd_host_tensor_set_int(kept, (int64_t)i, s.chosen.data[i]);
  f->outputs[0] = kept;
  return true;
}

bool hd_onnx_non_max_suppression(hd_lowering_t *l) {
  const hd_value_t *boxes = hd_lower_input(l, 0),
                   *scores = hd_lower_input(l, 1), *kept;
  if (boxes->rank != 3 || scores->rank != 3 || hd_lower_size(boxes, 2) != 4 ||
      hd_lower_size(boxes, 0) != hd_lower_size(scores, 0) ||
      hd_lower_size(boxes, 1) != hd_lower_size(scores, 2))
    return hd_lower_invalid(l, "boxes and scores that do not fit");
  hd_find_t find = {
      .run = find_kept,
      .options = {hd_lower_int(l, "center_point_box", 0)},
      .num_inputs = HD_FIND_INPUTS,
      .num_outputs = 1,
      .outputs = {{HD_I64, 2, {-1, 3}}},
      .most = hd_lower_count(scores),
  };
  for (uint32_t i = 0; i < HD_FIND_INPUTS; i++)
    find.inputs[i] = hd_lower_input(l, i);
  return hd_lower_find(l, &find, &kept) && hd_lower_output(l, 0, kept);
}
