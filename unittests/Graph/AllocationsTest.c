// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every allocation of the library's own fails in turn: a small residual network
// goes from its ONNX file to an answer on the simulator. Each time the answer
// is right or an error is returned, and nothing is left behind. (What LLVM and
// the C library allocate for themselves does not fail.)
//
// All of them take minutes: HIDET_TEST_ALLOCATIONS=N takes every N-th, by
// default 7, from HIDET_TEST_FIRST on; HIDET_TEST_VERBOSE=1 says which they
// are. A turn is a process of its own, so that one that ends it is told by its
// number.
#include "OnnxWriter.h"
#include "UnitTest.h"

#include <execinfo.h>
#include <hidet/Session.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// --- Allocations ---

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *block);

enum { MOST_BLOCKS = 1 << 16, FRAMES = 24 };

// What is there, by address; tombstones are blocks at `gone`.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  void *block, *frames[FRAMES];
  int num_frames; // Of who asked for it, where that is wanted.
  long turn;
} blocks[MOST_BLOCKS];
static bool verbose, bounded;
static long turn;
static char gone;
static long num_blocks, num_calls, failing; // failing: the call; 0: none.

static size_t hash_of(const void *block) {
  return ((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 44;
}

static void *note(void *block) {
  if (!block)
    return NULL;
  pthread_mutex_lock(&lock);
  size_t at = hash_of(block) % MOST_BLOCKS;
  while (blocks[at].block && blocks[at].block != &gone)
    at = (at + 1) % MOST_BLOCKS;
  blocks[at].block = block;
  blocks[at].turn = turn;
  blocks[at].num_frames = verbose ? backtrace(blocks[at].frames, FRAMES) : 0;
  num_blocks++;
  pthread_mutex_unlock(&lock);
  return block;
}

static void forget(const void *block) {
  pthread_mutex_lock(&lock);
  size_t at = hash_of(block) % MOST_BLOCKS;
  while (blocks[at].block && blocks[at].block != block)
    at = (at + 1) % MOST_BLOCKS;
  if (blocks[at].block) { // Else it is somebody else's.
    blocks[at].block = &gone;
    num_blocks--;
  }
  pthread_mutex_unlock(&lock);
}

// Who asked for what is left of a turn.
static void print_left(void) {
  for (size_t at = 0; at < MOST_BLOCKS; at++)
    if (blocks[at].block && blocks[at].block != &gone && blocks[at].turn) {
      fprintf(stderr, "left:\n");
      backtrace_symbols_fd(blocks[at].frames, blocks[at].num_frames,
                           STDERR_FILENO);
    }
}

static void print_stack(void) {
  void *frames[40];
  backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
}

static bool fails(void) {
  pthread_mutex_lock(&lock);
  bool is_it = ++num_calls == failing;
  pthread_mutex_unlock(&lock);
  if (is_it && verbose)
    print_stack();
  return is_it;
}

void *__wrap_malloc(size_t size) {
  return fails() ? NULL : note(__real_malloc(size));
}
void *__wrap_calloc(size_t count, size_t size) {
  return fails() ? NULL : note(__real_calloc(count, size));
}
void *__wrap_realloc(void *old, size_t size) {
  if (fails())
    return NULL;
  void *block = __real_realloc(old, size);
  if (block && old)
    forget(old);
  return note(block);
}
char *__wrap_strdup(const char *text) {
  return fails() ? NULL : note(__real_strdup(text));
}
void *__wrap_aligned_alloc(size_t align, size_t size) {
  return fails() ? NULL : note(__real_aligned_alloc(align, size));
}
void __wrap_free(void *block) {
  if (block)
    forget(block);
  __real_free(block);
}

// --- The network ---

enum { IMAGES = 3, CHANNELS = 2, SIDE = 5, ELEMENTS = CHANNELS * SIDE * SIDE };

static char path[64];

static float weight_at(int layer, int o, int c, int tap) {
  return (float)((layer * 5 + o * 3 + c * 7 + tap) % 5 - 2);
}

static void put_weight(hd_buffer_t *graph, const char *name, int layer) {
  const int64_t dims[] = {CHANNELS, CHANNELS, 3, 3, -1};
  float values[CHANNELS * CHANNELS * 9];
  for (int i = 0; i < CHANNELS * CHANNELS * 9; i++)
    values[i] = weight_at(layer, i / 9 / CHANNELS, i / 9 % CHANNELS, i % 9);
  hd_buffer_t tensor = make_tensor(name, 1, dims);
  put_bytes(&tensor, 9, values, sizeof(values));
  put_message(graph, 5, &tensor);
}

static void put_node(hd_buffer_t *graph, const char *op, const char *inputs,
                     const char *outputs) {
  hd_buffer_t node = make_node(op, inputs, outputs), pads = {0};
  if (strcmp(op, "Conv") == 0) {
    put_text(&pads, 1, "pads");
    for (int i = 0; i < 4; i++)
      put_int(&pads, 8, 1);
    put_int(&pads, 20, 7); // Integers.
    put_message(&node, 5, &pads);
  }
  put_message(graph, 1, &node);
}

static void write_model(void) {
  const int64_t dims[] = {-1, CHANNELS, SIDE, SIDE, -9};
  hd_buffer_t graph = {0}, model;
  put_node(&graph, "Conv", "x,v", "a");
  put_node(&graph, "Relu", "a", "b");
  put_node(&graph, "Conv", "b,w", "c");
  put_node(&graph, "Add", "c,x", "d");
  put_node(&graph, "Relu", "d", "y");
  put_text(&graph, 2, "main");
  put_weight(&graph, "v", 0);
  put_weight(&graph, "w", 1);
  hd_buffer_t in = make_value_info("x", 1, dims);
  hd_buffer_t out = make_value_info("y", 1, dims);
  put_message(&graph, 11, &in);
  put_message(&graph, 12, &out);
  model = make_model(&graph, 17);
  snprintf(path, sizeof(path), "/tmp/hidet-allocations-%d.onnx", (int)getpid());
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(model.data, 1, model.size, file), model.size);
  fclose(file);
  hd_buffer_fini(&model);
}

static void convolve(int layer, const float *x, float *y) {
  for (int i = 0; i < ELEMENTS; i++) {
    int o = i / SIDE / SIDE, row = i / SIDE % SIDE, column = i % SIDE;
    y[i] = 0;
    for (int k = 0; k < CHANNELS * 9; k++) {
      int r = row + k % 9 / 3 - 1, c = column + k % 3 - 1;
      if (r >= 0 && r < SIDE && c >= 0 && c < SIDE)
        y[i] += weight_at(layer, o, k / 9, k % 9) *
                x[(k / 9 * SIDE + r) * SIDE + c];
    }
  }
}

static float x_at(int i) { return (float)(i * 7 % 5 - 2); }

// Whole numbers: every order of the sums is exact.
static bool is_right(const float *y) {
  float x[ELEMENTS], a[ELEMENTS], c[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++)
    x[i] = x_at(i);
  convolve(0, x, a);
  for (int i = 0; i < ELEMENTS; i++)
    a[i] = a[i] < 0 ? 0 : a[i];
  convolve(1, a, c);
  bool right = true;
  for (int n = 0; n < IMAGES * ELEMENTS; n++) {
    int i = n % ELEMENTS;
    right &= y[n] == (c[i] + x[i] < 0 ? 0 : c[i] + x[i]);
  }
  return right;
}

// --- A turn ---

typedef enum outcome { ANSWERED = 40, REPORTED, SILENT, WRONG, LEFT } outcome_t;

// What is reported may be what memory was wanting for: then it is silent.
static outcome_t run_flow(void) {
  float x[IMAGES * ELEMENTS];
  for (int i = 0; i < IMAGES * ELEMENTS; i++)
    x[i] = x_at(i % ELEMENTS);
  hidet_array_t in = {"f32", 4, {IMAGES, CHANNELS, SIDE, SIDE}, x}, out = {0};
  hidet_device_t *device = NULL;
  hidet_module_t *module = NULL;
  hidet_model_t *model = NULL;
  hidet_session_t *session = NULL;
  hidet_context_t *context = hidet_context_create();
  bool ok =
      context && hidet_device_open(context, "sim", &device) == HIDET_OK &&
      hidet_module_import(context, path, &module) == HIDET_OK &&
      hidet_model_create(module, NULL, &model) == HIDET_OK &&
      (!bounded || hidet_model_set_buckets(model, "n", NULL, 0) == HIDET_OK) &&
      hidet_session_create(model, device, &session) == HIDET_OK &&
      hidet_session_run(session, &in, 1, &out, 1) == HIDET_OK;
  outcome_t outcome = ok         ? is_right(out.data) ? ANSWERED : WRONG
                      : !context ? REPORTED
                      : strstr(hidet_messages(), "error[") ? REPORTED
                                                           : SILENT;
  if (outcome == REPORTED && verbose)
    fprintf(stderr, "%ld: %s", failing, hidet_messages());
  hidet_session_destroy(session);
  hidet_model_destroy(model);
  hidet_module_destroy(module);
  hidet_device_close(device);
  hidet_context_destroy(context);
  return outcome;
}

// In a process of its own. After a turn that failed another one answers, and no
// more is left than after two that did not fail.
static int run_turn(long call, long left) {
  pid_t child = fork();
  if (child == 0) {
    long before = num_blocks;
    num_calls = 0;
    turn = failing = call;
    outcome_t outcome = run_flow();
    failing = 0;
    if (outcome != WRONG && run_flow() != ANSWERED)
      outcome = WRONG;
    if (num_blocks - before > left) {
      outcome = LEFT;
      if (verbose)
        print_left();
    }
    _exit(outcome);
  }
  int status = 0;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void fail_in_turn(void) {
  const char *wish = getenv("HIDET_TEST_ALLOCATIONS");
  const char *first = getenv("HIDET_TEST_FIRST");
  long step = wish ? atol(wish) : 7, counts[2] = {0}, wrong = 0;
  verbose = getenv("HIDET_TEST_VERBOSE") != NULL;
  write_model();
  assert_int_equal(run_flow(), ANSWERED);
  // A thread's messages are its own from the first one on.
  assert_int_equal(hidet_device_open(NULL, NULL, NULL), HIDET_USAGE);
  num_calls = 0;
  assert_int_equal(run_flow(), ANSWERED);
  long calls = num_calls;
  long before = num_blocks;
  assert_int_equal(run_flow(), ANSWERED);
  long left = num_blocks - before > 0 ? num_blocks - before : 0;
  assert_int_equal(left, 0);
  for (long n = first ? atol(first) : 1; n <= calls; n += step) {
    int outcome = run_turn(n, left);
    if (outcome == ANSWERED || outcome == REPORTED)
      counts[outcome - ANSWERED]++;
    else
      print_error("call %ld: %s (%d)\n", n,
                  outcome == SILENT  ? "no message"
                  : outcome == WRONG ? "a wrong answer"
                  : outcome == LEFT  ? "something is left"
                                     : "the process ended",
                  outcome);
    wrong += outcome != ANSWERED && outcome != REPORTED;
  }
  unlink(path);
  print_message("of %ld allocations every %ld-th failed: %ld errors, %ld "
                "answers all the same\n",
                calls, step, counts[1], counts[0]);
  assert_int_equal(wrong, 0);
}

static void every_allocation_fails_in_turn(void **state) {
  (void)state;
  fail_in_turn();
}

// The same as one executable for all numbers of images up to a bound.
static void so_they_do_in_buckets(void **state) {
  (void)state;
  bounded = true;
  fail_in_turn();
}

HD_UNIT_TESTS(cmocka_unit_test(every_allocation_fails_in_turn),
              cmocka_unit_test(so_they_do_in_buckets))
