// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel to machine code: PTX by LLVM, then code by the driver's linker.
//
// Some kernels stay PTX, of which the driver makes code when it is loaded. What
// it makes for its linker is code that functions may be added to: registers are
// not given from warps to warps (HD_TRAIT_WHOLE), so that some spill, and where
// something is called, such as a division, each wgmma waits for the one before,
// which the linker says.
//
// The cache is asked twice. By the text of the lowered kernel with all that it
// calls, and by which build of the compiler this is: then LLVM has nothing to
// do. And by the PTX, which outlives the build.
#include "IR/Intrinsic.h"
#include "IR/Rewrite.h"
#include "Runtime/CodeKey.h"
#include "Runtime/DeviceCuda.h"

#include <stdio.h>
#include <stdlib.h>

static hd_cache_key_t text_key(const hd_cuda_device_t *d, hd_module_t *module,
                               const hd_func_t *func) {
  char salt[80];
  snprintf(salt, sizeof(salt), "%s %d %d", d->base.info.target->name,
           d->cuda->sm, d->cuda->version);
  return d->base.cache ? hd_code_key(module, func, salt, false)
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
  if (!hd_walk_calls(&module->arena, func->body, is_plain, NULL)) {
    keep_ptx(ptx, code);
    return true;
  }
  char salt[64];
  snprintf(salt, sizeof(salt), "image %d %d", d->cuda->sm, d->cuda->version);
  hd_cache_key_t key = hd_cache_key(salt, hd_buffer_text(ptx), ptx->size);
  if (hd_cache_get(d->base.cache, key, &code->image)) {
    code->origin = HD_CUDA_FROM_PTX;
    return true;
  }
  // PTX of an older target becomes code of this GPU all the same.
  int target = d->base.info.target->sm;
  bool is_slow;
  if (!hd_cuda_link(d->cuda, &module->context->diags, func->name,
                    target > 120 ? target : d->cuda->sm, hd_buffer_text(ptx),
                    ptx->size, &code->image, &is_slow))
    return false;
  if (is_slow)
    keep_ptx(ptx, code);
  hd_cache_put(d->base.cache, key, &code->image);
  return true;
}

bool hd_cuda_compile(hd_cuda_device_t *d, hd_module_t *module,
                     const hd_func_t *func, hd_cuda_code_t *code) {
  hd_cache_key_t key = text_key(d, module, func);
  if (hd_cache_get(d->base.cache, key, &code->image)) {
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
    hd_cache_put(d->base.cache, key, &code->image);
  return ok;
}

// Of PTX the driver makes code when it is loaded, which takes the longest, and
// keeps it for who loads it next, perhaps another process.
static bool load_once(hd_cuda_device_t *d, hd_diagnostics_t *diags,
                      const hd_func_t *func, const hd_cuda_code_t *code) {
  hd_cu_library_t library;
  bool entered;
  bool ok = hd_cuda_enter(d->cuda, diags, &entered) &&
            hd_cuda_load_code(d->cuda, diags, func->name,
                              hd_buffer_text(&code->image), &library);
  if (ok)
    d->cuda->driver.library_unload(library);
  hd_cuda_leave(d->cuda, entered);
  return ok;
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
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  bool ok = hd_cuda_compile(d, module, func, &code) &&
            load_once(d, &module->context->diags, func, &code);
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
