// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Template/Falls.h"

#include "IR/Passes/Specialize.h"
#include "IR/SharedPlan.h"
#include "IR/Text/Library.h"

#include <math.h>
#include <string.h>

static const double LEAST_SPILL = 0.02; // Of a price.

bool hd_code_falls(hd_diagnostic_code_t code) {
  switch ((int)code) {
  case HD_E0219: // An assertion,
  case HD_E0708: // likewise.
  case HD_E0307: // A number is too large.
  case HD_E0501: // The target lacks an instruction.
  case HD_E0505: // Shared memory,
  case HD_E0506: // instructions.
  case HD_E0606: // Limits of a launch,
  case HD_E0612: // of machine code.
    return true;
  default:
    return false;
  }
}

const char *hd_kernel_obstacle(hd_arena_t *arena, const hd_machine_t *machine,
                               const hd_func_t *kernel,
                               hd_diagnostic_code_t *code) {
  const hd_stmt_t *failed;
  *code = HD_E0219;
  if (hd_func_failed_assert(kernel, &failed))
    return failed->u.assertion.message ? failed->u.assertion.message
                                       : "the sizes do not satisfy it";
  int64_t cluster = 1, size;
  for (int i = 0; i < 3; i++)
    if (kernel->launch.cluster[i] &&
        hd_expr_fold_int(kernel->launch.cluster[i], &size))
      cluster *= size;
  *code = HD_E0606;
  if (cluster > 1 && machine->sm < 90)
    return hd_arena_printf(
        arena, "its kernel has clusters of %lld blocks, and sm_%d has none",
        (long long)cluster, machine->sm);
  return NULL;
}

const char *hd_kernel_too_large(hd_arena_t *arena, const hd_machine_t *machine,
                                const hd_func_t *kernel) {
  int64_t shared;
  if (hd_expr_fold_int(hd_shared_plan(arena, kernel)->size, &shared) &&
      shared > machine->block_shared)
    return hd_arena_printf(
        arena,
        "its kernel needs %lld bytes of shared memory, and sm_%d gives a block "
        "%lld",
        (long long)shared, machine->sm, (long long)machine->block_shared);
  return NULL;
}

static const char *end_text(hd_arena_t *arena, hd_buffer_t *text) {
  const char *copy = hd_arena_strndup(arena, hd_buffer_text(text), text->size);
  hd_buffer_fini(text);
  return copy;
}

const char *hd_form_key(hd_arena_t *arena, const hd_form_t *form) {
  hd_buffer_t key;
  hd_buffer_init_local(&key, arena->budget);
  hd_buffer_printf(&key, "%s %s %s %s", hd_form_info(form->kind)->name,
                   hd_scalar_name(form->type), hd_scalar_name(form->second),
                   hd_scalar_name(form->kept));
  for (int i = 0; i < HD_FORM_AXES; i++)
    hd_buffer_printf(&key, " %lld", (long long)form->sizes[i]);
  for (int i = 0; i < HD_TEMPLATE_NAMES; i++)
    hd_buffer_printf(&key, ",%lld", (long long)form->names[i]);
  hd_buffer_printf(&key, " [%s] %u", form->values, form->aligned);
  // What is computed where it is loaded takes registers.
  for (int i = 0; i < HD_FORM_OPERANDS; i++)
    hd_buffer_printf(&key, ",%s[%s]", form->no_map[i] ? "-" : "m",
                     form->given[i] ? form->given[i] : "");
  return end_text(arena, &key);
}

hd_candidate_key_t hd_candidate_key(hd_context_t *context, hd_arena_t *arena,
                                    const char *form_key, const hd_form_t *form,
                                    const hd_candidate_t *candidate) {
  const hd_template_t *t = candidate->template;
  hd_buffer_t name;
  hd_buffer_init_local(&name, arena->budget);
  hd_pin_print(hd_candidate_pin(arena, candidate), &name);
  return (hd_candidate_key_t){.form = form_key,
                              .template = t->name,
                              .leaving = t->takes_leaving ? form->leaving : 0,
                              .name = end_text(arena, &name),
                              .is_users = candidate->home !=
                                          hd_library_templates(context)};
}

const char *hd_fall_name(const hd_fall_t *fall) {
  return fall->of.name       ? fall->of.name
         : fall->of.template ? fall->of.template
                             : "any template";
}

double hd_candidate_byte_us(const hd_machine_t *machine, const hd_form_t *form,
                            const hd_candidate_t *candidate) {
  return form->turns(form, candidate) / machine->l1_bytes /
         fmax(machine->count, 1) / fmax(machine->mhz, 1);
}

// --- What is kept ---

static void put_key(hd_buffer_t *text, const hd_arena_t *arena,
                    const hd_candidate_key_t *key) {
  hd_buffer_init_local(text, arena->budget);
  hd_buffer_printf(text, "%s\t%s\t%u\t%s", key->form,
                   key->template ? key->template : "", key->leaving,
                   key->name ? key->name : "");
}

hd_fall_t *hd_falls_find(const hd_falls_t *falls,
                         const hd_candidate_key_t *key) {
  hd_buffer_t text;
  if (!falls->list.size)
    return NULL;
  put_key(&text, falls->arena, key);
  hd_fall_t *fall = hd_key_map_find_name(&falls->known, hd_buffer_text(&text));
  hd_buffer_fini(&text);
  return fall;
}

