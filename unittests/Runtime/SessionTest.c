// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions of a model: what they share is there once, however many there are
// and whatever threads they are on, and each gets what one alone gets.
#include "Runtime/Session.h"
#include "IR/Text/Parser.h"
#include "IR/Verify/Verifier.h"
#include "UnitTest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, MODELS = 3, SIZES = 4, RUNS = 12 };

// Elements are small integers, and every order of their sums is exact.
static const char *const texts[MODELS] = {
    "graph main(x: f32[n, 8]) -> y {\n"
    "  const w: f32[8, 8] = 2\n"
    "  t: f32[n, 8] = matmul(x, w)\n"
    "  y: f32[n, 8] = relu(t)\n"
    "}\n",
    "graph main(x: f32[n, 8]) -> y, x, v {\n" // One comes in, one is prepared.
    "  const w: f32[8] = 3\n"
    "  v: f32[8] = add(w, w)\n"
    "  y: f32[n, 8] = add(x, v)\n"
    "}\n",
    "graph main(x: f32[n, 8]) -> y, z, y, z {\n" // Both come out twice.
    "  y: f32[8, n] = transpose(x) { order = [1, 0] }\n"
    "  z: f32[n, 8] = add(x, x)\n"
    "}\n",
};

typedef struct world {
  hd_context_t context;
  pthread_mutex_t lock; // Who has not locked it cannot unlock it.
  hd_device_t *device;
  hd_model_t *model;
  const hd_graph_t *graph;
} world_t;

static world_t worlds[MODELS];

static void begin_world(world_t *w, const char *text, size_t kept_bytes) {
  pthread_mutexattr_t checked;
  pthread_mutexattr_init(&checked);
  pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&w->lock, &checked);
  pthread_mutexattr_destroy(&checked);
  hd_context_init(&w->context);
  hd_module_t *module =
      hd_module_parse(&w->context, "test", text, strlen(text), 1);
  assert_true(module && hd_module_verify(module));
  // Under the sanitizer everything has memory of the device's own: nothing is
  // read where it is on the host, which depends on where it happens to be.
  w->device = hd_device_open_sim(
      &w->context, &(hd_device_options_t){.threads = 2, .sanitize = true});
  assert_non_null(w->device);
  w->graph = hd_module_find_graph(module, "main");
  w->model = hd_model_create(
      module, w->graph, w->device,
      &(hd_model_options_t){.kept_bytes = kept_bytes, .world = &w->lock});
}

static void end_world(world_t *w) {
  hd_model_destroy(w->model);
  hd_device_close(w->device);
  hd_context_fini(&w->context);
  pthread_mutex_destroy(&w->lock);
}

// A session on a thread of its own.
typedef struct client {
  hd_context_t context;
  hd_device_t *device;
  hd_session_t *session;
  hd_host_tensor_t input, outputs[4];
  int64_t size;
  bool ok;
} client_t;

static void begin_client(client_t *c, world_t *w) {
  *c = (client_t){0};
  hd_context_init(&c->context);
  c->device = hd_device_fork(w->device, &c->context);
  if (!c->device)
    abort();
  c->session = hd_session_join(w->model, &c->context, c->device);
}

static void end_client(client_t *c) {
  hd_session_destroy(c->session);
  hd_device_close(c->device);
  hd_context_fini(&c->context);
}

static float element(int64_t i) { return (float)(i * 7 % 11 - 5); }

static void run_body(void *argument) {
  client_t *c = argument;
  const int64_t shape[2] = {c->size, 8};
  if (!hd_host_tensor_init(&c->input, &c->context.diags, NULL, "x", HD_F32,
                           shape, 2))
    abort();
  for (int64_t i = 0; i < c->input.count; i++)
    ((float *)(void *)c->input.data)[i] = element(i + c->size);
  c->ok = hd_session_run(c->session, &c->input, c->outputs);
}

// What came out, to be freed with end_run().
static hd_exhausted_t run(client_t *c, int64_t size) {
  c->size = size;
  c->ok = false;
  return hd_budget_guard(&c->context.budget, run_body, c);
}

static void end_run(client_t *c, const world_t *w) {
  hd_host_tensor_fini(&c->input);
  for (size_t i = 0; i < w->graph->outputs.size; i++)
    hd_host_tensor_fini(&c->outputs[i]);
}

static float output(const client_t *c, int which, int64_t i) {
  return ((const float *)(const void *)c->outputs[which].data)[i];
}

