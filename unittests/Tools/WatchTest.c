// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who watches a context sees how far compiling is and what calls report, also
// of what was made under it; a call that is cancelled ends, and the next ones
// do until that is taken back.
#include "World.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "graph main(x: f32[64, 64], w: f32[64, 64]) -> y, z {\n"
    "  y: f32[64, 64] = matmul(x, w)\n"
    "  z = softmax(y) { s = 1 }\n"
    "}\n"
    "kernel spins(inout x: f32[64]) grid(1) block(64) {\n"
    "  register s: f32 = x[thread]\n"
    "  for i in 0..2000000000 unroll(1) {\n"
    "    s = s * x[thread] + 1\n"
    "    barrier()\n"
    "  }\n"
    "  x[thread] = s\n"
    "}\n";

typedef struct seen {
  hidet_context_t *cancels; // At the first progress; NULL: nobody does.
  size_t progresses, done, total, messages;
  char message[400];
} seen_t;

static void watcher(void *argument, const hidet_event_t *event) {
  seen_t *seen = argument;
  if (event->kind == HIDET_EVENT_MESSAGE) {
    seen->messages++;
    strncat(seen->message, event->text,
            sizeof(seen->message) - strlen(seen->message) - 1);
    return;
  }
  assert_true(event->done == 1 || event->done == seen->done + 1);
  seen->progresses++;
  seen->done = event->done;
  seen->total = event->total;
  if (seen->cancels)
    hidet_context_cancel(seen->cancels, 1);
}

static void begin(world_t *w, seen_t *seen) {
  *w = (world_t){.context = hidet_context_create()};
  hidet_context_watch(w->context, watcher, seen);
  world_open(w, "sim");
  world_load(w, text);
}

static hidet_status_t run(world_t *w) {
  static float x[64 * 64];
  hidet_array_t in[2] = {{"f32", 2, {64, 64}, x}, {"f32", 2, {64, 64}, x}};
  hidet_array_t out[2];
  return hidet_session_run(w->session, in, 2, out, 2);
}

static void all_is_seen(void **state) {
  (void)state;
  seen_t seen = {0};
  world_t w;
  begin(&w, &seen);
  assert_int_equal(run(&w), HIDET_OK);
  assert_true(seen.progresses >= 2 && seen.done == seen.total);
  size_t progresses = seen.progresses;
  assert_int_equal(run(&w), HIDET_OK);
  assert_int_equal(seen.progresses, progresses); // Nothing was compiled.
  assert_int_equal(seen.messages, 0);
  float x = 0;
  hidet_array_t one = {"f32", 1, {1}, &x};
  hidet_array_t wrong[2] = {one, one}, out[2];
  assert_int_equal(hidet_session_run(w.session, wrong, 2, out, 2), HIDET_USAGE);
  assert_int_equal(seen.messages, 1);
  assert_string_equal(seen.message, hidet_messages());
  hidet_context_watch(w.context, NULL, NULL);
  assert_int_equal(hidet_session_run(w.session, wrong, 2, out, 2), HIDET_USAGE);
  assert_int_equal(seen.messages, 1);
  world_end(&w);
}

// A model's file is read, and then made a model of: what was said of the file
// is what the call leaves.
static void what_a_file_has_is_told(void **state) {
  (void)state;
  char path[] = "/tmp/hidet-watch-test-XXXXXX.hir";
  int fd = mkstemps(path, 4);
  static const char warned[] = "kernel k(n: i32, inout x: f32[4]) {\n"
                               "  if n > 5 {\n"
                               "    x[9] = 0.0\n"
                               "  }\n"
                               "}\n"
                               "graph main(x: f32[4]) -> y {\n"
                               "  y = relu(x)\n"
                               "}\n";
  assert_true(fd >= 0);
  assert_int_equal(write(fd, warned, strlen(warned)), strlen(warned));
  close(fd);
  seen_t seen = {0};
  hidet_model_t *model;
  hidet_context_t *context = hidet_context_create();
  hidet_context_watch(context, watcher, &seen);
  assert_int_equal(hidet_model_load(context, path, &model), HIDET_OK);
  unlink(path);
  assert_non_null(strstr(hidet_messages(), "warning: where this is reached"));
  assert_int_equal(seen.messages, 1);
  assert_string_equal(seen.message, hidet_messages());
  hidet_model_destroy(model);
  hidet_context_destroy(context);
}

// By the watcher, in the middle of compiling.
static void compiling_is_cancelled(void **state) {
  (void)state;
  seen_t seen = {0};
  world_t w;
  begin(&w, &seen);
  seen.cancels = w.context;
  assert_int_equal(run(&w), HIDET_CANCELLED);
  assert_non_null(strstr(hidet_messages(), "E0903"));
  assert_int_equal(run(&w), HIDET_CANCELLED);
  seen.cancels = NULL;
  seen.done = 0;
  hidet_context_cancel(w.context, 0);
  assert_int_equal(run(&w), HIDET_OK);
  world_end(&w);
}

