// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device's memory from the host program: everything comes from there, goes
// back there, with the sizes that were asked for, and where there is none left
// the call says so and nothing is lost.
#include "World.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "graph main(x: f32[n, 8], w: f32[8, 8]) -> y {\n"
                           "  h = matmul(x, w)\n"
                           "  y = softmax(h) { s = 1 }\n"
                           "}\n";

static const char sum[] = "graph main(x: f32[n, 8], w: f32[8]) -> y {\n"
                          "  y = add(x, w)\n"
                          "}\n";

typedef struct pool {
  atomic_size_t bytes, blocks, calls;
  size_t most; // Calls that are served.
} pool_t;

// "cuda" is for a driver that runs nothing (test/Runtime/allocator.test).
static const char *device_name(void) {
  const char *wanted = getenv("HIDET_TEST_ALLOCATOR");
  return wanted ? wanted : "sim";
}

static bool runs_nothing(void) { return strcmp(device_name(), "sim") != 0; }

static void *allocate(void *argument, size_t bytes) {
  pool_t *pool = argument;
  if (pool->calls++ >= pool->most)
    return NULL;
  pool->bytes += bytes;
  pool->blocks++;
  return aligned_alloc(256, (bytes + 255) / 256 * 256);
}

static void release(void *argument, void *address, size_t bytes) {
  pool_t *pool = argument;
  pool->bytes -= bytes;
  pool->blocks--;
  free(address);
}

// pool NULL: the device has memory of its own.
static void begin(world_t *w, const char *device, pool_t *pool,
                  const char *graph) {
  *w = (world_t){0};
  world_open(w, device);
  if (pool)
    assert_int_equal(
        hidet_device_set_allocator(w->device, allocate, release, pool),
        HIDET_OK);
  world_load(w, graph);
}

// How a run ends, with so many calls of the allocator served.
static hidet_status_t run(pool_t *pool) {
  world_t w;
  begin(&w, device_name(), pool, text);
  float x[4 * 8] = {0}, weights[8 * 8] = {0};
  hidet_array_t in[2] = {{"f32", 2, {4, 8}, x}, {"f32", 2, {8, 8}, weights}},
                out;
  hidet_status_t status = hidet_session_run(w.session, in, 2, &out, 1);
  if (status == HIDET_OK)
    for (int i = 0; i < 4 * 8 && !runs_nothing(); i++)
      assert_float_equal(((const float *)out.data)[i], 0.125f, 0);
  else
    assert_non_null(
        strstr(hidet_messages(), runs_nothing() ? "E0605" : "has none left"));
  assert_int_equal(
      hidet_device_set_allocator(w.device, allocate, release, pool),
      HIDET_USAGE);
  world_end(&w);
  assert_int_equal(pool->bytes, 0);
  assert_int_equal(pool->blocks, 0);
  return status;
}

static void all_comes_and_goes(void **state) {
  (void)state;
  pool_t pool = {.most = SIZE_MAX};
  assert_int_equal(run(&pool), HIDET_OK);
  size_t calls = pool.calls;
  assert_true(calls >= 2); // Workspaces, and what comes in and goes out.
  for (size_t most = 0; most < calls; most++) {
    pool_t short_pool = {.most = most};
    assert_int_equal(run(&short_pool), HIDET_RESOURCE);
  }
}

// Answers that say which row of which run they are of: x + w, element by
// element.
static void run_rows(hidet_session_t *session, int64_t n, float first) {
  enum { MOST = 64 };
  float x[MOST * 8], w[8];
  for (int i = 0; i < n * 8; i++)
    x[i] = first + (float)i;
  for (int i = 0; i < 8; i++)
    w[i] = (float)(1000 * i);
  hidet_array_t in[2] = {{"f32", 2, {n, 8}, x}, {"f32", 1, {8}, w}}, out;
  if (hidet_session_run(session, in, 2, &out, 1))
    fail_msg("%s", hidet_messages());
  for (int i = 0; i < n * 8 && !runs_nothing(); i++)
    assert_float_equal(((const float *)out.data)[i],
                       first + (float)i + (float)(1000 * (i % 8)), 0);
}

// What comes in and goes out is in the same memory for all sizes, which grows
// with the largest alone.
static void sizes_share_memory(void **state) {
  (void)state;
  pool_t pool = {.most = SIZE_MAX};
  world_t w;
  begin(&w, device_name(), &pool, sum);
  for (int64_t n = 1; n <= 20; n += 3) // Each moves those before.
    run_rows(w.session, n, (float)n);
  run_rows(w.session, 60, 7);
  size_t bytes = pool.bytes;
  assert_in_range(bytes, 2 * 60 * 32, 3 * 60 * 32);
  for (int round = 0; round < 2; round++)
    for (int64_t n = 1; n < 60; n += 4)
      run_rows(w.session, n, (float)(n * round));
  assert_int_equal(pool.bytes, bytes);
  world_end(&w);
  assert_int_equal(pool.bytes, 0);
}

// What the device gave before it was set goes back to the device.
static void nothing_else_is_released(void **state) {
  (void)state;
  pool_t pool = {.most = SIZE_MAX};
  const int64_t none[] = {0};
  hidet_context_t *context = hidet_context_create();
  hidet_device_t *device;
  hidet_tensor_t *empty;
  assert_int_equal(hidet_device_open(context, device_name(), &device),
                   HIDET_OK);
  assert_int_equal(hidet_tensor_create(device, "f32", none, 1, &empty),
                   HIDET_OK);
  assert_int_equal(hidet_device_set_allocator(device, allocate, release, &pool),
                   HIDET_USAGE);
  hidet_tensor_destroy(empty);
  assert_int_equal(hidet_device_set_allocator(device, allocate, release, &pool),
                   HIDET_OK);
  assert_int_equal(hidet_tensor_create(device, "f32", none, 1, &empty),
                   HIDET_OK);
  assert_int_equal(pool.blocks, 1);
  hidet_tensor_destroy(empty);
  assert_int_equal(pool.blocks, 0);
  hidet_device_close(device);
  hidet_context_destroy(context);
}

// The sanitizer knows what of that memory came in.
static void sizes_are_sanitized(void **state) {
  (void)state;
  world_t w;
  begin(&w, "sim:sanitize", NULL, sum);
  run_rows(w.session, 20, 1);
  run_rows(w.session, 4, 2);
  run_rows(w.session, 60, 3);
  world_end(&w);
}

HD_UNIT_TESTS(cmocka_unit_test(nothing_else_is_released),
              cmocka_unit_test(all_comes_and_goes),
              cmocka_unit_test(sizes_share_memory),
              cmocka_unit_test(sizes_are_sanitized))
