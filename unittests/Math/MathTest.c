// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures the math library (lib/IR/library) in units of the last place: each
// function is compiled for the simulator and compared with the C library in
// f64, and where that says that an error is larger than those before, with
// MPFR, whose word is the one that counts.
//
// Takes every HIDET_MATH_STEP-th f32 (default: a sample for CI; 1: all of them,
// which scripts/measure_math.sh asks for), all f16 and bf16, and random f64 and
// pairs. HIDET_MATH_TABLE=FILE appends the results as rows of docs/MATH.md.

#include "CodeGen/CodeGen.h"
#include "IR/Parser.h"
#include "Math/References.h"
#include "Runtime/Sim.h"
#include "Support/Float.h"
#include "TaskMapping/Passes.h"
#include "UnitTest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16 };

// A kernel y[i] = name(x[i]) or name(x[i], z[i]), ready to be called.
typedef struct function {
  const reference_t *row;
  const format_t *format;
  hd_context_t context;
  hd_module_t *module;
  hd_host_code_t *code;
} function_t;

static void fail_with_diagnostics(function_t *f) {
  hd_buffer_t said = {0};
  hd_diagnostics_print(&f->context.diags, false, &said);
  fail_msg("%s of %s: %s", f->row->name, f->format->name,
           hd_buffer_text(&said));
}

static const hd_func_t *lower(function_t *f) {
  const hd_pass_args_t args = {NULL, false};
  const hd_pass_config_t config = {.verify_each = false};
  for (size_t i = 0; i < hd_task_mapping_num_passes; i++) {
    const hd_pass_t *pass = &hd_task_mapping_passes[i];
    if (strcmp(pass->name, "lower") == 0 &&
        !hd_pass_run(f->module, pass, &args, &config).ok)
      fail_with_diagnostics(f);
  }
  return hd_module_find(f->module, "measured", HD_FUNC_KERNEL);
}

static void function_init(function_t *f, const reference_t *row,
                          const format_t *format) {
  *f = (function_t){.row = row, .format = format};
  const char *t = format->name;
  char text[800];
  snprintf(text, sizeof text,
           "kernel measured(n: i32, in x: %s[n], in z: %s[n], out y: %s[n])\n"
           "  grid(ceildiv(n, 256)) block(256)\n{\n"
           "  let i = block * 256 + thread\n"
           "  if i < n {\n    y[i] = %s(x[i]%s)\n  }\n}\n",
           t, t, t, row->name, row->arguments == 2 ? ", z[i]" : "");
  hd_context_init(&f->context);
  f->module = hd_module_parse(&f->context, "math", text, strlen(text), 1);
  if (!f->module)
    fail_with_diagnostics(f);
  const hd_codegen_options_t options = {.target = hd_target_find("host")};
  f->code = hd_host_code_create(f->module, lower(f), &options);
  if (!f->code)
    fail_with_diagnostics(f);
}

static void function_fini(function_t *f) {
  hd_host_code_destroy(f->code);
  hd_module_destroy(f->module);
  hd_context_fini(&f->context);
}

static void call(function_t *f, int32_t n, void *x, void *z, void *y) {
  void *args[] = {&n, &x, &z, &y};
  const hd_sim_kernel_t kernel = {
      .name = "measured",
      .entry = hd_host_code_entry(f->code),
      .coroutine = hd_host_code_is_coroutine(f->code),
      .args = args,
      .grid = {(n + 255) / 256, 1, 1},
      .block = {256, 1, 1},
      .cluster = {1, 1, 1},
  };
  const hd_sim_options_t options = {0};
  // Not an assertion: pool threads cannot jump back into the test.
  if (!hd_sim_launch(&kernel, &options, &f->context.diags, NULL))
    abort();
}

static double value_at(const format_t *f, const void *data, size_t i) {
  const char *at = (const char *)data + i * f->bytes;
  double wide;
  float single;
  uint16_t half;
  switch (f->bytes) {
  case 8:
    memcpy(&wide, at, sizeof wide);
    return wide;
  case 4:
    memcpy(&single, at, sizeof single);
    return (double)single;
  default:
    memcpy(&half, at, sizeof half);
    return (double)(f == &f16_format ? hd_f16_to_f32(half)
                                     : hd_bf16_to_f32(half));
  }
}

typedef struct worst {
  double error, x, z, got;
} worst_t;