// By arithmetic.
static unsigned count_wrong(const client_t *c, size_t model) {
  unsigned wrong = 0;
  int64_t n = c->size;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < 8; j++) {
      float x = element(i * 8 + j + n), sum = 0;
      for (int64_t k = 0; k < 8; k++)
        sum += 2 * element(i * 8 + k + n);
      if (model == 0)
        wrong += output(c, 0, i * 8 + j) != (sum > 0 ? sum : 0);
      else if (model == 1)
        wrong += output(c, 0, i * 8 + j) != x + 6 ||
                 output(c, 1, i * 8 + j) != x || output(c, 2, j) != 6;
      else
        wrong +=
            output(c, 0, j * n + i) != x || output(c, 1, i * 8 + j) != x + x ||
            output(c, 2, j * n + i) != x || output(c, 3, i * 8 + j) != x + x;
    }
  return wrong;
}

static void *work(void *argument) {
  size_t number = (size_t)argument, wrong = 0;
  client_t clients[MODELS];
  for (size_t m = 0; m < MODELS; m++)
    begin_client(&clients[m], &worlds[m]);
  for (size_t i = 0; i < RUNS * MODELS; i++) {
    size_t m = (i + number) % MODELS;
    client_t *c = &clients[m];
    wrong += run(c, (int64_t)((i / MODELS + number) % SIZES) + 1) !=
                 HD_EXHAUSTED_NOTHING ||
             !c->ok || count_wrong(c, m);
    end_run(c, &worlds[m]);
  }
  for (size_t m = 0; m < MODELS; m++)
    end_client(&clients[m]);
  return (void *)wrong;
}

