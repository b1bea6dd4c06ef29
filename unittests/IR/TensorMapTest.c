// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps where no tool can lead: addresses, and what is in them. What the
// driver is asked for is seen by test/Runtime/tensor-maps.test.
#include "IR/TensorMap.h"
#include "IR/Text/Parser.h"
#include "UnitTest.h"

#include <string.h>

static const char text[] =
    "kernel k(ld: i32, in a: f16[5, 6, 24] layout(strides(ld * 7, ld, 1)),\n"
    "         in x: f16[3, 20, 30, 64],\n"
    "         map t: a box(1, 8, 16) swizzle(32) l2(128),\n"
    "         map w: x im2col(96, 32, lower = [-1, -2], upper = [-3, 4],\n"
    "                         step = [5, 6]))\n"
    "  grid(1) block(32) {\n"
    "  prefetch_map(t)\n"
    "  prefetch_map(w)\n"
    "}\n";

typedef struct fixture {
  hd_context_t context;
  hd_arena_t arena;
  const hd_func_t *kernel;
  hd_env_t env;
} fixture_t;

static void start(fixture_t *f, int64_t ld) {
  *f = (fixture_t){0};
  hd_context_init(&f->context);
  hd_arena_init(&f->arena, NULL);
  hd_module_t *module =
      hd_module_parse(&f->context, "test.hir", text, strlen(text), 1);
  assert_non_null(module);
  f->kernel = hd_module_find(module, "k", HD_FUNC_KERNEL);
  hd_env_add(&f->arena, &f->env, f->kernel->params[0], (hd_number_t){.i = ld});
}

static void end(fixture_t *f) {
  hd_arena_fini(&f->arena);
  hd_context_fini(&f->context);
}

static bool make(fixture_t *f, uint32_t i, hd_tensor_map_t *map) {
  return hd_tensor_map_make(&f->context.diags, &f->env, f->kernel, i, map);
}

static void a_tiled_map_says_it_all(void **state) {
  (void)state;
  fixture_t f;
  hd_tensor_map_t map;
  start(&f, 32);
  assert_true(make(&f, 0, &map));
  assert_string_equal(map.name, "t");
  assert_string_equal(map.tensor, "a");
  assert_int_equal(map.type, HD_F16);
  assert_int_equal(map.element_bytes, 2);
  assert_int_equal(map.rank, 3);
  assert_false(map.im2col);
  assert_int_equal(map.swizzle, 32);
  assert_int_equal(map.l2, 128);
  static const int64_t sizes[] = {5, 6, 24}, strides[] = {448, 64, 2};
  static const uint32_t box[] = {1, 8, 16};
  assert_memory_equal(map.sizes, sizes, sizeof(sizes));
  assert_memory_equal(map.strides, strides, sizeof(strides));
  assert_memory_equal(map.box, box, sizeof(box));
  // The last element is 4 planes, 5 rows and 23 elements on, and 2 bytes long.
  assert_int_equal(hd_tensor_map_span(&map), 4 * 448 + 5 * 64 + 23 * 2 + 2);
  end(&f);
}

static void an_im2col_map_says_it_all(void **state) {
  (void)state;
  fixture_t f;
  hd_tensor_map_t map;
  start(&f, 32);
  assert_true(make(&f, 1, &map));
  assert_true(map.im2col);
  assert_int_equal(map.pixels, 96);
  assert_int_equal(map.channels, 32);
  static const int64_t strides[] = {76800, 3840, 128, 2};
  static const int32_t lower[] = {-1, -2}, upper[] = {-3, 4}, step[] = {5, 6};
  assert_memory_equal(map.strides, strides, sizeof(strides));
  assert_memory_equal(map.lower, lower, sizeof(lower));
  assert_memory_equal(map.upper, upper, sizeof(upper));
  assert_memory_equal(map.step, step, sizeof(step));
  assert_int_equal(hd_tensor_map_span(&map), 3 * 76800);
  end(&f);
}

static void addresses_are_aligned(void **state) {
  (void)state;
  fixture_t f;
  hd_tensor_map_t map;
  start(&f, 32);
  assert_true(make(&f, 0, &map));
  assert_true(hd_tensor_map_place(&f.context.diags, f.kernel, &map, 0x1010));
  assert_int_equal(map.base, 0x1010);
  assert_int_equal(f.context.diags.num_errors, 0);
  assert_false(hd_tensor_map_place(&f.context.diags, f.kernel, &map, 0x1008));
  assert_int_equal(f.context.diags.first->code, HD_E0611);
  end(&f);
}

static void strides_are_aligned(void **state) {
  (void)state;
  fixture_t f;
  hd_tensor_map_t map;
  start(&f, 28); // 56 bytes.
  assert_false(make(&f, 0, &map));
  assert_int_equal(f.context.diags.first->code, HD_E0611);
  assert_true(make(&f, 1, &map)); // It has nothing to do with ld.
  end(&f);
}

HD_UNIT_TESTS(cmocka_unit_test(a_tiled_map_says_it_all),
              cmocka_unit_test(an_im2col_map_says_it_all),
              cmocka_unit_test(addresses_are_aligned),
              cmocka_unit_test(strides_are_aligned))