// Compares a chunk; most of it against the quick reference alone.
static void judge(const function_t *f, size_t n, const void *x, const void *z,
                  const void *y, worst_t *worst) {
  const reference_t *row = f->row;
  bool exact = f->format->bytes == 8;
  for (size_t i = 0; i < n; i++) {
    double a = value_at(f->format, x, i), got = value_at(f->format, y, i);
    double b = row->arguments == 2 ? value_at(f->format, z, i) : 0;
    if (!exact) {
      double quick = ulp_quick(got, row->quick(a, b), f->format);
      // The C library's own error is below 2^-20 units here.
      if (quick + 1e-6 < worst->error)
        continue;
    }
    double error = ulp_exact(got, a, b, row, f->format);
    if (error > worst->error)
      *worst = (worst_t){error, a, b, got};
  }
}

// A function's inputs: how many, and who writes a chunk of them.
typedef struct sweep sweep_t;
typedef void (*fill_t)(const sweep_t *s, uint64_t first, unsigned n, void *x,
                       void *z);

struct sweep {
  function_t f;
  uint64_t inputs;
  fill_t fill;
  uint64_t step; // Of fill_patterns().
  double promised;
  const char *text;  // For the table.
  worst_t worst[64]; // Of each worker.
  void *buffers[64]; // Likewise: a chunk of arguments and results.
};

static void sweep_piece(void *argument, unsigned piece, unsigned worker) {
  sweep_t *s = argument;
  size_t bytes = (size_t)CHUNK * s->f.format->bytes;
  if (!s->buffers[worker])
    s->buffers[worker] = malloc(3 * bytes);
  char *x = s->buffers[worker], *z = x + bytes, *y = z + bytes;
  uint64_t first = (uint64_t)piece * CHUNK;
  unsigned n =
      (unsigned)(s->inputs - first < CHUNK ? s->inputs - first : CHUNK);
  s->fill(s, first, n, x, z);
  call(&s->f, (int32_t)n, x, z, y);
  judge(&s->f, n, x, z, y, &s->worst[worker]);
}

static void report(const sweep_t *s) {
  const function_t *f = &s->f;
  const worst_t *w = &s->worst[0];
  printf("%-8s %-4s %8.4f units at %.9g", f->row->name, f->format->name,
         w->error, w->x);
  if (f->row->arguments == 2)
    printf(", %.9g", w->z);
  printf(" (gives %.9g)%s\n", w->got,
         w->error > s->promised ? " MORE THAN PROMISED" : "");
  fflush(stdout);
  const char *table = getenv("HIDET_MATH_TABLE");
  FILE *file = table ? fopen(table, "a") : NULL;
  if (file) {
    fprintf(file, "| `%s` | %s | %.3f | %s |\n", f->row->name, f->format->name,
            w->error, s->text);
    fclose(file);
  }
}

// True where the errors are as promised.
static bool sweep(sweep_t *s, const reference_t *row, const format_t *format) {
  function_init(&s->f, row, format);
  bool small = s->inputs < (1 << 23);
  hd_thread_pool_t *pool = hd_thread_pool_create(small ? 1 : 0);
  assert_true(hd_thread_pool_size(pool) <= 64);
  hd_thread_pool_run(pool, (unsigned)((s->inputs + CHUNK - 1) / CHUNK),
                     sweep_piece, s);
  hd_thread_pool_destroy(pool);
  for (unsigned i = 0; i < 64; i++)
    free(s->buffers[i]);
  for (unsigned i = 1; i < 64; i++)
    if (s->worst[i].error > s->worst[0].error)
      s->worst[0] = s->worst[i];
  report(s);
  function_fini(&s->f);
  return s->worst[0].error <= s->promised;
}

// Patterns of up to 32 bits, in steps.
static void fill_patterns(const sweep_t *s, uint64_t first, unsigned n, void *x,
                          void *z) {
  unsigned bytes = s->f.format->bytes;
  for (unsigned i = 0; i < n; i++) {
    uint32_t pattern = (uint32_t)((first + i) * s->step);
    memcpy((char *)x + i * bytes, &pattern, bytes); // Little endian: x86-64.
  }
  memcpy(z, x, (size_t)n * bytes);
}

// Numbers at which functions change their mind; the rest is drawn.
static const double special[] = {0.0,   -0.0,   1.0,        -1.0,      2.0,
                                 -2.0,  0.5,    -0.5,       3.0,       -3.0,
                                 1e-45, -1e-45, INFINITY,   -INFINITY, NAN,
                                 3e38,  -3e38,  16777215.0, 16777216.0};
enum { NUM_SPECIAL = sizeof special / sizeof special[0] };

