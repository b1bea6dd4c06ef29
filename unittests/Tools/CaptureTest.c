// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cache that is written in place, in a graph that the caller captures: by a
// driver that runs nothing (test/Runtime/capture.test), without which there is
// nothing to do.
#include "Runtime/CudaDriver.h"
#include "UnitTest.h"

#include <hidet/Session.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "graph main(past: f32[2, 40, 4], x: f32[2, 1, 4], at: i64[2])\n"
    "  -> sum, present {\n"
    "  const axis: i64[1] = [1]\n"
    "  present = onnx24.TensorScatter(past, x, at) { axis = 1 }\n"
    "  sum = onnx13.ReduceSum(present, axis) { keepdims = 0 }\n"
    "}\n";

enum { TENSORS = 5, PAST = 0, PRESENT = 4 };

// past, x, at, then sum and present.
static hidet_array_t arrays[TENSORS] = {{"f32", 3, {2, 40, 4}, NULL},
                                        {"f32", 3, {2, 1, 4}, NULL},
                                        {"i64", 1, {2}, NULL},
                                        {"f32", 2, {2, 4}, NULL},
                                        {"f32", 3, {2, 40, 4}, NULL}};
static hidet_session_t *session;
static hd_cuda_driver_t driver;

static void make_tensors(hidet_device_t *device,
                         hidet_tensor_t *tensors[TENSORS]) {
  for (int i = 0; i < TENSORS; i++) {
    assert_int_equal(hidet_tensor_create(device, arrays[i].type,
                                         arrays[i].shape, arrays[i].rank,
                                         &tensors[i]),
                     HIDET_OK);
    arrays[i].data = hidet_tensor_data(tensors[i]);
  }
}

// What enqueuing gives on a stream that is being captured.
static hidet_status_t capture(hd_cu_stream_t stream, hd_cu_graph_t *graph) {
  assert_int_equal(driver.capture_begin(stream, 0), 0);
  hidet_status_t status =
      hidet_session_enqueue(session, arrays, 3, arrays + 3, 2, stream);
  assert_int_equal(driver.capture_end(stream, graph), 0);
  return status;
}

static void capture_both(hd_cu_stream_t stream) {
  hd_cu_graph_t graph;
  hd_cu_exec_t exec;
  const void *apart = arrays[PRESENT].data;
  assert_int_equal(capture(stream, &graph), HIDET_UNSUPPORTED);
  assert_non_null(strstr(hidet_messages(), "not stored in place"));
  assert_int_equal(driver.graph_destroy(graph), 0);
  arrays[PRESENT].data = arrays[PAST].data;
  assert_int_equal(capture(stream, &graph), HIDET_OK);
  assert_int_equal(driver.graph_instantiate(&exec, graph, 0), 0);
  assert_int_equal(driver.exec_destroy(exec), 0);
  assert_int_equal(driver.graph_destroy(graph), 0);
  // The session goes on with runs of its own.
  arrays[PRESENT].data = apart;
  assert_int_equal(
      hidet_session_enqueue(session, arrays, 3, arrays + 3, 2, stream),
      HIDET_OK);
  assert_int_equal(hidet_session_wait(session), HIDET_OK);
}

static void with_a_stream(void) {
  hd_cu_context_t primary, popped;
  hd_cu_stream_t stream;
  assert_null(hd_cuda_driver_open(&driver, "libcuda.so.1"));
  assert_int_equal(driver.context_retain(&primary, 0), 0);
  assert_int_equal(driver.context_push(primary), 0);
  assert_int_equal(driver.stream_create(&stream, 0), 0);
  capture_both(stream);
  hidet_session_destroy(session);
  assert_int_equal(driver.stream_destroy(stream), 0);
  assert_int_equal(driver.context_pop(&popped), 0);
  assert_int_equal(driver.context_release(0), 0);
  hd_cuda_driver_close(&driver);
}

static void a_cache_in_place(void **state) {
  (void)state;
  hidet_device_t *device;
  hidet_module_t *module;
  hidet_model_t *model;
  hidet_tensor_t *tensors[TENSORS];
  hidet_array_t like[2];
  if (!getenv("HIDET_TEST_CAPTURE"))
    skip();
  hidet_context_t *context = hidet_context_create();
  assert_int_equal(hidet_device_open(context, "cuda", &device), HIDET_OK);
  assert_int_equal(
      hidet_module_parse(context, "m", text, strlen(text), &module), HIDET_OK);
  assert_int_equal(hidet_model_create(module, NULL, &model), HIDET_OK);
  assert_int_equal(hidet_model_set_inout(model, "past", "present"), HIDET_OK);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  make_tensors(device, tensors);
  assert_int_equal(hidet_session_prepare(session, arrays, 3, like, 2),
                   HIDET_OK);
  with_a_stream();
  for (int i = 0; i < TENSORS; i++)
    hidet_tensor_destroy(tensors[i]);
  hidet_model_destroy(model);
  hidet_module_destroy(module);
  hidet_device_close(device);
  hidet_context_destroy(context);
}

HD_UNIT_TESTS(cmocka_unit_test(a_cache_in_place))
