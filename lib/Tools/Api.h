// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the sources of the public interface (include/hidet) share. Each call
// runs its body inside a context's budget, so that a limit unwinds to here.
//
// What threads may use side by side (devices, sessions) has a context of its
// own, so that no call but one that compiles waits for another.
#ifndef HIDET_TOOLS_API_H
#define HIDET_TOOLS_API_H

#include "IR/Module.h"
#include "Runtime/Device.h"
#include "Tools/Passes.h"
#include "hidet/Context.h"
#include "hidet/Device.h"
#include "hidet/Module.h"

#include <pthread.h>
#include <stdatomic.h>

// What a context shares with everything that is made under it; the last of them
// frees it.
typedef struct hd_api_watch {
  atomic_uint users;
  atomic_bool cancelled;
  pthread_mutex_t lock; // Of the watcher, and held while it is called.
  hidet_watcher_t watcher;
  void *argument;
} hd_api_watch_t;

struct hidet_context {
  pthread_mutex_t lock; // Held by a call, and by models that compile in it.
  hd_context_t context;
  unsigned time_limit_ms;
  hd_api_watch_t *watch;
};

struct hidet_module {
  hidet_context_t *owner;
  hd_module_t *module;
  unsigned models; // That are made of it: it changes no more.
};

struct hidet_device {
  hidet_context_t own;
  hd_device_t *device; // In that; who works beside has a fork.
  int ordinal;         // Of the GPU; -1: it is none.
  bool keeps;          // Code, where there is a cache.
  atomic_uint users;   // Models with forks, and who opened it.
};

// Limits, and who watches, are those of another.
void hd_api_context_init(hidet_context_t *context, const hidet_context_t *from);
void hd_api_context_fini(hidet_context_t *context);

// Runs body(argument) and returns how it ended. What is reported becomes the
// thread's messages.
hidet_status_t hd_api_call(hidet_context_t *context, void (*body)(void *),
                           void *argument);
// The same, as a further part of a call: what the part before reported stays.
hidet_status_t hd_api_call_on(hidet_context_t *context, void (*body)(void *),
                              void *argument);
// Reports E1003 with the text; returns false.
bool hd_api_fail(hidet_context_t *context, const char *text);
// A call that ends before it has a context: reports E1003 with the text;
// returns HIDET_USAGE.
hidet_status_t hd_api_refuse(const char *text);
// A call that has no context, and nothing to report; returns HIDET_OK.
hidet_status_t hd_api_done(void);
// hd_api_refuse() for a call without an argument that it needs.
hidet_status_t hd_api_needs(void);
// A call without memory for what it makes; returns HIDET_RESOURCE.
hidet_status_t hd_api_no_memory(void);
// hd_api_call() for a body that changes the module, in whose context it runs:
// HIDET_USAGE, where models are made of that.
hidet_status_t hd_api_change(hidet_module_t *module, void (*body)(void *),
                             void *argument);
// Into a module that is empty.
bool hd_api_parse(hd_module_t *module, const char *name, const char *text,
                  size_t size);
// The pass "lower".
bool hd_api_lower(hidet_context_t *context, hd_module_t *module);

#endif
