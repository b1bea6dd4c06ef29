// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels to machine code, each a job of the pool: PTX by LLVM, then code by
// the driver's linker, where most of the time goes (the driver holds a lock
// while it loads PTX, but not while it links).
//
// The cache is asked twice. By the text of the lowered kernel with all that it
// calls, and by which build of the compiler this is: then LLVM has nothing to
// do. And by the PTX, which outlives the build.
#include "IR/Rewrite.h"
#include "IR/Text/Printer.h"
#include "Runtime/Compile.h"
#include "Runtime/DeviceCuda.h"
#include "Support/BuildId.h"
#include "Support/Map.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct jobs {
  hd_cuda_device_t *device;
  const hd_func_t *const *funcs;
  hd_cuda_code_t *codes;
} jobs_t;

// --- Keys ---

typedef struct description {
  hd_arena_t *arena;
  hd_ptr_map_t known; // Functions and tables that are in it.
  hd_buffer_t *text;
} description_t;

static void describe(description_t *d, const hd_func_t *func);

static bool describe_used(void *argument, const hd_expr_t *e) {
  description_t *d = argument;
  if (e->kind == HD_EXPR_CALL && !hd_ptr_map_get(&d->known, e->u.func))
    describe(d, e->u.func);
  bool is_table =
      (hd_expr_is_access(e) || e->kind == HD_EXPR_TENSOR) && e->u.var->table;
  if (is_table && !hd_ptr_map_get(&d->known, e->u.var)) {
    hd_ptr_map_set(d->arena, &d->known, e->u.var, e->u.var);
    hd_table_print(e->u.var, d->text);
  }
  return true;
}

// What is printed, with the functions and tables that it uses, is all there is
// to a function.
static void describe(description_t *d, const hd_func_t *func) {
  hd_ptr_map_set(d->arena, &d->known, func, func);
  hd_func_print(func, d->text);
  hd_walk_block(func->body, NULL, describe_used, d);
}

// 0 where the build is not known, or memory ran out: then there is no entry.
static hd_cache_key_t text_key(const hd_cuda_device_t *d, hd_module_t *module,
                               const hd_func_t *func) {
  hd_cache_key_t key = {0, 0};
  char build[128], salt[300];
  if (!d->cache || !hd_build_id(build, sizeof(build)))
    return key;
  hd_buffer_t text = {0};
  hd_cleanup_t cleanup;
  hd_budget_defer(&module->context->budget, &cleanup, hd_buffer_end, &text);
  description_t description = {.arena = &module->arena, .text = &text};
  describe(&description, func);
  snprintf(salt, sizeof(salt), "kernel %s %s %s %d %d", build,
           hd_codegen_version(), d->base.info.target->name, d->cuda->sm,
           d->cuda->version);
  if (!text.failed)
    key = hd_cache_key(salt, hd_buffer_text(&text), text.size);
  hd_budget_clean(&module->context->budget, &cleanup);
  return key;
}

// --- Jobs ---

static bool link_ptx(hd_cuda_device_t *d, hd_diagnostics_t *diags,
                     const hd_func_t *func, const hd_buffer_t *ptx,
                     hd_cuda_code_t *code) {
  char salt[64];
  snprintf(salt, sizeof(salt), "cubin %d %d", d->cuda->sm, d->cuda->version);
  hd_cache_key_t key = hd_cache_key(salt, hd_buffer_text(ptx), ptx->size);
  if (hd_cache_get(d->cache, key, &code->cubin)) {
    code->origin = HD_CUDA_FROM_PTX;
    return true;
  }
  // PTX of an older target becomes code of this GPU all the same.
  int target = d->base.info.target->sm;
  if (!hd_cuda_enter(d->cuda, diags) ||
      !hd_cuda_link(d->cuda, diags, func->name,
                    target > 120 ? target : d->cuda->sm, hd_buffer_text(ptx),
                    ptx->size, &code->cubin))
    return false;
  hd_cache_put(d->cache, key, &code->cubin);
  return true;
}

static bool compile(void *argument, unsigned piece, hd_module_t *module) {
  const jobs_t *jobs = argument;
  hd_cuda_device_t *d = jobs->device;
  const hd_func_t *func = jobs->funcs[piece];
  hd_cuda_code_t *code = &jobs->codes[piece];
  hd_cache_key_t key = text_key(d, module, func);
  if (hd_cache_get(d->cache, key, &code->cubin)) {
    code->origin = HD_CUDA_FROM_TEXT;
    return true;
  }
  hd_codegen_options_t options = {.target = d->base.info.target};
  hd_buffer_t ptx = {0};
  hd_cleanup_t cleanup;
  hd_budget_t *budget = &module->context->budget;
  hd_budget_defer(budget, &cleanup, hd_buffer_end, &ptx);
  bool ok = hd_codegen_ptx(module, func, &options, &ptx) &&
            link_ptx(d, &module->context->diags, func, &ptx, code);
  hd_budget_clean(budget, &cleanup);
  if (ok)
    hd_cache_put(d->cache, key, &code->cubin);
  return ok;
}

bool hd_cuda_compile(hd_cuda_device_t *d, const hd_func_t *const *funcs,
                     unsigned count, hd_cuda_code_t *codes) {
  jobs_t jobs = {d, funcs, codes};
  if (count > 1 && !d->pool)
    d->pool = hd_thread_pool_create(d->threads);
  return hd_compile_all(d->base.context, d->pool, count, compile, &jobs);
}
