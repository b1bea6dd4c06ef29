// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A segment's graph to its program, in rounds. What a candidate of a template
// needs is known when its kernel has been joined with its neighbours, compiled
// and loaded: one whose kernel cannot be, or spills so much that the next
// candidate is expected to be faster, is left out, and the graph is scheduled
// anew, with all that is known by then. Kernels that come out as before keep
// their code. Each round leaves out a candidate, or prices one anew, and after
// HD_FALLS_ROUNDS all of a form.
//
// What is found ends with the compilation: another one, in whatever process,
// finds it again, from code that the cache has. So a choice depends on the
// graph, the templates and the device alone.
#include "Runtime/CodeKey.h"
#include "Runtime/GraphProgram.h"
#include "Runtime/ModelState.h"
#include "Runtime/PlanCache.h"
#include "Schedule/Template/Falls.h"

#include <math.h>

typedef struct kept_code {
  const char *text; // Of the kernel; NULL: a program has it.
  hd_buffer_t code;
} kept_code_t;

typedef struct rounds {
  hd_model_t *model;
  hd_model_segment_t *segment;
  hd_arena_t arena;
  hd_falls_t falls;
  hd_key_map_t known; // Code by the kernel's text.
  HD_VEC(kept_code_t *) kept;
  kept_code_t **taken;    // That the variants of this round have.
  hd_failure_t *failures; // Of this round's variants; NULL: it got nowhere.
} rounds_t;

static void end_rounds(void *argument) {
  rounds_t *r = argument;
  r->model->schedules.falls = NULL;
  for (size_t i = 0; i < r->kept.size; i++)
    hd_buffer_fini(&r->kept.data[i]->code);
  hd_arena_fini(&r->arena);
}

// --- Code that is there ---

static const char *text_of(rounds_t *r, const hd_func_t *kernel) {
  hd_buffer_t text;
  hd_buffer_init_local(&text, r->arena.budget);
  hd_code_describe(&r->arena, kernel, &text);
  const char *copy =
      hd_arena_strndup(&r->arena, hd_buffer_text(&text), text.size);
  hd_buffer_fini(&text);
  return copy;
}

// The program's code outlives it.
static void keep_code(rounds_t *r) {
  hd_program_t *p = &r->segment->program;
  for (size_t i = 0; i < p->variants.size; i++) {
    hd_kernel_t *kernel = p->kernels[i];
    if (!kernel || !kernel->kept.size)
      continue;
    kept_code_t *kept = HD_ARENA_NEW(&r->arena, kept_code_t);
    kept->text = text_of(r, p->variants.data[i].func);
    hd_vec_push(&r->arena, &r->kept, kept);
    hd_key_map_set_name(&r->arena, &r->known, kept->text, kept);
    kept->code = kernel->kept;
    kernel->kept = (hd_buffer_t){0};
  }
}

static const hd_code_t *find_codes(rounds_t *r) {
  const hd_program_t *p = &r->segment->program;
  if (!r->kept.size)
    return NULL;
  hd_code_t *codes = HD_ARENA_ARRAY(&r->arena, hd_code_t, p->variants.size + 1);
  r->taken = HD_ARENA_ARRAY(&r->arena, kept_code_t *, p->variants.size + 1);
  for (size_t i = 0; i < p->variants.size; i++) {
    kept_code_t *kept =
        hd_key_map_find_name(&r->known, text_of(r, p->variants.data[i].func));
    if (!kept || !kept->code.size)
      continue;
    r->taken[i] = kept;
    codes[i] = (hd_code_t){kept->code.data, kept->code.size, NULL};
  }
  return codes;
}

// What was kept is the kernels' from here on.
static void give_code(rounds_t *r) {
  hd_program_t *p = &r->segment->program;
  for (size_t i = 0; r->taken && i < p->variants.size; i++) {
    if (!r->taken[i] || !p->kernels[i] || p->kernels[i]->kept.size)
      continue;
    p->kernels[i]->kept = r->taken[i]->code;
    r->taken[i]->code = (hd_buffer_t){0};
  }
}

