// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that embeds Hidet: text in, PTX and a result out.

#include <hidet/Launch.h>
#include <hidet/Session.h>
#include <hidet/Tools.h>
#include <hidet/Version.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "kernel scale(n: i32, alpha: f32, in a: f32[n], out c: f32[n])\n"
    "  grid(ceildiv(n, 64)) block(64)\n"
    "{\n"
    "  let i = block * 64 + thread\n"
    "  if i < n {\n"
    "    c[i] = alpha * a[i]\n"
    "  }\n"
    "}\n";

enum { N = 1000 };

static void check(hidet_context_t *context, hidet_status_t status,
                  hidet_status_t wanted, const char *what) {
  if (status == wanted)
    return;
  fprintf(stderr, "%s: status %d\n%s", what, (int)status, hidet_messages());
  exit(1);
}

static void require(int condition, const char *what) {
  if (condition)
    return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void compile(hidet_context_t *context) {
  hidet_module_t *module;
  char *out;
  check(context,
        hidet_module_parse(context, "scale.hir", text, strlen(text), &module),
        HIDET_OK, "parse");
  check(context, hidet_module_run_pass(module, "simplify", NULL), HIDET_OK,
        "simplify");
  check(context, hidet_module_print(module, &out), HIDET_OK, "print");
  require(strstr(out, "kernel scale(") != NULL, "the module prints");
  hidet_text_free(out);
  check(context, hidet_module_emit(module, "ptx", "sm_90a", "scale", &out),
        HIDET_OK, "emit");
  require(strstr(out, ".entry scale(") != NULL, "the kernel is in the PTX");
  hidet_text_free(out);
  check(context, hidet_module_emit(module, "ptx", "sm_91", NULL, &out),
        HIDET_UNSUPPORTED, "an unknown target");
  require(out == NULL, "no text after an error");
  hidet_module_destroy(module);
}

static const char tiled[] =
    "kernel tiles(m: i32, n: i32, alpha: f32, in x: f16[m, n], out y: f32[n],\n"
    "             map from: x box(16, 64) swizzle(128))\n"
    "  grid(ceildiv(n, 64), m / 16) block(96) cluster(2)\n"
    "{\n"
    "  shared tile: f16[16, 64] layout(swizzle(128)) align(1024)\n"
    "  shared sums: f32[100]\n"
    "  tile[0, thread % 64] = x[0, thread]\n"
    "  sums[thread] = alpha\n"
    "  y[thread] = sums[thread] + f32(tile[0, 0])\n"
    "}\n";

// What whoever launches the PTX must give, worked out by hand.
static void describe(hidet_context_t *context) {
  hidet_module_t *module;
  hidet_launch_t launch;
  hidet_parameter_t parameter;
  hidet_map_t map;
  hidet_argument_t arguments[] = {
      {.integer = 128}, {.integer = 504}, {.real = 0.5}, {0}, {0}};
  check(context,
        hidet_module_parse(context, "tiles.hir", tiled, strlen(tiled), &module),
        HIDET_OK, "parse");
  check(context,
        hidet_module_launch(module, "tiles", arguments, 5, 132, &launch),
        HIDET_OK, "launch");
  require(launch.grid[0] == 8 && launch.grid[1] == 8 && launch.grid[2] == 1 &&
              launch.block[0] == 96 && launch.block[1] == 1 &&
              launch.cluster[0] == 2 && launch.cluster[2] == 1,
          "dimensions");
  require(launch.shared_bytes == 16 * 64 * 2 + 100 * 4, "shared memory");
  require(launch.num_parameters == 6, "five parameters and a map");
  check(context, hidet_module_parameter(module, "tiles", 2, &parameter),
        HIDET_OK, "a scalar");
  require(parameter.kind == HIDET_PARAMETER_SCALAR && parameter.bytes == 4 &&
              strcmp(parameter.name, "alpha") == 0 &&
              strcmp(parameter.type, "f32") == 0,
          "what is known of a scalar");
  check(context, hidet_module_parameter(module, "tiles", 4, &parameter),
        HIDET_OK, "a tensor");
  require(parameter.kind == HIDET_PARAMETER_TENSOR && parameter.bytes == 8 &&
              parameter.is_written,
          "what is known of a tensor");
  check(context, hidet_module_parameter(module, "tiles", 5, &parameter),
        HIDET_OK, "a map");
  require(parameter.kind == HIDET_PARAMETER_MAP && parameter.bytes == 128 &&
              parameter.align == 64 && parameter.tensor == 3 &&
              !parameter.is_written,
          "what is known of a map");
  check(context, hidet_module_parameter(module, "tiles", 6, &parameter),
        HIDET_USAGE, "no parameter");
  check(context, hidet_module_map(module, "tiles", arguments, 5, 5, &map),
        HIDET_OK, "map");
  // CU_TENSOR_MAP_DATA_TYPE_FLOAT16, SWIZZLE_128B, L2_PROMOTION_L2_256B.
  require(!map.is_im2col && map.data_type == 6 && map.swizzle == 3 &&
              map.l2_promotion == 3 && map.rank == 2,
          "kinds of a map");
  require(map.sizes[0] == 504 && map.sizes[1] == 128 &&
              map.strides[0] == 504 * 2 && map.box[0] == 64 &&
              map.box[1] == 16 && map.steps[0] == 1 && map.steps[1] == 1,
          "sizes of a map");
  check(context, hidet_module_map(module, "tiles", arguments, 5, 3, &map),
        HIDET_USAGE, "a tensor is no map");
  arguments[1].integer = 500; // 1000 bytes a row, no multiple of 16.
  check(context, hidet_module_map(module, "tiles", arguments, 5, 5, &map),
        HIDET_INVALID, "a stride that the hardware does not take");
  check(context, hidet_module_launch(module, "tile", arguments, 5, 1, &launch),
        HIDET_USAGE, "no such kernel");
  check(context, hidet_module_launch(module, "tiles", arguments, 4, 1, &launch),
        HIDET_USAGE, "too few arguments");
  hidet_module_destroy(module);
}

static void run(hidet_context_t *context) {
  static float a[N], c[N];
  hidet_module_t *module;
  hidet_device_t *device;
  hidet_tensor_t *in, *result;
  hidet_program_t *program;
  int64_t shape[] = {N};
  check(context,
        hidet_module_parse(context, "scale.hir", text, strlen(text), &module),
        HIDET_OK, "parse");
  check(context, hidet_device_open(context, "cuda:0x", &device), HIDET_USAGE,
        "no such device");
  check(context, hidet_device_open(context, "sim", &device), HIDET_OK, "open");
  require(strcmp(hidet_device_kind(device), "sim") == 0, "the kind of device");
  check(context, hidet_tensor_create(device, "f32", shape, 1, &in), HIDET_OK,
        "tensor");
  check(context, hidet_tensor_create(device, "f32", shape, 1, &result),
        HIDET_OK, "tensor");
  require(hidet_tensor_size(in) == sizeof(a), "the size of a tensor");
  for (int i = 0; i < N; i++)
    a[i] = (float)i;
  check(context, hidet_tensor_write(in, a), HIDET_OK, "write");
  hidet_argument_t arguments[] = {
      {.integer = N}, {.real = 0.5}, {.tensor = in}, {.tensor = result}};
  check(context,
        hidet_program_create(device, module, NULL, arguments, 4, &program),
        HIDET_OK, "program");
  check(context, hidet_program_run(program, arguments, 4), HIDET_OK, "run");
  check(context, hidet_tensor_read(result, c), HIDET_OK, "read");
  for (int i = 0; i < N; i++)
    require(c[i] == 0.5f * (float)i, "the result");
  arguments[1].real = 0.25;
  check(context, hidet_program_run(program, arguments, 4), HIDET_USAGE,
        "another scalar");
  arguments[1].real = 0.5;
  arguments[2].tensor = NULL;
  check(context, hidet_program_run(program, arguments, 4), HIDET_USAGE,
        "a missing tensor");
  hidet_program_destroy(program);
  hidet_tensor_destroy(in);
  hidet_tensor_destroy(result);
  hidet_device_close(device);
  hidet_module_destroy(module);
}

static const char wild[] =
    "kernel wild(n: i32, out c: f32[4]) grid(1) block(32) {\n"
    "  c[thread * n] = 1\n"
    "}\n";

static sigjmp_buf own_fault;

// A program's own handler: faults of kernels are the library's, others its own.
static void on_fault(int number) {
  (void)number;
  hidet_handle_fault();
  siglongjmp(own_fault, 1);
}

// The status of a run of the kernel on a device.
static hidet_status_t run_wild(hidet_context_t *context, const char *name) {
  const int64_t shape[] = {4};
  hidet_module_t *module;
  hidet_device_t *device;
  hidet_tensor_t *c;
  hidet_program_t *program;
  check(context,
        hidet_module_parse(context, "wild.hir", wild, strlen(wild), &module),
        HIDET_OK, "parse");
  check(context, hidet_device_open(context, name, &device), HIDET_OK, "open");
  check(context, hidet_tensor_create(device, "f32", shape, 1, &c), HIDET_OK,
        "tensor");
  hidet_argument_t arguments[] = {{.integer = 1 << 28}, {.tensor = c}};
  check(context,
        hidet_program_create(device, module, NULL, arguments, 2, &program),
        HIDET_OK, "program");
  hidet_status_t status = hidet_program_run(program, arguments, 2);
  hidet_program_destroy(program);
  hidet_tensor_destroy(c);
  hidet_device_close(device);
  hidet_module_destroy(module);
  return status;
}

// Faults of kernels end the kernel, where the program says so.
static void survive(hidet_context_t *context) {
  struct sigaction action = {.sa_handler = on_fault}, before, after;
  sigaction(SIGSEGV, &action, &before);
  for (int i = 0; i < 2; i++) {
    check(context, run_wild(context, "sim"), HIDET_DEVICE, "a wild kernel");
    require(strstr(hidet_messages(), "E0607") != NULL,
            "the message says what has happened");
  }
  volatile int own = 0;
  if (sigsetjmp(own_fault, 1) == 0)
    *(volatile int *)(size_t)8 = 1;
  else
    own = 1;
  require(own, "the program's own fault is its own");
  sigaction(SIGSEGV, &before, &after);
  require(after.sa_handler == on_fault, "the handler is the program's");
  check(context, run_wild(context, "sim:sanitize"), HIDET_INVALID,
        "a wild kernel under checks");
}

static const char model_text[] =
    "graph main(a as \"first\": f32[n, 3], b: f32[3]) -> c, d {\n"
    "  c = onnx14.Mul(a, b)\n"
    "  d = onnx13.ReduceSum(c) { keepdims = 0 }\n"
    "}\n";

static void run_session(hidet_context_t *context, hidet_module_t *module,
                        hidet_device_t *device) {
  static const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 10, 100};
  hidet_model_t *model;
  hidet_session_t *session, *other;
  hidet_value_t value;
  char *text;
  hidet_array_t out[2], more[2];
  hidet_array_t in[] = {{"f32", 2, {2, 3}, a}, {"f32", 1, {3}, b}};
  check(context, hidet_model_create(module, "other", &model), HIDET_USAGE,
        "no such graph");
  check(context, hidet_model_create(module, NULL, &model), HIDET_OK, "model");
  check(context, hidet_model_set_precision(model, "f16x"), HIDET_USAGE,
        "no such precision");
  check(context, hidet_model_set_precision(model, "f32"), HIDET_OK,
        "precision");
  check(context, hidet_session_create(model, device, &session), HIDET_OK,
        "session");
  check(context, hidet_session_create(model, device, &other), HIDET_OK,
        "another session");
  check(context, hidet_model_set_precision(model, "f16"), HIDET_USAGE,
        "the model has sessions");
  check(context, hidet_module_run_pass(module, "simplify", NULL), HIDET_USAGE,
        "the module is a model's");
  check(context, hidet_module_print(module, &text), HIDET_OK,
        "it can be printed");
  hidet_text_free(text);
  require(hidet_model_num_inputs(model) == 2 &&
              hidet_model_num_outputs(model) == 2,
          "two inputs, two outputs");
  hidet_model_input(model, 0, &value);
  require(strcmp(value.name, "first") == 0 && strcmp(value.type, "f32") == 0 &&
              value.rank == 2 && value.shape[0] == -1 && value.shape[1] == 3,
          "what is known of an input");
  for (int rows = 2; rows >= 0; rows--) { // One after the other.
    in[0].shape[0] = rows;
    check(context, hidet_session_run(session, in, 2, out, 2), HIDET_OK, "run");
    float sum = 0;
    require(strcmp(out[0].type, "f32") == 0 && out[0].rank == 2 &&
                out[0].shape[0] == rows && out[0].shape[1] == 3 &&
                out[1].rank == 0,
            "types of results");
    for (int i = 0; i < rows * 3; i++) {
      sum += a[i] * b[i % 3];
      require(((const float *)out[0].data)[i] == a[i] * b[i % 3], "products");
    }
    require(((const float *)out[1].data)[0] == sum, "their sum");
    check(context, hidet_session_run(other, in, 2, more, 2), HIDET_OK,
          "run of another session");
    require(((const float *)more[1].data)[0] == sum, "the same sum");
  }
  require(hidet_model_num_compiled(model, device) == (device ? 3 : 0),
          "each size is compiled once, for both");
  check(context, hidet_session_run(session, in, 1, out, 2), HIDET_USAGE,
        "an input is missing");
  in[0].type = "f64";
  check(context, hidet_session_run(session, in, 2, out, 2), HIDET_USAGE,
        "an input of another type");
  require(strstr(hidet_messages(), "'first'") != NULL && out[0].data == NULL,
          "the message names the input, and there is no result");
  in[0] = (hidet_array_t){"f32", 2, {3, 2}, a};
  check(context, hidet_session_run(session, in, 2, out, 2), HIDET_USAGE,
        "an input of another shape");
  hidet_session_destroy(other);
  hidet_session_destroy(session);
  hidet_model_destroy(model);
  check(context, hidet_module_run_pass(module, "simplify", NULL), HIDET_OK,
        "nobody's module");
}