// Eight threads with a session of each of three models, four sizes: each is
// compiled once.
static void threads_share_what_is_compiled(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  for (size_t m = 0; m < MODELS; m++)
    begin_world(&worlds[m], texts[m], 0);
  for (size_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
  for (size_t i = 0; i < THREADS; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  for (size_t m = 0; m < MODELS; m++) {
    hd_model_counts_t counts = hd_model_counts(worlds[m].model);
    assert_int_equal(counts.compiled, SIZES);
    assert_int_equal(counts.kept, SIZES);
    end_world(&worlds[m]);
  }
}

// The model's device holds weights alone, once; what is a session's own is on
// its fork, and ends with it.
static void weights_are_there_once(void **state) {
  (void)state;
  world_t w;
  client_t clients[3];
  begin_world(&w, texts[0], 0);
  size_t bytes = 0;
  for (int i = 0; i < 3; i++) {
    begin_client(&clients[i], &w);
    for (int64_t size = 1; size <= 2; size++) {
      assert_int_equal(run(&clients[i], size), HD_EXHAUSTED_NOTHING);
      assert_true(clients[i].ok);
      end_run(&clients[i], &w);
      if (!bytes)
        bytes = w.device->bytes;
      assert_int_equal(w.device->bytes, bytes);
    }
  }
  assert_int_equal(bytes, 8 * 8 * sizeof(float));
  assert_int_equal(hd_model_counts(w.model).compiled, 2);
  for (int i = 0; i < 3; i++)
    end_client(&clients[i]);
  assert_int_equal(w.device->bytes, bytes);
  end_world(&w);
}

// What depends on constants alone is there once, for every size, and what it
// was computed of is not; with the last executable it leaves.
static void keeps_once(const char *text, size_t bytes, float wanted) {
  world_t w;
  client_t c;
  begin_world(&w, text, 0);
  begin_client(&c, &w);
  for (int64_t size = 1; size <= 3; size++) {
    assert_int_equal(run(&c, size), HD_EXHAUSTED_NOTHING);
    assert_true(c.ok);
    for (int64_t i = 0; i < c.outputs[0].count; i++)
      assert_true(output(&c, 0, i) == element(i + size) + wanted);
    assert_int_equal(w.device->bytes, bytes);
    end_run(&c, &w);
  }
  assert_int_equal(hd_model_counts(w.model).compiled, 3);
  end_client(&c);
  hd_model_destroy(w.model);
  w.model = NULL;
  assert_int_equal(w.device->bytes, 0);
  end_world(&w);
}

static void what_is_prepared_is_there_once(void **state) {
  (void)state;
  // Computed by the device, and by the expansion.
  keeps_once("graph main(x: f32[n, 8]) -> y {\n"
             "  const w: f32[1, 4096] = 1\n"
             "  const u: f32[4096, 8] = 0.125\n"
             "  v: f32[1, 8] = matmul(w, u)\n"
             "  y: f32[n, 8] = add(x, v)\n"
             "}\n",
             8 * sizeof(float), 512);
  keeps_once("graph main(x: f32[n, 8]) -> y {\n"
             "  const w: f32[8] = 3\n"
             "  v: f32[8] = add(w, w)\n"
             "  y: f32[n, 8] = add(x, v)\n"
             "}\n",
             8 * sizeof(float), 6);
  // By tasks of other names.
  keeps_once("task first(x: f32[n]) -> y: f32[n] {\n"
             "  y[i] = x[i] * 2\n"
             "}\n"
             "task second(x: f32[n]) -> y: f32[n] {\n"
             "  y[i] = x[i] * 2\n"
             "}\n"
             "graph main(x: f32[n, 8]) -> y {\n"
             "  const w: f32[8] = 3\n"
             "  v: f32[8] = first(w)\n"
             "  u: f32[8] = second(w)\n"
             "  z: f32[n, 8] = add(x, v)\n"
             "  y: f32[n, 8] = add(z, u)\n"
             "}\n",
             8 * sizeof(float), 12);
}

// Nobody has the first any more when the second is made.
static void what_nobody_uses_is_bounded(void **state) {
  (void)state;
  world_t w;
  client_t c;
  begin_world(&w, texts[0], 1);
  for (int64_t size = 1; size <= 3; size++) {
    begin_client(&c, &w);
    assert_int_equal(run(&c, size), HD_EXHAUSTED_NOTHING);
    assert_true(c.ok && count_wrong(&c, 0) == 0);
    assert_int_equal(hd_model_counts(w.model).kept, 1);
    end_run(&c, &w);
    end_client(&c);
  }
  assert_int_equal(hd_model_counts(w.model).compiled, 3);
  end_world(&w);
}

// A bound that one passes ends its call and nobody else's.
static void a_bound_is_the_call_s(void **state) {
  (void)state;
  world_t w;
  client_t hurried, calm;
  begin_world(&w, texts[0], 0);
  begin_client(&hurried, &w);
  begin_client(&calm, &w);
  hurried.context.budget.deadline_ns = 1;
  assert_int_equal(run(&hurried, 2), HD_EXHAUSTED_TIME);
  end_run(&hurried, &w);
  assert_int_equal(run(&calm, 2), HD_EXHAUSTED_NOTHING);
  assert_true(calm.ok && count_wrong(&calm, 0) == 0);
  end_run(&calm, &w);
  hurried.context.budget.deadline_ns = 0;
  assert_int_equal(run(&hurried, 2), HD_EXHAUSTED_NOTHING);
  assert_true(hurried.ok && count_wrong(&hurried, 0) == 0);
  end_run(&hurried, &w);
  end_client(&hurried);
  end_client(&calm);
  end_world(&w);
}

// What is compiled is taken while another thread compiles: here this one, which
// would give the lock away if it took it once more.
static void what_is_there_is_not_waited_for(void **state) {
  (void)state;
  world_t w;
  client_t first, second;
  begin_world(&w, texts[0], 0);
  begin_client(&first, &w);
  begin_client(&second, &w);
  assert_int_equal(run(&first, 2), HD_EXHAUSTED_NOTHING);
  end_run(&first, &w);
  assert_int_equal(pthread_mutex_lock(&w.lock), 0);
  assert_int_equal(run(&second, 2), HD_EXHAUSTED_NOTHING);
  assert_true(second.ok && count_wrong(&second, 0) == 0);
  assert_int_equal(pthread_mutex_unlock(&w.lock), 0);
  end_run(&second, &w);
  end_client(&first);
  end_client(&second);
  end_world(&w);
}

// What compiling reports goes to the session that asked.
static void an_error_is_the_call_s(void **state) {
  (void)state;
  world_t w;
  client_t wrong, right;
  begin_world(&w,
              "graph main(x: f32[n, 8]) -> y {\n"
              "  const w: f32[2, 8] = 3\n"
              "  y: f32[2, 8] = add(x, w)\n"
              "}\n",
              0);
  begin_client(&wrong, &w);
  begin_client(&right, &w);
  assert_int_equal(run(&wrong, 3), HD_EXHAUSTED_NOTHING);
  assert_false(wrong.ok);
  assert_int_equal(wrong.context.diags.num_errors, 1);
  end_run(&wrong, &w);
  assert_int_equal(run(&right, 2), HD_EXHAUSTED_NOTHING);
  assert_true(right.ok);
  assert_int_equal(right.context.diags.num_errors, 0);
  assert_int_equal(w.context.diags.num_errors, 0);
  end_run(&right, &w);
  end_client(&wrong);
  end_client(&right);
  end_world(&w);
}

HD_UNIT_TESTS(cmocka_unit_test(threads_share_what_is_compiled),
              cmocka_unit_test(weights_are_there_once),
              cmocka_unit_test(what_is_prepared_is_there_once),
              cmocka_unit_test(what_nobody_uses_is_bounded),
              cmocka_unit_test(a_bound_is_the_call_s),
              cmocka_unit_test(what_is_there_is_not_waited_for),
              cmocka_unit_test(an_error_is_the_call_s))
