// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a graph as hidet-run does, from its text, and compares.
#include "Fuzz.h"

#include "Graph/Rewrite/Rewrite.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Npy.h"
#include "Runtime/Session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND_LOOKS = 96 };

typedef struct run {
  fuzz_graph_t *g;
  const fuzz_options_t *options;
  uint64_t way;
  const char *text;
  hd_context_t context;
  hd_device_t *device;
  hd_session_t *session;
  hd_host_tensor_t *outputs;
  size_t num_outputs;
  bool ok;
  unsigned launches;
  hd_rewrite_stats_t rewrites;
} run_t;

static void run_body(void *argument) {
  run_t *r = argument;
  fuzz_graph_t *g = r->g;
  hd_module_t *module =
      hd_module_parse(&r->context, "graph.hir", r->text, strlen(r->text), 1);
  if (!module || !hd_module_verify(module))
    return;
  const hd_graph_t *graph = hd_module_find_graph(module, NULL);
  bool sanitize = r->options->sanitize || r->way % 8 == 0;
  hd_device_options_t device = {.sanitize = sanitize,
                                .quick = !r->options->slow && r->way % 8 != 1,
                                .seed = r->way,
                                .threads = 1};
  if (!r->options->plant && r->way % 16 != 2 &&
      !(r->device = hd_device_open_sim(&r->context, &device)))
    return;
  hd_model_options_t options = {.keep_layouts = sanitize,
                                .unfused = r->options->unfused,
                                .unrewritten = r->options->unrewritten};
  r->session = hd_session_create(module, graph, r->device, &options);
  // In the order of the IR: leaves that are inputs.
  hd_host_tensor_t *inputs =
      HD_ARENA_ARRAY(&g->arena, hd_host_tensor_t, graph->inputs.size + 1);
  for (size_t i = 0; i < graph->inputs.size; i++)
    for (size_t k = 0; k < g->values.size; k++)
      if (strcmp(graph->inputs.data[i]->name, g->values.data[k]->value->name) ==
          0)
        inputs[i] = *g->values.data[k]->data;
  r->ok = hd_session_run(r->session, inputs, r->outputs);
  r->launches = hd_session_stats(r->session)->launches;
}

static void begin_run(run_t *r, hd_buffer_t *text) {
  fuzz_graph_t *g = r->g;
  hd_graph_print(fuzz_ir(g), text);
  r->text = hd_buffer_text(text);
  r->num_outputs = g->outputs.size;
  r->outputs = HD_ARENA_ARRAY(&g->arena, hd_host_tensor_t, r->num_outputs + 1);
  hd_context_init(&r->context);
  r->rewrites.arena = &g->arena;
  r->context.rewrite_stats = &r->rewrites;
  r->context.budget.deadline_ns =
      hd_clock_ns() + (uint64_t)r->options->seconds * 1000000000u;
}

static void end_run(run_t *r) {
  for (size_t i = 0; i < r->num_outputs; i++)
    hd_host_tensor_fini(&r->outputs[i]);
  hd_session_destroy(r->session);
  hd_device_close(r->device);
  hd_context_fini(&r->context);
}

// --- Comparison ---

// How far noise moves a value, the furthest that was seen.
static double drift_of(const fuzz_value_t *v) {
  double drift = 0;
  for (int k = 0; k < FUZZ_NOISY; k++)
    drift = fmax(drift, fuzz_apart(v->data, v->noisy[k]));
  return drift;
}

static double tolerance_of(const fuzz_value_t *v, double drift) {
  hd_scalar_t type = v->data->type;
  if (!fuzz_is_float(type))
    return 0;
  bool narrow = hd_scalar_bits(type) < 32;
  // What f32 does not hold at full length; functions of f64 may go by it.
  double least = narrow ? 0 : 0x1p-120;
  return least + (narrow ? 4 : 32) * drift +
         (narrow ? 8 : 64) * fuzz_epsilon(type) * fuzz_scale(v->data);
}

static void say_where(const fuzz_value_t *v, const hd_host_tensor_t *got,
                      double tolerance, char *text, size_t size) {
  hd_buffer_t out = {0};
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < got->count; i++) {
    double a = hd_host_tensor_get(got, i), b = hd_host_tensor_get(v->data, i);
    bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance;
    if (!same && !wrong++)
      first = i;
  }
  hd_buffer_printf(&out, "%s: %lld of %lld elements differ by more than %g",
                   v->value->name, (long long)wrong, (long long)got->count,
                   tolerance);
  if (first >= 0) {
    char index[200];
    hd_index_text(got->shape, got->rank, first, index, sizeof index);
    hd_buffer_printf(&out, "; at %s it is ", index);
    hd_host_tensor_print_element(got, first, &out);
    hd_buffer_puts(&out, " and not ");
    hd_host_tensor_print_element(v->data, first, &out);
  }
  snprintf(text, size, "%s", hd_buffer_text(&out));
  hd_buffer_fini(&out);
}

// Evaluates the whole graph with other noise, and keeps in furthest how far
// each output came.
static bool look_again(fuzz_graph_t *g, uint64_t seed, double *furthest) {
  random_t random = {seed};
  const hd_host_tensor_t **now =
      HD_ARENA_ARRAY(&g->arena, const hd_host_tensor_t *, g->values.size + 1);
  for (size_t i = 0; i < g->values.size; i++) {
    const fuzz_value_t *v = g->values.data[i];
    if (!v->from)
      now[i] = v->noisy[random_bits(&random) % FUZZ_NOISY];
  }
  if (!fuzz_evaluate_graph(g, now, &random))
    return false; // An index that noise moved.
  for (size_t n = 0; n < g->outputs.size; n++)
    for (size_t i = 0; i < g->values.size; i++)
      if (g->values.data[i] == g->outputs.data[n])
        furthest[n] =
            fmax(furthest[n], fuzz_apart(g->outputs.data[n]->data, now[i]));
  return true;
}