static uint64_t draw(uint64_t *state) { // splitmix64, by Steele et al., 2014
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

// Half of the draws are any pattern, half lie within +-32, where most
// functions are neither 0 nor infinite.
static void fill_f64(const sweep_t *s, uint64_t first, unsigned n, void *x,
                     void *z) {
  (void)s;
  uint64_t state = first;
  for (unsigned i = 0; i < n; i++) {
    uint64_t bits = draw(&state);
    double value;
    memcpy(&value, &bits, sizeof value);
    if (bits & 1)
      value = ((double)(bits >> 11) * 0x1p-53 - 0.5) * 64;
    if (first == 0 && i < NUM_SPECIAL)
      value = special[i];
    memcpy((char *)x + i * sizeof value, &value, sizeof value);
  }
  memcpy(z, x, n * sizeof(double));
}

// A second argument for which the result is neither too large nor too small:
// for pow, y is cut down so that x^y is in range.
static float draw_second(const reference_t *row, uint64_t *state, float x) {
  uint32_t bits = (uint32_t)draw(state);
  float y;
  memcpy(&y, &bits, sizeof y);
  if (strcmp(row->name, "pow") == 0 && (bits & 3))
    y = (float)((double)(bits >> 2) * 0x1p-30 * 206 - 104) / logf(fabsf(x));
  else if (bits & 1)
    y = ldexpf(x, (int)(bits >> 28) - 8) * (1 + (float)(bits & 0xfff) / 4096);
  return y;
}

static void fill_pairs(const sweep_t *s, uint64_t first, unsigned n, void *x,
                       void *z) {
  float *a = x, *b = z;
  uint64_t state = first;
  for (unsigned i = 0; i < n; i++) {
    uint32_t bits = (uint32_t)draw(&state);
    bits &= draw(&state) & 1 ? 0x7fffffff : UINT32_MAX;
    memcpy(&a[i], &bits, sizeof a[i]);
    if (draw(&state) & 1) // Near 1, where logarithms are small.
      a[i] = 1 + (float)(int32_t)bits * 0x1p-32f;
    b[i] = draw_second(s->f.row, &state, a[i]);
    if (first == 0 && i < NUM_SPECIAL * NUM_SPECIAL) {
      a[i] = (float)special[i / NUM_SPECIAL];
      b[i] = (float)special[i % NUM_SPECIAL];
    }
  }
}

// HIDET_MATH_ONLY=NAME: that function alone.
static bool wanted(const reference_t *row) {
  const char *only = getenv("HIDET_MATH_ONLY");
  return !only || strcmp(only, row->name) == 0;
}

static uint64_t step_of_f32(void) {
  const char *text = getenv("HIDET_MATH_STEP");
  return text ? strtoull(text, NULL, 10) : 4099;
}

static void measures_f32(void **state) {
  (void)state;
  bool ok = true, all = step_of_f32() == 1;
  for (unsigned i = 0; i < NUM_REFERENCES; i++) {
    const reference_t *row = &references[i];
    if (!wanted(row))
      continue;
    sweep_t s = {.promised = row->f32,
                 .fill = fill_patterns,
                 .step = step_of_f32(),
                 .text = all ? "every f32" : "sampled"};
    s.inputs = ((UINT64_C(1) << 32) + s.step - 1) / s.step;
    if (row->arguments == 2) {
      s.fill = fill_pairs;
      s.inputs = (uint64_t)CHUNK * (all ? 4096 : 4);
      s.text = all ? "2^28 pairs" : "sampled";
    }
    ok &= sweep(&s, row, &f32_format);
  }
  assert_true(ok);
}

static void measures_f64(void **state) {
  (void)state;
  bool ok = true, all = step_of_f32() == 1;
  for (unsigned i = 0; i < NUM_REFERENCES; i++) {
    sweep_t s = {.promised = references[i].f64,
                 .fill = fill_f64,
                 .inputs = (uint64_t)CHUNK * (all ? 256 : 1),
                 .text = all ? "2^24 drawn" : "sampled"};
    if (s.promised > 0 && wanted(&references[i]))
      ok &= sweep(&s, &references[i], &f64_format);
  }
  assert_true(ok);
}

// Rounded twice, to f32 and then to half: a little over 1/2.
static void measures_halves(void **state) {
  (void)state;
  static const format_t *const formats[] = {&f16_format, &bf16_format};
  bool ok = true;
  for (unsigned i = 0; i < NUM_REFERENCES; i++)
    for (unsigned j = 0; j < 2; j++) {
      sweep_t s = {.promised = 0.51,
                   .fill = fill_patterns,
                   .step = 1,
                   .inputs = 1 << 16,
                   .text = j == 0 ? "every f16" : "every bf16"};
      if (references[i].half && wanted(&references[i]))
        ok &= sweep(&s, &references[i], formats[j]);
    }
  assert_true(ok);
}

static int set_symbols(void **state) {
  (void)state;
  hd_host_code_set_symbols(hd_sim_symbol);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(measures_f32),
                                     cmocka_unit_test(measures_f64),
                                     cmocka_unit_test(measures_halves)};
  return cmocka_run_group_tests(tests, set_symbols, NULL);
}