// --- A round ---

static bool compile(rounds_t *r) {
  hd_model_t *m = r->model;
  hd_model_segment_t *segment = r->segment;
  hd_program_t *p = &segment->program;
  hd_graph_program_options_t options = {
      .keep_layouts = m->options.keep_layouts,
      .explain = m->options.explain,
      .unfused = m->options.unfused || m->options.watch,
      .formed = !m->options.unfused && hd_model_counts_steps(m),
      .in_turn = m->options.in_turn,
      .inouts = segment->inouts};
  r->failures = NULL;
  r->taken = NULL;
  segment->made = hd_module_create(hd_model_context(m));
  if (!hd_graph_program_init(p, m->device, segment->made, segment->graph,
                             &m->schedules, &options))
    return false;
  const hd_code_t *codes = find_codes(r);
  r->failures = HD_ARENA_ARRAY(&r->arena, hd_failure_t, p->variants.size + 1);
  bool ok = hd_program_load_kernels(p, codes, r->failures);
  give_code(r);
  return ok;
}

static void end_round(rounds_t *r) {
  keep_code(r);
  hd_program_fini(&r->segment->program);
  hd_module_destroy(r->segment->made);
  r->segment->made = NULL;
}

// --- What is found of it ---

static void leave_out(rounds_t *r, const hd_chosen_t *chosen,
                      hd_diagnostic_code_t code, const char *why) {
  hd_falls_add(
      &r->falls,
      &(hd_fall_t){.of = chosen->of, .why = why, .code = code, .us = INFINITY});
}

// Kernels that could not be made code of, or loaded: whether others take the
// place of all.
static bool judge_failures(rounds_t *r) {
  const hd_program_t *p = &r->segment->program;
  bool any = false;
  for (size_t i = 0; i < p->variants.size; i++) {
    hd_diagnostic_code_t code = r->failures[i].code;
    if (code != HD_DIAGNOSTIC_COUNT &&
        !hd_chosen_may_fall(p->variants.data[i].func->chosen, &r->falls, code))
      return false;
    any |= code != HD_DIAGNOSTIC_COUNT;
  }
  for (size_t i = 0; i < p->variants.size; i++)
    if (r->failures[i].code != HD_DIAGNOSTIC_COUNT)
      leave_out(r, p->variants.data[i].func->chosen, r->failures[i].code,
                r->failures[i].why);
  return any;
}

// Launches that the device has no room for; those of one variant have the same
// sizes. What cannot be helped is reported when the launch is planned.
static bool judge_launches(rounds_t *r) {
  hd_program_t *p = &r->segment->program;
  hd_diagnostics_t *diags = &hd_model_context(r->model)->diags;
  bool *seen = HD_ARENA_ARRAY(&r->arena, bool, p->variants.size + 1);
  bool any = false;
  for (size_t i = 0; i < p->sites.size; i++) {
    const hd_call_site_t *site = &p->sites.data[i];
    const hd_chosen_t *chosen = p->variants.data[site->variant].func->chosen;
    hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
    if (!chosen || seen[site->variant])
      continue;
    seen[site->variant] = true;
    if (hd_program_fits(p, site))
      continue;
    const hd_diagnostic_t *d = hd_diagnostics_since(diags, mark);
    if (d && hd_chosen_may_fall(chosen, &r->falls, d->code)) {
      leave_out(r, chosen, d->code, d->message);
      any = true;
    }
    hd_diagnostics_rewind(diags, mark);
  }
  return any;
}

