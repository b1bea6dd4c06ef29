// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs on tensors in a device's memory. On the simulator results are compared
// with arithmetic; HIDET_TEST_ENQUEUE=cuda is for a driver that runs nothing,
// whose log test/Runtime/enqueue.test reads.
#include "Runtime/CudaDriver.h"
#include "UnitTest.h"

#include <hidet/Session.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// One output is computed, one comes in, one depends on a constant alone.
static const char text[] = "graph main(x: f32[n, 8], z: f32[8]) -> y, x, v {\n"
                           "  const w: f32[8] = 3\n"
                           "  v: f32[8] = add(w, w)\n"
                           "  t: f32[n, 8] = add(x, z)\n"
                           "  y: f32[n, 8] = mul(t, v)\n"
                           "}\n";

enum { MAX = 4 };

static hidet_context_t *context;
static hidet_device_t *device;
static hidet_module_t *module;
static hidet_model_t *model;
static bool runs_nothing;

static int set_up(void **state) {
  (void)state;
  const char *wanted = getenv("HIDET_TEST_ENQUEUE");
  runs_nothing = wanted && strcmp(wanted, "cuda") == 0;
  context = hidet_context_create();
  return hidet_device_open(context, runs_nothing ? "cuda" : "sim", &device) ||
         hidet_module_parse(context, "m", text, strlen(text), &module) ||
         hidet_model_create(module, NULL, &model);
}

// What the model has on the device it gives back, also after that was closed.
static int tear_down(void **state) {
  (void)state;
  hidet_device_close(device);
  hidet_model_destroy(model);
  hidet_module_destroy(module);
  hidet_context_destroy(context);
  return 0;
}

// Tensors for n rows: x, z, then what comes out.
typedef struct set {
  hidet_tensor_t *tensors[5];
  hidet_array_t arrays[5];
} set_t;

static void make_set(set_t *s, int64_t n) {
  const hidet_array_t like[5] = {{"f32", 2, {n, 8}, NULL},
                                 {"f32", 1, {8}, NULL},
                                 {"f32", 2, {n, 8}, NULL},
                                 {"f32", 2, {n, 8}, NULL},
                                 {"f32", 1, {8}, NULL}};
  float values[MAX * 8];
  for (int i = 0; i < 5; i++) {
    s->arrays[i] = like[i];
    assert_int_equal(hidet_tensor_create(device, "f32", like[i].shape,
                                         like[i].rank, &s->tensors[i]),
                     HIDET_OK);
    s->arrays[i].data = hidet_tensor_data(s->tensors[i]);
    for (int k = 0; k < MAX * 8; k++)
      values[k] = i == 0 ? (float)k : i == 1 ? (float)(10 * k) : -1;
    assert_int_equal(hidet_tensor_write(s->tensors[i], values), HIDET_OK);
  }
}

static void end_set(set_t *s) {
  for (int i = 0; i < 5; i++)
    hidet_tensor_destroy(s->tensors[i]);
}

static void check_set(const set_t *s, int64_t n) {
  float y[MAX * 8], x[MAX * 8], v[8];
  assert_int_equal(hidet_tensor_read(s->tensors[2], y), HIDET_OK);
  assert_int_equal(hidet_tensor_read(s->tensors[3], x), HIDET_OK);
  assert_int_equal(hidet_tensor_read(s->tensors[4], v), HIDET_OK);
  for (int i = 0; i < n * 8 && !runs_nothing; i++) {
    assert_true(y[i] == (float)(i + 10 * (i % 8)) * 6);
    assert_true(x[i] == (float)i);
    assert_true(v[i % 8] == 6);
  }
}

static void enqueue(hidet_session_t *session, set_t *s, void *stream) {
  assert_int_equal(
      hidet_session_enqueue(session, s->arrays, 2, s->arrays + 2, 3, stream),
      HIDET_OK);
}

// The same addresses again and again, then others, then other shapes.
static void runs_where_tensors_are(void **state) {
  (void)state;
  hidet_session_t *session;
  hidet_array_t like[3];
  set_t first, second, wider;
  make_set(&first, 2);
  make_set(&second, 2);
  make_set(&wider, MAX);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  assert_int_equal(hidet_session_prepare(session, first.arrays, 2, like, 3),
                   HIDET_OK);
  assert_int_equal(like[0].rank, 2);
  assert_int_equal(like[0].shape[0], 2);
  assert_string_equal(like[2].type, "f32");
  assert_null(like[0].data);
  for (int i = 0; i < 3; i++)
    enqueue(session, &first, NULL);
  enqueue(session, &second, NULL);
  enqueue(session, &wider, NULL);
  enqueue(session, &second, NULL);
  assert_int_equal(hidet_session_wait(session), HIDET_OK);
  assert_int_equal(hidet_session_wait(session), HIDET_OK);
  check_set(&first, 2);
  check_set(&second, 2);
  check_set(&wider, MAX);
  assert_int_equal(hidet_model_num_compiled(model, device), 2);
  hidet_session_destroy(session);
  end_set(&first);
  end_set(&second);
  end_set(&wider);
}

