// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A task that multiplies rows by chosen matrices as two kernels, by a template:
//
//   kernel order[T, O, SHARING, ...](z, m, n, k, in a: T[m / SHARING, k],
//       in b: T[z, n, k], in at: i32[m], out c: O[m, n], workspaces)
//
// and, with the same tensors, by their names, what the template says runs
// behind it. What either does not touch it is not given.
#include "Schedule/Grouped/Grouped.h"
#include "Schedule/Template/Instance.h"
#include "Schedule/Template/Templates.h"

#include <string.h>

enum { A, B, AT, C, PARAMS, MOST_PARAMS = PARAMS + HD_FORM_WORKSPACES };

typedef struct joint {
  hd_rules_t *rules;
  const hd_grouped_form_t *form;
  const hd_func_t *first; // Of the kernels, and what its tensors are.
  const hd_form_tensor_t *tensors[MOST_PARAMS];
  hd_translator_t t;
} joint_t;

static const hd_expr_t *load_index(void *argument, hd_builder_t *b,
                                   const hd_expr_t *const *at) {
  joint_t *joint = argument;
  joint->t.b = b;
  hd_translate_bind(&joint->t, joint->form->row, at[0]);
  // In 32 bits what is none of the matrices stays so.
  const hd_expr_t *index =
      hd_b_cast(b, HD_I64, hd_translate(&joint->t, joint->form->at));
  index = hd_b_op_int(b, HD_EXPR_MAX, index, -1);
  return hd_b_cast(b, HD_I32, hd_b_op_int(b, HD_EXPR_MIN, index, INT32_MAX));
}

static void store_result(void *argument, hd_builder_t *b,
                         const hd_expr_t *const *at, const hd_expr_t *value) {
  joint_t *joint = argument;
  joint->t.b = b;
  hd_translate_bind(&joint->t, joint->form->row, at[0]);
  hd_translate_bind(&joint->t, joint->form->column, at[1]);
  hd_form_result_store(&joint->form->result, &joint->t, value);
}

// Which of the first kernel's tensors one of either is; reports that it is
// none.
static int place_of(const joint_t *joint, const hd_func_t *kernel,
                    const hd_var_t *param) {
  hd_diagnostics_t *diags = &joint->rules->module->context->diags;
  for (uint32_t i = 0; i < joint->first->num_params && i < MOST_PARAMS; i++)
    if (strcmp(joint->first->params[i]->name, param->name) == 0)
      return (int)i;
  hd_error(diags, kernel->loc, HD_E0201, param->name, "");
  hd_note(diags, joint->first->loc,
          "a tensor of the kernel before it is meant");
  return -1;
}

static bool launch(joint_t *joint, hd_func_t *kernel) {
  const hd_form_tensor_t *tensors[MOST_PARAMS];
  hd_access_hook_t hooks[MOST_PARAMS];
  size_t count = 0;
  for (uint32_t i = 0; i < kernel->num_params && i < MOST_PARAMS; i++) {
    int at = place_of(joint, kernel, kernel->params[i]);
    if (at < 0)
      return false;
    tensors[i] = joint->tensors[at];
    // A map keeps what it is of.
    if (at == B && kernel->num_maps)
      continue;
    hooks[count++] = (hd_access_hook_t){
        .param = kernel->params[i],
        .argument = joint,
        .load = at == AT ? load_index : NULL,
        .store = at == C && !tensors[i]->same ? store_result : NULL};
  }
  joint->t = (hd_translator_t){0};
  hd_candidate_launch(joint->rules, &joint->t, kernel, hooks, count, tensors);
  return true;
}

static bool join_kernels(hd_rules_t *rules, const hd_grouped_form_t *form,
                         const hd_choice_made_t *made) {
  static const hd_form_tensor_t computed;
  joint_t joint = {.rules = rules,
                   .form = form,
                   .first = made->kernel,
                   .tensors = {&form->a, &form->b, &computed, &form->c}};
  for (uint32_t i = PARAMS; i < made->kernel->num_params && i < MOST_PARAMS;
       i++) {
    joint.tensors[i] = hd_candidate_workspace(rules, made->kernel->params[i]);
    if (!joint.tensors[i])
      return hd_error(&rules->module->context->diags, made->kernel->loc,
                      HD_E0201, made->kernel->params[i]->name, "");
  }
  return launch(&joint, made->kernel) && launch(&joint, made->then);
}

// Of all candidates for the task the best one orders its rows.
static bool is_best(hd_rules_t *rules) {
  hd_candidates_t all = {0};
  rules->failed =
      !hd_task_candidates(rules->module->context, &rules->module->arena,
                          rules->flat, rules->computed, rules->gathered, &all);
  return !rules->failed && all.size &&
         all.data[0].template->form == HD_FORM_KIND_GROUPED;
}

bool hd_rule_grouped(hd_rules_t *rules) {
  hd_arena_t *arena = &rules->module->arena;
  hd_grouped_form_t *form = HD_ARENA_NEW(arena, hd_grouped_form_t);
  const hd_pin_t *pin;
  if (hd_grouped_form_find(arena, rules->flat, form) ||
      (rules->pin && strcmp(rules->pin->name, HD_PIN_RULES) == 0) ||
      !hd_template_may_serve(rules, HD_FORM_KIND_GROUPED, &pin) ||
      pin != rules->pin || (!pin && !is_best(rules)))
    return false;
  hd_grouped_form_mark(form, rules->flat, rules->computed);
  hd_form_t asked = hd_grouped_form_ask(arena, form);
  hd_choice_made_t made;
  if (!hd_template_choose(rules, &asked, pin, &made))
    return false;
  rules->failed = !join_kernels(rules, form, &made); // It was reported.
  return !rules->failed;
}
