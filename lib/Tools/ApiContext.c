// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Api.h"

#include <stdlib.h>

static const hd_loc_t nowhere;

// --- Messages ---

// A thread's, made when there is something to tell; NULL: nothing has been.
static pthread_key_t messages_key;
static pthread_once_t messages_once = PTHREAD_ONCE_INIT;

static void end_messages(void *messages) {
  hd_buffer_fini(messages);
  free(messages);
}

static void make_key(void) { pthread_key_create(&messages_key, end_messages); }

static hd_buffer_t *find_messages(void) {
  pthread_once(&messages_once, make_key);
  return pthread_getspecific(messages_key);
}

// What a thread was told stays in memory that is its own; where there is none,
// it is told nothing.
static void tell_thread(const hd_diagnostics_t *diags, bool further) {
  hd_buffer_t *messages = find_messages();
  if (messages && !further)
    hd_buffer_fini(messages);
  if (!diags->first)
    return;
  if (!messages) {
    messages = calloc(1, sizeof(*messages));
    if (!messages || pthread_setspecific(messages_key, messages)) {
      free(messages);
      return;
    }
  }
  hd_diagnostics_print(diags, false, messages);
}

static void send(hd_api_watch_t *watch, const hidet_event_t *event) {
  pthread_mutex_lock(&watch->lock);
  if (watch->watcher)
    watch->watcher(watch->argument, event);
  pthread_mutex_unlock(&watch->lock);
}

static void tell(hd_api_watch_t *watch, const hd_diagnostics_t *diags,
                 bool further) {
  tell_thread(diags, further);
  if (!watch || !diags->first)
    return;
  hd_buffer_t text = {0};
  hd_diagnostics_print(diags, false, &text);
  if (text.size && !text.failed)
    send(watch, &(hidet_event_t){.kind = HIDET_EVENT_MESSAGE,
                                 .text = hd_buffer_text(&text)});
  hd_buffer_fini(&text);
}

const char *hidet_messages(void) {
  const hd_buffer_t *messages = find_messages();
  return messages && messages->size ? hd_buffer_text(messages) : "";
}

hidet_status_t hd_api_refuse(const char *text) {
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  hd_error(&diags, nowhere, HD_E1003, text);
  tell(NULL, &diags, false);
  hd_diagnostics_fini(&diags);
  return HIDET_USAGE;
}

hidet_status_t hd_api_done(void) {
  hd_diagnostics_t none;
  hd_diagnostics_init(&none);
  tell(NULL, &none, false);
  hd_diagnostics_fini(&none);
  return HIDET_OK;
}

hidet_status_t hd_api_needs(void) {
  return hd_api_refuse("an argument is NULL that must not be");
}

hidet_status_t hd_api_no_memory(void) {
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  hd_error(&diags, nowhere, HD_E0904, "out of memory");
  tell(NULL, &diags, false);
  hd_diagnostics_fini(&diags);
  return HIDET_RESOURCE;
}

// --- Contexts ---

static void send_progress(void *argument, size_t done, size_t total) {
  send(argument, &(hidet_event_t){.kind = HIDET_EVENT_PROGRESS,
                                  .text = "",
                                  .done = done,
                                  .total = total});
}

static void init(hidet_context_t *context, hd_api_watch_t *watch) {
  pthread_mutex_init(&context->lock, NULL);
  hd_context_init(&context->context);
  context->watch = watch;
  watch->users++;
  context->context.budget.interrupted = &watch->cancelled;
  context->context.progress = send_progress;
  context->context.progress_argument = watch;
}

void hd_api_context_init(hidet_context_t *context,
                         const hidet_context_t *from) {
  init(context, from->watch);
  context->context.budget.bytes_limit = from->context.budget.bytes_limit;
  context->time_limit_ms = from->time_limit_ms;
}

void hd_api_context_fini(hidet_context_t *context) {
  hd_api_watch_t *watch = context->watch;
  hd_context_fini(&context->context);
  pthread_mutex_destroy(&context->lock);
  if (--watch->users)
    return;
  pthread_mutex_destroy(&watch->lock);
  free(watch);
}

hidet_context_t *hidet_context_create(void) {
  hidet_context_t *context = calloc(1, sizeof(*context));
  hd_api_watch_t *watch = calloc(1, sizeof(*watch));
  if (!context || !watch) {
    free(context);
    free(watch);
    return NULL;
  }
  pthread_mutex_init(&watch->lock, NULL);
  init(context, watch);
  return context;
}

void hidet_context_destroy(hidet_context_t *context) {
  if (!context)
    return;
  hd_api_context_fini(context);
  free(context);
}

void hidet_context_limit(hidet_context_t *context, size_t bytes,
                         unsigned milliseconds) {
  if (!context)
    return;
  pthread_mutex_lock(&context->lock);
  context->context.budget.bytes_limit = bytes;
  context->time_limit_ms = milliseconds;
  pthread_mutex_unlock(&context->lock);
}

void hidet_context_cancel(hidet_context_t *context, int cancelled) {
  if (context)
    atomic_store(&context->watch->cancelled, cancelled != 0);
}

void hidet_context_watch(hidet_context_t *context, hidet_watcher_t watcher,
                         void *argument) {
  if (!context)
    return;
  pthread_mutex_lock(&context->watch->lock);
  context->watch->watcher = watcher;
  context->watch->argument = argument;
  pthread_mutex_unlock(&context->watch->lock);
}

void hidet_text_free(char *text) { free(text); }

// --- Calls ---

static hidet_status_t run_call(hidet_context_t *context, void (*body)(void *),
                               void *argument) {
  hd_context_t *c = &context->context;
  hd_diagnostics_clear(&c->diags);
  c->budget.deadline_ns =
      context->time_limit_ms
          ? hd_clock_ns() + (uint64_t)context->time_limit_ms * 1000000u
          : 0;
  hd_exhausted_t what = hd_budget_guard(&c->budget, body, argument);
  if (!hd_error_exhausted(&c->diags, &c->budget, what, context->time_limit_ms))
    return what == HD_EXHAUSTED_INTERRUPT ? HIDET_CANCELLED : HIDET_RESOURCE;
  return c->diags.num_errors ? (hidet_status_t)c->diags.exit_class : HIDET_OK;
}

static hidet_status_t call(hidet_context_t *context, void (*body)(void *),
                           void *argument, bool further) {
  pthread_mutex_lock(&context->lock);
  hidet_status_t status = run_call(context, body, argument);
  tell(context->watch, &context->context.diags, further);
  pthread_mutex_unlock(&context->lock);
  return status;
}

hidet_status_t hd_api_call(hidet_context_t *context, void (*body)(void *),
                           void *argument) {
  return call(context, body, argument, false);
}

hidet_status_t hd_api_call_on(hidet_context_t *context, void (*body)(void *),
                              void *argument) {
  return call(context, body, argument, true);
}

bool hd_api_fail(hidet_context_t *context, const char *text) {
  return hd_error(&context->context.diags, nowhere, HD_E1003, text);
}
