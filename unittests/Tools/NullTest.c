// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NULL for each argument of each function of the public interface, the others
// as they should be: HIDET_USAGE, or what the header says of it. The rows are
// compared with the headers by test/house/check_nulls.py: none is forgotten.
#include "NullWorld.h"
#include "UnitTest.h"

#include <hidet/Launch.h>
#include <hidet/Session.h>
#include <hidet/Tools.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hidet_device_t *device;
static hidet_tensor_t *tensor, *other;
static hidet_program_t *program;
static hidet_module_t *frozen;
static hidet_model_t *model;
static hidet_session_t *session;
static float data[4];
static const int64_t shape[] = {4};

static int set_up(void **state) {
  (void)state;
  null_context = hidet_context_create();
  return hidet_module_parse(null_context, "m", null_text, strlen(null_text),
                            &null_module) ||
         hidet_module_parse(null_context, "l", null_text, strlen(null_text),
                            &null_lowered) ||
         hidet_device_open(null_context, "sim", &device) ||
         hidet_tensor_create(device, "f32", shape, 1, &tensor) ||
         hidet_tensor_create(device, "f32", shape, 1, &other) ||
         hidet_module_parse(null_context, "f", null_text, strlen(null_text),
                            &frozen) ||
         hidet_model_create(frozen, NULL, &model) ||
         hidet_session_create(model, NULL, &session) ||
         (null_arguments[0].integer = 4, null_arguments[1].tensor = tensor,
          null_arguments[2].tensor = other,
          hidet_program_create(device, null_module, "k", null_arguments, 3,
                               &program));
}

static int tear_down(void **state) {
  (void)state;
  hidet_session_destroy(session);
  hidet_model_destroy(model);
  hidet_module_destroy(frozen);
  hidet_program_destroy(program);
  hidet_tensor_destroy(tensor);
  hidet_tensor_destroy(other);
  hidet_device_close(device);
  hidet_module_destroy(null_lowered);
  hidet_module_destroy(null_module);
  hidet_context_destroy(null_context);
  return 0;
}

// Of a call that ends for another reason, which it tells, HIDET_OK.
static int expect(bool other, const char *why, int status) {
  return other ? strstr(hidet_messages(), why) == NULL : status;
}

static int context_limit(int null) {
  hidet_context_limit(ARG(0, null_context), 0, 0);
  return HIDET_OK;
}

static int context_cancel(int null) {
  hidet_context_cancel(ARG(0, null_context), 0);
  return HIDET_OK;
}

static int context_watch(int null) {
  hidet_context_watch(ARG(0, null_context), NULL, NULL);
  return HIDET_OK;
}

static int destroyers(int null) {
  (void)null;
  hidet_context_destroy(NULL);
  hidet_module_destroy(NULL);
  hidet_device_close(NULL);
  hidet_tensor_destroy(NULL);
  hidet_program_destroy(NULL);
  hidet_model_destroy(NULL);
  hidet_session_destroy(NULL);
  hidet_text_free(NULL);
  return HIDET_OK;
}

static int device_open(int null) {
  hidet_device_t *made = NULL;
  int status =
      hidet_device_open(ARG(0, null_context), ARG(1, "sim"), ARG(2, &made));
  hidet_device_close(made);
  return status;
}

static int device_kind(int null) {
  const char *kind = hidet_device_kind(ARG(0, device));
  return (kind == NULL) == (null == 0) ? HIDET_OK : HIDET_INTERNAL;
}

static void *allocate(void *argument, size_t bytes) {
  (void)argument, (void)bytes;
  return NULL;
}

static void release(void *argument, void *address, size_t bytes) {
  (void)argument, (void)address, (void)bytes;
}

// The device has memory.
static int device_set_allocator(int null) {
  if (hidet_device_set_allocator(device, NULL, release, NULL) != HIDET_USAGE ||
      hidet_device_set_allocator(device, allocate, NULL, NULL) != HIDET_USAGE)
    return HIDET_INTERNAL;
  int status =
      hidet_device_set_allocator(ARG(0, device), allocate, release, NULL);
  return expect(null < 0 || null == 3, "before memory is taken", status);
}

// The device has memory.
static int device_set_cache(int null) {
  int status = hidet_device_set_cache(ARG(0, device), ARG(1, "/tmp"), 0);
  return expect(null < 0 || null == 1, "before memory is taken", status);
}

