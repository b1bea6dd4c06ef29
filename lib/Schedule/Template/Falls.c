// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Template/Falls.h"

#include "IR/Passes/Specialize.h"
#include "IR/SharedPlan.h"
#include "IR/Text/Library.h"

#include <math.h>
#include <string.h>

enum { L1_BYTES = 128 }; // A cycle, of a multiprocessor.

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
                               const hd_func_t *kernel) {
  const hd_stmt_t *failed;
  if (hd_func_failed_assert(kernel, &failed))
    return failed->u.assertion.message ? failed->u.assertion.message
                                       : "the sizes do not satisfy it";
  int64_t cluster = 1, size;
  for (int i = 0; i < 3; i++)
    if (kernel->launch.cluster[i] &&
        hd_expr_fold_int(kernel->launch.cluster[i], &size))
      cluster *= size;
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

const char *hd_candidate_name(hd_arena_t *arena,
                              const hd_candidate_t *candidate) {
  hd_buffer_t text;
  hd_buffer_init_local(&text, arena->budget);
  hd_pin_print(hd_candidate_pin(arena, candidate), &text);
  const char *copy = hd_arena_strndup(arena, hd_buffer_text(&text), text.size);
  hd_buffer_fini(&text);
  return copy;
}

const char *hd_candidate_key(hd_context_t *context, hd_arena_t *arena,
                             const hd_form_t *form,
                             const hd_candidate_t *candidate) {
  const hd_template_t *t = candidate->template;
  hd_buffer_t key;
  hd_buffer_init_local(&key, arena->budget);
  hd_buffer_printf(&key, "%s %s %s", hd_form_info(form->kind)->name,
                   hd_scalar_name(form->type), hd_scalar_name(form->second));
  for (int i = 0; i < HD_FORM_AXES; i++)
    hd_buffer_printf(&key, " %lld", (long long)form->sizes[i]);
  for (int i = 0; i < HD_TEMPLATE_NAMES; i++)
    hd_buffer_printf(&key, ",%lld", (long long)form->names[i]);
  // What is computed where it is loaded takes registers.
  for (int i = 0; i < HD_FORM_OPERANDS; i++)
    hd_buffer_puts(&key, form->no_map[i] ? ",-" : ",m");
  hd_buffer_printf(&key, " %s", t->name);
  for (size_t i = 0; i < t->choices.size; i++)
    hd_buffer_printf(&key, ",%lld", (long long)candidate->values[i]);
  uint32_t source = t->loc.source;
  if (candidate->home != hd_library_templates(context) && source) {
    const hd_source_t *text = &context->diags.sources[source - 1];
    hd_buffer_printf(&key, " %016llx",
                     (unsigned long long)hd_hash(0, text->text, text->size));
  }
  const char *copy = hd_arena_strndup(arena, hd_buffer_text(&key), key.size);
  hd_buffer_fini(&key);
  return copy;
}

// Threads of all blocks together, each counted once, and once for each of its
// steps.
static double turns_of(const hd_form_t *form, const hd_candidate_t *c) {
  const int64_t *n = form->sizes, *figures = c->figures;
  double threads = (double)figures[HD_FIGURE_THREADS];
  double down = (double)figures[HD_FIGURE_TILE_M],
         across = (double)figures[HD_FIGURE_TILE_N],
         along = (double)figures[HD_FIGURE_TILE_K];
  double tiles = (double)n[0] * ceil((double)n[1] / fmax(down, 1));
  switch (form->kind) {
  case HD_FORM_KIND_PRODUCT:
  case HD_FORM_KIND_NORMED:
    return tiles * ceil((double)n[2] / fmax(across, 1)) *
           (1 + ceil((double)n[3] / fmax(along, 1))) * threads;
  case HD_FORM_KIND_ATTENTION:
    return tiles * (1 + ceil((double)n[2] / fmax(along, 1))) * threads;
  case HD_FORM_KIND_ROWS:
    return 2 * ceil((double)n[0] / fmax(down, 1)) *
           (double)figures[HD_FIGURE_SPLIT] * threads;
  case HD_FORM_KIND_WINDOW: // Of a thread, or of a block with shared memory.
    return 2 * tiles * ceil((double)n[2] / fmax(across, 1)) *
           ceil((double)n[3] / fmax(along, 1)) /
           fmax((double)figures[HD_FIGURE_IMAGES], 1) *
           (figures[HD_FIGURE_SHARED] > 0 ? threads : 1);
  case HD_FORM_KIND_GROUPED:
    return (fmin((double)n[0], (double)n[1]) + (double)n[1] / fmax(down, 1)) *
           ceil((double)n[2] / fmax(across, 1)) *
           (1 + ceil((double)n[3] / fmax(along, 1))) * threads;
  case HD_FORM_KIND_COUNT:
    break;
  }
  return 0;
}

double hd_candidate_byte_us(const hd_machine_t *machine, const hd_form_t *form,
                            const hd_candidate_t *candidate) {
  return turns_of(form, candidate) / L1_BYTES / fmax(machine->count, 1) /
         fmax(machine->mhz, 1);
}

hd_fall_t *hd_falls_find(const hd_falls_t *falls, const char *key) {
  return falls && falls->list.size ? hd_key_map_find_name(&falls->known, key)
                                   : NULL;
}

hd_fall_t *hd_falls_add(hd_falls_t *falls, hd_arena_t *arena,
                        const hd_fall_t *fall) {
  hd_fall_t *made = hd_falls_find(falls, fall->key);
  arena = falls ? falls->arena : arena;
  const char *key = made ? made->key : hd_arena_printf(arena, "%s", fall->key);
  bool is_new = !made;
  if (is_new)
    made = HD_ARENA_NEW(arena, hd_fall_t);
  *made = *fall;
  made->key = key;
  made->name = hd_arena_printf(arena, "%s", fall->name);
  made->why = hd_arena_printf(arena, "%s", fall->why);
  if (falls && is_new) {
    hd_key_map_set_name(arena, &falls->known, key, made);
    hd_vec_push(arena, &falls->list, made);
  }
  return made;
}

void hd_falls_begin(hd_falls_t *falls, bool again) {
  for (size_t i = 0; again && i < falls->list.size; i++)
    if (falls->list.data[i]->told == falls->rounds + 1)
      falls->list.data[i]->told = 0;
  falls->rounds++;
}

void hd_chosen_fall(const hd_chosen_t *chosen, hd_falls_t *falls,
                    hd_arena_t *arena, const char *why, double us) {
  const hd_fall_t fall = {.key = chosen->key,
                          .name = chosen->name,
                          .why = why,
                          .us = us,
                          .is_users = chosen->is_users,
                          .is_new = true};
  hd_falls_add(falls, arena, &fall);
}

double hd_chosen_spill(const hd_chosen_t *chosen, const hd_falls_t *falls,
                       int bytes) {
  double us = chosen->byte_us * bytes;
  if (chosen->is_pinned || chosen->is_measured ||
      hd_falls_find(falls, chosen->key))
    return 0;
  bool counts = us > chosen->us * LEAST_SPILL;
  return counts && chosen->us + us > chosen->next_us ? us : 0;
}

void hd_falls_apply(hd_context_t *context, hd_arena_t *arena,
                    const hd_form_t *form, hd_candidates_t *candidates,
                    hd_refusals_t *refused) {
  const hd_falls_t *falls = context->schedules->falls;
  size_t kept = 0;
  if (!falls || !falls->list.size)
    return;
  for (size_t i = 0; i < candidates->size; i++) {
    hd_candidate_t *c = &candidates->data[i];
    hd_fall_t *fall =
        hd_falls_find(falls, hd_candidate_key(context, arena, form, c));
    c->fall = fall;
    if (fall)
      c->us += fall->us;
    if (!fall || isfinite(fall->us))
      candidates->data[kept++] = *c;
    else
      hd_vec_push(arena, refused,
                  ((hd_refused_t){fall->name, fall->why, fall}));
  }
  candidates->size = kept;
}
