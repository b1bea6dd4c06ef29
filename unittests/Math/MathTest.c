// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures the math library (lib/IR/library) in units of the last place: each
// function is compiled for the simulator, applied to a chunk of arguments at a
// time, and compared with MPFR, whose word is the one that counts.
//
// MPFR takes microseconds a value. So f32 and less are compared with the C
// library's f64 first, which has 2^-29 units of f32 in its last place and
// states errors of a few of these; MPFR is then asked about the WORST values
// of each chunk, and about as many drawn ones. There the two must agree within
// 2^-20 units: that shows that the quick reference sorts rightly, so that no
// value can be worse than the worst found by more than 2^-19 units, which the
// table's figures include. f64 is all MPFR.
//
// Takes every HIDET_MATH_STEP-th f32 (default: a sample for CI; 1: all of them,
// which scripts/measure_math.sh asks for), all f16 and bf16, and drawn f64 and
// pairs. HIDET_MATH_ONLY=NAME: that function alone. HIDET_MATH_TABLE=FILE
// appends the results as rows of docs/MATH.md.

#include "Math/Batch.h"
#include "Math/Inputs.h"
#include "Math/References.h"
#include "Math/Ulp.h"
#include "Sim/Sim.h"
#include "UnitTest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  CHUNK = 1 << 20,
  PIECE = 1 << 12, // That the quick reference takes at once.
  WORST = 512,
  BUCKETS = 4096, // Of errors, EACH of a unit wide; the last takes the rest.
  EACH = 512,
  MAX_WORKERS = 64,
};
static const double agreement = 0x1p-20; // Units.

typedef struct worker {
  char *x, *z, *y; // A chunk.
  float *errors;
  double worst, worst_x, worst_z, worst_got;
  double filter; // The quick reference's largest distance from MPFR, in units.
  uint64_t asked;
} worker_t;

typedef struct sweep {
  const reference_t *row;
  const format_t *format;
  double promised;
  fill_t fill;
  uint64_t inputs, step;
  uint32_t chunk;
  const char *text; // For the table.
  bool coarse;      // Not the function, but what is within 2^-13 of it.
  batch_t batch;
  worker_t workers[MAX_WORKERS];
} sweep_t;

static double argument(const sweep_t *s, const char *data, uint32_t i) {
  return value_of(s->format, data + (size_t)i * s->format->bytes);
}

// Asks MPFR about a value.
static void judge(const sweep_t *s, worker_t *w, uint32_t i) {
  double a = argument(s, w->x, i), b = argument(s, w->z, i);
  double got = argument(s, w->y, i), quick;
  mpfr_t x, z, want, distance;
  mpfr_inits2(PRECISION, x, z, want, distance, (mpfr_ptr)0);
  mpfr_set_d(x, a, MPFR_RNDN);
  mpfr_set_d(z, b, MPFR_RNDN);
  s->row->exact(want, x, z);
  double error = ulp_error_exact(got, want, s->format);
  if (!(error <= w->worst)) {
    w->worst = error;
    w->worst_x = a;
    w->worst_z = b;
    w->worst_got = got;
  }
  w->asked++;
  if (s->format->bytes < 8) {
    s->row->quick(1, &a, &b, &quick);
    double filter = ulp_error_exact(quick, want, s->format);
    // An infinity of f64 and what MPFR gives beyond say the same of f32.
    if (!isfinite(filter) && isinf(got) && fabs(quick) > 1e308)
      filter = 0;
    if (!(filter <= w->filter))
      w->filter = filter;
  }
  mpfr_clears(x, z, want, distance, (mpfr_ptr)0);
}

// Fills w->errors; returns an error that at least WORST values reach, or 0.
static float compare(const sweep_t *s, worker_t *w, uint32_t n) {
  static _Thread_local double x[PIECE], z[PIECE], got[PIECE], want[PIECE];
  static _Thread_local uint32_t count[BUCKETS];
  memset(count, 0, sizeof count);
  for (uint32_t first = 0; first < n; first += PIECE) {
    uint32_t m = n - first < PIECE ? n - first : PIECE;
    size_t offset = (size_t)first * s->format->bytes;
    float *errors = w->errors + first;
    values_of(s->format, m, w->x + offset, x);
    values_of(s->format, m, w->z + offset, z);
    s->row->quick(m, x, z, want);
    values_of(s->format, m, w->y + offset, got);
    ulp_errors(m, got, want, errors, s->format);
    for (uint32_t i = 0; i < m; i++) {
      float scaled = errors[i] * EACH;
      count[scaled < BUCKETS ? (uint32_t)scaled : BUCKETS - 1]++;
    }
  }
  uint32_t bucket = BUCKETS, reached = 0;
  while (bucket > 0 && reached < WORST)
    reached += count[--bucket];
  return (float)bucket / EACH;
}

