// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host does for an inference: bench_session DEVICE [LAYERS]. A chain
// of small products, one launch each, runs again and again on tensors in the
// device's memory; measured is the time of hidet_session_enqueue(), with the
// same addresses as the run before and with others, and what it allocates.
// Every 64 runs are waited for, untimed: a full queue is not the host's work.
#include <hidet/Session.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 64, SETS = 8, RUNS = 4096, AT_ONCE = 64 };

// --- Allocations, as the C library has them under these names ---

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);

static _Thread_local unsigned long allocations;

#define EXPORTED __attribute__((visibility("default")))
EXPORTED void *malloc(size_t bytes) {
  allocations++;
  return __libc_malloc(bytes);
}
EXPORTED void *calloc(size_t count, size_t bytes) {
  allocations++;
  return __libc_calloc(count, bytes);
}
EXPORTED void *realloc(void *memory, size_t bytes) {
  allocations++;
  return __libc_realloc(memory, bytes);
}

// ---

static void require(hidet_status_t status, const char *what) {
  if (status == HIDET_OK)
    return;
  fprintf(stderr, "%s: status %d\n%s", what, (int)status, hidet_messages());
  exit(1);
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static char *make_text(int layers) {
  size_t room = 200 + (size_t)layers * 200, at = 0;
  char *text = malloc(room);
  at += (size_t)snprintf(text, room, "graph main(x: f32[1, %d]) -> t%d {\n",
                         SIZE, layers - 1);
  for (int i = 0; i < layers; i++) {
    char from[20] = "x";
    if (i > 0)
      snprintf(from, sizeof(from), "t%d", i - 1);
    at += (size_t)snprintf(text + at, room - at,
                           "  const w%d: f32[%d, %d] = 0.015625\n"
                           "  t%d: f32[1, %d] = matmul(%s, w%d)\n",
                           i, SIZE, SIZE, i, SIZE, from, i);
  }
  snprintf(text + at, room - at, "}\n");
  return text;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct times {
  double median, p90;
  unsigned long allocations;
} times_t;

// sets: how many tensors are given in turn.
static times_t measure(hidet_session_t *session, const hidet_array_t *in,
                       const hidet_array_t *out, int sets) {
  static double samples[RUNS];
  unsigned long before = 0;
  for (int i = -2 * SETS; i < RUNS; i++) {
    int n = (i + 2 * SETS) % sets;
    if (i == 0)
      before = allocations;
    double start = now_us();
    require(hidet_session_enqueue(session, &in[n], 1, &out[n], 1, NULL),
            "enqueue");
    if (i >= 0)
      samples[i] = now_us() - start;
    if (i % AT_ONCE == 0)
      require(hidet_session_wait(session), "wait");
  }
  times_t times = {.allocations = allocations - before};
  require(hidet_session_wait(session), "wait");
  qsort(samples, RUNS, sizeof(*samples), by_value);
  times.median = samples[RUNS / 2];
  times.p90 = samples[RUNS * 9 / 10];
  return times;
}

// Each element of the input is 1: so is each of the result.
static void check(hidet_tensor_t *result) {
  float y[SIZE];
  require(hidet_tensor_read(result, y), "read");
  for (int i = 0; i < SIZE; i++)
    if (fabsf(y[i] - 1) > 1e-3f) {
      fprintf(stderr, "element %d is %g\n", i, (double)y[i]);
      exit(1);
    }
}

int main(int argc, char **argv) {
  int layers = argc > 2 ? atoi(argv[2]) : 16;
  char *text = make_text(layers);
  hidet_context_t *context = hidet_context_create();
  hidet_device_t *device;
  hidet_module_t *module;
  hidet_model_t *model;
  hidet_session_t *session;
  hidet_tensor_t *tensors[2 * SETS];
  hidet_array_t arrays[2 * SETS];
  const int64_t shape[] = {1, SIZE};
  float ones[SIZE];
  for (int i = 0; i < SIZE; i++)
    ones[i] = 1;
  require(hidet_device_open(context, argc > 1 ? argv[1] : "auto", &device),
          "open");
  require(hidet_module_parse(context, "chain", text, strlen(text), &module),
          "parse");
  require(hidet_model_create(module, NULL, &model), "model");
  require(hidet_session_create(model, device, &session), "session");
  for (int i = 0; i < 2 * SETS; i++) {
    require(hidet_tensor_create(device, "f32", shape, 2, &tensors[i]),
            "tensor");
    require(hidet_tensor_write(tensors[i], ones), "write");
    arrays[i] =
        (hidet_array_t){"f32", 2, {1, SIZE}, hidet_tensor_data(tensors[i])};
  }
  times_t same = measure(session, arrays, arrays + SETS, 1);
  times_t others = measure(session, arrays, arrays + SETS, SETS);
  for (int i = 0; i < SETS; i++)
    check(tensors[SETS + i]);
  printf("{\"device\": \"%s\", \"layers\": %d, \"runs\": %d,\n"
         " \"same_us\": %.2f, \"same_p90_us\": %.2f, \"same_allocations\": "
         "%.3f,\n \"others_us\": %.2f, \"others_p90_us\": %.2f, "
         "\"others_allocations\": %.3f}\n",
         hidet_device_kind(device), layers, RUNS, same.median, same.p90,
         (double)same.allocations / RUNS, others.median, others.p90,
         (double)others.allocations / RUNS);
  hidet_session_destroy(session);
  hidet_model_destroy(model);
  hidet_module_destroy(module);
  for (int i = 0; i < 2 * SETS; i++)
    hidet_tensor_destroy(tensors[i]);
  hidet_device_close(device);
  hidet_context_destroy(context);
  free(text);
  return 0;
}
