// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels to machine code, each a job of the pool: PTX by LLVM, then code by
// the driver's linker, where most of the time goes (the driver holds a lock
// while it loads PTX, but not while it links).
//
// Some kernels stay PTX, of which the driver makes code when it is loaded, one
// at a time. What it makes for its linker is code that functions may be added
// to: registers are not given from warps to warps (HD_TRAIT_WHOLE), so that
// some spill, and where something is called, such as a division, each wgmma
// waits for the one before. The linker says so.
//
// The cache is asked twice. By the text of the lowered kernel with all that it
// calls, and by which build of the compiler this is: then LLVM has nothing to
// do. And by the PTX, which outlives the build.
#include "IR/Intrinsic.h"
#include "IR/Rewrite.h"
#include "Runtime/CodeKey.h"
#include "Runtime/Compile.h"
#include "Runtime/DeviceCuda.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct jobs {
  hd_cuda_device_t *device;
  const hd_func_t *const *funcs;
  hd_cuda_code_t *codes;
} jobs_t;

static hd_cache_key_t text_key(const hd_cuda_device_t *d, hd_module_t *module,
                               const hd_func_t *func) {
  char salt[80];
  snprintf(salt, sizeof(salt), "%s %d %d", d->base.info.target->name,
           d->cuda->sm, d->cuda->version);
  return d->cache ? hd_code_key(module, func, salt, false)
                  : (hd_cache_key_t){0, 0};
}

static bool is_plain(void *argument, const hd_expr_t *e) {
  (void)argument;
  return !hd_expr_has_trait(e, HD_TRAIT_WHOLE);
}

static void keep_ptx(const hd_buffer_t *ptx, hd_cuda_code_t *code) {
  hd_buffer_fini(&code->image);
  code->image = (hd_buffer_t){0};
  hd_buffer_write(&code->image, hd_buffer_text(ptx), ptx->size + 1);
}

static bool link_ptx(hd_cuda_device_t *d, hd_module_t *module,
                     const hd_func_t *func, const hd_buffer_t *ptx,
                     hd_cuda_code_t *code) {
  char salt[64];
  snprintf(salt, sizeof(salt), "image %d %d", d->cuda->sm, d->cuda->version);
  hd_cache_key_t key = hd_cache_key(salt, hd_buffer_text(ptx), ptx->size);
  if (hd_cache_get(d->cache, key, &code->image)) {
    code->origin = HD_CUDA_FROM_PTX;
    return true;
  }
  // PTX of an older target becomes code of this GPU all the same.
  int target = d->base.info.target->sm;
  bool is_slow;
  bool is_whole = !hd_walk_calls(&module->arena, func->body, is_plain, NULL);
  if (!hd_cuda_link(d->cuda, &module->context->diags, func->name,
                    target > 120 ? target : d->cuda->sm, hd_buffer_text(ptx),
                    ptx->size, is_whole, &code->image, &is_slow))
    return false;
  if (is_slow)
    keep_ptx(ptx, code);
  hd_cache_put(d->cache, key, &code->image);
  return true;
}

static bool make_code(hd_cuda_device_t *d, hd_module_t *module,
                      const hd_func_t *func, hd_cuda_code_t *code) {
  hd_cache_key_t key = text_key(d, module, func);
  if (hd_cache_get(d->cache, key, &code->image)) {
    code->origin = HD_CUDA_FROM_TEXT;
    return true;
  }
  hd_codegen_options_t options = {.target = d->base.info.target};
  hd_buffer_t ptx = {0};
  hd_cleanup_t cleanup;
  hd_budget_t *budget = &module->context->budget;
  hd_budget_defer(budget, &cleanup, hd_buffer_end, &ptx);
  bool ok = hd_codegen_ptx(module, func, &options, &ptx);
  size_t part = hd_times_enter(&module->context->times, "link");
  ok = ok && link_ptx(d, module, func, &ptx, code);
  hd_times_leave(&module->context->times, part);
  hd_budget_clean(budget, &cleanup);
  if (ok)
    hd_cache_put(d->cache, key, &code->image);
  return ok;
}

static bool compile(void *argument, unsigned piece, hd_module_t *module) {
  const jobs_t *jobs = argument;
  return make_code(jobs->device, module, jobs->funcs[piece],
                   &jobs->codes[piece]);
}

static void end_code(void *argument) {
  hd_buffer_fini(&((hd_cuda_code_t *)argument)->image);
}

bool hd_cuda_make(hd_device_t *device, hd_module_t *module,
                  const hd_func_t *func, hd_buffer_t *out) {
  hd_cuda_code_t code = {0};
  hd_cleanup_t cleanup;
  hd_budget_t *budget = &module->context->budget;
  hd_budget_defer(budget, &cleanup, end_code, &code);
  bool ok = make_code(hd_cuda_device_of(device), module, func, &code);
  if (ok)
    hd_buffer_write(out, hd_buffer_text(&code.image), code.image.size);
  hd_budget_clean(budget, &cleanup);
  return ok;
}

hd_thread_pool_t *hd_cuda_pool(hd_cuda_device_t *d) {
  hd_cuda_device_t *first = d->first;
  pthread_mutex_lock(&first->lock);
  if (!first->pool)
    first->pool = hd_thread_pool_create(first->threads);
  pthread_mutex_unlock(&first->lock);
  return first->pool;
}

bool hd_cuda_compile(hd_cuda_device_t *d, const hd_func_t *const *funcs,
                     unsigned count, hd_cuda_code_t *codes) {
  jobs_t jobs = {d, funcs, codes};
  return hd_compile_all(d->base.context, count > 1 ? hd_cuda_pool(d) : NULL,
                        count, compile, &jobs);
}
