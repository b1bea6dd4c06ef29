// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What templates answer for a form and a machine.
#ifndef HIDET_SCHEDULE_TEMPLATE_CANDIDATES_H
#define HIDET_SCHEDULE_TEMPLATE_CANDIDATES_H

#include "IR/Graph/Pin.h"
#include "IR/Graph/Task.h"
#include "IR/Template.h"
#include "Schedule/Template/Machine.h"
#include "Support/Map.h"

// A template with values for its choices.
typedef struct hd_candidate {
  const hd_template_t *template;
  hd_module_t *home; // That the template's kernel is an item of.
  int64_t values[HD_MAX_CHOICES];
  int64_t figures[HD_FIGURE_COUNT];
  double us;     // What it is expected to take.
  size_t number; // In the order of the heads.
  // What was found of its kernel (Falls.h); NULL: nothing.
  struct hd_fall *fall;
} hd_candidate_t;

typedef HD_VEC(hd_candidate_t) hd_candidates_t;

// What templates are asked about a form.
typedef struct hd_form {
  hd_form_kind_t kind;
  int64_t sizes[HD_FORM_AXES];
  hd_scalar_t type;   // Of the operands.
  hd_scalar_t second; // Of b's elements, where it is of another type; else
                      // void.
  hd_scalar_t kept;   // Of the narrower tensor that b is computed from; else
                      // void.
  int64_t names[HD_TEMPLATE_NAMES];     // But for those of the machine.
  const char *no_map[HD_FORM_OPERANDS]; // Why there is no tensor map of an
                                        // operand, as hd_form_tensor_t has it.
  const char
      *no_read[HD_FORM_OPERANDS]; // Likewise, why kernels cannot load it.
  const char *no_turned_map; // Of a as kernels have it that take it turned.
  // What the form gives of the kernel's compile-time parameters: "T = f16, N =
  // 768",
  const char *values;
  // and of those of a kernel that has a map of the operand, or reads it: "H =
  // 56, W = 56"; NULL: nothing beside the rest.
  const char *given[HD_FORM_OPERANDS];
  // Of a kernel that takes it: as hd_surroundings_t has it; 0: not known.
  unsigned leaving;
  // Likewise: elements of the result that lie side by side, from where rows
  // begin on and from each multiple of them; 0: 16 bytes, or not known.
  unsigned aligned;
  int64_t neighbours; // Likewise: those alone that store so many side by side.
  // The microseconds that a candidate is expected to take; infinite where a
  // multiprocessor has no room for it.
  double (*price)(const hd_machine_t *machine, const struct hd_form *form,
                  const hd_candidate_t *candidate);
  // Threads of all blocks together, each counted once, and once for each of its
  // steps.
  double (*turns)(const struct hd_form *form, const hd_candidate_t *candidate);
  const void *of; // The form itself, for price.
} hd_form_t;

// A template that answers with no candidate, or a candidate that was left out
// when more was known of it, and why, as a sentence.
typedef struct hd_refused {
  const char *name;
  const char *why;
  struct hd_fall *fall; // Of the candidate; NULL of a template.
} hd_refused_t;

typedef HD_VEC(hd_refused_t) hd_refusals_t;

// The candidates of all templates for a form and the machine that the context's
// schedules are for, none left out by name, by what they are expected to take;
// of those that are as good, in the order of the heads. Those that were found
// not to do before are left out, unless the text pins them. pin, which may be
// NULL: those alone that it allows; it is no HD_PIN_RULES. False after an
// error: pins that no head knows (E0201, E0320). refused: templates without
// any, and what is left out.
bool hd_candidates_find(hd_context_t *context, hd_arena_t *arena,
                        const hd_form_t *form, const hd_pin_t *pin,
                        hd_candidates_t *candidates, hd_refusals_t *refused);

// The same for a flat task: as an attention where it is one, else of a
// product whose columns stand in pairs where it is one, else of rows by chosen
// matrices where it is that, and with them, else alone, of the first of its
// definitions that is a product, else of the first that sums over
// windows, else of the first that are rows, and with the last two as a product
// of a few rows where that is all the task is; none where there are no such.
// computed, gathered: as hd_surroundings_t has them.
bool hd_task_candidates(hd_context_t *context, hd_arena_t *arena,
                        const hd_task_t *flat, uint64_t computed,
                        uint64_t gathered, hd_candidates_t *candidates);

// The microseconds that the best of them is expected to take with all operands
// in memory; 0: there is none. prices: doubles by the texts of tasks, in
// `arena`, so that tasks alike are asked about once; the candidates lie in
// `scratch`.
double hd_task_price(hd_context_t *context, hd_arena_t *scratch,
                     const hd_task_t *flat, hd_arena_t *arena,
                     hd_key_map_t *prices);

// Whether its kernel stores so many neighbours from lanes side by side.
bool hd_candidate_has_rows(const hd_candidate_t *candidate, int64_t neighbours);
// The first of them that does; NULL: none.
const hd_candidate_t *hd_candidates_with_rows(const hd_candidates_t *candidates,
                                              int64_t neighbours);

// All that a candidate settles.
const hd_pin_t *hd_candidate_pin(hd_arena_t *arena,
                                 const hd_candidate_t *candidate);

#endif
