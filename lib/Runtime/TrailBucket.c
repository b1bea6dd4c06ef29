// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bucket of a piece: the segment at its bounds beside the same one at the
// numbers at hand and at a few others; and the bounds that it goes with.
#include "Runtime/Trail.h"

#include "Fusion/Bucket/BucketSizes.h"
#include "Graph/Prepare.h"

#include <string.h>

bool hd_piece_walk(hd_piece_maker_t *k, const int64_t *numbers,
                   const hd_expander_t *leader, hd_stop_t *stop) {
  hd_trail_run_t *r = k->r;
  hd_times_t *times = &hd_model_context(r->m)->times;
  uint64_t start = hd_clock_ns();
  size_t part = hd_times_enter(times, "expand");
  bool ok = hd_trail_walk(r->m, k->turn->module, r->types, &r->looks, numbers,
                          leader, stop);
  hd_times_leave(times, part);
  r->m->stats.expand_ms += hd_ms_since(start);
  return ok;
}

static bool is_alike(const hd_stop_t *a, const hd_stop_t *b) {
  return a->done == b->done && a->count == b->count &&
         a->inputs.size == b->inputs.size &&
         (!a->inputs.size ||
          memcmp(a->inputs.data, b->inputs.data,
                 a->inputs.size * sizeof(*a->inputs.data)) == 0);
}

// The segment where one number is another; perhaps there is none.
static bool add_probe(hd_piece_maker_t *k, int64_t *numbers, size_t i,
                      int64_t number, const hd_graph_t **graphs,
                      size_t *count) {
  hd_diagnostics_t *diags = &hd_model_context(k->r->m)->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  hd_stop_t stop;
  int64_t bound = numbers[i];
  numbers[i] = number;
  bool ok =
      hd_piece_walk(k, numbers, k->stop.x, &stop) && is_alike(&stop, &k->stop);
  numbers[i] = bound;
  hd_diagnostics_rewind(diags, mark);
  if (ok)
    graphs[(*count)++] = stop.graph;
  return ok;
}

// The numbers at hand.
static bool add_own(hd_piece_maker_t *k, const hd_graph_t **graphs,
                    size_t *count) {
  hd_stop_t stop;
  bool ok =
      hd_piece_walk(k, NULL, k->stop.x, &stop) && is_alike(&stop, &k->stop);
  if (ok)
    graphs[(*count)++] = stop.graph;
  else
    k->refusal.why = "the graph is another at the numbers at hand";
  return ok;
}

// A few smaller numbers of each look that has a bound.
static bool add_probes(hd_piece_maker_t *k, int64_t *numbers,
                       const hd_graph_t **graphs, size_t *count) {
  size_t sizes = 0;
  for (size_t i = 0; i < k->r->looks.size; i++) {
    int64_t bound = k->bounds[i];
    if (!bound)
      continue;
    if (++sizes > HD_BUCKET_SIZES) {
      k->refusal.why = "it depends on too many looks";
      return false;
    }
    bool any = add_probe(k, numbers, i, bound - 1, graphs, count);
    if (bound / 2 + 1 < bound - 1)
      any |= add_probe(k, numbers, i, bound / 2 + 1, graphs, count);
    for (int64_t half = bound / 2; !any && half >= 2; half /= 2)
      any = add_probe(k, numbers, i, half, graphs, count);
    if (!any) {
      k->refusal.why = "the graph is another at smaller numbers";
      return false;
    }
  }
  return true;
}

// Besides what depends on constants alone.
static bool runs_something(hd_piece_maker_t *k, const hd_graph_t *graph) {
  const hd_graph_t *prepare, *rest;
  hd_graph_split(&k->turn->module->arena, graph, &prepare, &rest);
  if (!rest->nodes.size)
    k->refusal.why = "nothing depends on what comes in";
  return rest->nodes.size > 0;
}

bool hd_piece_bucket(hd_piece_maker_t *k, int64_t *numbers) {
  static const hd_inouts_t none = {0};
  hd_times_t *times = &hd_model_context(k->r->m)->times;
  const hd_graph_t *graphs[HD_BUCKET_GRAPHS] = {k->stop.graph};
  size_t count = 1;
  if (!add_own(k, graphs, &count) || !add_probes(k, numbers, graphs, &count))
    return false;
  size_t part = hd_times_enter(times, "bucket");
  k->turn->bucket =
      hd_bucket_make(k->turn->module, graphs, count, &none, &k->refusal);
  bool ok = k->turn->bucket && runs_something(k, k->turn->bucket->graph);
  hd_times_leave(times, part);
  return ok;
}

// Whether the segment is the same with another bound of the last look.
static bool goes_with(hd_trail_run_t *r, const int64_t *bounds, int64_t bound) {
  static const hd_inouts_t none = {0};
  hd_diagnostics_t *diags = &hd_model_context(r->m)->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  hd_piece_maker_t k = {.r = r, .turn = hd_model_begin_turn(r->m, r->types)};
  const hd_graph_t *graphs[2];
  size_t looks = r->looks.size, count = 1;
  int64_t *numbers = HD_ARENA_ARRAY(&r->arena, int64_t, looks + 1);
  for (size_t i = 0; i < looks; i++)
    numbers[i] = bounds[i] ? bounds[i] : r->looks.data[i].number;
  numbers[looks - 1] = bound;
  bool ok = hd_piece_walk(&k, numbers, r->before->piece->leader, &k.stop);
  graphs[0] = k.stop.graph;
  ok = ok && add_own(&k, graphs, &count) &&
       (!graphs[0]->nodes.size ||
        hd_bucket_make(k.turn->module, graphs, count, &none, &k.refusal));
  hd_diagnostics_rewind(diags, mark);
  hd_model_end_turn(r->m, k.turn);
  r->m->running = NULL;
  return ok;
}

int64_t hd_trail_limit(hd_trail_run_t *r, const int64_t *bounds) {
  size_t last = r->looks.size - 1;
  int64_t goes = r->looks.data[last].number, fails = bounds[last];
  while (fails - goes > 1) {
    int64_t bound = goes + (fails - goes) / 2;
    *(goes_with(r, bounds, bound) ? &goes : &fails) = bound;
  }
  return goes;
}
