// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sum over windows by a template:
//
//   kernel tiles[T, O, KH, KW, SH, SW, DH, DW, ...](z, m, n, c,
//       in x: T[z, rows, columns, c], in w: T[KH, KW, c], out y: O[z, m, n, c])
//
// knows the form alone, whose sizes are its compile-time parameters; what it
// loads and stores becomes what the task says, the image's borders above all.
#include "Schedule/Access/Access.h"
#include "Schedule/Template/Instance.h"
#include "Schedule/Template/Templates.h"
#include "Schedule/Window/Window.h"

enum { X, W, Y, PARAMS };

bool hd_rule_window(hd_rules_t *rules, const hd_definition_t *d) {
  hd_arena_t *arena = &rules->module->arena;
  hd_window_form_t *form = HD_ARENA_NEW(arena, hd_window_form_t);
  const hd_pin_t *pin;
  if (hd_window_form_find(arena, d, form) ||
      !hd_template_may_serve(rules, HD_FORM_KIND_WINDOW, &pin))
    return false;
  hd_window_form_mark(form, rules->flat, rules->computed);
  hd_form_t asked = hd_window_form_ask(arena, form);
  hd_choice_made_t made;
  if (!hd_template_choose(rules, &asked, pin, &made))
    return false;
  bool by_map = made.candidate.template->maps[X];
  const hd_form_tensor_t *tensors[PARAMS] = {by_map ? &form->image : &form->x,
                                             &form->w, &form->y};
  hd_candidate_keep_maps(arena, made.kernel, &form->y, form->result.type);
  hd_candidate_join(rules, made.kernel, &form->result, tensors, Y, PARAMS);
  return true;
}
