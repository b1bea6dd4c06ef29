// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedule templates that there are, and kernels of the best of their
// candidates.
#ifndef HIDET_SCHEDULE_TEMPLATE_TEMPLATES_H
#define HIDET_SCHEDULE_TEMPLATE_TEMPLATES_H

#include "IR/Module.h"
#include "Schedule/Rules/Rules.h"
#include "Schedule/Template/Candidates.h"

typedef struct hd_found_template {
  const hd_template_t *template;
  hd_module_t *home; // That its kernel is an item of.
} hd_found_template_t;

typedef HD_VEC(hd_found_template_t) hd_templates_t;

// Those of the library, then those of a module (may be NULL), which take the
// place of the library's of the same name. False after errors (reported).
bool hd_templates_find(hd_context_t *context, hd_module_t *module,
                       hd_arena_t *arena, hd_templates_t *templates);

// Whether templates are asked at all: a GPU is meant, and the text does not say
// otherwise. pin: the one that is for definitions of the form, or NULL. After
// an error (reported) rules->failed.
bool hd_template_may_serve(hd_rules_t *rules, hd_form_kind_t kind,
                           const hd_pin_t **pin);
// Another rule takes the definition, and a pin (NULL: none) needs one that a
// template takes: notes and explains why, and returns false.
bool hd_template_leave(hd_rules_t *rules, const hd_pin_t *pin, const char *why);
// A candidate that was chosen, and its kernels before they know their task.
typedef struct hd_choice_made {
  hd_candidate_t candidate;
  hd_func_t *kernel;
  hd_func_t *then; // That runs behind it; NULL: none.
} hd_choice_made_t;

// The best candidate for a form whose kernel can be made for these sizes and
// this machine. One that cannot, since an assertion of its text or a limit of
// the machine says so, makes room for the next, unless it is pinned; any other
// fault of a text is an error. False where there is none; then rules->left says
// so to the kernel of a rule, if there were some. After an error (reported)
// rules->failed.
bool hd_template_choose(hd_rules_t *rules, const hd_form_t *form,
                        const hd_pin_t *pin, hd_choice_made_t *made);

#endif
