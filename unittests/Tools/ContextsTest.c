// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two GPUs in one process, whose host program has a current context of its own:
// every call finds the context that it needs, and leaves the one that was
// there. By a driver that runs nothing and looks at the context of each call
// (test/Runtime/contexts.test); without it there is nothing to do.
#include "Runtime/CudaDriver.h"
#include "UnitTest.h"

#include <hidet/Session.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "graph main(x: f32[n, 8]) -> y {\n"
                           "  const w: f32[8, 8] = 3\n"
                           "  t: f32[n, 8] = matmul(x, w)\n"
                           "  y: f32[n, 8] = relu(t)\n"
                           "}\n";

static hd_cuda_driver_t driver;
static hd_cu_context_t own; // The host program's.

static void expect_own(void) {
  hd_cu_context_t current = NULL;
  assert_int_equal(driver.context_get(&current), 0);
  assert_ptr_equal(current, own);
}

static void expect_ok(hidet_status_t status) {
  if (status != HIDET_OK)
    fail_msg("%s", hidet_messages());
  expect_own();
}

typedef struct side {
  hidet_device_t *device;
  hidet_session_t *session;
  hidet_tensor_t *in, *out;
} side_t;

static void begin_side(side_t *s, hidet_context_t *context,
                       hidet_model_t *model, const char *name) {
  const int64_t shape[] = {2, 8};
  expect_ok(hidet_device_open(context, name, &s->device));
  expect_ok(hidet_session_create(model, s->device, &s->session));
  expect_ok(hidet_tensor_create(s->device, "f32", shape, 2, &s->in));
  expect_ok(hidet_tensor_create(s->device, "f32", shape, 2, &s->out));
}

static void run_side(side_t *s, void *stream) {
  static const float x[16];
  hidet_array_t on_host = {"f32", 2, {2, 8}, x}, result;
  hidet_array_t in = {"f32", 2, {2, 8}, hidet_tensor_data(s->in)};
  hidet_array_t out = {"f32", 2, {2, 8}, hidet_tensor_data(s->out)};
  expect_ok(hidet_tensor_write(s->in, x));
  expect_ok(hidet_session_enqueue(s->session, &in, 1, &out, 1, stream));
  expect_ok(hidet_session_wait(s->session));
  expect_ok(hidet_session_run(s->session, &on_host, 1, &result, 1));
}

static void end_side(side_t *s) {
  hidet_session_destroy(s->session);
  expect_own();
  hidet_tensor_destroy(s->in);
  hidet_tensor_destroy(s->out);
  expect_own();
}

// A model on both.
static void work_on_both(hidet_context_t *context) {
  hidet_module_t *module;
  hidet_model_t *model;
  side_t sides[2];
  expect_ok(hidet_module_parse(context, "m", text, strlen(text), &module));
  expect_ok(hidet_model_create(module, NULL, &model));
  begin_side(&sides[0], context, model, "cuda:0");
  begin_side(&sides[1], context, model, "cuda:1");
  for (int i = 0; i < 6; i++)
    run_side(&sides[i % 2], NULL);
  for (int i = 1; i >= 0; i--)
    end_side(&sides[i]);
  hidet_model_destroy(model);
  hidet_module_destroy(module);
  for (int i = 0; i < 2; i++)
    hidet_device_close(sides[i].device);
  expect_own();
}

// As the host program has it: none, one GPU's, the other's.
static void leaves_the_host_its_context(void **state) {
  (void)state;
  if (!getenv("HIDET_TEST_CONTEXTS"))
    skip();
  hd_cu_context_t contexts[3] = {NULL}, popped;
  assert_null(hd_cuda_driver_open(&driver, "libcuda.so.1"));
  for (int i = 0; i < 2; i++)
    assert_int_equal(driver.context_retain(&contexts[i + 1], i), 0);
  for (int i = 0; i < 3; i++) {
    hidet_context_t *context = hidet_context_create();
    own = contexts[i];
    if (own)
      assert_int_equal(driver.context_push(own), 0);
    work_on_both(context);
    hidet_context_destroy(context);
    if (own)
      assert_int_equal(driver.context_pop(&popped), 0);
  }
  for (int i = 0; i < 2; i++)
    driver.context_release(i);
  hd_cuda_driver_close(&driver);
}

HD_UNIT_TESTS(cmocka_unit_test(leaves_the_host_its_context))