static int tensor_create(int null) {
  hidet_tensor_t *made = NULL;
  int status = hidet_tensor_create(ARG(0, device), ARG(1, "f32"), ARG(2, shape),
                                   1, ARG(4, &made));
  hidet_tensor_destroy(made);
  return status;
}

static int tensor_wrap(int null) {
  hidet_tensor_t *made = NULL;
  int status = hidet_tensor_wrap(ARG(0, device), ARG(1, "f32"), ARG(2, shape),
                                 1, ARG(4, data), ARG(5, &made));
  if (made && hidet_tensor_data(made) != data)
    return HIDET_INTERNAL;
  hidet_tensor_destroy(made);
  return status;
}

static int tensor_data(int null) {
  const void *found = hidet_tensor_data(ARG(0, tensor));
  return (found == NULL) == (null == 0) ? HIDET_OK : HIDET_INTERNAL;
}

static int tensor_size(int null) {
  size_t size = hidet_tensor_size(ARG(0, tensor));
  return size == (null == 0 ? 0 : sizeof(data)) ? HIDET_OK : HIDET_INTERNAL;
}

static int tensor_write(int null) {
  return hidet_tensor_write(ARG(0, tensor), ARG(1, data));
}

static int tensor_read(int null) {
  return hidet_tensor_read(ARG(0, tensor), ARG(1, data));
}

static int program_create(int null) {
  hidet_program_t *made = NULL;
  int status =
      hidet_program_create(ARG(0, device), ARG(1, null_module), ARG(2, "k"),
                           ARG(3, null_arguments), 3, ARG(5, &made));
  hidet_program_destroy(made);
  return status;
}

static int program_run(int null) {
  return hidet_program_run(ARG(0, program), ARG(1, null_arguments), 3);
}

static int model_create(int null) {
  hidet_model_t *made = NULL;
  int status = hidet_model_create(ARG(0, frozen), ARG(1, "g"), ARG(2, &made));
  hidet_model_destroy(made);
  return status;
}

static int model_load(int null) {
  hidet_model_t *made = NULL;
  int status =
      hidet_model_load(ARG(0, null_context), ARG(1, "none.hir"), ARG(2, &made));
  return null < 0 ? status != HIDET_USAGE : status; // There is no such file.
}

// All with their null_arguments are refused: the model has a session.
static int refused(int null, hidet_status_t status) {
  return expect(null < 0 && status == HIDET_USAGE, "the model has sessions",
                status);
}

static int model_set_weight(int null) {
  return refused(null, hidet_model_set_weight(ARG(0, model), ARG(1, "w"),
                                              ARG(2, data), sizeof(data)));
}

static int model_set_precision(int null) {
  return refused(null, hidet_model_set_precision(ARG(0, model), ARG(1, "f16")));
}

static int model_set_buckets(int null) {
  return refused(null, hidet_model_set_buckets(ARG(0, model), ARG(1, "n"),
                                               ARG(2, shape), 1));
}

static int model_set_inout(int null) {
  return refused(
      null, hidet_model_set_inout(ARG(0, model), ARG(1, "a"), ARG(2, "b")));
}

static int model_set_measured(int null) {
  hidet_model_t *made;
  int status = hidet_model_create(frozen, "g", &made);
  if (status == HIDET_OK)
    status = hidet_model_set_measured(ARG(0, made), ARG(1, "none.db"));
  hidet_model_destroy(made);
  return status;
}

// It has no session on the device; set_untrusted: it has one.
static int model_save(int null) {
  hidet_model_t *made;
  int status = hidet_model_create(frozen, "g", &made);
  if (status == HIDET_OK)
    status = hidet_model_save(ARG(0, made), ARG(1, device), ARG(2, "none"));
  hidet_model_destroy(made);
  return null < 0 ? status != HIDET_USAGE : status;
}

static int model_set_untrusted(int null) {
  return refused(null, hidet_model_set_untrusted(ARG(0, model)));
}

static int model_set_explained(int null) {
  return refused(null, hidet_model_set_explained(ARG(0, model)));
}

static int model_num_compiled(int null) {
  return hidet_model_num_compiled(ARG(0, model), ARG(1, device)) == 0
             ? HIDET_OK
             : HIDET_INTERNAL;
}

