// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs that look at data: what is kept of them is bounded, is nobody's when
// work unwinds, and serves sessions on threads. Elements are small integers,
// whose sums are exact.
#include "IR/Text/Parser.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Session.h"
#include "UnitTest.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N = 48, THREADS = 4 };

// The second look is at what is behind the first.
static const char text[] = "graph main(x: f32[48], w: f32[48]) -> v, s {\n"
                           "  i = onnx13.NonZero(x)\n"
                           "  it = onnx13.Transpose(i)\n"
                           "  a = onnx13.GatherND(w, it)\n"
                           "  const zero: f32[] = 0\n"
                           "  p = onnx13.Greater(a, zero)\n"
                           "  j = onnx13.NonZero(p)\n"
                           "  jt = onnx13.Transpose(j)\n"
                           "  v = onnx13.GatherND(a, jt)\n"
                           "  s = onnx13.ReduceSum(a) { keepdims = 0 }\n"
                           "}\n";

typedef struct world {
  hd_context_t context;
  hd_device_t *device;
  hd_model_t *model;
} world_t;

static void begin_world(world_t *w, size_t kept_bytes) {
  hd_context_init(&w->context);
  hd_module_t *module =
      hd_module_parse(&w->context, "test", text, strlen(text), 1);
  assert_true(module && hd_module_verify(module));
  w->device =
      hd_device_open_sim(&w->context, &(hd_device_options_t){.threads = 2});
  assert_non_null(w->device);
  w->model =
      hd_model_create(module, hd_module_find_graph(module, "main"), w->device,
                      &(hd_model_options_t){.kept_bytes = kept_bytes});
}

static void end_world(world_t *w) {
  hd_model_destroy(w->model);
  assert_int_equal(w->device->bytes, 0);
  hd_device_close(w->device);
  hd_context_fini(&w->context);
}

typedef struct client {
  hd_context_t context;
  hd_device_t *device;
  hd_session_t *session;
  hd_host_tensor_t inputs[2], outputs[2];
  uint64_t random;
  bool ok;
} client_t;

static void begin_client(client_t *c, world_t *w, uint64_t seed) {
  *c = (client_t){.random = seed};
  hd_context_init(&c->context);
  c->device = hd_device_fork(w->device, &c->context);
  if (!c->device)
    abort();
  c->session = hd_session_join(w->model, &c->context, c->device);
  for (int i = 0; i < 2; i++)
    if (!hd_host_tensor_init(&c->inputs[i], &c->context.diags, NULL, "x",
                             HD_F32, (const int64_t[]){N}, 1))
      abort();
}

static void end_client(client_t *c) {
  for (int i = 0; i < 2; i++)
    hd_host_tensor_fini(&c->inputs[i]);
  hd_session_destroy(c->session);
  hd_device_close(c->device);
  hd_context_fini(&c->context);
}

static unsigned draw(client_t *c, unsigned below) {
  c->random = c->random * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((c->random >> 33) % below);
}

static void run_body(void *argument) {
  client_t *c = argument;
  c->ok = hd_session_run(c->session, c->inputs, c->outputs);
}

// By arithmetic, where it has come to something.
static bool is_right(const client_t *c) {
  const float *x = (const void *)c->inputs[0].data;
  const float *w = (const void *)c->inputs[1].data;
  const float *v = (const void *)c->outputs[0].data;
  float sum = 0;
  int64_t at = 0;
  for (int i = 0; i < N; i++) {
    if (x[i] == 0)
      continue;
    sum += w[i];
    if (w[i] > 0 && (at >= c->outputs[0].count || v[at++] != w[i]))
      return false;
  }
  return at == c->outputs[0].count &&
         memcmp(c->outputs[1].data, &sum, sizeof(sum)) == 0;
}

static hd_exhausted_t run(client_t *c, bool *right) {
  float *x = (void *)c->inputs[0].data, *w = (void *)c->inputs[1].data;
  unsigned density = draw(c, N + 1);
  for (int i = 0; i < N; i++) {
    x[i] = draw(c, N) < density;
    w[i] = (float)((int)draw(c, 9) - 4);
  }
  c->ok = false;
  memset(c->outputs, 0, sizeof(c->outputs));
  hd_exhausted_t what = hd_budget_guard(&c->context.budget, run_body, c);
  *right = what == HD_EXHAUSTED_NOTHING && c->ok && is_right(c);
  for (int i = 0; i < 2; i++)
    hd_host_tensor_fini(&c->outputs[i]);
  return what;
}

// Pieces that no run is at work with are ended at once.
static void what_is_kept_is_bounded(void **state) {
  (void)state;
  enum { RUNS = 120 };
  world_t w;
  client_t c;
  begin_world(&w, 1);
  begin_client(&c, &w, 1);
  size_t most = 0;
  for (int i = 0; i < RUNS; i++) {
    bool right;
    assert_int_equal(run(&c, &right), HD_EXHAUSTED_NOTHING);
    assert_true(right);
    size_t bytes = w.context.budget.bytes_used;
    if (i < RUNS / 2 && bytes > most)
      most = bytes;
    // Three pieces and the legs; some are larger than others.
    assert_true(i < RUNS / 2 || bytes < most + most / 2);
  }
  assert_in_range(hd_model_counts(w.model).compiled, RUNS / 2, 3 * RUNS);
  end_client(&c);
  end_world(&w);
}

// Wherever memory ends, nothing is lost, and the next call finds all in order.
static void what_unwinds_is_ended(void **state) {
  (void)state;
  world_t w;
  client_t c;
  bool right;
  unsigned ended = 0;
  begin_world(&w, 0);
  begin_client(&c, &w, 2);
  for (size_t room = 1 << 12; room < 1 << 22; room += room / 6) {
    w.context.budget.bytes_limit = w.context.budget.bytes_used + room;
    ended += run(&c, &right) != HD_EXHAUSTED_NOTHING;
    w.context.budget.bytes_limit = 0;
    assert_int_equal(run(&c, &right), HD_EXHAUSTED_NOTHING);
    assert_true(right);
  }
  assert_in_range(ended, 5, 40);
  end_client(&c);
  end_world(&w);
}

static void *work(void *argument) {
  client_t *c = argument;
  bool right = true;
  for (int i = 0; i < 60 && right; i++)
    if (run(c, &right) != HD_EXHAUSTED_NOTHING)
      right = false;
  return right ? NULL : c;
}

static void threads_take_turns(void **state) {
  (void)state;
  world_t w;
  client_t clients[THREADS];
  pthread_t threads[THREADS];
  begin_world(&w, 0);
  for (unsigned i = 0; i < THREADS; i++)
    begin_client(&clients[i], &w, 3 + i);
  for (unsigned i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, &clients[i]), 0);
  for (unsigned i = 0; i < THREADS; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  for (unsigned i = 0; i < THREADS; i++)
    end_client(&clients[i]);
  end_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_kept_is_bounded),
      cmocka_unit_test(what_unwinds_is_ended),
      cmocka_unit_test(threads_take_turns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
