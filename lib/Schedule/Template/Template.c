// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product by a template: every template answers with its candidates for the
// form and the machine, the one that is expected to be the fastest is read
// under its values, and what it loads and stores becomes what the task says.
//
//   kernel tiles[...](in a: f16[z, m, k], in b: f16[z, n, k], out c: f16[z, m,
//   n])
//
// knows the form alone. Where an operand is a tensor of the task, element for
// element, that takes its place; else its loads become the operand's term, as
// those of a prologue do (Access.h).
#include "IR/Rewrite.h"
#include "Schedule/Access/Access.h"
#include "Schedule/Product/Pairs.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Template/Instance.h"
#include "Schedule/Template/Templates.h"

#include <string.h>

// --- The kernel for a candidate ---

// What the kernel's tensors stand for, in the order of its parameters.
typedef struct tensors {
  unsigned num_inputs, count;
  const hd_form_tensor_t *data[HD_MAX_FORM_TENSORS];
} tensors_t;

static tensors_t tensors_of(const hd_product_form_t *form,
                            const hd_template_t *template) {
  const hd_normed_t *n = form->normed;
  if (template->reads[HD_PRODUCT_IMAGE])
    return (tensors_t){2, 3, {&form->image->pixels, &form->b, &form->c}};
  if (template->maps[HD_PRODUCT_IMAGE])
    return (tensors_t){2, 3, {&form->image->x, &form->b, &form->c}};
  if (n && n->parts)
    return (tensors_t){6,
                       9,
                       {&form->a, &form->b, &n->centre, &n->squares, &n->v,
                        &n->epsilon, &form->c, &n->mean, &n->inverse}};
  return n ? (tensors_t){5,
                         8,
                         {&form->a, &form->b, &n->u, &n->v, &n->epsilon,
                          &form->c, &n->mean, &n->inverse}}
           : (tensors_t){2,
                         template->takes_kept ? 4 : 3,
                         {hd_product_form_a(form, template), &form->b, &form->c,
                          &form->kept}};
}

typedef struct longer {
  const hd_func_t *kernel;
  const tensors_t *tensors;
} longer_t;

static bool goes_on(const hd_form_tensor_t *operand) {
  return operand->pitch > operand->shape[2];
}

// For hd_rewriter_t: a parameter whose rows have a pitch.
static const hd_var_t *with_pitch(hd_rewriter_t *rewriter,
                                  const hd_var_t *var) {
  const longer_t *longer = rewriter->argument;
  const hd_form_tensor_t *operand = NULL;
  for (uint32_t i = 0; i < longer->kernel->num_params; i++)
    if (longer->kernel->params[i] == var && i < longer->tensors->num_inputs)
      operand = longer->tensors->data[i];
  if (!operand || !goes_on(operand))
    return var;
  hd_tensor_t *tensor = HD_ARENA_NEW(rewriter->arena, hd_tensor_t);
  hd_var_t *made = HD_ARENA_NEW(rewriter->arena, hd_var_t);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(rewriter->arena, const hd_expr_t *, var->tensor->rank);
  uint32_t last = var->tensor->rank - 1;
  memcpy(shape, var->tensor->shape, last * sizeof(*shape));
  shape[last] = hd_expr_int(rewriter->arena, var->tensor->shape[last]->type,
                            operand->pitch);
  *tensor = *var->tensor;
  tensor->shape = shape;
  *made = *var;
  made->tensor = tensor;
  return made;
}

// The kernel for rows that go on behind what the form takes of them.
static hd_func_t *make_longer(hd_arena_t *arena, hd_func_t *kernel,
                              const tensors_t *tensors) {
  bool any = false;
  for (unsigned i = 0; i < tensors->num_inputs; i++)
    any |= goes_on(tensors->data[i]);
  if (!any)
    return kernel;
  longer_t longer = {kernel, tensors};
  hd_rewriter_t rewriter = {
      .arena = arena, .argument = &longer, .declare = with_pitch};
  hd_func_t *made =
      HD_ARENA_COPY(arena, hd_func_t, hd_rewrite_func(&rewriter, kernel));
  return made;
}

// What is wrong with an operand of a kernel, as the end of a sentence; NULL.
// One that is computed is so by its places.
static const char *why_no_operand(hd_arena_t *arena, const hd_tensor_t *tensor,
                                  const hd_form_tensor_t *operand) {
  int64_t count = 1, wanted = 1, size;
  for (unsigned k = 0; k < tensor->rank; k++)
    count *= hd_expr_fold_int(tensor->shape[k], &size) ? size : 0;
  for (unsigned k = 0; k < operand->rank; k++)
    wanted *= operand->shape[k];
  if (count != wanted)
    return hd_arena_printf(arena, "%lld elements, and the form's tensor %lld",
                           (long long)count, (long long)wanted);
  if (!operand->same && tensor->rank != operand->rank)
    return hd_arena_printf(arena, "%u axes, and the form's tensor %u",
                           (unsigned)tensor->rank, operand->rank);
  return NULL;
}

