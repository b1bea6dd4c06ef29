// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedule templates that there are.
#ifndef HIDET_SCHEDULE_TEMPLATES_H
#define HIDET_SCHEDULE_TEMPLATES_H

#include "IR/Module.h"
#include "IR/Template.h"

typedef struct hd_found_template {
  const hd_template_t *template;
  hd_module_t *home; // That its kernel is an item of.
} hd_found_template_t;

typedef HD_VEC(hd_found_template_t) hd_templates_t;

// Those of the library, then those of a module (may be NULL), which take the
// place of the library's of the same name. False after errors (reported).
bool hd_templates_find(hd_context_t *context, hd_module_t *module,
                       hd_arena_t *arena, hd_templates_t *templates);

#endif
