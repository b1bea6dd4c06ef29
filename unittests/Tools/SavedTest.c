// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model as one file, by the public interface: what is loaded is not compiled,
// what is not trusted or does not fit any more is made anew, and all give the
// same bits.
#include "UnitTest.h"
#include "hidet/Session.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char model_path[] = HIDET_EXAMPLES "/digits/model.onnx";
static char path[64];
static hidet_context_t *context;
static hidet_device_t *device;

static int set_up(void **state) {
  (void)state;
  snprintf(path, sizeof(path), "/tmp/hidet-saved-%d.hidet", (int)getpid());
  context = hidet_context_create();
  return hidet_device_open(context, "sim", &device) != HIDET_OK;
}

static int tear_down(void **state) {
  (void)state;
  unlink(path);
  hidet_device_close(device);
  hidet_context_destroy(context);
  return 0;
}

// Runs the model on so many images, the first of which gives probabilities;
// returns how often it was compiled. The model has ended then.
static size_t run_model(hidet_model_t *model, int64_t images,
                        float probabilities[10], bool saves) {
  float image[3 * 64];
  hidet_session_t *session;
  hidet_array_t in = {"f32", 4, {images, 1, 8, 8}, image}, out;
  for (int i = 0; i < 3 * 64; i++)
    image[i] = (float)(i % 17);
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  if (saves) // Nothing was compiled so far.
    assert_int_equal(hidet_model_save(model, device, path), HIDET_UNSUPPORTED);
  assert_int_equal(hidet_session_run(session, &in, 1, &out, 1), HIDET_OK);
  memcpy(probabilities, out.data, 10 * sizeof(float));
  size_t compiled = hidet_model_num_compiled(model, device);
  if (saves)
    assert_int_equal(hidet_model_save(model, device, path), HIDET_OK);
  hidet_session_destroy(session);
  hidet_model_destroy(model);
  return compiled;
}

static hidet_model_t *load(const char *from) {
  hidet_model_t *model;
  assert_int_equal(hidet_model_load(context, from, &model), HIDET_OK);
  return model;
}

static void loads_what_was_compiled(void **state) {
  (void)state;
  float first[10], again[10];
  assert_int_equal(run_model(load(model_path), 1, first, true), 1);
  assert_int_equal(run_model(load(path), 1, again, false), 0);
  assert_memory_equal(first, again, sizeof(first));
  assert_int_equal(run_model(load(path), 3, again, false), 1); // Other sizes.
}

static void makes_anew(void **state) {
  (void)state;
  float first[10], again[10];
  run_model(load(model_path), 1, first, true);
  hidet_model_t *model = load(path);
  assert_int_equal(hidet_model_set_untrusted(model), HIDET_OK);
  assert_int_equal(run_model(model, 1, again, false), 1);
  assert_memory_equal(first, again, sizeof(first));
  model = load(path);
  assert_int_equal(hidet_model_set_precision(model, "f16"), HIDET_OK);
  assert_int_equal(run_model(model, 1, again, false), 1);
}

// Another weight: what was prepared of the one in the file is not used.
static void takes_other_weights(void **state) {
  (void)state;
  static float weight[10 * 256];
  float first[10], again[10];
  run_model(load(model_path), 1, first, true);
  hidet_model_t *model = load(path);
  assert_int_equal(
      hidet_model_set_weight(model, "linear.weight", weight, sizeof(weight)),
      HIDET_OK);
  assert_int_equal(run_model(model, 1, again, false), 1);
  hidet_model_t *same = load(model_path);
  assert_int_equal(
      hidet_model_set_weight(same, "linear.weight", weight, sizeof(weight)),
      HIDET_OK);
  run_model(same, 1, first, false);
  assert_memory_equal(first, again, sizeof(first));
}

// A module that a pass has changed is another one.
static void leaves_changed_modules(void **state) {
  (void)state;
  float first[10], again[10];
  hidet_module_t *module;
  hidet_model_t *model;
  run_model(load(model_path), 1, first, true);
  assert_int_equal(hidet_module_import(context, path, &module), HIDET_OK);
  assert_int_equal(hidet_module_run_pass(module, "expand", "batch=1"),
                   HIDET_OK);
  assert_int_equal(hidet_model_create(module, NULL, &model), HIDET_OK);
  assert_int_equal(run_model(model, 1, again, false), 1);
  assert_memory_equal(first, again, sizeof(first));
  hidet_module_destroy(module);
}

static void refuses(void **state) {
  (void)state;
  hidet_model_t *model = load(model_path);
  assert_int_equal(hidet_model_save(model, device, path), HIDET_USAGE);
  hidet_session_t *session;
  assert_int_equal(hidet_session_create(model, device, &session), HIDET_OK);
  assert_int_equal(hidet_model_save(model, device, "a.onnx"), HIDET_USAGE);
  hidet_session_destroy(session);
  assert_int_equal(hidet_model_set_untrusted(model), HIDET_USAGE); // Too late.
  hidet_model_destroy(model);
  FILE *file = fopen(path, "w");
  fputs("no model", file);
  fclose(file);
  assert_int_equal(hidet_model_load(context, path, &model), HIDET_INVALID);
  assert_non_null(strstr(hidet_messages(), "error[E0813]"));
  assert_null(model);
}

HD_UNIT_TESTS(
    cmocka_unit_test_setup_teardown(loads_what_was_compiled, set_up, tear_down),
    cmocka_unit_test_setup_teardown(makes_anew, set_up, tear_down),
    cmocka_unit_test_setup_teardown(takes_other_weights, set_up, tear_down),
    cmocka_unit_test_setup_teardown(leaves_changed_modules, set_up, tear_down),
    cmocka_unit_test_setup_teardown(refuses, set_up, tear_down))