// Runs on the host's arrays and on the device's, in turns.
static void goes_with_runs_on_the_host(void **state) {
  (void)state;
  hidet_session_t *session;
  set_t s;
  float x[16], z[8];
  for (int i = 0; i < 16; i++)
    x[i] = (float)i;
  for (int i = 0; i < 8; i++)
    z[i] = (float)-i;
  hidet_array_t in[] = {{"f32", 2, {2, 8}, x}, {"f32", 1, {8}, z}}, out[3];
  make_set(&s, 2);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  for (int i = 0; i < 2; i++) {
    enqueue(session, &s, NULL);
    assert_int_equal(hidet_session_run(session, in, 2, out, 3), HIDET_OK);
    for (int k = 0; k < 16 && !runs_nothing; k++)
      assert_true(((const float *)out[0].data)[k] == (float)(k - k % 8) * 6);
  }
  check_set(&s, 2);
  hidet_session_destroy(session);
  end_set(&s);
}

static void expect(hidet_status_t status, hidet_status_t wanted,
                   const char *message) {
  if (status != wanted || !strstr(hidet_messages(), message))
    fail_msg("not '%s', but %d: %s", message, (int)status, hidet_messages());
}

static void refuses_what_is_wrong(void **state) {
  (void)state;
  hidet_session_t *session;
  set_t s;
  make_set(&s, 2);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  const hidet_array_t right = s.arrays[2], input = s.arrays[0];
  s.arrays[2].shape[0] = 3;
  expect(hidet_session_enqueue(session, s.arrays, 2, s.arrays + 2, 3, NULL),
         HIDET_USAGE, "not of the type and shape");
  s.arrays[2] = right;
  s.arrays[2].type = "i32";
  expect(hidet_session_enqueue(session, s.arrays, 2, s.arrays + 2, 3, NULL),
         HIDET_USAGE, "not of the type and shape");
  s.arrays[2] = right;
  s.arrays[2].data = input.data;
  expect(hidet_session_enqueue(session, s.arrays, 2, s.arrays + 2, 3, NULL),
         HIDET_USAGE, "in the memory of another tensor");
  s.arrays[2].data = NULL;
  expect(hidet_session_enqueue(session, s.arrays, 2, s.arrays + 2, 3, NULL),
         HIDET_USAGE, "has no data");
  s.arrays[2] = right;
  s.arrays[0].data = (const char *)input.data + 4;
  s.arrays[2].shape[0] = s.arrays[3].shape[0] = s.arrays[0].shape[0] = 1;
  expect(hidet_session_enqueue(session, s.arrays, 2, s.arrays + 2, 3, NULL),
         HIDET_USAGE, "a multiple of 16 bytes");
  expect(hidet_session_enqueue(session, s.arrays, 1, s.arrays + 2, 3, NULL),
         HIDET_USAGE, "an array for each");
  hidet_session_destroy(session);
  end_set(&s);
}

// A run whose second tensor is refused leaves nothing of its first behind.
static void a_refused_run_leaves_nothing(void **state) {
  (void)state;
  hidet_session_t *session;
  set_t s, other;
  float zeros[16] = {0};
  make_set(&s, 2);
  make_set(&other, 2);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  enqueue(session, &s, NULL);
  const hidet_array_t x = s.arrays[0], z = s.arrays[1];
  assert_int_equal(hidet_tensor_write(s.tensors[0], zeros), HIDET_OK);
  s.arrays[0] = other.arrays[0];
  s.arrays[1].data = (const char *)z.data + 4;
  expect(hidet_session_enqueue(session, s.arrays, 2, s.arrays + 2, 3, NULL),
         HIDET_USAGE, "a multiple of 16 bytes");
  s.arrays[1] = z;
  enqueue(session, &s, NULL); // With x of the other set.
  assert_int_equal(hidet_session_wait(session), HIDET_OK);
  check_set(&s, 2);
  s.arrays[0] = x;
  hidet_session_destroy(session);
  end_set(&s);
  end_set(&other);
}

