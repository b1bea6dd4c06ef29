// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program runs, taken out of its module: every launch with the values of
// its kernel's parameters, and a copy of the kernel for each set of sizes, with
// copies of the functions that it calls. So lowering, which changes functions
// in place, leaves the module alone: another program may need other sizes.
#include "IR/Rewrite.h"
#include "IR/Text/Library.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Program.h"
#include "Runtime/Storage.h"
#include "TaskMapping/TaskMapping.h"

static const hd_loc_t nowhere;

typedef struct maker {
  hd_program_t *program;
  const hd_module_t *from;
  const hd_program_options_t *options;
  hd_ptr_map_t copies; // Of functions.
  hd_ptr_map_t first;  // Of each kernel: its first variant's number + 1.
} maker_t;

static hd_arena_t *arena_of(const maker_t *m) {
  return &m->program->module->arena;
}

static hd_func_t *add_func(maker_t *m, const hd_func_t *like) {
  hd_func_t *func = HD_ARENA_COPY(arena_of(m), hd_func_t, like);
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = func};
  hd_vec_push(arena_of(m), &m->program->module->items, item);
  return func;
}

static hd_func_t *copy_func(maker_t *m, const hd_func_t *func);

// The library's functions belong to the context and are never changed.
static const hd_expr_t *relink(hd_rewriter_t *rewriter, const hd_expr_t *e) {
  maker_t *m = rewriter->argument;
  if (e->kind != HD_EXPR_CALL)
    return e;
  const hd_func_t *func = hd_ptr_map_get(&m->copies, e->u.func);
  if (!func)
    func = hd_library_owns(m->from->context, e->u.func)
               ? e->u.func
               : copy_func(m, e->u.func);
  if (func == e->u.func)
    return e;
  hd_expr_t like = {.u.func = func, .loc = e->loc};
  return hd_expr_make(rewriter->arena, HD_EXPR_CALL, e->type, &like,
                      e->operands, e->num_operands);
}

// What a function calls comes before it. None calls itself, so this ends.
static hd_func_t *copy_func(maker_t *m, const hd_func_t *func) {
  hd_rewriter_t rewriter = {
      .arena = arena_of(m), .argument = m, .expr = relink};
  hd_func_t *copy = add_func(m, hd_rewrite_func(&rewriter, func));
  hd_ptr_map_set(arena_of(m), &m->copies, func, copy);
  return copy;
}

// The same rules as for what a user writes; their wording is nobody's business.
static bool is_valid(const hd_func_t *func) {
  hd_context_t scratch;
  hd_context_init(&scratch);
  bool ok =
      hd_func_verify(&scratch, func) && hd_func_verify_mappings(&scratch, func);
  hd_context_fini(&scratch);
  return ok;
}

// A grid of no blocks runs nothing and says nothing; sizes that are none are
// reported at the launch, from the kernel as it is written.
static bool has_blocks(const hd_func_t *func, const hd_env_t *env) {
  int64_t size, shape[HD_TENSOR_MAX_RANK];
  bool wrapped;
  for (int i = 0; i < 3; i++)
    if (func->launch.grid[i] &&
        (!hd_eval_size(env, func->launch.grid[i], &size, &wrapped) || size < 1))
      return false;
  for (uint32_t i = 0; i < func->num_params; i++)
    if (func->params[i]->tensor &&
        !hd_storage_shape(env, func->params[i]->tensor, shape))
      return false;
  return true;
}

// NULL after an error.
static const hd_func_t *specialize(maker_t *m, const hd_call_site_t *site,
                                   const hd_variant_t *variant) {
  const hd_func_t *source = variant->source;
  if (!m->options->specialize || !has_blocks(source, &site->env))
    return source;
  const hd_func_t *func = hd_func_specialize(
      arena_of(m), source, variant->known, variant->num_known, site->env.sms);
  const hd_stmt_t *failed;
  if (hd_func_failed_assert(func, &failed)) {
    const char *message = failed->u.assertion.message;
    hd_error(&m->program->device->context->diags, failed->loc, HD_E0708,
             message ? message : "the sizes do not satisfy it");
    return NULL;
  }
  if (func == source || is_valid(func))
    return func;
  if (m->options->explain)
    hd_remark(&m->program->device->context->diags, source->loc,
              "kernel '%s' stays general: at these sizes it breaks a rule "
              "behind a condition",
              source->name);
  return source;
}