hd_fall_t *hd_falls_find_any(const hd_falls_t *falls,
                             const hd_candidate_key_t *key) {
  const hd_candidate_key_t form = {.form = key->form};
  hd_candidate_key_t all = *key;
  all.name = NULL;
  hd_fall_t *fall = hd_falls_find(falls, key);
  if (!fall)
    fall = hd_falls_find(falls, &all);
  return fall ? fall : hd_falls_find(falls, &form);
}

static const char *copy_of(hd_arena_t *arena, const char *text) {
  return text ? hd_arena_printf(arena, "%s", text) : NULL;
}

static hd_fall_t *enter(hd_falls_t *falls, const hd_fall_t *fall) {
  hd_arena_t *arena = falls->arena;
  hd_fall_t *made = hd_falls_find(falls, &fall->of);
  if (!made) {
    made = HD_ARENA_NEW(arena, hd_fall_t);
    hd_buffer_t text;
    put_key(&text, arena, &fall->of);
    hd_key_map_set_name(arena, &falls->known, end_text(arena, &text), made);
    hd_vec_push(arena, &falls->list, made);
  }
  *made = *fall;
  made->of.form = copy_of(arena, fall->of.form);
  made->of.template = copy_of(arena, fall->of.template);
  made->of.name = copy_of(arena, fall->of.name);
  made->why = copy_of(arena, fall->why);
  return made;
}

// How many candidates of the same template are left out for the same kind of
// reason.
static int count_alike(const hd_falls_t *falls, const hd_fall_t *fall) {
  int count = 0;
  for (size_t i = 0; i < falls->list.size; i++) {
    const hd_fall_t *other = falls->list.data[i];
    count += other->code == fall->code && other->of.name && isinf(other->us) &&
             other->of.leaving == fall->of.leaving &&
             strcmp(other->of.form, fall->of.form) == 0 &&
             strcmp(other->of.template, fall->of.template) == 0;
  }
  return count;
}

hd_fall_t *hd_falls_add(hd_falls_t *falls, const hd_fall_t *fall) {
  hd_fall_t *made = enter(falls, fall);
  if (isfinite(fall->us))
    return made;
  hd_fall_t all = *made;
  all.is_told = false;
  all.of.name = NULL;
  if (count_alike(falls, made) >= HD_FALLS_OF_TEMPLATE) {
    all.why = hd_arena_printf(falls->arena,
                              "%d of its candidates do not do, among them %s: "
                              "%s",
                              HD_FALLS_OF_TEMPLATE, made->of.name, made->why);
    enter(falls, &all);
  }
  if (falls->rounds >= HD_FALLS_ROUNDS) {
    all.of = (hd_candidate_key_t){.form = made->of.form};
    all.why = hd_arena_printf(
        falls->arena, "after %d rounds candidates do not do, among them %s: %s",
        HD_FALLS_ROUNDS, made->of.name, made->why);
    enter(falls, &all);
  }
  return made;
}

void hd_falls_begin(hd_falls_t *falls) {
  for (size_t i = 0; i < falls->list.size; i++)
    falls->list.data[i]->is_told = false;
  falls->rounds++;
}

const hd_fall_t *hd_falls_first(const hd_falls_t *falls, const char *form) {
  for (size_t i = 0; i < falls->list.size; i++)
    if (isinf(falls->list.data[i]->us) &&
        strcmp(falls->list.data[i]->of.form, form) == 0)
      return falls->list.data[i];
  return NULL;
}

bool hd_chosen_may_fall(const hd_chosen_t *chosen, const hd_falls_t *falls,
                        hd_diagnostic_code_t code) {
  if (!chosen || !chosen->of.name || chosen->is_pinned || !hd_code_falls(code))
    return false;
  const hd_fall_t *fall = hd_falls_find(falls, &chosen->of);
  return !fall || isfinite(fall->us);
}

double hd_chosen_spill(const hd_chosen_t *chosen, const hd_falls_t *falls,
                       int bytes) {
  double us = chosen->byte_us * bytes;
  if (chosen->is_pinned || chosen->is_measured ||
      hd_falls_find(falls, &chosen->of))
    return 0;
  bool counts = us > chosen->us * LEAST_SPILL;
  return counts && chosen->us + us > chosen->next_us ? us : 0;
}

static bool is_refused(const hd_refusals_t *refused, const hd_fall_t *fall) {
  for (size_t i = 0; i < refused->size; i++)
    if (refused->data[i].fall == fall)
      return true;
  return false;
}

void hd_falls_apply(const hd_falls_t *falls, hd_context_t *context,
                    hd_arena_t *arena, const hd_form_t *form, bool measured,
                    hd_candidates_t *candidates, hd_refusals_t *refused) {
  size_t kept = 0;
  if (!falls || !falls->list.size)
    return;
  const char *form_key = hd_form_key(arena, form);
  for (size_t i = 0; i < candidates->size; i++) {
    hd_candidate_t *c = &candidates->data[i];
    hd_candidate_key_t key =
        hd_candidate_key(context, arena, form_key, form, c);
    hd_fall_t *fall =
        measured ? hd_falls_find(falls, &key) : hd_falls_find_any(falls, &key);
    if (fall && fall != c->fall)
      c->us += fall->us;
    c->fall = fall;
    if (!fall || isfinite(fall->us))
      candidates->data[kept++] = *c;
    else if (!is_refused(refused, fall))
      hd_vec_push(arena, refused,
                  ((hd_refused_t){hd_fall_name(fall), fall->why, fall}));
  }
  candidates->size = kept;
}
