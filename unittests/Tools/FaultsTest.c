// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of the CUDA driver fails in turn: a model that runs on the host's
// arrays and on the device's, and a plan that hidet-run measures, report it,
// leave nothing behind, and go on where the call does not fail again. By a
// driver that runs nothing (test/Runtime/faults.test), whose HIDET_TEST_FAULTS
// is the plan's file; without it there is nothing to do.
#include "UnitTest.h"

#include <dlfcn.h>
#include <hidet/Session.h>
#include <hidet/Tools.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "graph main(x: f32[n, 8]) -> y, x {\n"
                           "  const w: f32[8, 8] = 3\n"
                           "  t: f32[n, 8] = matmul(x, w)\n"
                           "  y: f32[n, 8] = relu(t)\n"
                           "}\n";

// The driver's functions that are called, but those that end things (to which
// belongs a context's push, without which nothing can be ended), and whether
// each failure is told: another way may be found (linking for another name of
// the target; a context is pushed that is not known to be there).
static const struct {
  const char *name;
  bool told;
} rows[] = {
    // clang-format off
    {"cuInit", true},
    {"cuDriverGetVersion", true},
    {"cuDeviceGetCount", true},
    {"cuDeviceGet", true},
    {"cuDeviceGetName", true},
    {"cuDeviceGetAttribute", true},
    {"cuDevicePrimaryCtxRetain", true},
    {"cuCtxGetCurrent", false},
    {"cuMemAlloc_v2", true},
    {"cuMemcpyHtoD_v2", true},
    {"cuMemcpyDtoH_v2", true},
    {"cuMemcpyAsync", true},
    {"cuMemsetD8Async", true},
    {"cuMemsetD16Async", true},
    {"cuMemsetD32Async", true},
    {"cuMemsetD2D32Async", true},
    {"cuTensorMapEncodeTiled", true},
    {"cuTensorMapEncodeIm2col", true},
    {"cuLinkCreate_v2", false},
    {"cuLinkAddData_v2", false},
    {"cuLinkComplete", false},
    {"cuLibraryLoadData", true},
    {"cuLibraryGetKernel", true},
    {"cuKernelGetFunction", true},
    {"cuFuncGetAttribute", true},
    {"cuFuncSetAttribute", true},
    {"cuLaunchKernelEx", true},
    {"cuStreamCreate", true},
    {"cuStreamSynchronize", true},
    {"cuStreamWaitEvent", true},
    {"cuStreamBeginCapture_v2", true},
    {"cuStreamGetCaptureInfo_v2", true},
    {"cuStreamEndCapture", true},
    {"cuGraphInstantiateWithFlags", true},
    {"cuGraphExecKernelNodeSetParams_v2", true},
    {"cuGraphLaunch", true},
    {"cuEventCreate", true},
    {"cuEventRecord", true},
    {"cuEventSynchronize", true},
    {"cuEventElapsedTime", true},
    // clang-format on
};

static int (*left)(void), (*calls)(void), (*find_stream)(void **);
static FILE *said; // What hidet-run says.
static unsigned failures, silent, stuck;

static void look(hidet_status_t status) {
  failures += status != HIDET_OK;
  silent += status != HIDET_OK && !strstr(hidet_messages(), "error[");
}

// Twice where it failed: then it must not.
#define TRY(call)                                                              \
  do {                                                                         \
    hidet_status_t first_ = (call);                                            \
    look(first_);                                                              \
    if (first_ != HIDET_OK && (call) != HIDET_OK)                              \
      stuck++;                                                                 \
  } while (0)

enum { SETS = 2 };

typedef struct flow {
  hidet_context_t *context;
  hidet_device_t *device;
  hidet_module_t *module;
  hidet_model_t *model;
  hidet_session_t *session;
  hidet_tensor_t *tensors[SETS][3];
} flow_t;

static void enqueue(flow_t *f, int set, void *stream) {
  hidet_array_t arrays[3];
  for (int i = 0; i < 3; i++)
    arrays[i] = (hidet_array_t){
        "f32", 2, {2, 8}, hidet_tensor_data(f->tensors[set][i])};
  TRY(hidet_session_enqueue(f->session, arrays, 1, arrays + 1, 2, stream));
}