// The first run, too, for which memory is taken, is waited for: what went wrong
// on the stream is told then.
static void waits_for_the_first_run(void **state) {
  (void)state;
  hidet_session_t *session;
  set_t s;
  make_set(&s, 2);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  enqueue(session, &s, NULL);
  setenv("FAKE_CUDA_FAIL", "cuStreamSynchronize=700", 1);
  hidet_status_t status = hidet_session_wait(session);
  unsetenv("FAKE_CUDA_FAIL");
  if (runs_nothing)
    expect(status, HIDET_DEVICE, "an illegal memory access");
  else
    assert_int_equal(status, HIDET_OK);
  assert_int_equal(hidet_session_wait(session), HIDET_OK);
  hidet_session_destroy(session);
  end_set(&s);
}

// On a stream that is being captured a run becomes part of the caller's graph,
// if it was prepared; the session goes on with runs of its own.
static void is_part_of_a_graph(void **state) {
  (void)state;
  hd_cuda_driver_t driver;
  hd_cu_context_t primary, popped;
  hd_cu_stream_t stream;
  hd_cu_graph_t graph;
  hd_cu_exec_t exec;
  hidet_session_t *session;
  hidet_array_t like[3];
  set_t s, other;
  if (!runs_nothing)
    skip();
  make_set(&s, 2);
  make_set(&other, 2);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  assert_null(hd_cuda_driver_open(&driver, "libcuda.so.1"));
  assert_int_equal(driver.context_retain(&primary, 0), 0);
  assert_int_equal(driver.context_push(primary), 0);
  assert_int_equal(driver.stream_create(&stream, 0), 0);
  assert_int_equal(driver.capture_begin(stream, 0), 0);
  expect(hidet_session_enqueue(session, s.arrays, 2, s.arrays + 2, 3, stream),
         HIDET_USAGE, "has not been prepared for these inputs");
  assert_int_equal(driver.capture_end(stream, &graph), 0);
  assert_int_equal(driver.graph_destroy(graph), 0);
  assert_int_equal(hidet_session_prepare(session, s.arrays, 2, like, 3),
                   HIDET_OK);
  assert_int_equal(driver.capture_begin(stream, 0), 0);
  enqueue(session, &s, stream);
  enqueue(session, &other, stream);
  assert_int_equal(driver.capture_end(stream, &graph), 0);
  assert_int_equal(driver.graph_instantiate(&exec, graph, 0), 0);
  enqueue(session, &s, NULL);
  enqueue(session, &other, stream);
  assert_int_equal(hidet_session_wait(session), HIDET_OK);
  assert_int_equal(driver.exec_destroy(exec), 0);
  assert_int_equal(driver.graph_destroy(graph), 0);
  hidet_session_destroy(session);
  end_set(&s);
  end_set(&other);
  assert_int_equal(driver.stream_destroy(stream), 0);
  assert_int_equal(driver.context_pop(&popped), 0);
  assert_int_equal(driver.context_release(0), 0);
  hd_cuda_driver_close(&driver);
}

// An executable of bounds is there once, and recorded once, whatever sizes
// come.
static void bounds_are_recorded_once(void **state) {
  (void)state;
  static const char one[] = "graph main(x: f32[n, 8], z: f32[8]) -> y {\n"
                            "  t: f32[n, 8] = add(x, z)\n"
                            "  y: f32[n, 8] = add(t, t)\n"
                            "}\n";
  hidet_module_t *parsed;
  hidet_model_t *bounded;
  hidet_session_t *session;
  set_t sets[2];
  float y[MAX * 8];
  assert_int_equal(
      hidet_module_parse(context, "one", one, strlen(one), &parsed), HIDET_OK);
  assert_int_equal(hidet_model_create(parsed, NULL, &bounded), HIDET_OK);
  assert_int_equal(hidet_model_set_buckets(bounded, "n", NULL, 0), HIDET_OK);
  assert_int_equal(hidet_session_create(bounded, device, &session), HIDET_OK);
  for (int i = 0; i < 2; i++)
    make_set(&sets[i], 3 + i);
  for (int i = 0; i < 4; i++) {
    set_t *s = &sets[i % 2];
    assert_int_equal(
        hidet_session_enqueue(session, s->arrays, 2, s->arrays + 2, 1, NULL),
        HIDET_OK);
  }
  assert_int_equal(hidet_session_wait(session), HIDET_OK);
  assert_int_equal(hidet_model_num_compiled(bounded, device), 1);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hidet_tensor_read(sets[i].tensors[2], y), HIDET_OK);
    for (int k = 0; k < (3 + i) * 8 && !runs_nothing; k++)
      assert_true(y[k] == (float)(k + 10 * (k % 8)) * 2);
  }
  hidet_session_destroy(session);
  hidet_model_destroy(bounded);
  hidet_module_destroy(parsed);
  for (int i = 0; i < 2; i++)
    end_set(&sets[i]);
}