static int model_num(int null) {
  size_t wanted = null == 0 ? 0 : 1;
  return hidet_model_num_inputs(ARG(0, model)) == wanted &&
                 hidet_model_num_outputs(ARG(0, model)) == wanted
             ? HIDET_OK
             : HIDET_INTERNAL;
}

typedef void model_value_t(const hidet_model_t *, size_t, hidet_value_t *);

static int describe(model_value_t *function, int null) {
  hidet_value_t value = {.rank = 7};
  function(ARG(0, model), 0, ARG(2, &value));
  int wanted = null == 0 ? -1 : null == 2 ? 7 : 1;
  return value.rank == wanted ? HIDET_OK : HIDET_INTERNAL;
}

static int model_input(int null) { return describe(hidet_model_input, null); }

static int model_output(int null) { return describe(hidet_model_output, null); }

static int session_create(int null) {
  hidet_session_t *made = NULL;
  int status =
      hidet_session_create(ARG(0, model), ARG(1, device), ARG(2, &made));
  hidet_session_destroy(made);
  return status;
}

// As large as a DLTensor, in which rank is 0 and the device none.
static int array_from_dlpack(int null) {
  hidet_array_t array;
  int64_t tensor[6] = {0};
  int status = hidet_array_from_dlpack(NULL, ARG(1, tensor), ARG(2, &array));
  return expect(null < 0 || null == 0, "another device's", status);
}

static int array_to_dlpack(int null) {
  hidet_array_t array = {"f32", 1, {4}, data};
  int64_t tensor[6], strides[1];
  return hidet_array_to_dlpack(ARG(0, device), ARG(1, &array), ARG(2, strides),
                               ARG(3, tensor));
}

static int session_run(int null) {
  hidet_array_t input = {"f32", 1, {4}, data}, output;
  return hidet_session_run(ARG(0, session), ARG(1, &input), 1, ARG(3, &output),
                           1);
}

// The session has no device.
static int session_prepare(int null) {
  hidet_array_t input = {"f32", 1, {4}, NULL}, output;
  int status = hidet_session_prepare(ARG(0, session), ARG(1, &input), 1,
                                     ARG(3, &output), 1);
  return expect(null < 0, "no device", status);
}

static int session_enqueue(int null) {
  hidet_array_t input = {"f32", 1, {4}, data}, output = input;
  int status = hidet_session_enqueue(ARG(0, session), ARG(1, &input), 1,
                                     ARG(3, &output), 1, ARG(5, NULL));
  return expect(null < 0 || null == 5, "no device", status);
}

static int session_read(int null) {
  hidet_array_t output;
  int status = hidet_session_read(ARG(0, session), 0, ARG(2, &output));
  return expect(null < 0, "no memory for such", status);
}

static int session_wait(int null) {
  return hidet_session_wait(ARG(0, session));
}

static int sources_unchanged(int null) {
  hidet_sources_t none = {0};
  return hidet_sources_unchanged(ARG(0, &none)) == (null < 0) ? HIDET_OK
                                                              : HIDET_INTERNAL;
}

static int tool(int (*main_of)(int, char **), int null) {
  char name[] = "tool", option[] = "--version";
  char *argv[] = {name, option, NULL};
  return main_of(2, ARG(1, argv));
}

static int opt_main(int null) { return tool(hidet_opt_main, null); }

static int run_main(int null) { return tool(hidet_run_main, null); }

static int nothing(int null) {
  (void)null;
  return HIDET_OK;
}