// Weights that the caller has, in the place of a file that is not there.
static void run_weights(hidet_context_t *context, hidet_device_t *device) {
  static const char given[] =
      "graph main(x: f32[4]) -> y {\n"
      "  const w as \"the.weight\": f32[4] = file(\"none\", 0)\n"
      "  y: f32[4] = add(x, w)\n"
      "}\n";
  static const float w[] = {1, 2, 3, 4}, x[] = {10, 20, 30, 40};
  hidet_module_t *module;
  hidet_model_t *model;
  hidet_session_t *session;
  hidet_array_t in = {"f32", 1, {4}, x}, out;
  check(context,
        hidet_module_parse(context, "w.hir", given, strlen(given), &module),
        HIDET_OK, "parse");
  check(context, hidet_model_create(module, NULL, &model), HIDET_OK, "model");
  check(context, hidet_model_set_weight(model, "w2", w, sizeof(w)), HIDET_USAGE,
        "no such weight");
  check(context, hidet_model_set_weight(model, "the.weight", w, 12),
        HIDET_USAGE, "a weight of another size");
  check(context, hidet_model_set_weight(model, "the.weight", w, sizeof(w)),
        HIDET_OK, "a weight");
  check(context, hidet_session_create(model, device, &session), HIDET_OK,
        "session");
  check(context, hidet_session_run(session, &in, 1, &out, 1), HIDET_OK, "run");
  for (int i = 0; i < 4; i++)
    require(((const float *)out.data)[i] == x[i] + w[i], "x + w");
  hidet_session_destroy(session);
  hidet_model_destroy(model);
  hidet_module_destroy(module);
}

