// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs and outputs that are one, by the public interface. Elements are
// integers, whose sums are exact, and what a cache holds is known by counting.
#include "UnitTest.h"

#include <hidet/Session.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static const char growing[] =
    "graph main(past: f32[2, p, 4], x: f32[2, 1, 4]) -> sum, present {\n"
    "  const axis: i64[1] = [1]\n"
    "  present = onnx13.Concat(past, x) { axis = 1 }\n"
    "  sum = onnx13.ReduceSum(present, axis) { keepdims = 0 }\n"
    "}\n";

// Others read the past, too.
static const char read_twice[] =
    "graph main(past: f32[2, p, 4], x: f32[2, 1, 4]) -> sum, present {\n"
    "  const axis: i64[1] = [1]\n"
    "  present = onnx13.Concat(past, x) { axis = 1 }\n"
    "  before = onnx13.ReduceSum(past, axis) { keepdims = 0 }\n"
    "  last = onnx13.ReduceSum(x, axis) { keepdims = 0 }\n"
    "  sum = onnx13.Add(before, last)\n"
    "}\n";

static const char whole[] =
    "graph main(past: f32[2, 40, 4], x: f32[2, 1, 4], at: i64[2])\n"
    "  -> sum, present {\n"
    "  const axis: i64[1] = [1]\n"
    "  present = onnx24.TensorScatter(past, x, at) { axis = 1 }\n"
    "  sum = onnx13.ReduceSum(present, axis) { keepdims = 0 }\n"
    "}\n";

// Others read what was there; of any number of rows.
static const char whole_read_twice[] =
    "graph main(past: f32[b, 40, 4], x: f32[b, 1, 4], at: i64[b])\n"
    "  -> sum, present {\n"
    "  const axis: i64[1] = [1]\n"
    "  present = onnx24.TensorScatter(past, x, at) { axis = 1 }\n"
    "  before = onnx13.ReduceSum(past, axis) { keepdims = 0 }\n"
    "  last = onnx13.ReduceSum(x, axis) { keepdims = 0 }\n"
    "  sum = onnx13.Add(before, last)\n"
    "}\n";

enum { STEPS = 40, ROW = 8 };

static hidet_context_t *context;
static hidet_device_t *device;
static hidet_module_t *module;
static hidet_model_t *model;
static hidet_session_t *session;

static int set_up(void **state) {
  (void)state;
  context = hidet_context_create();
  return hidet_device_open(context, "sim", &device);
}

static int tear_down(void **state) {
  (void)state;
  hidet_session_destroy(session);
  hidet_model_destroy(model);
  hidet_module_destroy(module);
  hidet_device_close(device);
  hidet_context_destroy(context);
  session = NULL;
  model = NULL;
  module = NULL;
  return 0;
}

static void open_model(const char *text, bool buckets) {
  assert_int_equal(
      hidet_module_parse(context, "m", text, strlen(text), &module), HIDET_OK);
  assert_int_equal(hidet_model_create(module, NULL, &model), HIDET_OK);
  if (buckets)
    assert_int_equal(hidet_model_set_buckets(model, "p", NULL, 0), HIDET_OK);
  assert_int_equal(hidet_model_set_inout(model, "past", "present"), HIDET_OK);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
}

// Element i of what comes in at a step.
static float element(int64_t step, int64_t i) {
  return (float)((step * 7 + i * 3) % 11 - 5);
}

// A step, on a past of so many elements (NULL: what is there).
static hidet_status_t run_on(hidet_session_t *on, int64_t step,
                             const float *past, hidet_array_t *outputs) {
  float x[ROW];
  int64_t at[2] = {step, step};
  bool grows = hidet_model_num_inputs(model) == 2;
  hidet_array_t inputs[3] = {{"f32", 3, {2, grows ? step : STEPS, 4}, past},
                             {"f32", 3, {2, 1, 4}, x},
                             {"i64", 1, {2}, at}};
  for (int64_t i = 0; i < ROW; i++)
    x[i] = element(step, i);
  return hidet_session_run(on, inputs, grows ? 2 : 3, outputs, 2);
}

static hidet_status_t run(int64_t step, const float *past,
                          hidet_array_t *outputs) {
  return run_on(session, step, past, outputs);
}

static bool is_sum(const float *sum, int64_t steps) {
  for (int64_t i = 0; i < ROW; i++) {
    float expected = 0;
    for (int64_t s = 0; s <= steps; s++)
      expected += element(s, i);
    if (sum[i] != expected)
      return false;
  }
  return true;
}

// [2, length, 4], of which the first steps are there.
static bool is_cache(const hidet_array_t *array, int64_t steps,
                     int64_t length) {
  const float *data = array->data;
  if (array->rank != 3 || array->shape[1] != length)
    return false;
  for (int64_t i = 0; i < ROW; i++)
    for (int64_t s = 0; s < length; s++)
      if (data[(i / 4 * length + s) * 4 + i % 4] !=
          (s < steps ? element(s, i) : 0))
        return false;
  return true;
}

