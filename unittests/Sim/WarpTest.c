// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of a warp and PURE functions, against what the PTX manual says.

#include "Warp.h"
#include "IR/Intrinsic.h"
#include "Support/Float.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void fill(fixture_t *x, uint32_t (*value)(uint32_t lane),
                 uint32_t operand) {
  for (uint32_t lane = 0; lane < 32; lane++) {
    x->slots[lane][1] = value(lane);
    x->slots[lane][2] = operand;
  }
}

static uint32_t number(uint32_t lane) { return 1000 + lane; }
static uint32_t third(uint32_t lane) { return lane % 3 == 0; }
static uint32_t mixed(uint32_t lane) { return lane * 2654435761u; }
static uint32_t group(uint32_t lane) { return lane / 5; }

#define CHECK_LANES(expected)                                                  \
  for (uint32_t lane = 0; lane < 32; lane++)                                   \
  assert_int_equal((uint32_t)x.slots[lane][0], (uint32_t)(expected))

static void shuffles_move_values(void **state) {
  (void)state;
  static fixture_t x;
  make_warp(&x, 0);
  for (uint32_t by = 0; by < 32; by++) {
    fill(&x, number, by);
    hd_sim_shfl_xor(&x.warp);
    CHECK_LANES(1000 + (lane ^ by));
    hd_sim_shfl_up(&x.warp);
    CHECK_LANES(1000 + (lane >= by ? lane - by : lane));
    hd_sim_shfl_down(&x.warp);
    CHECK_LANES(1000 + (lane + by < 32 ? lane + by : lane));
    hd_sim_shfl_idx(&x.warp);
    CHECK_LANES(1000 + by);
  }
}

static void votes_see_all_that_take_part(void **state) {
  (void)state;
  static fixture_t x;
  const uint32_t missing[] = {0, 0xfffffffe, 0x49249249, 0xf0f00000};
  for (int i = 0; i < 4; i++) {
    uint32_t mask = 0;
    for (uint32_t lane = 0; lane < 32; lane++)
      if (!(missing[i] >> lane & 1) && lane % 3 == 0)
        mask |= 1u << lane;
    make_warp(&x, missing[i]);
    fill(&x, third, 0);
    hd_sim_ballot(&x.warp);
    CHECK_LANES(x.warp.slots[lane] ? mask : 0);
    hd_sim_vote_any(&x.warp);
    CHECK_LANES(x.warp.slots[lane] && mask != 0);
    hd_sim_vote_all(&x.warp);
    CHECK_LANES(x.warp.slots[lane] && mask == ~missing[i]);
  }
}

static void matches_compare_bits(void **state) {
  (void)state;
  static fixture_t x;
  make_warp(&x, 0);
  fill(&x, group, 0);
  hd_sim_match_any(&x.warp);
  CHECK_LANES(lane < 30 ? 31u << lane / 5 * 5 : 3u << 30);
  hd_sim_match_all(&x.warp);
  CHECK_LANES(0);
  make_warp(&x, 0xffffffe0);
  fill(&x, group, 0);
  hd_sim_match_all(&x.warp);
  CHECK_LANES(lane < 5);
}

static void reductions_take_all(void **state) {
  (void)state;
  static fixture_t x;
  make_warp(&x, 0);
  fill(&x, mixed, 0);
  uint32_t sum = 0, all = ~0u, any = 0, odd = 0, least = ~0u, most = 0;
  int32_t low = INT32_MAX, high = INT32_MIN;
  for (uint32_t lane = 0; lane < 32; lane++) {
    uint32_t v = mixed(lane);
    sum += v, all &= v, any |= v, odd ^= v;
    least = v < least ? v : least, most = v > most ? v : most;
    low = (int32_t)v < low ? (int32_t)v : low;
    high = (int32_t)v > high ? (int32_t)v : high;
  }
  hd_sim_redux_add_i32(&x.warp);
  CHECK_LANES(sum);
  hd_sim_redux_add_u32(&x.warp);
  CHECK_LANES(sum);
  hd_sim_redux_min_i32(&x.warp);
  CHECK_LANES(low);
  hd_sim_redux_min_u32(&x.warp);
  CHECK_LANES(least);
  hd_sim_redux_max_i32(&x.warp);
  CHECK_LANES(high);
  hd_sim_redux_max_u32(&x.warp);
  CHECK_LANES(most);
  hd_sim_redux_and(&x.warp);
  CHECK_LANES(all);
  hd_sim_redux_or(&x.warp);
  CHECK_LANES(any);
  hd_sim_redux_xor(&x.warp);
  CHECK_LANES(odd);
}

