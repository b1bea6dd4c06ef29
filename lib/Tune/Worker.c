// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a launch gives in the model comes from a small kernel before the
// candidate (Fusion/Form/Choose.h), which may begin while that one runs.
#include "Tune/Worker.h"
#include "Tune/WorkerState.h"

// --- Ends ---

static void end_entry(hd_tune_worker_t *w, hd_tune_entry_t *e) {
  if (e->recording)
    w->device->ops->recording_free(w->device, e->recording);
  e->recording = NULL;
  hd_tune_program_fini(&e->p);
}

static void end_group(hd_tune_worker_t *w) {
  for (size_t i = 0; i < w->entries.size; i++)
    end_entry(w, w->entries.data[i]);
  hd_tune_end_operands(w);
  w->entries.data = NULL;
  w->entries.size = w->entries.capacity = 0;
  hd_arena_fini(&w->arena);
  hd_arena_init(&w->arena, &w->context->budget);
}

// --- What is asked ---

static hd_tune_entry_t *add_entry(hd_tune_worker_t *w) {
  hd_tune_entry_t *e = HD_ARENA_NEW(&w->arena, hd_tune_entry_t);
  e->number = w->message->number;
  hd_vec_push(&w->arena, &w->entries, e);
  return e;
}

static bool load(hd_tune_worker_t *w, hd_tune_entry_t *e) {
  return hd_tune_program_init(&e->p, w->device,
                              hd_buffer_text(&w->message->text),
                              w->message->text.size) &&
         hd_program_load(&e->p.program);
}

// A launch that the device refuses is a candidate that does not fit; any other
// error of a run leaves the device behind as it is.
static bool run_entry(hd_tune_worker_t *w, hd_tune_entry_t *e) {
  if (hd_program_run(&e->p.program, w->slots))
    return true;
  const hd_diagnostic_t *d = w->context->diags.first;
  while (d && d->severity != HD_ERROR)
    d = d->next;
  w->has_ended = !d || d->code != HD_E0606;
  return false;
}

static bool begin_group(hd_tune_worker_t *w) {
  end_group(w);
  hd_tune_entry_t *e = add_entry(w);
  return load(w, e) && hd_tune_make_operands(w) && run_entry(w, e) &&
         hd_tune_take_expected(w);
}

static void drop_last(hd_tune_worker_t *w) {
  end_entry(w, w->entries.data[w->entries.size - 1]);
  w->entries.size--;
}

static bool try_candidate(hd_tune_worker_t *w) {
  hd_tune_entry_t *e = add_entry(w);
  return load(w, e) && e->p.program.entry->num_params == w->num_params &&
         hd_tune_wipe_results(w) && run_entry(w, e) && hd_tune_check_results(w);
}

static void answer(void *argument) {
  hd_tune_worker_t *w = argument;
  bool ok = false;
  w->answer = HD_MESSAGE_FAILED;
  if (w->message->kind == HD_MESSAGE_GROUP)
    ok = begin_group(w);
  else if (w->message->kind == HD_MESSAGE_TRY && w->entries.size)
    ok = try_candidate(w);
  else if (w->message->kind == HD_MESSAGE_MEASURE && w->entries.size)
    ok = hd_tune_measure(w);
  if (ok)
    w->answer = w->message->kind == HD_MESSAGE_MEASURE ? HD_MESSAGE_TIMES
                                                       : HD_MESSAGE_READY;
}

void hd_tune_work(hd_device_t *device, int socket) {
  hd_context_t *context = device->context;
  hd_message_t message = {0};
  hd_tune_worker_t w = {.device = device,
                        .context = context,
                        .socket = socket,
                        .message = &message};
  hd_arena_init(&w.arena, &context->budget);
  while (!w.has_ended &&
         hd_message_receive(socket, 0, NULL, &message) == HD_RECEIVED) {
    size_t entries = w.entries.size;
    hd_buffer_fini(&w.said);
    hd_exhausted_t exhausted = hd_budget_guard(&context->budget, answer, &w);
    if (exhausted != HD_EXHAUSTED_NOTHING) {
      w.answer = HD_MESSAGE_FAILED;
      w.has_ended = true;
      hd_buffer_puts(&w.said, "it takes too much memory or time");
    }
    if (w.answer == HD_MESSAGE_FAILED && !w.said.size)
      hd_tune_take_error(context, &w.said);
    hd_diagnostics_clear(&context->diags);
    if (w.has_ended && w.answer == HD_MESSAGE_FAILED)
      w.answer = HD_MESSAGE_FAULT;
    else if (message.kind == HD_MESSAGE_TRY && w.answer != HD_MESSAGE_READY &&
             w.entries.size > entries)
      drop_last(&w);
    hd_message_send(socket, w.answer, message.number, hd_buffer_text(&w.said));
  }
  hd_buffer_fini(&message.text);
  hd_buffer_fini(&w.said);
  end_group(&w);
  hd_arena_fini(&w.arena);
}
