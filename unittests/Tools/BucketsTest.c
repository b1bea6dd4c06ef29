// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buckets by the public interface, on threads, too: sizes are integers, whose
// sums are exact.
#include "UnitTest.h"

#include <hidet/Session.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "graph main(x: f32[n, 4]) -> y {\n"
                           "  const axis: i64[1] = [0]\n"
                           "  y = onnx13.ReduceSum(x, axis) { keepdims = 0 }\n"
                           "}\n";

enum { MOST = 40, THREADS = 4 };

static hidet_context_t *context;
static hidet_device_t *device;
static hidet_module_t *module;
static hidet_model_t *model;

static int set_up(void **state) {
  (void)state;
  context = hidet_context_create();
  return hidet_device_open(context, "sim", &device) ||
         hidet_module_parse(context, "m", text, strlen(text), &module) ||
         hidet_model_create(module, NULL, &model);
}

static int tear_down(void **state) {
  (void)state;
  hidet_model_destroy(model);
  hidet_device_close(device);
  hidet_module_destroy(module);
  hidet_context_destroy(context);
  return 0;
}

static float element(int64_t i) { return (float)(i * 7 % 11 - 5); }

// By arithmetic.
static int is_right(const float *y, int64_t n) {
  float sums[4] = {0};
  for (int64_t i = 0; i < n * 4; i++)
    sums[i % 4] += element(i + n);
  return memcmp(y, sums, sizeof(sums)) == 0;
}

static int run(hidet_session_t *session, int64_t n) {
  float x[MOST * 4];
  hidet_array_t in = {"f32", 2, {n, 4}, x}, out;
  for (int64_t i = 0; i < n * 4; i++)
    x[i] = element(i + n);
  return hidet_session_run(session, &in, 1, &out, 1) == HIDET_OK &&
         out.rank == 1 && out.shape[0] == 4 && is_right(out.data, n);
}

static void refuses_what_is_no_policy(void **state) {
  (void)state;
  static const int64_t falling[] = {8, 4}, none[] = {0};
  assert_int_equal(hidet_model_set_buckets(model, "m", NULL, 0), HIDET_USAGE);
  assert_non_null(strstr(hidet_messages(), "no size 'm'"));
  assert_int_equal(hidet_model_set_buckets(model, "n", falling, 2),
                   HIDET_USAGE);
  assert_int_equal(hidet_model_set_buckets(model, "n", none, 1), HIDET_USAGE);
}

// That of 1, up to 8, up to 32, 33 and more one by one.
static void serves_sizes_up_to_bounds(void **state) {
  (void)state;
  static const int64_t bounds[] = {8, 32};
  hidet_session_t *session;
  assert_int_equal(hidet_model_set_buckets(model, "n", bounds, 2), HIDET_OK);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  for (int64_t n = 1; n <= MOST; n++)
    assert_true(run(session, n));
  for (int64_t n = MOST; n >= 1; n--)
    assert_true(run(session, n));
  assert_int_equal(hidet_model_num_compiled(model, device), 3 + MOST - 32);
  assert_int_equal(hidet_model_set_buckets(model, "n", bounds, 2), HIDET_USAGE);
  hidet_session_destroy(session);
}

static void *work(void *argument) {
  hidet_session_t *session;
  uint64_t state = (uintptr_t)argument;
  int wrong = hidet_session_create(model, device, &session) != HIDET_OK;
  for (int i = 0; i < 60 && !wrong; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    wrong = !run(session, (int64_t)(state >> 40) % MOST + 1);
  }
  hidet_session_destroy(session);
  return (void *)(uintptr_t)wrong;
}

// Whoever asks first: each is made once, of powers of two: 1, 2, 4 .. 64.
static void are_made_once_for_all_threads(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  assert_int_equal(hidet_model_set_buckets(model, "n", NULL, 0), HIDET_OK);
  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)),
                     0);
  for (int i = 0; i < THREADS; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  assert_in_range(hidet_model_num_compiled(model, device), 5, 7);
}

// On tensors of the device's.
static void serves_tensors_of_the_device(void **state) {
  (void)state;
  hidet_session_t *session;
  assert_int_equal(hidet_model_set_buckets(model, "n", NULL, 0), HIDET_OK);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  for (int64_t n = 5; n <= 8; n++) {
    float x[MOST * 4], y[4];
    hidet_tensor_t *tensors[2];
    const int64_t shapes[2][2] = {{n, 4}, {4, 0}};
    for (int64_t i = 0; i < n * 4; i++)
      x[i] = element(i + n);
    for (unsigned i = 0; i < 2; i++)
      assert_int_equal(
          hidet_tensor_create(device, "f32", shapes[i], 2 - i, &tensors[i]),
          HIDET_OK);
    assert_int_equal(hidet_tensor_write(tensors[0], x), HIDET_OK);
    hidet_array_t in = {"f32", 2, {n, 4}, hidet_tensor_data(tensors[0])}, out;
    assert_int_equal(hidet_session_prepare(session, &in, 1, &out, 1), HIDET_OK);
    assert_int_equal(out.rank, 1);
    out.data = hidet_tensor_data(tensors[1]);
    assert_int_equal(hidet_session_enqueue(session, &in, 1, &out, 1, NULL),
                     HIDET_OK);
    assert_int_equal(hidet_session_wait(session), HIDET_OK);
    assert_int_equal(hidet_tensor_read(tensors[1], y), HIDET_OK);
    assert_true(is_right(y, n));
    hidet_tensor_destroy(tensors[0]);
    hidet_tensor_destroy(tensors[1]);
  }
  assert_int_equal(hidet_model_num_compiled(model, device), 1);
  hidet_session_destroy(session);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

HD_UNIT_TESTS(TEST(refuses_what_is_no_policy), TEST(serves_sizes_up_to_bounds),
              TEST(are_made_once_for_all_threads),
              TEST(serves_tensors_of_the_device))