// Whether noise alone may make output n so different.
static bool is_unsettled(fuzz_graph_t *g, size_t n, double apart) {
  double *furthest = HD_ARENA_ARRAY(&g->arena, double, g->outputs.size);
  for (uint64_t i = 0; i < SECOND_LOOKS; i++)
    if (!look_again(g, i + 1, furthest))
      return true;
  const fuzz_value_t *v = g->outputs.data[n];
  return fuzz_is_float(v->data->type) ? apart <= tolerance_of(v, furthest[n])
                                      : furthest[n] > 0;
}

static void compare(run_t *r, fuzz_report_t *report) {
  fuzz_graph_t *g = r->g;
  for (size_t i = 0; i < r->num_outputs; i++) {
    const fuzz_value_t *v = g->outputs.data[i];
    const hd_host_tensor_t *got = &r->outputs[i];
    if (got->type != v->data->type || got->rank != v->data->rank ||
        memcmp(got->shape, v->data->shape, got->rank * sizeof *got->shape)) {
      report->verdict = FUZZ_DIFFERENT;
      snprintf(report->text, sizeof report->text, "%s: another type or shape",
               v->value->name);
      return;
    }
    double apart = fuzz_apart(v->data, got);
    double tolerance = tolerance_of(v, drift_of(v));
    if (apart > 0 && report->verdict == FUZZ_IDENTICAL)
      report->verdict = FUZZ_SAME;
    if (apart <= tolerance)
      continue;
    say_where(v, got, tolerance, report->text, sizeof report->text);
    report->verdict =
        is_unsettled(g, i, apart) ? FUZZ_UNSETTLED : FUZZ_DIFFERENT;
    if (report->verdict == FUZZ_DIFFERENT)
      return;
  }
}

static void say_why(run_t *r, hd_exhausted_t exhausted, fuzz_report_t *report) {
  hd_buffer_t said = {0};
  report->verdict = FUZZ_FAILED;
  if (exhausted != HD_EXHAUSTED_NOTHING)
    hd_buffer_printf(&said, "exhausted: %s\n",
                     exhausted == HD_EXHAUSTED_TIME ? "time" : "memory");
  hd_diagnostics_print(&r->context.diags, false, &said);
  snprintf(report->text, sizeof report->text, "%s", hd_buffer_text(&said));
  hd_buffer_fini(&said);
}

// What the sanitizer has to say is an error of the run; else nothing may be
// said.
static bool said_anything(const run_t *r) {
  for (const hd_diagnostic_t *d = r->context.diags.first; d; d = d->next)
    if (d->severity != HD_REMARK && d->severity != HD_NOTE)
      return true;
  return false;
}

static void count_rewrites(const run_t *r, fuzz_report_t *report) {
  for (size_t i = 0; i < r->rewrites.rules.size; i++)
    for (size_t k = 0; k < fuzz_num_rules; k++)
      if (strcmp(fuzz_rules[k], r->rewrites.rules.data[i].name) == 0)
        report->rewrites[k] += r->rewrites.rules.data[i].count;
}

void fuzz_check(fuzz_graph_t *g, const fuzz_options_t *options, uint64_t way,
                fuzz_report_t *report) {
  run_t r = {.g = g, .options = options, .way = way};
  hd_buffer_t text = {0};
  *report = (fuzz_report_t){.verdict = FUZZ_IDENTICAL};
  begin_run(&r, &text);
  hd_exhausted_t exhausted = hd_budget_guard(&r.context.budget, run_body, &r);
  report->launches = r.launches;
  count_rewrites(&r, report);
  if (!r.ok || exhausted != HD_EXHAUSTED_NOTHING || said_anything(&r))
    say_why(&r, exhausted, report);
  else
    compare(&r, report);
  end_run(&r);
  hd_buffer_fini(&text);
}

bool fuzz_keep(fuzz_graph_t *g, const char *folder, const char *name) {
  hd_buffer_t text = {0};
  char path[4096];
  const hd_graph_t *graph = fuzz_ir(g);
  hd_graph_print(graph, &text);
  snprintf(path, sizeof path, "%s/%s.hir", folder, name);
  FILE *file = fopen(path, "w");
  bool ok = file && fputs(hd_buffer_text(&text), file) >= 0;
  ok = file && fclose(file) == 0 && ok;
  hd_buffer_fini(&text);
  size_t input = 0;
  for (size_t i = 0; i < g->values.size; i++) {
    const fuzz_value_t *v = g->values.data[i];
    bool is_input = false;
    for (size_t k = 0; k < graph->inputs.size; k++)
      is_input |= graph->inputs.data[k] == v->value;
    if (!is_input)
      continue;
    snprintf(path, sizeof path, "%s/%s.in%zu.npy", folder, name, input++);
    ok &= hd_npy_write(&g->context->diags, path, v->data);
  }
  for (size_t i = 0; i < g->outputs.size; i++) {
    snprintf(path, sizeof path, "%s/%s.out%zu.npy", folder, name, i);
    ok &= hd_npy_write(&g->context->diags, path, g->outputs.data[i]->data);
  }
  return ok;
}
