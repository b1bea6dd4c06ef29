// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of a group decides, and nobody else's.
#include "IR/Text/Parser.h"
#include "Runtime/Session.h"
#include "Support/BuildId.h"
#include "Tune/Database.h"
#include "Tune/Tune.h"
#include "Tune/TunerState.h"
#include "UnitTest.h"

#include <hidet/Session.h>
#include <hidet/Version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "graph main(x: f16[32, 64], w: f16[64, 32]) -> y {\n"
                           "  y: f16[32, 32] = matmul(x, w)\n"
                           "}\n";

static char path[] = "/tmp/hidet-tuner-XXXXXX";

typedef struct chosen {
  char choice[200], key[40]; // choice: "" where nothing is known.
} chosen_t;

// Runs the graph, and says what the tuner did for its product.
static void run(const char *more, chosen_t *chosen) {
  hd_context_t context;
  hd_context_init(&context);
  char all[600];
  snprintf(all, sizeof all, "%s%s", text, more);
  hd_module_t *module = hd_module_parse(&context, "test", all, strlen(all), 1);
  hd_device_t *device =
      hd_device_open_sim(&context, &(hd_device_options_t){.threads = 1});
  hd_tuner_t *tuner =
      hd_tuner_create(device, &(hd_tune_options_t){.database = path});
  hd_session_t *session =
      hd_session_create(module, hd_module_find_graph(module, "main"), device,
                        &(hd_model_options_t){.choose = hd_tuner_choose,
                                              .choose_argument = tuner});
  const int64_t shapes[][2] = {{32, 64}, {64, 32}};
  hd_host_tensor_t inputs[2], output;
  for (int i = 0; i < 2; i++)
    assert_true(hd_host_tensor_init(&inputs[i], &context.diags, NULL, "x",
                                    HD_F16, shapes[i], 2));
  assert_true(hd_session_run(session, inputs, &output));
  const hd_tune_report_t *report = hd_tuner_report(tuner);
  assert_int_equal(report->groups.size, 1);
  assert_int_equal(report->measured, 0);
  const hd_tuned_t *tuned = report->groups.data[0];
  snprintf(chosen->key, sizeof chosen->key, "%s", tuned->key);
  snprintf(chosen->choice, sizeof chosen->choice, "%s",
           tuned->best ? tuned->best->choice : "");
  hd_host_tensor_fini(&output);
  for (int i = 0; i < 2; i++)
    hd_host_tensor_fini(&inputs[i]);
  hd_session_destroy(session);
  hd_tuner_destroy(tuner);
  hd_device_close(device);
  hd_context_fini(&context);
}

static void put(const char *key, const char *choice, const char *status,
                double us) {
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  // Who the rows belong to is what a first row of the tuner's would say: the
  // device and the build are those of this process.
  char build[128] = "", compiler[200];
  hd_build_id(build, sizeof build);
  snprintf(compiler, sizeof compiler, "%s %s", hidet_version(), build);
  hd_tune_database_t *d = hd_tune_database_open(
      &diags, path, true, "simulator of sm_90a", compiler);
  hd_tune_database_put(d, key, "", &(hd_tune_row_t){choice, status, "", us});
  hd_tune_database_close(d);
  assert_int_equal(diags.num_errors, 0);
  hd_diagnostics_fini(&diags);
}

static void the_fastest_that_is_a_candidate(void **state) {
  (void)state;
  static const char slower[] =
      "product_mma(BM = 32, BN = 32, WM = 1, WN = 2, STAGES = 3, SPLIT = 1)";
  chosen_t chosen;
  unlink(path);
  run("", &chosen);
  assert_string_equal(chosen.choice, "");
  put(chosen.key, "rules()", "measured", 9);
  run("", &chosen);
  assert_string_equal(chosen.choice, "rules()");
  put(chosen.key, slower, "measured", 7);
  put(chosen.key, "no_template(BM = 7)", "measured", 1);
  put(chosen.key, "product_mma(BM = 7)", "measured", 1);
  put(chosen.key, "rules()", "hangs", 0);
  run("", &chosen);
  assert_string_equal(chosen.choice, slower);
  // With an item of the user's the group may be another.
  char key[40];
  strcpy(key, chosen.key);
  run("fn twice(x: f32) -> f32 { return x + x }\n", &chosen);
  assert_string_equal(chosen.choice, "");
  assert_true(strcmp(key, chosen.key) != 0);
  unlink(path);
}

