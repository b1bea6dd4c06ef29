// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tune/Tune.h"
#include "IR/Text/Library.h"
#include "IR/Text/Printer.h"
#include "Runtime/Cache.h"
#include "Support/BuildId.h"
#include "Tune/Candidate.h"
#include "Tune/TunerState.h"
#include "hidet/Version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const statuses[] = {
#define HD_TUNE_STATUS(name, text) text,
#include "Tune/Statuses.def"
#undef HD_TUNE_STATUS
};

const char *hd_tune_status_text(hd_tune_status_t status) {
  return statuses[status];
}

const hd_tune_report_t *hd_tuner_report(const hd_tuner_t *t) {
  return &t->report;
}

hd_tuner_t *hd_tuner_create(hd_device_t *device,
                            const hd_tune_options_t *options) {
  hd_tuner_t *t = calloc(1, sizeof(*t));
  if (!t)
    return NULL;
  t->device = device;
  t->options = *options;
  hd_arena_init(&t->arena, &device->context->budget);
  char build[128] = "";
  hd_build_id(build, sizeof build);
  if (options->database)
    t->database = hd_tune_database_open(
        &device->context->diags, options->database, options->most > 0,
        device->info.name,
        hd_arena_printf(&t->arena, "%s %s", hidet_version(), build));
  return t;
}

void hd_tuner_destroy(hd_tuner_t *t) {
  if (!t)
    return;
  hd_tune_process_end(&t->process);
  hd_buffer_fini(&t->message.text);
  hd_tune_database_close(t->database);
  hd_thread_pool_destroy(t->pool);
  hd_arena_fini(&t->arena);
  free(t);
}

void hd_tuner_step(hd_tuner_t *t) {
  t->done++;
  if (t->options.progress)
    t->options.progress(t->options.progress_argument, t->done, t->total);
}

void hd_tuner_settle(hd_tuner_t *t, hd_tune_work_t *work, size_t candidate,
                     hd_tune_status_t status, double us, const char *note) {
  hd_tuned_t *tuned = work->tuned;
  hd_tune_candidate_t *c = &tuned->candidates.data[candidate];
  c->status = status;
  c->us = us;
  c->note = hd_arena_printf(&t->arena, "%s", note);
  t->report.measured += status == HD_TUNE_MEASURED;
  hd_tune_row_t row = {c->choice, statuses[status], c->note, us};
  hd_tune_database_put(t->database, tuned->key, tuned->text, &row);
  if (status != HD_TUNE_MEASURED)
    hd_warning(&t->device->context->diags, work->tunable->loc,
               "tune: %s: %s is left out: it %s: %s", tuned->name, c->choice,
               statuses[status], c->note);
}

// --- Texts ---

// What every candidate may use of the module: all items but graphs and tasks,
// and but what was made of functions with compile-time parameters.
static const char *base_of(hd_tuner_t *t, const hd_module_t *module) {
  if (t->base && t->base_of == module && t->base_items == module->items.size)
    return t->base;
  hd_module_t items = *module;
  memset(&items.items, 0, sizeof(items.items));
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind != HD_ITEM_GRAPH && item->kind != HD_ITEM_TASK &&
        (item->kind != HD_ITEM_FUNC || !item->u.func->generic))
      hd_vec_push(&t->arena, &items.items, *item);
  }
  hd_buffer_t text = {0};
  if (items.items.size)
    hd_module_print(&items, &text);
  t->base_of = module;
  t->base_items = module->items.size;
  t->base = hd_arena_strndup(&t->arena, hd_buffer_text(&text), text.size);
  hd_buffer_fini(&text);
  return t->base;
}

static bool uses_task(const hd_graph_t *graph, const hd_task_t *task) {
  for (size_t i = 0; i < graph->nodes.size; i++)
    if (hd_task_is_same_item(graph->nodes.data[i]->task, task))
      return true;
  return false;
}

// Whether a task is found by its name: in the library or among the items.
static bool is_item(const hd_module_t *module, const hd_task_t *task) {
  const hd_task_t *known = hd_library_task(module->context, task->name);
  if (known && hd_task_is_same_item(task, known))
    return true;
  for (size_t i = 0; i < module->items.size; i++)
    if (module->items.data[i].kind == HD_ITEM_TASK &&
        hd_task_is_same_item(task, module->items.data[i].u.task))
      return true;
  return false;
}