// The bucket at the limit may hold very many values (where a function is all
// but right): of these, some, and those that are worse than all before.
static void judge_chunk(const sweep_t *s, worker_t *w, uint32_t n,
                        uint64_t first) {
  float limit = compare(s, w, n), above = limit + 1.0F / EACH;
  uint32_t others = 0;
  for (uint32_t i = 0; i < n; i++) {
    float error = w->errors[i];
    if (error >= limit &&
        (error >= above || (double)error > w->worst + agreement ||
         others++ < WORST))
      judge(s, w, i);
  }
  uint64_t state = first;
  for (uint32_t i = 0; i < WORST; i++)
    judge(s, w, (uint32_t)(draw(&state) % n));
}

static void sweep_chunk(void *argument, unsigned piece, unsigned worker) {
  sweep_t *s = argument;
  worker_t *w = &s->workers[worker];
  size_t bytes = (size_t)s->chunk * s->format->bytes;
  if (!w->x) {
    w->x = malloc(3 * bytes + s->chunk * sizeof(float));
    if (!w->x)
      abort();
    w->z = w->x + bytes;
    w->y = w->z + bytes;
    w->errors = (float *)(void *)(w->y + bytes);
  }
  // Not in order: the worst is far from zero, where a function may have very
  // many values that are better, and all alike.
  uint64_t chunks = (s->inputs + s->chunk - 1) / s->chunk;
  uint64_t first = piece * UINT64_C(2654435761) % chunks * s->chunk; // A prime.
  uint64_t rest = s->inputs - first;
  uint32_t n = rest < s->chunk ? (uint32_t)rest : s->chunk;
  s->fill(s->row, s->format, s->step, first, n, w->x, w->z);
  batch_call(&s->batch, (int32_t)n, w->x, w->z, w->y);
  if (s->format->bytes < 8)
    judge_chunk(s, w, n, first);
  else
    for (uint32_t i = 0; i < n; i++)
      judge(s, w, i);
  mpfr_free_cache();
}

static void merge(worker_t *into, const worker_t *from) {
  if (from->worst > into->worst) {
    into->worst = from->worst;
    into->worst_x = from->worst_x;
    into->worst_z = from->worst_z;
    into->worst_got = from->worst_got;
  }
  into->filter = fmax(into->filter, from->filter);
  into->asked += from->asked;
}