static void run_graph(hidet_context_t *context) {
  hidet_module_t *module;
  hidet_device_t *device;
  check(context,
        hidet_module_parse(context, "model.hir", model_text, strlen(model_text),
                           &module),
        HIDET_OK, "parse");
  check(context, hidet_device_open(context, "sim", &device), HIDET_OK, "open");
  run_session(context, module, NULL);
  run_session(context, module, device);
  run_weights(context, device);
  hidet_device_close(device);
  hidet_module_destroy(module);
}

// A network of the examples, which tells handwritten digits: of a white image
// it must say something.
static void run_model(hidet_context_t *context, const char *path) {
  static const float image[64];
  hidet_model_t *model;
  hidet_session_t *session;
  hidet_value_t value;
  hidet_array_t in = {"f32", 4, {1, 1, 8, 8}, image}, out;
  check(context, hidet_model_load(context, "no.onnx", &model), HIDET_USAGE,
        "a missing file");
  require(model == NULL, "no model after an error");
  check(context, hidet_model_load(context, path, &model), HIDET_OK, "load");
  check(context, hidet_session_create(model, NULL, &session), HIDET_OK,
        "session");
  hidet_model_output(model, 0, &value);
  require(value.name != NULL && value.name[0] != 0, "the name of an output");
  check(context, hidet_session_run(session, &in, 1, &out, 1), HIDET_OK, "run");
  require(out.rank == 2 && out.shape[0] == 1 && out.shape[1] == 10 &&
              ((const float *)out.data)[0] == ((const float *)out.data)[0],
          "a number for each digit");
  hidet_session_destroy(session);
  hidet_model_destroy(model);
}