// Whether a kernel's operands are as large as the form's; else reports the
// first that is not. An image is as large as the kernel says.
static bool has_sizes(hd_rules_t *rules, const hd_candidate_t *candidate,
                      const hd_func_t *kernel, const tensors_t *tensors) {
  hd_arena_t *arena = &rules->module->arena;
  const hd_template_t *template = candidate->template;
  bool by_image =
      template->maps[HD_PRODUCT_IMAGE] || template->reads[HD_PRODUCT_IMAGE];
  for (unsigned i = by_image; i < tensors->num_inputs; i++) {
    const hd_var_t *param = kernel->params[i];
    const char *why = why_no_operand(arena, param->tensor, tensors->data[i]);
    if (why)
      return hd_error(&rules->module->context->diags, param->loc, HD_E0321,
                      template->kernel, template->name,
                      hd_arena_printf(arena, "'%s' has %s", param->name, why));
  }
  return true;
}

// False after an error, or where a template is left, after all: its results do
// not leave in pairs.
static bool join_kernel(hd_rules_t *rules, const hd_product_form_t *form,
                        const hd_candidate_t *candidate, hd_func_t *kernel) {
  hd_arena_t *arena = &rules->module->arena;
  tensors_t tensors = tensors_of(form, candidate->template);
  rules->failed = !has_sizes(rules, candidate, kernel, &tensors);
  if (rules->failed)
    return false;
  const char *why;
  if (form->result.second) {
    kernel = hd_pairs_kernel(arena, kernel, tensors.num_inputs, &why);
    if (!kernel)
      return hd_template_leave(rules, NULL,
                               hd_arena_printf(arena, "the result of %s %s",
                                               candidate->template->name, why));
  }
  kernel = make_longer(arena, kernel, &tensors);
  hd_candidate_keep_maps(arena, kernel, &form->c, form->result.type);
  hd_candidate_join(rules, kernel, &form->result, tensors.data,
                    tensors.num_inputs, tensors.count);
  return true;
}

// The best candidate for a form, made; false where there is none, or after an
// error, which has been reported.
static bool take_best(hd_rules_t *rules, const hd_product_form_t *form,
                      const hd_pin_t *pin) {
  hd_form_t asked = hd_product_form_ask(&rules->module->arena, form);
  asked.neighbours = rules->neighbours;
  hd_choice_made_t made;
  return hd_template_choose(rules, &asked, pin, &made) &&
         join_kernel(rules, form, &made.candidate, made.kernel);
}

size_t hd_rule_normed(hd_rules_t *rules) {
  hd_arena_t *arena = &rules->module->arena;
  hd_product_form_t *form = HD_ARENA_NEW(arena, hd_product_form_t);
  const hd_pin_t *pin;
  if (hd_normed_form_find(arena, rules->flat, form) ||
      (rules->pin && strcmp(rules->pin->name, HD_PIN_RULES) == 0) ||
      !hd_template_may_serve(rules, hd_product_form_kind(form), &pin) ||
      pin != rules->pin)
    return 0;
  hd_product_form_mark(form, rules->flat, rules->computed);
  return take_best(rules, form, pin) ? rules->flat->definitions.size : 0;
}

bool hd_rule_pairs(hd_rules_t *rules) {
  hd_arena_t *arena = &rules->module->arena;
  hd_product_form_t *form = HD_ARENA_NEW(arena, hd_product_form_t);
  const hd_pin_t *pin;
  if (hd_pairs_form_find(arena, rules->flat, form) ||
      (rules->pin && strcmp(rules->pin->name, HD_PIN_RULES) == 0) ||
      !hd_template_may_serve(rules, hd_product_form_kind(form), &pin) ||
      pin != rules->pin)
    return false;
  hd_product_form_mark(form, rules->flat, rules->computed);
  return take_best(rules, form, pin);
}

// Of the candidates for a product of a few rows, which are rows of its matrix,
// too, the best one is for products.
static bool is_best_product(hd_rules_t *rules) {
  hd_candidates_t all = {0};
  rules->failed =
      !hd_task_candidates(rules->module->context, &rules->module->arena,
                          rules->flat, rules->computed, rules->gathered, &all);
  return !rules->failed && all.size &&
         all.data[0].template->form == HD_FORM_KIND_PRODUCT;
}

bool hd_rule_few(hd_rules_t *rules) {
  hd_arena_t *arena = &rules->module->arena;
  hd_product_form_t *form = HD_ARENA_NEW(arena, hd_product_form_t);
  const hd_definition_t *d = rules->flat->definitions.size == 1
                                 ? rules->flat->definitions.data[0]
                                 : NULL;
  const hd_pin_t *pin;
  if (!d || d->kind != HD_DEFINE || !hd_product_form_find(arena, d, form) ||
      hd_product_form_find_few(arena, d, form) ||
      (rules->pin && strcmp(rules->pin->name, HD_PIN_RULES) == 0) ||
      !hd_template_may_serve(rules, HD_FORM_KIND_PRODUCT, &pin) ||
      pin != rules->pin || (!pin && !is_best_product(rules)))
    return false;
  hd_product_form_mark(form, rules->flat, rules->computed);
  return take_best(rules, form, pin);
}

bool hd_rule_template(hd_rules_t *rules, const hd_definition_t *d) {
  hd_arena_t *arena = &rules->module->arena;
  hd_product_form_t *form = HD_ARENA_NEW(arena, hd_product_form_t);
  const hd_pin_t *pin;
  if (!hd_template_may_serve(rules, HD_FORM_KIND_PRODUCT, &pin))
    return false;
  const char *why = hd_product_form_find(arena, d, form);
  if (why)
    return hd_template_leave(rules, pin, why);
  hd_product_form_mark(form, rules->flat, rules->computed);
  return take_best(rules, form, pin);
}