static void take_steps(int64_t first, int64_t last) {
  static const float zeros[2 * STEPS * 4];
  hidet_array_t out[2], left;
  for (int64_t step = first; step < last; step++) {
    assert_int_equal(run(step, step ? NULL : zeros, out), HIDET_OK);
    assert_null(out[1].data);
    assert_true(is_sum(out[0].data, step));
    assert_int_equal(hidet_session_read(session, 1, &left), HIDET_OK);
    assert_true(is_cache(&left, step + 1, out[1].shape[1]));
  }
}

// Each length is compiled for itself, and what comes out lies elsewhere.
static void keeps_what_grows(void **state) {
  (void)state;
  open_model(growing, false);
  take_steps(0, 12);
  assert_int_equal(hidet_model_num_compiled(model, device), 12);
}

// Those of 0 and 1, then up to 4, 8, 16, 32 and 64.
static void grows_in_place(void **state) {
  (void)state;
  open_model(growing, true);
  take_steps(0, STEPS);
  assert_int_equal(hidet_model_num_compiled(model, device), 7);
}

static void grows_where_others_read_it(void **state) {
  (void)state;
  open_model(read_twice, true);
  take_steps(0, STEPS);
}

static void fills_what_is_there(void **state) {
  (void)state;
  open_model(whole, false);
  take_steps(0, STEPS);
  assert_int_equal(hidet_model_num_compiled(model, device), 1);
}

// Another text, then one that goes on where this one was.
static void begins_again(void **state) {
  (void)state;
  float past[2 * 3 * 4];
  hidet_array_t out[2];
  open_model(growing, true);
  take_steps(0, 20);
  for (int64_t i = 0; i < ROW; i++)
    for (int64_t s = 0; s < 3; s++)
      past[(i / 4 * 3 + s) * 4 + i % 4] = element(s, i);
  assert_int_equal(run(3, past, out), HIDET_OK);
  assert_true(is_sum(out[0].data, 3));
  take_steps(4, 10);
}

static void refuses_what_is_not_there(void **state) {
  (void)state;
  static const float past[ROW];
  hidet_array_t out[2], left;
  open_model(growing, true);
  assert_int_equal(run(1, NULL, out), HIDET_USAGE);
  assert_non_null(strstr(hidet_messages(), "no run has left it"));
  assert_int_equal(hidet_session_read(session, 1, &left), HIDET_USAGE);
  assert_int_equal(hidet_session_read(session, 0, &left), HIDET_USAGE);
  assert_int_equal(hidet_session_read(session, 2, &left), HIDET_USAGE);
  assert_int_equal(run(1, past, out), HIDET_OK);
  assert_int_equal(run(5, NULL, out), HIDET_USAGE);
  assert_non_null(strstr(hidet_messages(), "of another shape"));
  assert_int_equal(run(2, NULL, out), HIDET_OK);
}

static void refuses_what_is_no_pair(void **state) {
  (void)state;
  open_model(whole, false);
  assert_int_equal(hidet_model_set_inout(model, "at", "sum"), HIDET_USAGE);
  assert_non_null(strstr(hidet_messages(), "sessions already"));
  hidet_session_destroy(session);
  hidet_model_destroy(model);
  session = NULL;
  assert_int_equal(hidet_model_create(module, NULL, &model), HIDET_OK);
  assert_int_equal(hidet_model_set_inout(model, "post", "present"),
                   HIDET_USAGE);
  assert_int_equal(hidet_model_set_inout(model, "past", "gift"), HIDET_USAGE);
  assert_int_equal(hidet_model_set_inout(model, "past", "present"), HIDET_OK);
  assert_int_equal(hidet_model_set_inout(model, "past", "sum"), HIDET_USAGE);
  assert_int_equal(hidet_model_set_inout(model, "x", "present"), HIDET_USAGE);
}

// On tensors of the device's: x comes in there, and sum goes out.
static void stays_on_the_device(void **state) {
  (void)state;
  static const float zeros[1];
  static const int64_t shapes[2][3] = {{2, 1, 4}, {2, 4}};
  hidet_tensor_t *x, *sum;
  open_model(growing, true);
  assert_int_equal(hidet_tensor_create(device, "f32", shapes[0], 3, &x),
                   HIDET_OK);
  assert_int_equal(hidet_tensor_create(device, "f32", shapes[1], 2, &sum),
                   HIDET_OK);
  for (int64_t step = 0; step < 20; step++) {
    float row[ROW];
    hidet_array_t out[2],
        in[2] = {{"f32", 3, {2, step, 4}, step ? NULL : zeros},
                 {"f32", 3, {2, 1, 4}, hidet_tensor_data(x)}};
    for (int64_t i = 0; i < ROW; i++)
      row[i] = element(step, i);
    assert_int_equal(hidet_tensor_write(x, row), HIDET_OK);
    assert_int_equal(hidet_session_prepare(session, in, 2, out, 2), HIDET_OK);
    assert_int_equal(out[1].shape[1], step + 1);
    out[0].data = hidet_tensor_data(sum);
    assert_int_equal(hidet_session_enqueue(session, in, 2, out, 2, NULL),
                     HIDET_OK);
    assert_int_equal(hidet_session_wait(session), HIDET_OK);
    assert_int_equal(hidet_tensor_read(sum, row), HIDET_OK);
    assert_true(is_sum(row, step));
  }
  hidet_tensor_destroy(x);
  hidet_tensor_destroy(sum);
}

