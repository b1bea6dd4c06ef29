// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-run --json: one object; a key that does not apply is left out.
#include "Tools/Json.h"
#include "Tools/Report.h"
#include "Tools/RunTool.h"
#include "hidet/Version.h"

#include <math.h>
#include <sys/resource.h>

static void set_text(json_t *object, const char *key, const char *text) {
  if (text)
    json_object_set_new(object, key, json_string(text));
}

// JSON has no infinity; 1e308 stands for it.
static void set_real(json_t *object, const char *key, double value) {
  json_object_set_new(object, key, json_real(isfinite(value) ? value : 1e308));
}

static void set_int(json_t *object, const char *key, int64_t value) {
  json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *output_row(const hd_run_tensor_t *t) {
  json_t *row = json_object(), *shape = json_array();
  for (unsigned i = 0; i < t->rank; i++)
    json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
  set_text(row, "name", t->param->name);
  set_text(row, "type", hd_scalar_name(t->host.type));
  json_object_set_new(row, "shape", shape);
  if (t->comparison.done) {
    set_real(row, "max_abs_error", t->comparison.max_abs);
    set_real(row, "max_rel_error", t->comparison.max_rel);
    set_int(row, "mismatches", t->comparison.mismatches);
  }
  return row;
}

static void add_device(hd_run_t *run, json_t *object) {
  const hd_device_t *device = run->device;
  if (!device) {
    if (run->session)
      set_text(object, "device", "ref");
    return;
  }
  set_text(object, "device", device->ops->kind);
  set_text(object, "device_name", device->info.name);
  set_text(object, "target", device->info.target->name);
}

// The host alone may have done it all: then there are no launches, but times.
static void add_times(hd_run_t *run, json_t *object) {
  if (!run->has_run)
    return;
  set_real(object, "compile_ms", run->compile_ms);
  set_real(object, "load_ms", run->load_ms);
  set_real(object, "first_run_ms", run->first_run_ms);
  json_object_set_new(object, "steps",
                      hd_report_times_json(&run->process.context.times));
}

static void add_program(hd_run_t *run, json_t *object) {
  if (!run->device || !run->has_run)
    return;
  set_int(object, "kernels", run->kernels);
  set_int(object, "launches", run->launches);
  if (run->graph) {
    set_int(object, "weights_bytes", run->weights_bytes);
    set_int(object, "arena_bytes", run->arena_bytes);
    set_int(object, "arena_lower_bound_bytes", run->arena_bound);
  }
  set_int(object, "moved_bytes", run->moved.activations);
  if (run->graph)
    set_int(object, "moved_constant_bytes", run->moved.constants);
  set_int(object, "device_bytes", run->device_bytes);
}

static void add_measurement(hd_run_t *run, json_t *object) {
  const hd_measurement_t *m = &run->measurement;
  if (!m->runs)
    return;
  set_int(object, "runs", m->runs);
  set_real(object, "median_ms", m->median_ms);
  set_real(object, "p10_ms", m->p10_ms);
  set_real(object, "p90_ms", m->p90_ms);
  if (m->host_us > 0)
    set_real(object, "host_us", m->host_us);
  if (!run->sessions)
    return;
  set_int(object, "sessions", run->sessions);
  set_real(object, "runs_per_second", run->rate);
  set_real(object, "runs_per_second_of_one", run->rate_of_one);
}

static void add_profile(const hd_run_t *run, json_t *object) {
  if (!run->profile.rows.size)
    return;
  json_t *rows = json_array();
  for (size_t i = 0; i < run->profile.rows.size; i++) {
    const hd_profile_row_t *p = &run->profile.rows.data[i];
    json_t *row = json_object();
    set_text(row, "kernel", p->kernel->func->name);
    set_real(row, "us", p->us);
    set_int(row, "launches", p->launches);
    set_int(row, "bytes", p->bytes);
    set_int(row, "blocks",
            (int64_t)p->launch->grid[0] * p->launch->grid[1] *
                p->launch->grid[2]);
    set_int(row, "threads",
            (int64_t)p->launch->block[0] * p->launch->block[1] *
                p->launch->block[2]);
    set_int(row, "registers", p->kernel->registers);
    set_int(row, "shared_bytes", p->launch->shared_bytes);
    json_array_append_new(rows, row);
  }
  json_object_set_new(object, "profile", rows);
}

static json_t *tuned_row(const hd_tuned_t *tuned) {
  json_t *row = json_object(), *candidates = json_array();
  set_text(row, "group", tuned->name);
  set_text(row, "key", tuned->key);
  set_text(row, "text", tuned->text);
  set_int(row, "uses", tuned->uses);
  set_text(row, "chosen", tuned->best ? tuned->best->choice : NULL);
  for (size_t i = 0; i < tuned->candidates.size; i++) {
    const hd_tune_candidate_t *c = &tuned->candidates.data[i];
    json_t *candidate = json_object();
    set_text(candidate, "choice", c->choice);
    set_text(candidate, "status", hd_tune_status_text(c->status));
    if (c->expected_us > 0)
      set_real(candidate, "expected_us", c->expected_us);
    if (c->status == HD_TUNE_MEASURED)
      set_real(candidate, "us", c->us);
    set_text(candidate, "note", c->note[0] ? c->note : NULL);
    json_object_set_new(candidate, "known", json_boolean(c->was_known));
    json_array_append_new(candidates, candidate);
  }
  json_object_set_new(row, "candidates", candidates);
  return row;
}

static json_t *exchange_row(const hd_tune_exchange_t *x) {
  json_t *row = json_object();
  set_text(row, "group", x->group->name);
  set_text(row, "from", x->from->choice);
  set_text(row, "to", x->to->choice);
  set_real(row, "from_us", x->from_us);
  set_real(row, "to_us", x->to_us);
  json_object_set_new(row, "taken", json_boolean(x->taken));
  return row;
}

static void add_tuning(const hd_run_t *run, json_t *object) {
  if (!run->tuner || !hd_option_given(&run->options, RUN_TUNE))
    return;
  const hd_tune_report_t *report = hd_tuner_report(run->tuner);
  json_t *rows = json_array();
  for (size_t i = 0; i < report->groups.size; i++)
    json_array_append_new(rows, tuned_row(report->groups.data[i]));
  json_t *exchanges = json_array();
  for (size_t i = 0; i < report->exchanges.size; i++)
    json_array_append_new(exchanges, exchange_row(&report->exchanges.data[i]));
  json_object_set_new(object, "exchanges", exchanges);
  set_real(object, "tune_ms", report->ms);
  set_int(object, "candidates", report->measured);
  json_object_set_new(object, "tune", rows);
}

static void add_bisection(const hd_run_t *run, json_t *object) {
  const hd_bisection_t *b = run->bisection;
  if (!b)
    return;
  json_t *row = json_object();
  set_int(row, "steps", (int64_t)b->steps);
  set_int(row, "runs", b->runs);
  if (b->number && !b->always) {
    set_int(row, "step", (int64_t)b->number);
    set_text(row, "kind", hd_step_kind_name(b->kind));
    set_text(row, "name", b->name);
  }
  json_object_set_new(object, "bisect", row);
}

static void add_layers(const hd_run_t *run, json_t *object) {
  if (!run->layers.size)
    return;
  json_t *rows = json_array();
  for (size_t i = 0; i < run->layers.size; i++) {
    const hd_run_layer_t *layer = &run->layers.data[i];
    json_t *row = json_object();
    set_text(row, "node", layer->label);
    set_text(row, "operator", layer->op);
    set_text(row, "type", hd_scalar_name(layer->type));
    set_int(row, "tasks", layer->tasks);
    set_real(row, "error", layer->error);
    set_real(row, "largest", layer->largest);
    json_array_append_new(rows, row);
  }
  json_object_set_new(object, "compare", rows);
}

bool hd_run_write_json(hd_run_t *run, const char *path) {
  json_t *object = json_object(), *outputs = json_array();
  struct rusage usage;
  set_text(object, "model", run->name);
  set_text(object, "version", hidet_version());
  add_device(run, object);
  if (run->graph)
    set_text(object, "precision", hd_precision_name(hd_run_precision(run)));
  if (run->import_ms > 0)
    set_real(object, "import_ms", run->import_ms);
  add_program(run, object);
  add_times(run, object);
  add_measurement(run, object);
  add_profile(run, object);
  add_tuning(run, object);
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    set_int(object, "peak_host_bytes", (int64_t)usage.ru_maxrss << 10);
  bool examined = run->layers.size || run->bisection; // In place of a run.
  for (uint32_t i = 0; run->tensors && !examined && i < run->num_params; i++)
    if (hd_run_is_output(&run->tensors[i]))
      json_array_append_new(outputs, output_row(&run->tensors[i]));
  json_object_set_new(object, "outputs", outputs);
  add_layers(run, object);
  add_bisection(run, object);
  set_int(object, "exit", hd_process_exit(&run->process));
  json_object_set_new(object, "diagnostics",
                      hd_json_diagnostics(hd_run_diags(run)));
  return hd_json_write(hd_run_diags(run), path, object);
}