static bool report(const sweep_t *s, double seconds) {
  const worker_t *w = &s->workers[0];
  bool good = w->worst <= s->promised, agree = w->filter <= agreement;
  printf("%-9s %-6s %7.4f units at %.9g", s->row->name,
         s->coarse ? "coarse" : s->format->name, w->worst, w->worst_x);
  if (s->row->arguments == 2)
    printf(", %.9g", w->worst_z);
  printf(" (gives %.9g); %.0e values, MPFR asked of %.0e, %.1e units from the "
         "quick reference; %.1f s%s%s\n",
         w->worst_got, (double)s->inputs, (double)w->asked, w->filter, seconds,
         good ? "" : " MORE THAN PROMISED",
         agree ? "" : " THE REFERENCES DISAGREE");
  fflush(stdout);
  const char *table = getenv("HIDET_MATH_TABLE");
  FILE *file = table && !s->coarse ? fopen(table, "a") : NULL;
  if (file) {
    // Upwards: the error is at most what the table says. The quick reference
    // may have taken for better by `agreement` what is worse by as much.
    fprintf(file, "| `%s` | %s | %.3f | %s |\n", s->row->name, s->format->name,
            ceil((w->worst + 2 * agreement) * 1000) / 1000, s->text);
    fclose(file);
  }
  return good && agree;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// True where the errors are as promised.
static bool sweep(sweep_t *s) {
  double start = now();
  char name[32];
  snprintf(name, sizeof name, "%s%s", s->row->name, s->coarse ? "_coarse" : "");
  batch_init(&s->batch, name, s->format->name, s->row->arguments);
  unsigned chunks = (unsigned)((s->inputs + s->chunk - 1) / s->chunk);
  hd_thread_pool_t *pool = hd_thread_pool_create(chunks == 1 ? 1 : 0);
  assert_true(hd_thread_pool_size(pool) <= MAX_WORKERS);
  hd_thread_pool_run(pool, chunks, sweep_chunk, s);
  hd_thread_pool_destroy(pool);
  for (unsigned i = 0; i < MAX_WORKERS; i++) {
    free(s->workers[i].x);
    if (i > 0)
      merge(&s->workers[0], &s->workers[i]);
  }
  batch_fini(&s->batch);
  return report(s, now() - start);
}

static bool wanted(const reference_t *row) {
  const char *only = getenv("HIDET_MATH_ONLY");
  return !only || strcmp(only, row->name) == 0;
}

static uint64_t step_of_f32(void) {
  const char *text = getenv("HIDET_MATH_STEP");
  uint64_t step = text ? strtoull(text, NULL, 10) : 4099;
  return step ? step : 1;
}

static void measures_f32(void **state) {
  (void)state;
  bool ok = true, all = step_of_f32() == 1;
  for (unsigned i = 0; i < num_references; i++) {
    const reference_t *row = &references[i];
    sweep_t s = {.row = row,
                 .format = &f32_format,
                 .promised = row->f32,
                 .fill = fill_patterns,
                 .step = step_of_f32(),
                 .chunk = CHUNK,
                 .text = all ? "every f32" : "sampled"};
    s.inputs = ((UINT64_C(1) << 32) + s.step - 1) / s.step;
    if (row->arguments == 2) {
      s.fill = fill_pairs;
      s.inputs = (uint64_t)CHUNK / 4 * (all ? 4096 : 1);
      s.text = all ? "2^30 pairs" : "sampled";
    }
    if (wanted(row))
      ok &= sweep(&s);
  }
  assert_true(ok);
}

// In units of f32, of f16's subnormals in those of its least normal.
static void measures_coarse(void **state) {
  (void)state;
  bool ok = true;
  format_t format = f32_format;
  format.least = f16_format.least;
  for (unsigned i = 0; i < num_references; i++) {
    const reference_t *row = &references[i];
    sweep_t s = {.row = row,
                 .format = &format,
                 .promised = row->coarse,
                 .fill = fill_patterns,
                 .step = step_of_f32(),
                 .chunk = CHUNK,
                 .coarse = true};
    s.inputs = ((UINT64_C(1) << 32) + s.step - 1) / s.step;
    if (row->coarse > 0 && wanted(row))
      ok &= sweep(&s);
  }
  assert_true(ok);
}

static void measures_f64(void **state) {
  (void)state;
  bool ok = true, all = step_of_f32() == 1;
  for (unsigned i = 0; i < num_references; i++) {
    const reference_t *row = &references[i];
    bool two = row->arguments == 2;
    sweep_t s = {.row = row,
                 .format = &f64_format,
                 .promised = row->f64,
                 .fill = two ? fill_pairs : fill_f64,
                 .inputs = all ? 1 << 22 : 1 << 15,
                 .chunk = 1 << 14,
                 .text = !all  ? "sampled"
                         : two ? "2^22 pairs"
                               : "2^22 drawn"};
    if (s.promised > 0 && wanted(row))
      ok &= sweep(&s);
  }
  assert_true(ok);
}

// Rounded twice, to f32 and then to half: a little over 1/2.
static void measures_halves(void **state) {
  (void)state;
  static const format_t *const formats[] = {&f16_format, &bf16_format};
  bool ok = true, all = step_of_f32() == 1;
  for (unsigned j = 0; j < 2; j++)
    for (unsigned i = 0; i < num_references; i++) {
      const reference_t *row = &references[i];
      sweep_t s = {.row = row,
                   .format = formats[j],
                   .promised = 0.51,
                   .fill = fill_patterns,
                   .step = 1,
                   .inputs = 1 << 16,
                   .chunk = 1 << 16,
                   .text = j == 0 ? "every f16" : "every bf16"};
      if (row->arguments == 2) {
        s.fill = fill_pairs;
        s.inputs = all ? 1 << 28 : 1 << 16;
        s.chunk = all ? CHUNK : 1 << 16;
        s.text = all ? "2^28 pairs" : "sampled";
      }
      if (wanted(row))
        ok &= sweep(&s);
    }
  assert_true(ok);
}

static int set_symbols(void **state) {
  (void)state;
  hd_host_code_set_symbols(hd_sim_symbol);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(measures_f32), cmocka_unit_test(measures_coarse),
      cmocka_unit_test(measures_f64), cmocka_unit_test(measures_halves)};
  return cmocka_run_group_tests(tests, set_symbols, NULL);
}