// What a new process says of groups, by their keys alone, to the caller's
// buffer; how much its tuner keeps of that.
static size_t foresee(const char *groups, hd_buffer_t *out) {
  hd_context_t context;
  hd_context_init(&context);
  hd_device_t *device =
      hd_device_open_sim(&context, &(hd_device_options_t){.threads = 1});
  hd_tuner_t *tuner =
      hd_tuner_create(device, &(hd_tune_options_t){.database = path});
  assert_true(hd_tuner_choosing(tuner)->foresee(tuner, groups, out));
  size_t bytes = hd_arena_bytes(&tuner->arena);
  hd_tuner_destroy(tuner);
  hd_device_close(device);
  hd_context_fini(&context);
  return bytes;
}

// Whichever of them is expected to be faster.
static void ties_are_foreseen(void **state) {
  (void)state;
  static const char *const choices[] = {
      "product_mma(BM = 32, BN = 32, WM = 1, WN = 2, STAGES = 3, SPLIT = 1)",
      "product_mma(BM = 32, BN = 32, WM = 1, WN = 2, STAGES = 4, SPLIT = 1)",
      "rules()"};
  chosen_t chosen;
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < i; k++) {
      hd_buffer_t out = {0};
      char group[60], line[300];
      unlink(path);
      run("", &chosen);
      put(chosen.key, choices[i], "measured", 5);
      put(chosen.key, choices[k], "measured", 5);
      run("", &chosen);
      assert_true(chosen.choice[0] != 0);
      snprintf(group, sizeof group, "%s 1\n", chosen.key);
      snprintf(line, sizeof line, "%s %s\n", chosen.key, chosen.choice);
      foresee(group, &out);
      assert_string_equal(hd_buffer_text(&out), line);
      hd_buffer_fini(&out);
    }
  unlink(path);
}

static void many_groups_take_no_more_each(void **state) {
  (void)state;
  enum { FEW = 100, MANY = 2000 };
  hd_buffer_t groups = {0}, out = {0};
  size_t few = 0;
  for (int i = 1; i <= MANY; i++) {
    hd_buffer_printf(&groups, "%032d 1\n", i);
    if (i == FEW)
      few = foresee(hd_buffer_text(&groups), &out);
  }
  assert_true(foresee(hd_buffer_text(&groups), &out) < 2 * MANY / FEW * few);
  hd_buffer_fini(&groups);
  hd_buffer_fini(&out);
}

static void an_embedder_takes_them_too(void **state) {
  (void)state;
  hidet_context_t *context = hidet_context_create();
  hidet_module_t *module;
  hidet_device_t *device;
  hidet_model_t *model;
  hidet_session_t *session;
  assert_int_equal(
      hidet_module_parse(context, "test", text, strlen(text), &module), 0);
  assert_int_equal(hidet_device_open(context, "sim", &device), 0);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs("no database", file);
  fclose(file);
  static const unsigned char x[32 * 64 * 2];
  hidet_array_t in[] = {{"f16", 2, {32, 64}, x}, {"f16", 2, {64, 32}, x}}, out;
  for (int measured = 1; measured >= 0; measured--) {
    assert_int_equal(hidet_model_create(module, NULL, &model), 0);
    assert_int_equal(hidet_model_set_measured(model, path), 0);
    if (!measured)
      assert_int_equal(hidet_model_set_measured(model, NULL), 0);
    assert_int_equal(hidet_session_create(model, device, &session), 0);
    if (measured)
      assert_non_null(
          strstr(hidet_messages(),
                 "warning: what was measured cannot be kept or read"));
    else
      assert_string_equal(hidet_messages(), "");
    assert_int_equal(hidet_model_set_measured(model, path), HIDET_USAGE);
    assert_int_equal(hidet_session_run(session, in, 2, &out, 1), 0);
    hidet_session_destroy(session);
    hidet_model_destroy(model);
  }
  hidet_device_close(device);
  hidet_module_destroy(module);
  hidet_context_destroy(context);
  unlink(path);
}

static int make_path(void **state) {
  (void)state;
  int file = mkstemp(path);
  return file < 0 ? -1 : close(file) || unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_fastest_that_is_a_candidate),
      cmocka_unit_test(ties_are_foreseen),
      cmocka_unit_test(many_groups_take_no_more_each),
      cmocka_unit_test(an_embedder_takes_them_too)};
  return cmocka_run_group_tests(tests, make_path, NULL);
}