// Tasks that were made of several nodes' are nobody's items.
static void print_made(const hd_module_t *module, const hd_graph_t *graph,
                       hd_buffer_t *text) {
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_task_t *task = graph->nodes.data[i]->task;
    bool seen = !task || is_item(module, task);
    for (size_t k = 0; k < i && !seen; k++)
      seen = graph->nodes.data[k]->task == task;
    if (!seen)
      hd_task_print(task, text);
  }
}

// That, and the tasks that the group's nodes are of, but for the library's.
static const char *prelude_of(hd_tuner_t *t, const hd_module_t *module,
                              const hd_tunable_t *tunable) {
  hd_buffer_t text = {0};
  if (!module)
    return "";
  hd_buffer_puts(&text, base_of(t, module));
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind == HD_ITEM_TASK && uses_task(tunable->graph, item->u.task))
      hd_task_print(item->u.task, &text);
  }
  print_made(module, tunable->graph, &text);
  const char *copy =
      hd_arena_strndup(&t->arena, hd_buffer_text(&text), text.size);
  hd_buffer_fini(&text);
  return copy;
}

static const char *text_of(hd_tuner_t *t, const hd_tune_work_t *work,
                           const hd_pin_t *pin) {
  hd_buffer_t text = {0};
  hd_buffer_printf(&text, "%s\n", work->prelude);
  hd_tunable_print(&t->arena, work->tunable, pin, &text);
  const char *copy =
      hd_arena_strndup(&t->arena, hd_buffer_text(&text), text.size);
  hd_buffer_fini(&text);
  return copy;
}

static const char *choice_of(hd_arena_t *arena, const hd_pin_t *pin) {
  hd_buffer_t text = {0};
  hd_pin_print(pin, &text);
  const char *copy = hd_arena_strndup(arena, hd_buffer_text(&text), text.size);
  hd_buffer_fini(&text);
  return copy;
}

static const hd_pin_t rules = {.name = HD_PIN_RULES};

// --- What is known ---

hd_tuned_t *hd_tuner_find(const hd_tuner_t *t, const char *key) {
  for (size_t i = 0; i < t->report.groups.size; i++)
    if (strcmp(t->report.groups.data[i]->key, key) == 0)
      return t->report.groups.data[i];
  return NULL;
}

static void take_row(hd_tune_candidate_t *c, const hd_tune_rows_t *rows) {
  for (size_t i = 0; i < rows->size; i++) {
    const hd_tune_row_t *row = &rows->data[i];
    if (strcmp(row->choice, c->choice) != 0)
      continue;
    for (int s = 0; s < HD_TUNE_STATUSES; s++)
      if (strcmp(row->status, statuses[s]) == 0)
        c->status = (hd_tune_status_t)s;
    c->us = row->us;
    c->note = row->note;
    c->was_known = true;
  }
}

// Whether another candidate of its template, before it, is expected to take the
// same: what tells them apart is in no figure.
static bool is_twin(const hd_candidates_t *candidates, size_t i) {
  const hd_candidate_t *c = &candidates->data[i];
  for (size_t k = 0; k < i; k++)
    if (candidates->data[k].template == c->template &&
        candidates->data[k].us >= c->us)
      return true;
  return false;
}

// Which candidates are measured, so many: the best quarter of that of each
// template, for templates are expected to take what they do by figures of their
// own; then the best of all. Twins come last.
static bool *find_wanted(hd_tuner_t *t, const hd_candidates_t *candidates,
                         size_t most) {
  size_t count = candidates->size, each = most / 4 ? most / 4 : 1;
  bool *wanted = HD_ARENA_ARRAY(&t->arena, bool, count + 1);
  bool *twins = HD_ARENA_ARRAY(&t->arena, bool, count + 1);
  for (size_t i = 0; i < count; i++)
    twins[i] = is_twin(candidates, i);
  for (int pass = 0; pass < 3; pass++)
    for (size_t i = 0; i < count && most; i++) {
      size_t before = 0;
      for (size_t k = 0; pass == 0 && k < i; k++)
        before += wanted[k] &&
                  candidates->data[k].template == candidates->data[i].template;
      if (wanted[i] || (pass < 2 && twins[i]) || before >= each)
        continue;
      wanted[i] = true;
      most--;
    }
  return wanted;
}

