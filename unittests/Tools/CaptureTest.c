// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs in a graph that the caller captures, as PyTorch does, on tensors that
// are changed there, in place and not: by a driver that runs nothing
// (test/Runtime/capture.test), without which there is nothing to do.
#include "Runtime/CudaDriver.h"
#include "UnitTest.h"

#include <hidet/Session.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 5 };

// A model, its tensors (inputs, then outputs), and a pair of them.
typedef struct model_case {
  const char *text;
  const char *input, *output;
  int past, present, inputs, outputs;
  hidet_array_t arrays[MOST_TENSORS];
} model_case_t;

static model_case_t cache = {
    .text = "graph main(past: f32[2, 40, 4], x: f32[2, 1, 4], at: i64[2])\n"
            "  -> sum, present {\n"
            "  const axis: i64[1] = [1]\n"
            "  present = onnx24.TensorScatter(past, x, at) { axis = 1 }\n"
            "  sum = onnx13.ReduceSum(present, axis) { keepdims = 0 }\n"
            "}\n",
    .input = "past",
    .output = "present",
    .past = 0,
    .present = 4,
    .inputs = 3,
    .outputs = 2,
    .arrays = {{"f32", 3, {2, 40, 4}, NULL},
               {"f32", 3, {2, 1, 4}, NULL},
               {"i64", 1, {2}, NULL},
               {"f32", 2, {2, 4}, NULL},
               {"f32", 3, {2, 40, 4}, NULL}}};

// Its new value is stored beside the one that others read.
static model_case_t counter = {
    .text = "graph main(count: i64[1], x: f32[6]) -> y, next {\n"
            "  const one: i64[1] = [1]\n"
            "  next = onnx14.Add(count, one)\n"
            "  rows = onnx13.Cast(count) { to = 1 }\n"
            "  y = onnx14.Add(x, rows)\n"
            "}\n",
    .input = "count",
    .output = "next",
    .past = 0,
    .present = 3,
    .inputs = 2,
    .outputs = 2,
    .arrays = {{"i64", 1, {1}, NULL},
               {"f32", 1, {6}, NULL},
               {"f32", 1, {6}, NULL},
               {"i64", 1, {1}, NULL}}};

static hidet_session_t *session;
static hd_cuda_driver_t driver;

static void make_tensors(hidet_device_t *device, model_case_t *c,
                         hidet_tensor_t **tensors) {
  for (int i = 0; i < c->inputs + c->outputs; i++) {
    hidet_array_t *array = &c->arrays[i];
    assert_int_equal(hidet_tensor_create(device, array->type, array->shape,
                                         array->rank, &tensors[i]),
                     HIDET_OK);
    array->data = hidet_tensor_data(tensors[i]);
  }
}

static hidet_status_t enqueue(const model_case_t *c, hd_cu_stream_t stream) {
  return hidet_session_enqueue(session, c->arrays, (size_t)c->inputs,
                               c->arrays + c->inputs, (size_t)c->outputs,
                               stream);
}

// What enqueuing gives on a stream that is being captured, as PyTorch captures:
// no thread does what is not a stream's work.
static hidet_status_t capture(const model_case_t *c, hd_cu_stream_t stream) {
  hd_cu_graph_t graph;
  hd_cu_exec_t exec;
  assert_int_equal(driver.capture_begin(stream, 0), 0);
  hidet_status_t status = enqueue(c, stream);
  assert_int_equal(driver.capture_end(stream, &graph), 0);
  if (status == HIDET_OK) {
    assert_int_equal(driver.graph_instantiate(&exec, graph, 0), 0);
    assert_int_equal(driver.exec_destroy(exec), 0);
  }
  assert_int_equal(driver.graph_destroy(graph), 0);
  return status;
}

static void run(const model_case_t *c, hd_cu_stream_t stream) {
  assert_int_equal(enqueue(c, stream), HIDET_OK);
  assert_int_equal(hidet_session_wait(session), HIDET_OK);
}

// A run takes memory, once, where it does not store in place; it is recorded,
// and the recording is another's after a capture.
static void capture_all(model_case_t *c, hd_cu_stream_t stream, bool in_place) {
  const void *apart = c->arrays[c->present].data;
  c->arrays[c->present].data = c->arrays[c->past].data;
  assert_int_equal(capture(c, stream), in_place ? HIDET_OK : HIDET_UNSUPPORTED);
  run(c, stream);
  assert_int_equal(capture(c, stream), HIDET_OK);
  assert_int_equal(capture(c, stream), HIDET_OK);
  run(c, stream);
  c->arrays[c->present].data = apart;
  run(c, stream);
  assert_int_equal(capture(c, stream), HIDET_UNSUPPORTED);
  assert_non_null(strstr(hidet_messages(), "not the caller's tensor"));
  run(c, stream);
}

static void with_a_stream(model_case_t *c, bool in_place) {
  hd_cu_context_t primary, popped;
  hd_cu_stream_t stream;
  assert_null(hd_cuda_driver_open(&driver, "libcuda.so.1"));
  assert_int_equal(driver.context_retain(&primary, 0), 0);
  assert_int_equal(driver.context_push(primary), 0);
  assert_int_equal(driver.stream_create(&stream, 0), 0);
  capture_all(c, stream, in_place);
  hidet_session_destroy(session);
  assert_int_equal(driver.stream_destroy(stream), 0);
  assert_int_equal(driver.context_pop(&popped), 0);
  assert_int_equal(driver.context_release(0), 0);
  hd_cuda_driver_close(&driver);
}

static void with_a_session(model_case_t *c, bool in_place) {
  hidet_device_t *device;
  hidet_module_t *module;
  hidet_model_t *model;
  hidet_tensor_t *tensors[MOST_TENSORS];
  hidet_array_t like[MOST_TENSORS];
  if (!getenv("HIDET_TEST_CAPTURE"))
    skip();
  hidet_context_t *context = hidet_context_create();
  assert_int_equal(hidet_device_open(context, "cuda", &device), HIDET_OK);
  assert_int_equal(
      hidet_module_parse(context, "m", c->text, strlen(c->text), &module),
      HIDET_OK);
  assert_int_equal(hidet_model_create(module, NULL, &model), HIDET_OK);
  assert_int_equal(hidet_model_set_inout(model, c->input, c->output), HIDET_OK);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  make_tensors(device, c, tensors);
  assert_int_equal(hidet_session_prepare(session, c->arrays, (size_t)c->inputs,
                                         like, (size_t)c->outputs),
                   HIDET_OK);
  with_a_stream(c, in_place);
  for (int i = 0; i < c->inputs + c->outputs; i++)
    hidet_tensor_destroy(tensors[i]);
  hidet_model_destroy(model);
  hidet_module_destroy(module);
  hidet_device_close(device);
  hidet_context_destroy(context);
}

static void a_cache_in_place(void **state) {
  (void)state;
  with_a_session(&cache, true);
}

static void a_counter(void **state) {
  (void)state;
  with_a_session(&counter, false);
}

HD_UNIT_TESTS(cmocka_unit_test(a_cache_in_place), cmocka_unit_test(a_counter))