static void create(int rank, const int64_t *shape, const char *type,
                   const void *data, hidet_tensor_t **made,
                   hidet_array_t *array) {
  assert_int_equal(hidet_tensor_create(device, type, shape, rank, made),
                   HIDET_OK);
  *array = (hidet_array_t){.type = type, .rank = (unsigned)rank};
  memcpy(array->shape, shape, sizeof(*shape) * (size_t)rank);
  array->data = hidet_tensor_data(*made);
  assert_int_equal(hidet_tensor_write(*made, data), HIDET_OK);
}

// The cache is a tensor of the caller's, which other tensors take turns with.
static void run_on_callers(void) {
  static const int64_t shapes[4][3] = {{2, STEPS, 4}, {2, 1, 4}, {2}, {2, 4}};
  static const float zeros[2 * STEPS * 4];
  static float cache[2 * STEPS * 4];
  hidet_tensor_t *made[5];
  hidet_array_t in[3], out[2], other, left;
  create(3, shapes[0], "f32", zeros, &made[0], &in[0]);
  create(3, shapes[1], "f32", zeros, &made[1], &in[1]);
  create(1, shapes[2], "i64", zeros, &made[2], &in[2]);
  create(2, shapes[3], "f32", zeros, &made[3], &out[0]);
  create(3, shapes[0], "f32", zeros, &made[4], &other);
  for (int64_t step = 0; step < STEPS; step++) {
    float row[ROW];
    int64_t at[2] = {step, step};
    for (int64_t i = 0; i < ROW; i++)
      row[i] = element(step, i);
    hidet_tensor_write(made[1], row);
    hidet_tensor_write(made[2], at);
    hidet_array_t again = in[0];
    if (step % 3 == 1) { // The cache is elsewhere now.
      hidet_tensor_read(made[0], cache);
      hidet_tensor_write(made[4], cache);
      hidet_tensor_write(made[0], zeros);
      in[0] = other;
      other = again;
      hidet_tensor_t *tensor = made[0];
      made[0] = made[4];
      made[4] = tensor;
    }
    out[1] = in[0];
    assert_int_equal(hidet_session_enqueue(session, in, 3, out, 2, NULL),
                     HIDET_OK);
    assert_int_equal(hidet_session_read(session, 1, &left), HIDET_USAGE);
    hidet_tensor_read(made[0], cache);
    left = in[0];
    left.data = cache;
    assert_true(is_cache(&left, step + 1, STEPS));
    hidet_tensor_read(made[3], row);
    assert_true(is_sum(row, step));
  }
  for (int i = 0; i < 5; i++)
    hidet_tensor_destroy(made[i]);
}

static void fills_what_the_caller_has(void **state) {
  (void)state;
  open_model(whole, false);
  run_on_callers();
  assert_int_equal(hidet_model_num_compiled(model, device), 1);
}

static void fills_it_where_others_read_it(void **state) {
  (void)state;
  open_model(whole_read_twice, false);
  run_on_callers();
}

static void *work(void *argument) {
  static const float zeros[1];
  hidet_session_t *own;
  hidet_array_t out[2];
  bool right = hidet_session_create(model, device, &own) == HIDET_OK;
  for (int64_t step = 0; right && step < STEPS; step++)
    right = run_on(own, step, step ? NULL : zeros, out) == HIDET_OK &&
            is_sum(out[0].data, step);
  hidet_session_destroy(own);
  return right ? NULL : argument;
}

// Each session has a cache of its own, and all of them one executable.
static void grows_on_threads(void **state) {
  (void)state;
  pthread_t threads[4];
  open_model(growing, true);
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, threads), 0);
  for (int i = 0; i < 4; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  assert_int_equal(hidet_model_num_compiled(model, device), 7);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

HD_UNIT_TESTS(TEST(keeps_what_grows), TEST(grows_in_place),
              TEST(grows_on_threads), TEST(grows_where_others_read_it),
              TEST(fills_what_is_there), TEST(begins_again),
              TEST(refuses_what_is_not_there), TEST(refuses_what_is_no_pair),
              TEST(stays_on_the_device), TEST(fills_what_the_caller_has),
              TEST(fills_it_where_others_read_it))