// A group's candidates with what is known of them; of those that are not among
// the best, and of which nothing is known, there is nothing to say.
static hd_tuned_t *make_tuned(hd_tuner_t *t, const hd_tunable_t *tunable,
                              const char *key, hd_tune_work_t *work) {
  hd_tuned_t *tuned = HD_ARENA_NEW(&t->arena, hd_tuned_t);
  hd_tune_rows_t rows = {0};
  hd_tune_database_list(t->database, &t->arena, key, &rows);
  *tuned = (hd_tuned_t){.name = hd_arena_printf(&t->arena, "%s", tunable->name),
                        .text = hd_arena_printf(&t->arena, "%s", tunable->text),
                        .key = key,
                        .uses = tunable->uses};
  size_t count = tunable->candidates.size;
  const bool *wanted = find_wanted(t, &tunable->candidates, t->options.most);
  work->pins = HD_ARENA_ARRAY(&t->arena, const hd_pin_t *, count + 1);
  for (size_t i = 0; i <= count; i++) {
    bool is_wanted = i < count ? wanted[i] : t->options.most > 0;
    if (!is_wanted && !rows.size)
      continue;
    const hd_candidate_t *candidate =
        i < count ? &tunable->candidates.data[i] : NULL;
    const hd_pin_t *pin =
        candidate ? hd_candidate_pin(&t->arena, candidate) : &rules;
    hd_tune_candidate_t c = {.choice = choice_of(&t->arena, pin),
                             .expected_us = candidate ? candidate->us : 0,
                             .note = ""};
    take_row(&c, &rows);
    if (!is_wanted && !c.was_known)
      continue;
    work->pins[tuned->candidates.size] = pin;
    hd_vec_push(&t->arena, &tuned->candidates, c);
  }
  hd_tuned_note_gone(tuned, &rows);
  work->tuned = tuned;
  work->tunable = tunable;
  hd_vec_push(&t->arena, &t->report.groups, tuned);
  return tuned;
}

static unsigned count_open(const hd_tuned_t *tuned) {
  unsigned count = 0;
  for (size_t i = 0; i < tuned->candidates.size; i++)
    count += tuned->candidates.data[i].status == HD_TUNE_OPEN;
  return count;
}

static void make_texts(hd_tuner_t *t, hd_tune_work_t *work) {
  size_t count = work->tuned->candidates.size;
  work->texts = HD_ARENA_ARRAY(&t->arena, const char *, count + 1);
  work->reference = text_of(t, work, &rules);
  for (size_t i = 0; i < count; i++)
    work->texts[i] = work->pins[i] == &rules ? work->reference
                                             : text_of(t, work, work->pins[i]);
}

// --- What is chosen ---

const hd_tune_candidate_t *hd_tuned_find(const hd_tuned_t *tuned,
                                         const char *choice) {
  for (size_t i = 0; i < tuned->candidates.size; i++)
    if (tuned->candidates.data[i].status == HD_TUNE_MEASURED &&
        strcmp(tuned->candidates.data[i].choice, choice) == 0)
      return &tuned->candidates.data[i];
  return NULL;
}

bool hd_tune_is_faster(const hd_tune_candidate_t *a,
                       const hd_tune_candidate_t *b) {
  return a->us < b->us || (a->us <= b->us && strcmp(a->choice, b->choice) < 0);
}

void hd_tuner_find_best(hd_tuner_t *t, const char *whole, hd_tuned_t *tuned) {
  const char *known =
      hd_tune_database_exchanged(t->database, &t->arena, whole, tuned->key);
  t->was_exchanged |= known != NULL;
  tuned->best = known ? hd_tuned_find(tuned, known) : NULL;
  if (tuned->best)
    return;
  for (size_t i = 0; i < tuned->candidates.size; i++) {
    const hd_tune_candidate_t *c = &tuned->candidates.data[i];
    if (c->status == HD_TUNE_MEASURED &&
        (!tuned->best || hd_tune_is_faster(c, tuned->best)))
      tuned->best = c;
  }
}

// The pin that says what a group's best candidate does, which lives as long as
// the module.
static const hd_pin_t *pin_of(hd_module_t *module, const hd_tuned_t *tuned,
                              const hd_tunable_t *tunable) {
  hd_arena_t *arena = &module->arena;
  unsigned count = 0;
  if (!tuned->best)
    return NULL;
  for (size_t i = 0; i < tuned->candidates.size; i++)
    count += tuned->candidates.data[i].status == HD_TUNE_MEASURED;
  hd_pin_t *pin = HD_ARENA_NEW(arena, hd_pin_t);
  *pin = rules;
  for (size_t i = 0; i < tunable->candidates.size; i++) {
    const hd_pin_t *made =
        hd_candidate_pin(arena, &tunable->candidates.data[i]);
    if (strcmp(choice_of(arena, made), tuned->best->choice) == 0)
      *pin = *made;
  }
  pin->origin = hd_arena_printf(
      arena, "the best of %u measured, %.2f us with what gives its input",
      count, tuned->best->us);
  return pin;
}