// --- PURE functions ---

static void bits_are_counted(void **state) {
  (void)state;
  assert_int_equal(hd_sim_popc_i32(0xf0f00001), 9);
  assert_int_equal(hd_sim_popc_u64(~0ull), 64);
  assert_int_equal(hd_sim_clz_u32(0), 32);
  assert_int_equal(hd_sim_clz_i32(1), 31);
  assert_int_equal(hd_sim_clz_i64(0), 64);
  assert_int_equal(hd_sim_clz_u64(1ull << 40), 23);
  assert_int_equal(hd_sim_ffs_u32(0), 0);
  assert_int_equal(hd_sim_ffs_i32(8), 4);
  assert_int_equal(hd_sim_ffs_u64(1ull << 40), 41);
  assert_int_equal(hd_sim_mulhi_i32(-1, 1), -1);
  assert_int_equal(hd_sim_mulhi_u32(~0u, 2), 1);
  assert_int_equal(hd_sim_mulhi_i64(-1, 5), -1);
  assert_int_equal(hd_sim_mulhi_u64(~0ull, ~0ull), ~0ull - 1);
  // Bytes of a: 10 32 54 76, of b: 98 ba dc fe.
  assert_int_equal(hd_sim_prmt(0x76543210, 0xfedcba98, 0x0617), 0x10dc32fe);
  assert_int_equal(hd_sim_prmt(0x76543210, 0xfedcba98, 0x8c4f), 0x00ff98ff);
  // (1, -2, 127, -128) . (3, 4, 255 or -1, 2)
  assert_int_equal(hd_sim_dp4a_ss(0x807ffe01, 0x02ff0403, 10),
                   10 + 3 - 8 - 127 - 256);
  assert_int_equal(hd_sim_dp4a_su(0x807ffe01, 0x02ff0403, 0),
                   3 - 8 + 127 * 255 - 256);
  assert_int_equal(hd_sim_dp4a_us(0x807ffe01, 0x02ff0403, 0),
                   3 + 254 * 4 - 127 + 256);
  assert_int_equal(hd_sim_dp4a_uu(0x807ffe01, 0x02ff0403, 0),
                   3 + 254 * 4 + 127 * 255 + 256);
}

// fma on halves rounds once: against the f32 unit, which holds the sum exactly
// where the operands are near in size.
static void halves_are_fused(void **state) {
  (void)state;
  srand(1);
  for (int i = 0; i < 200000; i++) {
    uint16_t bits[3];
    for (int j = 0; j < 3; j++)
      bits[j] =
          (uint16_t)(0x3000 + rand() % 0x1800) | (uint16_t)(rand() & 0x8000);
    double exact =
        (double)hd_f16_to_f32(bits[0]) * (double)hd_f16_to_f32(bits[1]) +
        (double)hd_f16_to_f32(bits[2]);
    assert_int_equal(hd_sim_fma_f16(bits[0], bits[1], bits[2]),
                     hd_f16_from_f64(exact));
  }
  // A tie of bf16, broken by an addend too small for f64 to hold beside it.
  // 1.0078125 * 1.5 = 1.51171875 lies halfway between two bf16.
  assert_int_equal(hd_sim_fma_bf16(0x3f81, 0x3fc0, 0x0080), 0x3fc2);
  assert_int_equal(hd_sim_fma_bf16(0x3f81, 0x3fc0, 0x8080), 0x3fc1);
}

