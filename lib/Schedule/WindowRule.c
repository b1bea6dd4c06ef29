// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sum over windows by a template:
//
//   kernel tiles[T, O, KH, KW, SH, SW, DH, DW, ...](z, m, n, c,
//       in x: T[z, rows, columns, c], in w: T[KH, KW, c], out y: O[z, m, n, c])
//
// knows the form alone, whose sizes are its compile-time parameters; what it
// loads and stores becomes what the task says, the image's borders above all.
#include "Schedule/Access.h"
#include "Schedule/Instance.h"
#include "Schedule/Templates.h"
#include "Schedule/Window.h"

enum { X, W, Y, PARAMS };

typedef struct joint {
  const hd_window_form_t *form;
  hd_translator_t t;
} joint_t;

typedef struct hook {
  joint_t *joint;
  const hd_form_tensor_t *tensor;
} hook_t;

static void bind_places(hook_t *h, hd_builder_t *b,
                        const hd_expr_t *const *at) {
  h->joint->t.b = b;
  for (unsigned i = 0; i < h->tensor->rank; i++)
    hd_translate_bind(&h->joint->t, h->tensor->indices[i], at[i]);
}

static const hd_expr_t *on_load(void *argument, hd_builder_t *b,
                                const hd_expr_t *const *at) {
  hook_t *h = argument;
  bind_places(h, b, at);
  return hd_translate(&h->joint->t, h->tensor->term);
}

static void on_store(void *argument, hd_builder_t *b,
                     const hd_expr_t *const *at, const hd_expr_t *value) {
  hook_t *h = argument;
  bind_places(h, b, at);
  hd_form_result_store(&h->joint->form->result, &h->joint->t, value);
}

static const char *given_by(hd_arena_t *arena, const hd_window_form_t *form) {
  const int64_t *s = form->sizes;
  return hd_arena_printf(
      arena,
      "T = %s, O = %s, KH = %lld, KW = %lld, SH = %lld, SW = %lld, DH = %lld, "
      "DW = %lld",
      hd_scalar_name(form->type), hd_scalar_name(form->result.type),
      (long long)s[HD_WINDOW_HEIGHT], (long long)s[HD_WINDOW_WIDTH],
      (long long)s[HD_WINDOW_ROW_STEP], (long long)s[HD_WINDOW_COLUMN_STEP],
      (long long)form->dilations[0], (long long)form->dilations[1]);
}

static bool make_kernel(hd_rules_t *rules, const hd_window_form_t *form,
                        const hd_form_t *asked, const hd_candidate_t *candidate,
                        const char *instance) {
  hd_func_t *kernel =
      hd_candidate_kernel(rules->module, candidate, instance, asked);
  if (!kernel)
    return false;
  joint_t joint = {.form = form};
  const hd_form_tensor_t *tensors[PARAMS] = {&form->x, &form->w, &form->y};
  hd_access_hook_t hooks[PARAMS];
  hook_t hook[PARAMS];
  size_t count = 0;
  for (uint32_t i = 0; i < kernel->num_params && i < PARAMS; i++) {
    hook[i] = (hook_t){&joint, tensors[i]};
    if (!tensors[i]->same)
      hooks[count++] = (hd_access_hook_t){.param = kernel->params[i],
                                          .argument = &hook[i],
                                          .load = i == Y ? NULL : on_load,
                                          .store = i == Y ? on_store : NULL};
  }
  hd_candidate_launch(rules, &joint.t, kernel, hooks, count, tensors);
  return true;
}

bool hd_rule_window(hd_rules_t *rules, const hd_definition_t *d) {
  hd_arena_t *arena = &rules->module->arena;
  hd_window_form_t *form = HD_ARENA_NEW(arena, hd_window_form_t);
  const hd_pin_t *pin;
  if (hd_window_form_find(arena, d, form) ||
      !hd_template_may_serve(rules, HD_FORM_KIND_WINDOW, &pin))
    return false;
  hd_form_t asked = hd_window_form_ask(form);
  hd_candidate_t best;
  const char *instance = "";
  if (!hd_template_choose(rules, &asked, pin, given_by(arena, form), &best,
                          &instance))
    return false;
  rules->failed = !make_kernel(rules, form, &asked, &best, instance);
  return !rules->failed;
}