static const char *key_of(hd_tuner_t *t, const char *prelude,
                          const hd_tunable_t *tunable) {
  hd_cache_key_t key =
      hd_cache_key(prelude, tunable->text, strlen(tunable->text));
  return hd_arena_printf(&t->arena, "%016llx%016llx",
                         (unsigned long long)key.high,
                         (unsigned long long)key.low);
}

static void measure_all(hd_tuner_t *t, hd_tune_work_t *works, size_t count) {
  t->done = t->total = 0;
  for (size_t i = 0; i < count; i++) {
    t->total += count_open(works[i].tuned);
    make_texts(t, &works[i]);
  }
  // Its device opens while the threads compile.
  if (!t->process.pid)
    hd_tune_process_start(&t->process, t->options.worker, t->options.verbose);
  if (!t->pool)
    t->pool = hd_thread_pool_create(t->options.threads);
  hd_tuner_compile(t, works, count);
  for (size_t i = 0; i < count; i++) {
    hd_budget_check(&t->device->context->budget);
    if (!t->until_ns || hd_clock_ns() < t->until_ns)
      hd_tuner_measure(t, &works[i]);
  }
}

const char *hd_tuner_whole(hd_tuner_t *t, hd_tuned_t *const *tuned,
                           size_t count) {
  hd_buffer_t all = {0};
  for (size_t i = 0; i < count; i++)
    hd_buffer_printf(&all, " %s*%u", tuned[i]->key, tuned[i]->uses);
  hd_cache_key_t key = hd_cache_key("whole", hd_buffer_text(&all), all.size);
  hd_buffer_fini(&all);
  return hd_arena_printf(&t->arena, "%016llx%016llx",
                         (unsigned long long)key.high,
                         (unsigned long long)key.low);
}

// The groups that are asked for, as one.
static void note_whole(hd_tuner_t *t, hd_tuned_t *const *tuned, size_t count) {
  t->last.size = 0;
  for (size_t i = 0; i < count; i++)
    hd_vec_push(&t->arena, &t->last, tuned[i]);
  t->whole = hd_tuner_whole(t, tuned, count);
  hd_tuner_note_asked(t, tuned, count);
}

static void end_worker(void *tuner) {
  hd_tune_process_end(&((hd_tuner_t *)tuner)->process);
}

bool hd_tuner_choose(void *argument, hd_module_t *module,
                     const hd_tunables_t *groups) {
  hd_tuner_t *t = argument;
  uint64_t start = hd_clock_ns();
  hd_budget_t *budget = &t->device->context->budget;
  size_t count = groups->list.size, open = 0;
  hd_tune_work_t *works = HD_ARENA_ARRAY(&t->arena, hd_tune_work_t, count + 1);
  hd_tuned_t **tuned = HD_ARENA_ARRAY(&t->arena, hd_tuned_t *, count + 1);
  if (t->options.time_ms && !t->until_ns)
    t->until_ns = start + (uint64_t)t->options.time_ms * 1000000u;
  for (size_t i = 0; i < count; i++) {
    const hd_tunable_t *group = groups->list.data[i];
    works[open].prelude =
        prelude_of(t, module->context->schedules->module, group);
    const char *key = key_of(t, works[open].prelude, group);
    tuned[i] = hd_tuner_find(t, key);
    if (tuned[i])
      continue;
    tuned[i] = make_tuned(t, groups->list.data[i], key, &works[open]);
    open += t->options.most && count_open(tuned[i]);
  }
  hd_cleanup_t cleanup;
  hd_budget_defer(budget, &cleanup, end_worker, t);
  if (open)
    measure_all(t, works, open);
  hd_budget_clean(budget, &cleanup);
  note_whole(t, tuned, count);
  if (open)
    hd_tune_database_forget(t->database, t->whole);
  for (size_t i = 0; i < count; i++) {
    if (!tuned[i]->best)
      hd_tuner_find_best(t, t->whole, tuned[i]);
    groups->list.data[i]->pin = pin_of(module, tuned[i], groups->list.data[i]);
    if (module->context->schedules->explain)
      hd_tuner_explain(t, tuned[i], groups->list.data[i]->loc);
  }
  t->report.ms += (double)(hd_clock_ns() - start) * 1e-6;
  return true;
}