static bool judge_spills(rounds_t *r) {
  const hd_program_t *p = &r->segment->program;
  bool any = false;
  for (size_t i = 0; i < p->variants.size; i++) {
    const hd_chosen_t *chosen = p->variants.data[i].func->chosen;
    int bytes = p->kernels[i]->local_bytes;
    if (!chosen || !chosen->of.name || bytes <= 0)
      continue;
    double us = r->falls.rounds < HD_FALLS_ROUNDS
                    ? hd_chosen_spill(chosen, &r->falls, bytes)
                    : 0;
    const char *why = hd_arena_printf(
        &r->arena,
        "registers do not suffice for %d bytes of a thread, for which %.2f us "
        "more are expected",
        bytes, chosen->byte_us * bytes);
    if (us > 0)
      hd_falls_add(&r->falls, &(hd_fall_t){.of = chosen->of,
                                           .why = why,
                                           .code = HD_DIAGNOSTIC_COUNT,
                                           .us = us});
    else if (r->model->options.explain &&
             !hd_falls_find(&r->falls, &chosen->of))
      hd_remark(&hd_model_context(r->model)->diags, (hd_loc_t){0},
                "schedule: %s stays: %s", chosen->of.name, why);
    any |= us > 0;
  }
  return any;
}

// Whether another round will do what this one did not, or do it better.
static bool judge(rounds_t *r, bool ok) {
  if (!r->failures)
    return false;
  if (!ok)
    return judge_failures(r);
  bool any = judge_launches(r);
  return judge_spills(r) || any;
}

// Where nothing was left that does for the kernel that failed first, what was
// tried first in its place says why.
static void note_first(const rounds_t *r) {
  const hd_program_t *p = &r->segment->program;
  for (size_t i = 0; r->failures && i < p->variants.size; i++) {
    const hd_chosen_t *chosen = p->variants.data[i].func->chosen;
    if (r->failures[i].code == HD_DIAGNOSTIC_COUNT)
      continue;
    const hd_fall_t *fall =
        chosen ? hd_falls_first(&r->falls, chosen->of.form) : NULL;
    if (fall)
      hd_note(&hd_model_context(r->model)->diags, (hd_loc_t){0},
              "%s was left out before: %s", hd_fall_name(fall), fall->why);
    return;
  }
}

static bool compile_in_rounds(hd_model_t *m, hd_model_segment_t *segment) {
  hd_context_t *context = hd_model_context(m);
  rounds_t r = {.model = m, .segment = segment};
  hd_cleanup_t cleanup;
  hd_arena_init(&r.arena, &context->budget);
  hd_budget_defer(&context->budget, &cleanup, end_rounds, &r);
  r.falls.arena = &r.arena;
  m->schedules.falls = &r.falls;
  m->schedules.choose = m->prepares ? NULL : m->options.choose;
  m->schedules.choose_argument = m->options.choose_argument;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(&context->diags);
  bool ok = compile(&r);
  while (judge(&r, ok)) {
    end_round(&r);
    hd_diagnostics_rewind(&context->diags, mark);
    hd_falls_begin(&r.falls);
    ok = compile(&r);
  }
  if (!ok)
    note_first(&r);
  hd_budget_clean(&context->budget, &cleanup);
  return ok;
}

bool hd_model_compile(hd_model_t *m, hd_model_segment_t *segment, bool loaded) {
  hd_cache_key_t key = hd_plan_key(m, segment);
  hd_cache_key_t foreseen = hd_plan_foresee(m, key);
  bool ok =
      (foreseen.low | foreseen.high) != 0 && hd_plan_find(m, segment, foreseen);
  if (!ok) {
    ok = compile_in_rounds(m, segment);
    hd_cache_key_t chosen = ok ? hd_plan_chosen(m, key) : key;
    if (ok && (chosen.low | chosen.high) != 0)
      hd_plan_keep(m, segment, chosen);
    // What was measured may be no candidate any more.
    bool is_other = foreseen.low != chosen.low || foreseen.high != chosen.high;
    if (ok && (foreseen.low | foreseen.high) != 0 && is_other)
      hd_plan_keep(m, segment, foreseen);
  }
  return ok && (!loaded || hd_program_make_ready(&segment->program));
}
