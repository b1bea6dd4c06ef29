// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight threads run four models, each with a session of its own for each, in
// orders of their own; one model serves all lengths by executables of bounds.
// Each result is bit for bit what one session gave alone. HIDET_TEST_RUNS=N
// runs in all; by default 2,000. HIDET_TEST_DEVICE=cuda runs them there. (Under
// ThreadSanitizer: preset tsan.)
#include "Random.h"
#include "UnitTest.h"

#include <hidet/Session.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { THREADS = 8, MODELS = 4, INPUTS = 12, ROWS = 12, COLUMNS = 16 };

static const char *const texts[MODELS] = {
    "graph main(x: f32[n, 16]) -> y {\n"
    "  const w: f32[16, 16] = 0.125\n"
    "  t: f32[n, 16] = matmul(x, w)\n"
    "  y: f32[n, 16] = relu(t)\n"
    "}\n",
    "graph main(x: f32[n, 16]) -> y {\n"
    "  y = onnx13.Softmax(x) { axis = 1 }\n"
    "}\n",
    "graph main(x: f32[n, 16]) -> y {\n"
    "  const s: f32[16] = 2\n"
    "  const b: f32[16] = 1\n"
    "  h = onnx17.LayerNormalization(x, s, b) { axis = -1 }\n"
    "  y = onnx13.Add(h, x)\n"
    "}\n",
    // Rows look at all others: bounds, and what is past them, matter.
    "graph main(x: f32[n, 16]) -> y {\n"
    "  t = onnx13.Transpose(x) { perm = [1, 0] }\n"
    "  s = onnx13.MatMul(x, t)\n"
    "  p = onnx13.Softmax(s) { axis = 1 }\n"
    "  y = onnx13.MatMul(p, x)\n"
    "}\n",
};

static hidet_context_t *context;
static hidet_device_t *device;
static hidet_module_t *modules[MODELS];
static hidet_model_t *models[MODELS];
static float inputs[INPUTS][ROWS * COLUMNS];
static float alone[MODELS][INPUTS][ROWS * COLUMNS];

// Input number i has so many rows.
static int64_t rows_of(int i) { return 1 + i % ROWS; }

// Runs a model and gives its result, which is the session's.
static const float *run(hidet_session_t *session, int i) {
  hidet_array_t in = {"f32", 2, {rows_of(i), COLUMNS}, inputs[i]}, out;
  return hidet_session_run(session, &in, 1, &out, 1) == HIDET_OK ? out.data
                                                                 : NULL;
}

static size_t bytes_of(int i) {
  return (size_t)rows_of(i) * COLUMNS * sizeof(float);
}

static void make_all(void) {
  random_t random = random_begin("runs_are_as_alone");
  const char *wish = getenv("HIDET_TEST_DEVICE");
  context = hidet_context_create();
  assert_int_equal(hidet_device_open(context, wish ? wish : "sim", &device),
                   HIDET_OK);
  for (int i = 0; i < INPUTS; i++)
    for (int k = 0; k < ROWS * COLUMNS; k++)
      inputs[i][k] = (float)random_in(&random, -999, 999) / 256;
  for (int m = 0; m < MODELS; m++) {
    assert_int_equal(hidet_module_parse(context, "m", texts[m],
                                        strlen(texts[m]), &modules[m]),
                     HIDET_OK);
    assert_int_equal(hidet_model_create(modules[m], NULL, &models[m]),
                     HIDET_OK);
    if (m == MODELS - 1)
      assert_int_equal(hidet_model_set_buckets(models[m], "n", NULL, 0),
                       HIDET_OK);
    hidet_session_t *session;
    assert_int_equal(hidet_session_create(models[m], device, &session),
                     HIDET_OK);
    for (int i = 0; i < INPUTS; i++) {
      const float *y = run(session, i);
      if (!y)
        fail_msg("%s", hidet_messages());
      memcpy(alone[m][i], y, bytes_of(i));
    }
    hidet_session_destroy(session);
  }
}

typedef struct worker {
  pthread_t thread;
  random_t random;
  long runs, wrong;
} worker_t;

static void *work(void *argument) {
  worker_t *w = argument;
  hidet_session_t *sessions[MODELS] = {NULL};
  for (int m = 0; m < MODELS; m++)
    w->wrong +=
        hidet_session_create(models[m], device, &sessions[m]) != HIDET_OK;
  for (long n = 0; n < w->runs && !w->wrong; n++) {
    int m = (int)random_in(&w->random, 0, MODELS - 1);
    int i = (int)random_in(&w->random, 0, INPUTS - 1);
    const float *y = run(sessions[m], i);
    w->wrong += !y || memcmp(y, alone[m][i], bytes_of(i)) != 0;
  }
  if (w->wrong)
    print_error("a run differs, or failed: %s\n", hidet_messages());
  for (int m = 0; m < MODELS; m++)
    hidet_session_destroy(sessions[m]);
  return NULL;
}

static void runs_are_as_alone(void **state) {
  (void)state;
  worker_t workers[THREADS];
  const char *wish = getenv("HIDET_TEST_RUNS");
  long runs = wish ? atol(wish) : 2000, wrong = 0;
  make_all();
  for (int t = 0; t < THREADS; t++) {
    workers[t] = (worker_t){.random = {(uint64_t)t + 1},
                            .runs = (runs + THREADS - 1) / THREADS};
    assert_int_equal(
        pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(workers[t].thread, NULL);
    wrong += workers[t].wrong;
  }
  assert_int_equal(wrong, 0);
  // Nothing was compiled again: 12 lengths, and in buckets 1, 4, 8, 16.
  for (int m = 0; m < MODELS; m++)
    assert_int_equal(hidet_model_num_compiled(models[m], device),
                     m == MODELS - 1 ? 4 : ROWS);
  print_message("%ld runs by %d threads\n", runs, THREADS);
  for (int m = 0; m < MODELS; m++) {
    hidet_model_destroy(models[m]);
    hidet_module_destroy(modules[m]);
  }
  hidet_device_close(device);
  hidet_context_destroy(context);
}

HD_UNIT_TESTS(cmocka_unit_test(runs_are_as_alone))