static void use_session(flow_t *f) {
  static const float x[16];
  const int64_t shape[] = {2, 8};
  hidet_array_t in = {"f32", 2, {2, 8}, x}, out[2];
  for (int set = 0; set < SETS; set++)
    for (int i = 0; i < 3; i++) {
      TRY(hidet_tensor_create(f->device, "f32", shape, 2, &f->tensors[set][i]));
      if (f->tensors[set][i])
        TRY(hidet_tensor_write(f->tensors[set][i], x));
    }
  void *stream;
  find_stream(&stream);
  for (int set = 0; set < SETS; set++)
    enqueue(f, set, NULL);
  enqueue(f, 0, stream);
  TRY(hidet_session_wait(f->session));
  TRY(hidet_session_run(f->session, &in, 1, out, 2));
}

// Whether hidet-run measures the plan, and says why where it does not.
static bool measure(void) {
  char name[] = "hidet-run",
       options[][16] = {"--device=cuda", "--bench=2", "-q"};
  char *argv[] = {name, getenv("HIDET_TEST_FAULTS"), options[0], options[1],
                  options[2]};
  char text[4096];
  int before = dup(STDERR_FILENO);
  rewind(said);
  assert_int_equal(ftruncate(fileno(said), 0), 0);
  dup2(fileno(said), STDERR_FILENO);
  int status = hidet_run_main(5, argv);
  fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  rewind(said);
  text[fread(text, 1, sizeof(text) - 1, said)] = '\0';
  failures += status != 0;
  silent += status != 0 && !strstr(text, "error[");
  return status == 0;
}

static void run_model(void) {
  flow_t f = {.context = hidet_context_create()};
  TRY(hidet_device_open(f.context, "cuda", &f.device));
  TRY(hidet_module_parse(f.context, "m", text, strlen(text), &f.module));
  TRY(hidet_model_create(f.module, NULL, &f.model));
  if (f.device)
    TRY(hidet_session_create(f.model, f.device, &f.session));
  if (f.session)
    use_session(&f);
  hidet_session_destroy(f.session);
  for (int set = 0; set < SETS; set++)
    for (int i = 0; i < 3; i++)
      hidet_tensor_destroy(f.tensors[set][i]);
  hidet_model_destroy(f.model);
  hidet_module_destroy(f.module);
  hidet_device_close(f.device);
  hidet_context_destroy(f.context);
}

// Once more where it failed.
static void run_plan(void) { stuck += !measure() && !measure(); }

// Call number n of a function fails. False where there are fewer.
static bool fail_call(void (*flow)(void), const char *name, int n, int code) {
  char wish[100];
  snprintf(wish, sizeof(wish), "%s=%d@=%d", name, code, n);
  setenv("FAKE_CUDA_FAIL", wish, 1);
  failures = silent = stuck = 0;
  flow();
  bool happened = calls() >= n;
  unsetenv("FAKE_CUDA_FAIL");
  if (left() || silent || stuck)
    fail_msg("%s: %d objects left, %u failures without a message, %u times "
             "not done the second time: %s",
             wish, left(), silent, stuck, hidet_messages());
  return happened;
}

static void (*const flows[])(void) = {run_model, run_plan};

// All calls of a row's function, each in a run of its own; how many they are.
static unsigned fail_calls(size_t row) {
  unsigned total = 0;
  for (int i = 0; i < 2; i++)
    for (int n = 1; fail_call(flows[i], rows[row].name, n, 999); n++, total++)
      if (rows[row].told && !failures)
        fail_msg("nobody was told that call %d of %s failed", n,
                 rows[row].name);
  if (!total)
    fail_msg("%s is not called", rows[row].name);
  return total;
}

static void every_call_fails_in_turn(void **state) {
  (void)state;
  if (!getenv("HIDET_TEST_FAULTS"))
    skip();
  said = tmpfile();
  assert_non_null(said);
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  assert_non_null(driver);
  *(void **)&left = dlsym(driver, "fakeCudaLeft");
  *(void **)&calls = dlsym(driver, "fakeCudaCalls");
  *(void **)&find_stream = dlsym(driver, "fakeCudaStream");
  assert_true(left && calls && find_stream);
  for (int i = 0; i < 2; i++) {
    flows[i]();
    assert_int_equal(failures, 0);
    assert_int_equal(left(), 0);
  }
  unsigned total = 0;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    total += fail_calls(i);
  // Out of memory, once: what the session keeps for itself (what comes in and
  // goes out, as one block, and workspaces) is tried again.
  unsigned again = 0;
  for (int n = 1; fail_call(run_model, "cuMemAlloc_v2", n, 2); n++, total++)
    again += !failures;
  assert_true(again >= 2);
  print_message("%u calls failed\n", total);
  dlclose(driver);
  fclose(said);
}

HD_UNIT_TESTS(cmocka_unit_test(every_call_fails_in_turn))