static void approximations_are_exact_math(void **state) {
  (void)state;
  assert_true(hd_sim_ex2_approx(3) == 8);
  assert_true(hd_sim_lg2_approx(0.125f) == -3);
  assert_true(hd_sim_rcp_approx(3) == 1.0f / 3);
  assert_true(isinf(hd_sim_rcp_approx(0)));
  assert_true(hd_sim_rsqrt_approx(0.25f) == 2);
  assert_true(hd_sim_sqrt_approx(2) == sqrtf(2));
  assert_true(hd_sim_div_approx(1, 3) == 1.0f / 3);
  assert_true(hd_sim_ex2_approx(-127) == 0x1p-127f);
  assert_true(hd_sim_ex2_approx_ftz(-127) == 0);
  assert_true(hd_sim_lg2_approx_ftz(0x1p-127f) == -INFINITY);
  assert_true(hd_sim_rcp_approx_ftz(-0x1p127f) == 0);
  assert_true(isinf(hd_sim_rsqrt_approx_ftz(0x1p-130f)));
  assert_true(hd_sim_sqrt_approx_ftz(0x1p-130f) == 0);
  assert_true(hd_sim_sin_approx(0) == 0 && hd_sim_cos_approx(0) == 1);
  assert_true(fabsf(hd_sim_tanh_approx(0.5f) - 0.46211716f) < 1e-7f);
  assert_int_equal(hd_sim_ex2_approx_f16(0x4200), 0x4800);
  assert_int_equal(hd_sim_ex2_approx_bf16(0x4040), 0x4100);
  assert_int_equal(hd_sim_ex2_approx_bf16(0xc2fe), 0); // 2^-127
  assert_int_equal(hd_sim_tanh_approx_f16(0x7c00), 0x3c00);
  assert_int_equal(hd_sim_tanh_approx_bf16(0xff80), 0xbf80);
  assert_true(hd_sim_tf32_rna(1 + 0x1p-11f) == 1 + 0x1p-10f);
  assert_true(hd_sim_tf32_rna(1 + 0x1p-12f) == 1);
}

// --- The table ---

static void every_intrinsic_has_its_function(void **state) {
  (void)state;
  unsigned found = 0;
  for (int i = 0; i < HD_INTRINSIC_COUNT; i++) {
    const hd_intrinsic_info_t *info = hd_intrinsic_info((hd_intrinsic_t)i);
    const char *hole = strstr(info->sim, "%t");
    if (strncmp(info->sim, "hd_sim_", 7) != 0)
      continue;
    for (unsigned j = 0; j < (hole ? info->num_types : 1); j++) {
      char name[80];
      hd_type_t type = hole ? info->types[j] : hd_type(HD_VOID);
      if (info->kind == HD_INTRINSIC_PURE)
        type.lanes = 1; // Called once for each lane.
      snprintf(name, sizeof name, "%.*s%s%s",
               hole ? (int)(hole - info->sim) : (int)strlen(info->sim),
               info->sim, hole ? hd_type_name(type) : "", hole ? hole + 2 : "");
      if (!hd_sim_symbol(name))
        print_error("no %s\n", name);
      assert_non_null(hd_sim_symbol(name));
      found++;
    }
  }
  assert_true(found > 150);
  assert_non_null(hd_sim_symbol("hd_sim_frame"));
  assert_null(hd_sim_symbol("hd_sim_launch"));
}

HD_UNIT_TESTS(cmocka_unit_test(shuffles_move_values),
              cmocka_unit_test(votes_see_all_that_take_part),
              cmocka_unit_test(matches_compare_bits),
              cmocka_unit_test(reductions_take_all),
              cmocka_unit_test(bits_are_counted),
              cmocka_unit_test(halves_are_fused),
              cmocka_unit_test(approximations_are_exact_math),
              cmocka_unit_test(every_intrinsic_has_its_function))