// What one model is given no other one finds changed.
static void weights_are_one_model_s(void **state) {
  (void)state;
  static const float w[8];
  hidet_module_t *parsed;
  hidet_model_t *one, *other;
  assert_int_equal(
      hidet_module_parse(context, "m", text, strlen(text), &parsed), 0);
  assert_int_equal(hidet_model_create(parsed, NULL, &one), HIDET_OK);
  assert_int_equal(hidet_model_set_weight(one, "w", w, sizeof(w)), HIDET_OK);
  assert_int_equal(hidet_model_create(parsed, NULL, &other), HIDET_OK);
  expect(hidet_model_set_weight(other, "w", w, sizeof(w)), HIDET_USAGE,
         "another model");
  expect(hidet_model_set_weight(one, "w", w, sizeof(w)), HIDET_USAGE,
         "another model");
  hidet_model_destroy(other);
  expect(hidet_model_set_weight(one, "w", w, 4), HIDET_USAGE, "bytes");
  assert_int_equal(hidet_model_set_weight(one, "w", w, sizeof(w)), HIDET_OK);
  hidet_model_destroy(one);
  hidet_module_destroy(parsed);
}

// Passes, and an instance of a kernel, would change it; a kernel that is there
// does not.
static void a_module_with_models_stays(void **state) {
  (void)state;
  static const char both[] = "kernel fill[V: i32](out y: f32[4]) block(4) {\n"
                             "  y[thread] = f32(V)\n"
                             "}\n"
                             "kernel clear(out y: f32[4]) block(4) {\n"
                             "  y[thread] = 0.0\n"
                             "}\n"
                             "graph main(x: f32[4]) -> y {\n"
                             "  y: f32[4] = add(x, x)\n"
                             "}\n";
  int64_t shape[] = {4};
  hidet_module_t *parsed;
  hidet_model_t *made;
  hidet_program_t *program;
  hidet_argument_t y = {0};
  assert_int_equal(
      hidet_module_parse(context, "m", both, strlen(both), &parsed), 0);
  assert_int_equal(hidet_tensor_create(device, "f32", shape, 1, &y.tensor), 0);
  assert_int_equal(hidet_model_create(parsed, NULL, &made), HIDET_OK);
  expect(hidet_module_run_pass(parsed, "simplify", NULL), HIDET_USAGE,
         "changes no more");
  expect(hidet_program_create(device, parsed, "fill[V = 3]", &y, 1, &program),
         HIDET_USAGE, "no more instances");
  assert_int_equal(
      hidet_program_create(device, parsed, "clear", &y, 1, &program), HIDET_OK);
  hidet_program_destroy(program);
  hidet_model_destroy(made);
  assert_int_equal(hidet_module_run_pass(parsed, "simplify", NULL), HIDET_OK);
  assert_int_equal(
      hidet_program_create(device, parsed, "fill[V = 3]", &y, 1, &program),
      HIDET_OK);
  hidet_program_destroy(program);
  hidet_tensor_destroy(y.tensor);
  hidet_module_destroy(parsed);
}

// Shapes that what is in the inputs decides.
static void says_what_cannot_be_known(void **state) {
  (void)state;
  static const char looks[] = "graph main(x: f32[n], s: i64[1]) -> y {\n"
                              "  y = onnx13.Reshape(x, s)\n"
                              "}\n";
  hidet_module_t *looking;
  hidet_model_t *made;
  hidet_session_t *session;
  hidet_array_t in[] = {{"f32", 1, {4}, NULL}, {"i64", 1, {1}, NULL}}, out;
  assert_int_equal(
      hidet_module_parse(context, "m", looks, strlen(looks), &looking), 0);
  assert_int_equal(hidet_model_create(looking, NULL, &made), HIDET_OK);
  assert_int_equal(hidet_session_create(made, device, &session), HIDET_OK);
  expect(hidet_session_prepare(session, in, 2, &out, 1), HIDET_UNSUPPORTED,
         "what is in the inputs");
  hidet_session_destroy(session);
  hidet_model_destroy(made);
  hidet_module_destroy(looking);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_where_tensors_are),
      cmocka_unit_test(goes_with_runs_on_the_host),
      cmocka_unit_test(refuses_what_is_wrong),
      cmocka_unit_test(a_refused_run_leaves_nothing),
      cmocka_unit_test(waits_for_the_first_run),
      cmocka_unit_test(is_part_of_a_graph),
      cmocka_unit_test(bounds_are_recorded_once),
      cmocka_unit_test(weights_are_one_model_s),
      cmocka_unit_test(a_module_with_models_stays),
      cmocka_unit_test(says_what_cannot_be_known)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
