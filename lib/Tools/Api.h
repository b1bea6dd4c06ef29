// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the sources of the public interface (include/hidet) share. Each call
// runs its body inside the context's budget, so that a limit unwinds to here.
#ifndef HIDET_TOOLS_API_H
#define HIDET_TOOLS_API_H

#include "IR/Module.h"
#include "Runtime/Device.h"
#include "Tools/Passes.h"
#include "hidet/Context.h"
#include "hidet/Device.h"
#include "hidet/Module.h"

struct hidet_context {
  hd_context_t context;
  hd_pass_list_t passes;
  hd_buffer_t messages;
  unsigned time_limit_ms;
};

struct hidet_module {
  hidet_context_t *owner;
  hd_module_t *module;
};

struct hidet_device {
  hidet_context_t *owner;
  hd_device_t *device;
};

// Runs body(argument) and returns how it ended. Diagnostics of the call before
// are forgotten.
hidet_status_t hd_api_call(hidet_context_t *context, void (*body)(void *),
                           void *argument);
// Reports E1003 with the text; returns false.
bool hd_api_fail(hidet_context_t *context, const char *text);
// For a call without an argument that it needs: reports E1003, to nobody where
// the context is NULL; returns HIDET_USAGE.
hidet_status_t hd_api_needs(hidet_context_t *context);
// The pass "lower".
bool hd_api_lower(hidet_context_t *context, hd_module_t *module);

#endif