// A letter for each parameter: '!' must not be NULL, '0' may be (or the call
// then gives nothing), '.' is no pointer.
static const struct {
  const char *name, *parameters;
  int (*call)(int null);
} rows[] = {
    // clang-format off
    {"hidet_version",             "",       nothing},
    {"hidet_handle_fault",        "",       nothing},
    {"hidet_context_create",      "",       nothing},
    {"hidet_context_destroy",     "0",      destroyers},
    {"hidet_context_limit",       "0..",    context_limit},
    {"hidet_context_cancel",      "0.",     context_cancel},
    {"hidet_context_watch",       "0.0",    context_watch},
    {"hidet_messages",            "",       nothing},
    {"hidet_text_free",           "0",      destroyers},
    {"hidet_module_parse",        "!0!.!",  null_module_parse},
    {"hidet_module_import",       "!!!",    null_module_import},
    {"hidet_module_destroy",      "0",      destroyers},
    {"hidet_module_run_pass",     "!!0",    null_module_run_pass},
    {"hidet_module_print",        "!!",     null_module_print},
    {"hidet_module_emit",         "!!!0!",  null_module_emit},
    {"hidet_module_launch",       "!!!..!", null_module_launch},
    {"hidet_module_parameter",    "!!.!",   null_module_parameter},
    {"hidet_module_map",          "!!!..!", null_module_map},
    {"hidet_device_open",         "!!!",    device_open},
    {"hidet_device_close",        "0",      destroyers},
    {"hidet_device_kind",         "0",      device_kind},
    {"hidet_device_set_allocator", "!..0",   device_set_allocator},
    {"hidet_device_set_cache",    "!0.",    device_set_cache},
    {"hidet_tensor_create",       "!!!.!",  tensor_create},
    {"hidet_tensor_wrap",         "!!!.!!", tensor_wrap},
    {"hidet_tensor_data",         "0",      tensor_data},
    {"hidet_tensor_destroy",      "0",      destroyers},
    {"hidet_tensor_size",         "0",      tensor_size},
    {"hidet_tensor_write",        "!!",     tensor_write},
    {"hidet_tensor_read",         "!!",     tensor_read},
    {"hidet_program_create",      "!!0!.!", program_create},
    {"hidet_program_destroy",     "0",      destroyers},
    {"hidet_program_run",         "!!.",    program_run},
    {"hidet_model_create",        "!0!",    model_create},
    {"hidet_model_load",          "!!!",    model_load},
    {"hidet_model_destroy",       "0",      destroyers},
    {"hidet_model_set_weight",    "!!!.",   model_set_weight},
    {"hidet_model_set_precision", "!!",     model_set_precision},
    {"hidet_model_set_measured",  "!0",     model_set_measured},
    {"hidet_model_set_untrusted", "!",      model_set_untrusted},
    {"hidet_model_set_explained", "!",      model_set_explained},
    {"hidet_model_save",          "!!!",    model_save},
    {"hidet_model_set_buckets",   "!!!.",   model_set_buckets},
    {"hidet_model_set_inout",     "!!!",    model_set_inout},
    {"hidet_model_num_inputs",    "0",      model_num},
    {"hidet_model_num_outputs",   "0",      model_num},
    {"hidet_model_input",         "0.0",    model_input},
    {"hidet_model_output",        "0.0",    model_output},
    {"hidet_model_num_compiled",  "00",     model_num_compiled},
    {"hidet_array_from_dlpack",   "0!!",    array_from_dlpack},
    {"hidet_array_to_dlpack",     "0!!!",    array_to_dlpack},
    {"hidet_session_create",      "!0!",    session_create},
    {"hidet_session_destroy",     "0",      destroyers},
    {"hidet_session_run",         "!!.!.",  session_run},
    {"hidet_session_prepare",     "!!.!.",  session_prepare},
    {"hidet_session_enqueue",     "!!.!.0", session_enqueue},
    {"hidet_session_read",        "!.!",    session_read},
    {"hidet_session_wait",        "!",      session_wait},
    {"hidet_sources_unchanged",   "0",      sources_unchanged},
    {"hidet_opt_main",            ".!",     opt_main},
    {"hidet_run_main",            ".!",     run_main},
    // clang-format on
};

static void takes_null(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const char *parameters = rows[i].parameters;
    print_message("%s\n", rows[i].name);
    assert_int_equal(rows[i].call(-1), HIDET_OK);
    for (int null = 0; parameters[null]; null++)
      if (parameters[null] != '.')
        assert_int_equal(rows[i].call(null),
                         parameters[null] == '!' ? HIDET_USAGE : HIDET_OK);
  }
}

static void says_so(void **state) {
  (void)state;
  assert_int_equal(hidet_module_print(null_module, NULL), HIDET_USAGE);
  assert_non_null(
      strstr(hidet_messages(), "error[E1003]: an argument is NULL"));
  assert_int_equal(context_limit(-1), HIDET_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(takes_null),
                                     cmocka_unit_test(says_so)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
