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
// row; inside is score for those before it. A weighed form has inout weight:
// f32[z, m, n] in limit's place, and no inside: what is stored there comes back
// as what the second product reads of it. Tensors behind these are the first
// kernel's alone or, by their names, those of the one that the template says
// runs behind it: they become workspaces.
#include "Schedule/Access/Access.h"
#include "Schedule/Attention/Attention.h"
#include "Schedule/Template/Instance.h"
#include "Schedule/Template/Templates.h"
#include "Schedule/Terms/Terms.h"

#include <string.h>

enum {
  Q,
  K,
  V,
  O,
  SCORE,
  TOP,
  WHOLE,
  LIMIT,
  WEIGHT = LIMIT, // Of a weighed form, which has no limit.
  FACTOR,
  INSIDE,
  PARAMS,
  MOST_PARAMS = PARAMS + HD_FORM_WORKSPACES
};

typedef struct joint {
  const hd_attention_form_t *form;
  hd_arena_t *arena;
  bool takes_factor; // The kernel; else scores are worth t itself.
  // The kernel, of the template's two the first, and what its tensors are;
  // NULL: none of the task's, and no workspace.
  const hd_func_t *first;
  const hd_form_tensor_t *tensors[MOST_PARAMS];
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
  bool is_element = h->variable == form->score || h->variable == form->weight;
  bind(h->joint, b, form->indices, at, h->variable && is_element ? 3 : 2);
  if (h->param == WEIGHT && form->weighed)
    return hd_translate(t, form->weighed);
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

static bool has_map(const hd_func_t *kernel, const hd_var_t *param) {
  for (uint32_t i = 0; i < kernel->num_maps; i++)
    if (kernel->maps[i]->map->tensor == param)
      return true;
  return false;
}

static void find_tensors(hd_rules_t *rules, joint_t *joint,
                         const hd_func_t *kernel) {
  const hd_attention_form_t *form = joint->form;
  joint->first = kernel;
  joint->takes_factor = kernel->num_params > FACTOR;
  joint->tensors[Q] = &form->q;
  joint->tensors[K] =
      has_map(kernel, kernel->params[K]) ? &form->map_k : &form->k;
  joint->tensors[V] =
      has_map(kernel, kernel->params[V]) ? &form->map_v : &form->v;
  joint->tensors[O] = &form->o;
  for (uint32_t i = PARAMS; i < kernel->num_params && i < MOST_PARAMS; i++)
    joint->tensors[i] = hd_candidate_workspace(rules, kernel->params[i]);
}

// Which of the first kernel's parameters one of either is, by its name.
static int place_of(const joint_t *joint, const hd_var_t *param) {
  for (uint32_t i = 0; i < joint->first->num_params && i < MOST_PARAMS; i++)
    if (strcmp(joint->first->params[i]->name, param->name) == 0)
      return (int)i;
  return -1;
}

static bool is_row(const hd_func_t *kernel, const hd_expr_t *e) {
  return e->kind == HD_EXPR_LOAD &&
         (e->u.var == kernel->params[K] || e->u.var == kernel->params[V]);
}

// The limit of the last row, which no row has more of.
static const hd_expr_t *end_of(hd_builder_t *b, const hd_func_t *kernel,
                               const hd_expr_t *batch) {
  const hd_var_t *limit = kernel->params[LIMIT];
  const hd_expr_t *at[] = {
      batch, hd_b_op_int(b, HD_EXPR_SUB, limit->tensor->shape[1], 1)};
  return hd_expr_access(b->arena, HD_EXPR_LOAD, limit, 1, at, 2);
}

// A load of keys or values from `end` on is one outside its tensor. So what
// says where such a row is, a table of pages, say, is not looked at for it.
static const hd_expr_t *load_before(hd_arena_t *arena, const hd_expr_t *e,
                                    const hd_expr_t *end) {
  const hd_expr_t *j = e->operands[1];
  const hd_expr_t *is_before = hd_expr_binary(arena, HD_EXPR_LT, j, end);
  const hd_expr_t *at[] = {
      e->operands[0],
      hd_expr_select(arena, is_before, j, e->u.var->tensor->shape[1]),
      e->operands[2]};
  return hd_expr_with(arena, e, at);
}

static const hd_expr_t *load_within(hd_rewriter_t *rewriter,
                                    const hd_expr_t *e) {
  const hd_func_t *kernel = rewriter->argument;
  hd_builder_t b = {.arena = rewriter->arena};
  return is_row(kernel, e) ? load_before(rewriter->arena, e,
                                         end_of(&b, kernel, e->operands[0]))
                           : e;
}

static bool is_not_own(void *argument, const hd_expr_t *e) {
  const hd_stmt_t *loop = argument;
  for (uint32_t i = 0; i < loop->u.mapfor.mapping->rank; i++)
    if (e->kind == HD_EXPR_VAR && loop->u.mapfor.vars[i] == e->u.var)
      return false;
  return true;
}

// The same for a load point, by a limit that is read before its loop.
static bool point_within(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                         hd_stmt_list_t *out) {
  const hd_func_t *kernel = rewriter->argument;
  hd_arena_t *arena = rewriter->arena;
  if (stmt->kind != HD_STMT_MAPFOR || stmt->u.mapfor.body.size != 1)
    return false;
  const hd_stmt_t *point = stmt->u.mapfor.body.stmts[0];
  if (point->kind != HD_STMT_POINT || point->u.point.kind != HD_POINT_LOAD ||
      !is_row(kernel, point->u.point.value) ||
      !hd_walk_expr(point->u.point.value->operands[0], is_not_own,
                    (void *)(uintptr_t)stmt))
    return false;
  hd_builder_t b = {.arena = arena, .loc = stmt->loc};
  hd_open_block_t block;
  hd_b_open(&b, &block);
  const hd_expr_t *end = hd_b_let(
      &b, "end", end_of(&b, kernel, point->u.point.value->operands[0]));
  hd_stmt_t *load = hd_stmt_copy(arena, point);
  load->u.point.value = load_before(arena, point->u.point.value, end);
  const hd_stmt_t *body = load;
  hd_stmt_t *loop = hd_stmt_copy(arena, stmt);
  loop->u.mapfor.body = hd_block_make(arena, &body, 1);
  hd_b_push(&b, loop);
  hd_block_t both = hd_b_close(&b);
  for (size_t i = 0; i < both.size; i++)
    hd_stmt_list_push(arena, out, both.stmts[i]);
  return true;
}

// Where the limit is made of numbers that are read: lengths.
static void keep_within(const joint_t *joint, hd_func_t *kernel) {
  if (kernel != joint->first || has_map(kernel, kernel->params[K]) ||
      has_map(kernel, kernel->params[V]) ||
      !hd_flat_has(joint->form->limit, HD_TERM_LOAD))
    return;
  hd_rewriter_t rewriter = {.arena = joint->arena,
                            .argument = kernel,
                            .enter = point_within,
                            .expr = load_within};
  kernel->body = hd_rewrite_block(&rewriter, kernel->body);
}

static bool launch(hd_rules_t *rules, joint_t *joint, hd_func_t *kernel) {
  const hd_attention_form_t *form = joint->form;
  const hd_variable_t *variables[MOST_PARAMS] = {[SCORE] = form->score,
                                                 [TOP] = form->top,
                                                 [WHOLE] = form->total,
                                                 [WEIGHT] = form->weight,
                                                 [INSIDE] = form->score};
  const hd_form_tensor_t *tensors[MOST_PARAMS];
  hd_access_hook_t hooks[MOST_PARAMS];
  hook_t hook[MOST_PARAMS];
  size_t count = 0;
  for (uint32_t i = 0; i < kernel->num_params && i < MOST_PARAMS; i++) {
    const hd_var_t *param = kernel->params[i];
    int at = place_of(joint, param);
    if (at < 0 || (at >= PARAMS && !joint->tensors[at])) {
      hd_error(&rules->module->context->diags, kernel->loc, HD_E0201,
               param->name, "");
      hd_note(&rules->module->context->diags, joint->first->loc,
              "a tensor of the kernel before it is meant");
      return false;
    }
    tensors[i] = joint->tensors[at];
    hook[i] = (hook_t){joint, at, tensors[i], variables[at]};
    bool is_same = tensors[i] && tensors[i]->same;
    if (is_same && has_map(kernel, param))
      continue;
    // Without replacements it goes where the kernel does not touch it.
    hooks[count++] = (hd_access_hook_t){
        .param = param,
        .argument = &hook[i],
        .load = is_same || at == O || at == TOP ? NULL : on_load,
        .store = is_same         ? NULL
                 : at == O       ? on_store
                 : variables[at] ? note
                                 : NULL};
  }
  joint->t = (hd_translator_t){0};
  hd_candidate_launch(rules, &joint->t, kernel, hooks, count, tensors);
  return true;
}

static bool join_kernels(hd_rules_t *rules, const hd_attention_form_t *form,
                         const hd_choice_made_t *made) {
  hd_arena_t *arena = &rules->module->arena;
  hd_candidate_keep_maps(arena, made->kernel, &form->o, form->result.type);
  joint_t joint = {.form = form, .arena = arena};
  find_tensors(rules, &joint, made->kernel);
  keep_within(&joint, made->kernel);
  return launch(rules, &joint, made->kernel) &&
         (!made->then || launch(rules, &joint, made->then));
}

bool hd_rule_attention(hd_rules_t *rules) {
  hd_arena_t *arena = &rules->module->arena;
  hd_attention_form_t *form = HD_ARENA_NEW(arena, hd_attention_form_t);
  const hd_pin_t *pin;
  if (hd_attention_form_find(arena, rules->flat, form) ||
      !hd_template_may_serve(rules, hd_attention_form_kind(form), &pin))
    return false;
  hd_attention_form_mark(form, rules->flat, rules->computed, rules->gathered);
  hd_form_t asked = hd_attention_form_ask(arena, form);
  hd_choice_made_t made;
  if (!hd_template_choose(rules, &asked, pin, &made))
    return false;
  rules->failed = !join_kernels(rules, form, &made); // It was reported.
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
  hd_form_t asked = hd_attention_form_ask(arena, &form);
  if (!hd_candidates_find(context, arena, &asked, NULL, &candidates, &refused))
    return "templates cannot be asked"; // It has been reported.
  if (candidates.size)
    return NULL;
  return refused.size
             ? hd_arena_printf(arena, "not %s: %s", refused.data[0].name,
                               refused.data[0].why)
             : "there is no template for attention";
}
