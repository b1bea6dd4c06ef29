// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Artifact.h"
#include "TaskMapping/TaskMapping.h"
#include "Tools/Api.h"
#include "Tools/Emit.h"
#include "Tools/Input.h"

#include <stdio.h>
#include <stdlib.h>

// The arguments of a call, for its body.
typedef struct call {
  hidet_context_t *context;
  hidet_module_t *module;
  const char *name, *text;
  size_t size;
  const char *format, *target, *kernel;
  hd_buffer_t out;
} call_t;

static bool run_pass(hidet_context_t *context, hd_module_t *module,
                     const char *name, const char *options) {
  hd_pass_list_t passes;
  char text[160];
  hd_pass_list_init(&passes);
  const hd_pass_t *pass = hd_pass_list_find(&passes, name);
  if (!pass) {
    snprintf(text, sizeof(text), "there is no pass '%.100s'", name);
    return hd_api_fail(context, text);
  }
  hd_pass_args_t args = {.options = options};
  hd_pass_config_t config = {.verify_each = true};
  return hd_pass_run(module, pass, &args, &config).ok;
}

bool hd_api_lower(hidet_context_t *context, hd_module_t *module) {
  return run_pass(context, module, "lower", NULL);
}

bool hd_api_parse(hd_module_t *module, const char *name, const char *text,
                  size_t size) {
  if (!hd_module_parse_into(module, name, text, size, 1) ||
      !hd_module_verify(module))
    return false;
  for (size_t i = 0; i < module->items.size; i++)
    if (module->items.data[i].kind == HD_ITEM_FUNC)
      hd_func_verify_mappings(module->context, module->items.data[i].u.func);
  return !module->context->diags.num_errors;
}

static void parse(void *argument) {
  call_t *call = argument;
  call->module->module = hd_module_create(&call->context->context);
  hd_api_parse(call->module->module, call->name, call->text, call->size);
}

hidet_status_t hidet_module_parse(hidet_context_t *context, const char *name,
                                  const char *text, size_t size,
                                  hidet_module_t **module) {
  if (module)
    *module = NULL;
  if (!context || !module || (size && !text))
    return hd_api_needs();
  *module = calloc(1, sizeof(**module));
  if (!*module)
    return hd_api_no_memory();
  (*module)->owner = context;
  call_t call = {.context = context,
                 .module = *module,
                 .name = name ? name : "",
                 .text = text ? text : "",
                 .size = size};
  hidet_status_t status = hd_api_call(context, parse, &call);
  if (status != HIDET_OK) {
    hidet_module_destroy(*module);
    *module = NULL;
  }
  return status;
}

void hidet_module_destroy(hidet_module_t *module) {
  if (!module)
    return;
  pthread_mutex_lock(&module->owner->lock);
  hd_module_destroy(module->module);
  pthread_mutex_unlock(&module->owner->lock);
  free(module);
}

typedef struct change {
  hidet_module_t *module;
  void (*body)(void *);
  void *argument;
} change_t;

// Asked where nobody else can make a model before it is done.
static void change(void *argument) {
  change_t *c = argument;
  if (c->module->models)
    hd_api_fail(c->module->owner,
                "models are made of the module: it changes no more");
  else if (hd_artifact_leave(c->module->module))
    c->body(c->argument);
}

hidet_status_t hd_api_change(hidet_module_t *module, void (*body)(void *),
                             void *argument) {
  change_t c = {module, body, argument};
  return hd_api_call(module->owner, change, &c);
}

static void run_pass_call(void *argument) {
  call_t *call = argument;
  run_pass(call->module->owner, call->module->module, call->name, call->text);
}

hidet_status_t hidet_module_run_pass(hidet_module_t *module, const char *pass,
                                     const char *options) {
  if (!module || !pass)
    return hd_api_needs();
  call_t call = {.module = module, .name = pass, .text = options};
  return hd_api_change(module, run_pass_call, &call);
}

// The buffer's text, which then belongs to the caller.
static hidet_status_t give_text(call_t *call, hidet_status_t status,
                                char **text) {
  *text = NULL;
  if (status == HIDET_OK && call->out.size == 0)
    hd_buffer_write(&call->out, "", 0);
  if (status == HIDET_OK && call->out.failed)
    status = HIDET_RESOURCE;
  if (status == HIDET_OK)
    *text = call->out.data;
  else
    hd_buffer_fini(&call->out);
  return status;
}

static void print(void *argument) {
  call_t *call = argument;
  hd_module_print(call->module->module, &call->out);
}

hidet_status_t hidet_module_print(hidet_module_t *module, char **text) {
  if (text)
    *text = NULL;
  if (!module || !text)
    return hd_api_needs();
  call_t call = {.module = module};
  return give_text(&call, hd_api_call(module->owner, print, &call), text);
}

static void emit(void *argument) {
  call_t *call = argument;
  hidet_module_t *module = call->module;
  bool ptx = strcmp(call->format, "ptx") == 0;
  if (!ptx && strcmp(call->format, "llvm") != 0) {
    hd_api_fail(module->owner, "the format is one of llvm and ptx");
    return;
  }
  const hd_target_t *target =
      hd_tools_find_target(&module->owner->context.diags, call->target);
  if (target && hd_tools_make_entry(module->module, &call->kernel) &&
      hd_api_lower(module->owner, module->module))
    hd_emit_module(module->module, ptx ? HD_EMIT_PTX : HD_EMIT_LLVM, target,
                   call->kernel, &call->out);
}

hidet_status_t hidet_module_emit(hidet_module_t *module, const char *format,
                                 const char *target, const char *kernel,
                                 char **text) {
  if (text)
    *text = NULL;
  if (!module || !format || !target || !text)
    return hd_api_needs();
  call_t call = {
      .module = module, .format = format, .target = target, .kernel = kernel};
  return give_text(&call, hd_api_change(module, emit, &call), text);
}