static atomic_bool goes_on;

static void *cancel_soon(void *context) {
  while (!goes_on)
    usleep(1000);
  usleep(20000);
  hidet_context_cancel(context, 1);
  return NULL;
}

// By another thread, a kernel that runs for minutes.
static void a_run_is_cancelled(void **state) {
  (void)state;
  seen_t seen = {0};
  world_t w;
  begin(&w, &seen);
  const int64_t shape[] = {64};
  float zeros[64] = {0};
  hidet_tensor_t *tensor;
  hidet_program_t *program;
  assert_int_equal(hidet_tensor_create(w.device, "f32", shape, 1, &tensor),
                   HIDET_OK);
  assert_int_equal(hidet_tensor_write(tensor, zeros), HIDET_OK);
  hidet_module_t *module;
  assert_int_equal(
      hidet_module_parse(w.context, "k", text, strlen(text), &module),
      HIDET_OK);
  hidet_argument_t argument = {.tensor = tensor};
  assert_int_equal(
      hidet_program_create(w.device, module, "spins", &argument, 1, &program),
      HIDET_OK);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, cancel_soon, w.context), 0);
  goes_on = true;
  assert_int_equal(hidet_program_run(program, &argument, 1), HIDET_CANCELLED);
  pthread_join(thread, NULL);
  hidet_context_cancel(w.context, 0);
  hidet_program_destroy(program);
  hidet_tensor_destroy(tensor);
  hidet_module_destroy(module);
  world_end(&w);
}

static void *cancel_shortly(void *context) {
  while (!goes_on)
    usleep(1000);
  usleep(20000);
  hidet_context_cancel(context, 1);
  usleep(15000); // The launch looks each 10 ms, its blocks take longer.
  hidet_context_cancel(context, 0);
  return NULL;
}

// A run that was stopped says so, though nobody cancels any more when it ends.
static void a_short_cancel_is_told(void **state) {
  (void)state;
  static const char blocks[] = "kernel blocks(inout x: f32[64]) grid(64) "
                               "block(1) {\n"
                               "  register s: f32 = x[block]\n"
                               "  for i in 0..20000000 unroll(1) {\n"
                               "    s = s * x[block] + 1\n"
                               "  }\n"
                               "  x[block] = s\n"
                               "}\n";
  seen_t seen = {0};
  world_t w;
  begin(&w, &seen);
  const int64_t shape[] = {64};
  float x[64] = {0};
  hidet_tensor_t *tensor;
  hidet_program_t *program;
  hidet_module_t *module;
  assert_int_equal(hidet_tensor_create(w.device, "f32", shape, 1, &tensor),
                   HIDET_OK);
  assert_int_equal(hidet_tensor_write(tensor, x), HIDET_OK);
  assert_int_equal(
      hidet_module_parse(w.context, "b", blocks, strlen(blocks), &module),
      HIDET_OK);
  hidet_argument_t argument = {.tensor = tensor};
  assert_int_equal(
      hidet_program_create(w.device, module, "blocks", &argument, 1, &program),
      HIDET_OK);
  goes_on = false;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, cancel_shortly, w.context), 0);
  goes_on = true;
  hidet_status_t status = hidet_program_run(program, &argument, 1);
  pthread_join(thread, NULL);
  assert_int_equal(hidet_tensor_read(tensor, x), HIDET_OK);
  size_t done = 0;
  for (size_t i = 0; i < 64; i++)
    done += x[i] != 0;
  assert_int_equal(status, done == 64 ? HIDET_OK : HIDET_CANCELLED);
  hidet_program_destroy(program);
  hidet_tensor_destroy(tensor);
  hidet_module_destroy(module);
  world_end(&w);
}

// Wherever a call was stopped, also where it read the library: the next one on
// the context does what it would have done.
static void what_was_stopped_can_be_done_again(void **state) {
  (void)state;
  for (size_t bytes = 100000; bytes < 12000000; bytes += bytes / 7) {
    seen_t seen = {0};
    world_t w;
    begin(&w, &seen);
    hidet_context_limit(w.context, bytes, 0);
    hidet_status_t first = run(&w);
    assert_true(first == HIDET_OK || first == HIDET_RESOURCE);
    hidet_context_limit(w.context, 0, 0);
    if (run(&w) != HIDET_OK)
      fail_msg("%zu bytes: %s", bytes, hidet_messages());
    world_end(&w);
  }
}

HD_UNIT_TESTS(cmocka_unit_test(all_is_seen),
              cmocka_unit_test(what_a_file_has_is_told),
              cmocka_unit_test(compiling_is_cancelled),
              cmocka_unit_test(a_run_is_cancelled),
              cmocka_unit_test(a_short_cancel_is_told),
              cmocka_unit_test(what_was_stopped_can_be_done_again))