static void collect_sizes(maker_t *m, const hd_call_site_t *site,
                          hd_variant_t *variant) {
  const hd_func_t *source = variant->source;
  hd_known_t *known =
      HD_ARENA_ARRAY(arena_of(m), hd_known_t, source->num_params + 1);
  for (uint32_t i = 0; i < source->num_params; i++) {
    const hd_var_t *param = source->params[i];
    const hd_number_t *value = hd_env_find(&site->env, param);
    if (value && hd_func_is_size(source, param))
      known[variant->num_known++] = (hd_known_t){param, value->i};
  }
  variant->known = known;
}

static bool is_same(const hd_variant_t *a, const hd_variant_t *b) {
  bool same = a->source == b->source && a->num_known == b->num_known;
  for (size_t i = 0; same && i < a->num_known; i++)
    same = a->known[i].value == b->known[i].value;
  return same;
}

static bool add_site(maker_t *m, hd_call_site_t *site,
                     const hd_func_t *source) {
  hd_program_t *p = m->program;
  hd_variant_t variant = {.source = source};
  if (m->options->specialize)
    collect_sizes(m, site, &variant);
  variant.next = (size_t)(uintptr_t)hd_ptr_map_get(&m->first, source);
  size_t number = variant.next;
  while (number && !is_same(&p->variants.data[number - 1], &variant))
    number = p->variants.data[number - 1].next;
  if (!number) {
    const hd_func_t *func = specialize(m, site, &variant);
    if (!func)
      return false;
    variant.func = copy_func(m, func);
    hd_vec_push(&p->arena, &p->variants, variant);
    number = p->variants.size;
    hd_ptr_map_set(arena_of(m), &m->first, source, (const void *)number);
  }
  site->variant = number - 1;
  hd_vec_push(&p->arena, &p->sites, *site);
  return true;
}

static bool add_launch(maker_t *m, const hd_stmt_t *stmt) {
  hd_program_t *p = m->program;
  const hd_func_t *kernel = stmt->u.launch.kernel;
  hd_call_site_t site = {.stmt = stmt, .env.sms = p->env.sms};
  for (uint32_t i = 0; i < stmt->u.launch.num_args; i++) {
    hd_number_t value;
    if (kernel->params[i]->tensor)
      continue;
    if (!hd_eval(&p->env, stmt->u.launch.args[i], &value))
      return hd_error(&p->device->context->diags, nowhere, HD_E0608,
                      kernel->name, "an argument divides by zero");
    hd_env_add(&p->arena, &site.env, kernel->params[i], value);
  }
  return add_site(m, &site, kernel);
}

// Sizes do not depend on the turn: what arguments are in the first will do.
static bool add_block(maker_t *m, hd_block_t block) {
  hd_program_t *p = m->program;
  for (uint32_t i = 0; i < block.size; i++) {
    const hd_stmt_t *stmt = block.stmts[i];
    hd_number_t first;
    bool ok = true;
    if (stmt->kind == HD_STMT_LAUNCH) {
      ok = add_launch(m, stmt);
    } else if (stmt->kind == HD_STMT_FOR) {
      if (!hd_eval(&p->env, stmt->u.loop.first, &first))
        return hd_error(&p->device->context->diags, nowhere, HD_E0608,
                        p->entry->name, "a loop's bound divides by zero");
      hd_env_set(&p->arena, &p->env, stmt->u.loop.var, first);
      ok = add_block(m, stmt->u.loop.body);
    } else if (stmt->kind != HD_STMT_DECLARE) {
      return hd_error(&p->device->context->diags, nowhere, HD_E0608,
                      p->entry->name,
                      "a plan holds workspaces, loops and launches alone");
    }
    if (!ok)
      return false;
  }
  return true;
}

bool hd_program_make_variants(hd_program_t *program, const hd_module_t *module,
                              const hd_program_options_t *options) {
  maker_t m = {.program = program, .from = module, .options = options};
  program->module = hd_module_create(program->device->context);
  const hd_func_t *entry = program->entry;
  if (entry->kind == HD_FUNC_KERNEL) {
    hd_call_site_t site = {.env = program->env};
    return add_site(&m, &site, entry);
  }
  return add_block(&m, entry->body);
}
