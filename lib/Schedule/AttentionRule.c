// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A task of two products with rows between them as one kernel, by a template:
//
//   kernel rows[T, O, D, E, ...](z, m, n, k, e, in q: T[z, m, k],
//       in key: T[z, n, k], in v: T[z, n, e], out o: O[z, m, e],
//       inout score: f32[z, m, n], inout top: f32[z, m], inout whole: f32[z,
//       m], in limit: i32[z, m], in factor: f32[1], inout inside: f32[z, m, n])
//
// D and E are k and e, filled up to whole fragments. What it stores in score,
// and loads again at once, comes back as the task's term of it over the factor;
// top and whole are a row's largest term and the sum of its exponentials, and
// what is loaded of whole is the divisor. Keys from limit on do not count for a
// row; inside is score for those before it.
#include "Schedule/Access.h"
#include "Schedule/Attention.h"
#include "Schedule/Instance.h"
#include "Schedule/Templates.h"

enum {
  Q,
  K,
  V,
  O,
  SCORE,
  TOP,
  WHOLE,
  LIMIT,
  FACTOR,
  INSIDE,
  PARAMS,
  FRAGMENT = 16
};

typedef struct joint {
  const hd_attention_form_t *form;
  hd_arena_t *arena;
  bool takes_factor; // The kernel; else scores are worth t itself.
  hd_translator_t t;
} joint_t;

typedef struct hook {
  joint_t *joint;
  int param;
  const hd_form_tensor_t *tensor; // NULL: it is none of the task's.
  const hd_variable_t *variable;  // That what is stored is worth, then.
} hook_t;

static void bind(joint_t *joint, hd_builder_t *b,
                 const hd_index_t *const *indices, const hd_expr_t *const *at,
                 unsigned count) {
  joint->t.b = b;
  for (unsigned i = 0; i < count; i++)
    hd_translate_bind(&joint->t, indices[i], at[i]);
}

static const hd_expr_t *on_load(void *argument, hd_builder_t *b,
                                const hd_expr_t *const *at) {
  hook_t *h = argument;
  const hd_attention_form_t *form = h->joint->form;
  hd_translator_t *t = &h->joint->t;
  if (h->tensor) {
    bind(h->joint, b, h->tensor->indices, at, 3);
    return hd_translate(t, h->tensor->term);
  }
  if (h->param == FACTOR)
    return hd_expr_float(b->arena, hd_type(HD_F32), form->factor);
  bind(h->joint, b, form->indices, at, h->variable == form->score ? 3 : 2);
  if (h->param == LIMIT)
    return hd_b_cast(b, HD_I32, hd_translate_worth(t, form->limit).e);
  const hd_expr_t *value =
      hd_translate(t, h->param == SCORE    ? form->term
                      : h->param == INSIDE ? form->inside
                                           : form->divisor);
  if (h->param != SCORE || h->joint->takes_factor || form->factor == 1)
    return value;
  return hd_expr_binary(b->arena, HD_EXPR_MUL, value,
                        hd_expr_float(b->arena, hd_type(HD_F32), form->factor));
}

static void note(void *argument, hd_builder_t *b, const hd_expr_t *const *at,
                 const hd_expr_t *value) {
  hook_t *h = argument;
  (void)b;
  (void)at;
  hd_ptr_map_set(h->joint->arena, &h->joint->t.variables, h->variable, value);
}

static void on_store(void *argument, hd_builder_t *b,
                     const hd_expr_t *const *at, const hd_expr_t *value) {
  hook_t *h = argument;
  const hd_attention_form_t *form = h->joint->form;
  bind(h->joint, b, h->tensor->indices, at, 3);
  hd_form_result_store(&form->result, &h->joint->t, value);
}

static int64_t filled(int64_t size) {
  return (size + FRAGMENT - 1) / FRAGMENT * FRAGMENT;
}

// What the form gives of the kernel's compile-time parameters.
static const char *given_by(hd_arena_t *arena,
                            const hd_attention_form_t *form) {
  return hd_arena_printf(arena, "T = %s, O = %s, D = %lld, E = %lld",
                         hd_scalar_name(form->type),
                         hd_scalar_name(form->result.type),
                         (long long)filled(form->sizes[HD_ATTENTION_INNER]),
                         (long long)filled(form->sizes[HD_ATTENTION_VALUE]));
}

static bool make_kernel(hd_rules_t *rules, const hd_attention_form_t *form,
                        const hd_form_t *asked, const hd_candidate_t *candidate,
                        const char *instance) {
  hd_arena_t *arena = &rules->module->arena;
  hd_func_t *kernel =
      hd_candidate_kernel(rules->module, candidate, instance, asked);
  if (!kernel)
    return false;
  hd_candidate_keep_maps(arena, kernel, &form->o, form->result.type);
  joint_t joint = {.form = form,
                   .arena = arena,
                   .takes_factor = kernel->num_params > FACTOR};
  const hd_form_tensor_t *tensors[PARAMS] = {&form->q, &form->k, &form->v,
                                             &form->o};
  const hd_variable_t *variables[PARAMS] = {[SCORE] = form->score,
                                            [TOP] = form->top,
                                            [WHOLE] = form->total,
                                            [INSIDE] = form->score};
  hd_access_hook_t hooks[PARAMS];
  hook_t hook[PARAMS];
  size_t count = 0;
  for (uint32_t i = 0; i < kernel->num_params && i < PARAMS; i++) {
    hook[i] = (hook_t){&joint, (int)i, tensors[i], variables[i]};
    if (!tensors[i] || !tensors[i]->same)
      hooks[count++] =
          (hd_access_hook_t){.param = kernel->params[i],
                             .argument = &hook[i],
                             .load = i == O || i == TOP ? NULL : on_load,
                             .store = i == O         ? on_store
                                      : variables[i] ? note
                                                     : NULL};
  }
  hd_candidate_launch(rules, &joint.t, kernel, hooks, count, tensors);
  return true;
}

bool hd_rule_attention(hd_rules_t *rules) {
  hd_arena_t *arena = &rules->module->arena;
  hd_attention_form_t *form = HD_ARENA_NEW(arena, hd_attention_form_t);
  const hd_pin_t *pin;
  if (hd_attention_form_find(arena, rules->flat, form) ||
      !hd_template_may_serve(rules, HD_FORM_KIND_ATTENTION, &pin))
    return false;
  hd_attention_form_mark(form, rules->flat, rules->computed);
  hd_form_t asked = hd_attention_form_ask(form);
  hd_candidate_t best;
  const char *instance = "";
  if (!hd_template_choose(rules, &asked, pin, given_by(arena, form), &best,
                          &instance))
    return false;
  rules->failed =
      !make_kernel(rules, form, &asked, &best, instance); // It was reported.
  return !rules->failed;
}

const char *hd_attention_obstacle(hd_context_t *context, hd_arena_t *arena,
                                  const hd_task_t *flat) {
  hd_attention_form_t form;
  hd_candidates_t candidates = {0};
  hd_refusals_t refused = {0};
  if (!context->schedules || !context->schedules->machine.count)
    return "no GPU is meant; --target names one";
  const char *why = hd_attention_form_find(arena, flat, &form);
  if (why)
    return why;
  hd_form_t asked = hd_attention_form_ask(&form);
  if (!hd_candidates_find(context, arena, &asked, NULL, &candidates, &refused))
    return "templates cannot be asked"; // It has been reported.
  if (candidates.size)
    return NULL;
  return refused.size ? hd_arena_printf(arena, "not %s: %s",
                                        refused.data[0].template->name,
                                        refused.data[0].why)
                      : "there is no template for attention";
}