static void fail(hidet_context_t *context) {
  static const char bad[] = "kernel k() grid(1) block(1) {\n  x = 1\n}\n";
  hidet_module_t *module;
  check(context,
        hidet_module_parse(context, "bad.hir", bad, strlen(bad), &module),
        HIDET_INVALID, "an unknown name");
  require(module == NULL, "no module after an error");
  require(strstr(hidet_messages(),
                 "bad.hir:2:3: error[E0201]: unknown name 'x'") != NULL,
          "the message names the place");
  check(context, hidet_module_parse(context, NULL, "@", 1, &module),
        HIDET_INVALID, "a text without a name");
  char *out;
  check(context, hidet_module_parse(context, NULL, text, strlen(text), &module),
        HIDET_OK, "parse without a name");
  check(context, hidet_module_emit(module, "ptx", NULL, NULL, &out),
        HIDET_USAGE, "no target");
  hidet_module_destroy(module);
  hidet_context_limit(context, 100, 0);
  check(context,
        hidet_module_parse(context, "scale.hir", text, strlen(text), &module),
        HIDET_RESOURCE, "a limit of 100 bytes");
}

// argv[1]: examples/digits/model.onnx
int main(int argc, char **argv) {
  require(argc == 2, "a model is given");
  require(strcmp(hidet_version(), HIDET_VERSION_STRING) == 0,
          "library and headers are of one version");
  hidet_context_t *context = hidet_context_create();
  require(context != NULL, "a context");
  compile(context);
  describe(context);
  run(context);
  survive(context);
  run_graph(context);
  run_model(context, argv[1]);
  fail(context);
  hidet_context_destroy(context);
  char name[] = "hidet-opt", option[] = "--version";
  char *arguments[] = {name, option, NULL};
  return hidet_opt_main(2, arguments);
}
