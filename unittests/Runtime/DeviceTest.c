// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What devices share, on one that does nothing; and the simulator's memory.
#include "Runtime/Device.h"
#include "UnitTest.h"

#include <stdlib.h>
#include <string.h>

typedef struct stub_kernel {
  hd_kernel_t base;
} stub_kernel_t;

static unsigned num_loaded, load_at_most;

static void unload(hd_device_t *device, hd_kernel_t *kernel) {
  (void)device;
  num_loaded--;
  free(kernel);
}

static bool load(hd_device_t *device, const hd_func_t *const *funcs,
                 const hd_code_t *codes, unsigned count, hd_kernel_t **kernels,
                 hd_failure_t *failures) {
  (void)device, (void)funcs, (void)codes, (void)failures;
  for (unsigned i = 0; i < count; i++) {
    assert_null(kernels[i]);
    if (i == load_at_most)
      return false;
    kernels[i] = calloc(1, sizeof(stub_kernel_t));
    num_loaded++;
  }
  return true;
}

static const hd_device_ops_t ops = {
    .kind = "stub", .load = load, .unload = unload};

static void accounts_for_memory(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  hd_device_options_t options = {0};
  hd_device_t *d = hd_device_create(sizeof(*d), &ops, &context, &options);
  hd_memory_t was;
  assert_non_null(hd_device_remember(d, 0x1000, 100));
  assert_non_null(hd_device_remember(d, 0x2000, 30));
  assert_int_equal(d->bytes, 130);
  assert_true(hd_device_forget(d, 0x1000, &was));
  assert_int_equal(was.bytes, 100);
  assert_int_equal(d->bytes, 30);
  assert_false(hd_device_forget(d, 0x1000, &was));
  assert_non_null(hd_device_remember(d, 0x3000, 90));
  assert_int_equal(d->bytes, 120);
  assert_int_equal(d->peak_bytes, 130); // Not 220.
  assert_int_equal(hd_device_find(d, 0x2000)->bytes, 30);
  assert_null(hd_device_find(d, 0x1000));
  assert_true(hd_device_forget(d, 0x2000, &was));
  assert_true(hd_device_forget(d, 0x3000, &was));
  assert_int_equal(d->bytes, 0);
  free(d);
  hd_context_fini(&context);
}

static void loads_all_or_none(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  hd_device_options_t options = {0};
  hd_device_t *d = hd_device_create(sizeof(*d), &ops, &context, &options);
  hd_kernel_t *kernels[3];
  const hd_func_t func = {.name = "f"}, *funcs[3] = {&func, &func, &func};
  d->info.target = hd_target_find("sm_80");
  memset(kernels, 0xff, sizeof(kernels));
  load_at_most = 2;
  assert_false(hd_device_load(d, funcs, NULL, 3, kernels, NULL));
  assert_int_equal(num_loaded, 0);
  assert_null(kernels[0]);
  load_at_most = 3;
  assert_true(hd_device_load(d, funcs, NULL, 3, kernels, NULL));
  assert_int_equal(num_loaded, 3);
  for (int i = 0; i < 3; i++)
    unload(d, kernels[i]);
  free(d);
  hd_context_fini(&context);
}

// The simulator's memory is the host's: it counts against the limit until it is
// freed, with the bits that the sanitizer keeps of it.
static void sim_gives_memory_back(void **state) {
  (void)state;
  for (int sanitize = 0; sanitize < 2; sanitize++) {
    hd_context_t context;
    hd_context_init(&context);
    context.budget.bytes_limit = 10000;
    hd_device_options_t options = {.sanitize = sanitize, .threads = 1};
    hd_device_t *d = hd_device_open_sim(&context, &options);
    hd_address_t a, b;
    for (int i = 0; i < 3; i++) {
      assert_true(d->ops->alloc(d, "a", 8000, &a));
      assert_int_equal(context.budget.bytes_used, sanitize ? 9001 : 8000);
      assert_false(d->ops->alloc(d, "b", 3000, &b));
      d->ops->free(d, a);
      assert_int_equal(context.budget.bytes_used, 0);
    }
    assert_int_equal(d->peak_bytes, 8000);
    assert_true(d->ops->alloc(d, "a", 8000, &a));
    hd_device_close(d); // What is left goes with it.
    assert_int_equal(context.budget.bytes_used, 0);
    hd_context_fini(&context);
  }
}

HD_UNIT_TESTS(cmocka_unit_test(accounts_for_memory),
              cmocka_unit_test(loads_all_or_none),
              cmocka_unit_test(sim_gives_memory_back))
