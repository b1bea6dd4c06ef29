// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Api.h"

#include <stdlib.h>

static const hd_loc_t nowhere;

hidet_context_t *hidet_context_create(void) {
  hidet_context_t *context = calloc(1, sizeof(*context));
  if (!context)
    return NULL;
  hd_context_init(&context->context);
  hd_pass_list_init(&context->passes);
  return context;
}

void hidet_context_destroy(hidet_context_t *context) {
  if (!context)
    return;
  hd_context_fini(&context->context);
  hd_buffer_fini(&context->messages);
  free(context);
}

void hidet_context_limit(hidet_context_t *context, size_t bytes,
                         unsigned milliseconds) {
  if (!context)
    return;
  context->context.budget.bytes_limit = bytes;
  context->time_limit_ms = milliseconds;
}

const char *hidet_context_messages(hidet_context_t *context) {
  if (!context)
    return "";
  hd_buffer_fini(&context->messages);
  hd_diagnostics_print(&context->context.diags, false, &context->messages);
  return hd_buffer_text(&context->messages);
}

void hidet_text_free(char *text) { free(text); }

hidet_status_t hd_api_call(hidet_context_t *context, void (*body)(void *),
                           void *argument) {
  hd_context_t *c = &context->context;
  hd_diagnostics_clear(&c->diags);
  c->budget.deadline_ns =
      context->time_limit_ms
          ? hd_clock_ns() + (uint64_t)context->time_limit_ms * 1000000u
          : 0;
  hd_exhausted_t what = hd_budget_guard(&c->budget, body, argument);
  if (!hd_error_exhausted(&c->diags, &c->budget, what, context->time_limit_ms))
    return HIDET_RESOURCE;
  return c->diags.num_errors ? (hidet_status_t)c->diags.exit_class : HIDET_OK;
}

bool hd_api_fail(hidet_context_t *context, const char *text) {
  return hd_error(&context->context.diags, nowhere, HD_E1003, text);
}

hidet_status_t hd_api_needs(hidet_context_t *context) {
  if (context) {
    hd_diagnostics_clear(&context->context.diags);
    hd_api_fail(context, "an argument is NULL that must not be");
  }
  return HIDET_USAGE;
}
