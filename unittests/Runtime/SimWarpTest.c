// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of a warp and PURE functions, against what the PTX manual says;
// matrix fragments against products written from its tables.

#include "IR/Intrinsic.h"
#include "Runtime/SimState.h"
#include "SimKernel.h"
#include "Support/Float.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// A warp of one block, called as the scheduler does.
typedef struct fixture {
  hd_sim_kernel_t kernel;
  hd_sim_options_t options;
  hd_sim_run_t run;
  hd_sim_worker_t worker;
  hd_sim_resident_t block;
  hd_sim_task_t tasks[32];
  hd_sim_warp_t warp;
  uint64_t slots[32][8];
} fixture_t;

static void make_warp(fixture_t *x, uint32_t missing) {
  memset(x, 0, sizeof *x);
  x->run.kernel = &x->kernel;
  x->run.options = &x->options;
  x->run.num_threads = 32;
  x->worker.run = &x->run;
  x->block.worker = &x->worker;
  x->block.num_threads = 32;
  x->block.threads = x->tasks;
  for (uint32_t lane = 0; lane < 32; lane++) {
    x->tasks[lane].head.block = &x->block.head;
    x->tasks[lane].head.linear = (int32_t)lane;
    if (missing >> lane & 1)
      continue;
    x->warp.threads[lane] = &x->tasks[lane].head;
    x->warp.slots[lane] = x->slots[lane];
  }
}

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

// --- ldmatrix, stmatrix ---

static void (*const loads[2][3])(hd_sim_warp_t *) = {
    {hd_sim_ldmatrix_x1, hd_sim_ldmatrix_x2, hd_sim_ldmatrix_x4},
    {hd_sim_ldmatrix_x1_trans, hd_sim_ldmatrix_x2_trans,
     hd_sim_ldmatrix_x4_trans}};
static void (*const stores[2][3])(hd_sim_warp_t *) = {
    {hd_sim_stmatrix_x1, hd_sim_stmatrix_x2, hd_sim_stmatrix_x4},
    {hd_sim_stmatrix_x1_trans, hd_sim_stmatrix_x2_trans,
     hd_sim_stmatrix_x4_trans}};

// Figure "mma .m8n8 fragment": lane 4 r + c / 2 holds element (r, c) in its
// half c % 2. Matrix j of element (r, c) holds 100 j + 10 r + c.
static void ldmatrix_spreads_rows(void **state) {
  (void)state;
  static fixture_t x;
  static uint16_t memory[32][16] __attribute__((aligned(16)));
  static uint16_t registers[32][8];
  for (int j = 0; j < 4; j++)
    for (int r = 0; r < 8; r++)
      for (int c = 0; c < 8; c++)
        memory[8 * j + r][c] = (uint16_t)(100 * j + 10 * r + c);
  for (int transposed = 0; transposed < 2; transposed++) {
    for (int size = 0; size < 3; size++) {
      make_warp(&x, 0);
      memset(registers, 0xee, sizeof registers);
      for (int lane = 0; lane < 32; lane++) {
        x.slots[lane][0] = bits_of(registers[lane]);
        x.slots[lane][1] = bits_of(memory[lane]);
      }
      loads[transposed][size](&x.warp);
      for (int j = 0; j < 1 << size; j++)
        for (int r = 0; r < 8; r++)
          for (int c = 0; c < 8; c++) {
            uint16_t held = registers[4 * r + c / 2][2 * j + c % 2];
            int wanted = transposed ? 10 * c + r : 10 * r + c;
            assert_int_equal(held, 100 * j + wanted);
          }
      if (size < 2)
        assert_int_equal(registers[5][2 << size], 0xeeee);
    }
  }
}

static void stmatrix_undoes_ldmatrix(void **state) {
  (void)state;
  static fixture_t x;
  static uint16_t memory[32][8] __attribute__((aligned(16)));
  static uint16_t back[32][8] __attribute__((aligned(16)));
  static uint16_t registers[32][8];
  for (int i = 0; i < 256; i++)
    memory[i / 8][i % 8] = (uint16_t)(i * 257);
  for (int transposed = 0; transposed < 2; transposed++) {
    for (int size = 0; size < 3; size++) {
      make_warp(&x, 0);
      memset(back, 0, sizeof back);
      for (int lane = 0; lane < 32; lane++) {
        x.slots[lane][0] = bits_of(registers[lane]);
        x.slots[lane][1] = bits_of(memory[lane]);
      }
      loads[transposed][size](&x.warp);
      for (int lane = 0; lane < 32; lane++) {
        x.slots[lane][0] = bits_of(back[lane]);
        x.slots[lane][1] = 0;
        x.slots[lane][2] = bits_of(registers[lane]);
      }
      stores[transposed][size](&x.warp);
      assert_memory_equal(back, memory, (size_t)(8 << size) * 16);
    }
  }
}

// --- mma ---

typedef enum element {
  F16,
  BF16,
  TF32,
  I8,
  U8,
  E4M3,
  E5M2,
  F32,
  I32,
} element_t;
static const unsigned bytes_of[] = {2, 2, 4, 1, 1, 1, 1, 4, 4};

// Small numbers, so that every sum is exact in whatever order.
static void encode(element_t type, int value, void *to) {
  static const hd_float_format_t formats[] = {
      [F16] = HD_FLOAT_F16,     [BF16] = HD_FLOAT_BF16,
      [TF32] = HD_FLOAT_TF32,   [E4M3] = HD_FLOAT_F8E4M3,
      [E5M2] = HD_FLOAT_F8E5M2, [F32] = HD_FLOAT_F32};
  bool integer = type == I8 || type == U8 || type == I32;
  uint64_t bits = integer ? (uint64_t)(int64_t)value
                          : hd_float_encode(formats[type], value);
  memcpy(to, &bits, bytes_of[type]);
}

// Where the PTX manual puts element i of a lane's fragment. One row of its
// tables each: "Matrix Fragments for mma.m16n8k8", and so on.
typedef struct position {
  int row, column;
} position_t;
typedef position_t (*table_t)(int lane, int i);

#define TABLE(name, r, c)                                                      \
  static position_t name(int lane, int i) {                                    \
    const int groupID = lane >> 2, threadID_in_group = lane % 4;               \
    (void)i;                                                                   \
    return (position_t){r, c};                                                 \
  }
// m16n8k8, .f16 and .bf16
TABLE(a_m16n8k8, i < 2 ? groupID : groupID + 8, threadID_in_group * 2 + (i & 1))
TABLE(b_m16n8k8, threadID_in_group * 2 + i, groupID)
// m16n8k8, .tf32
TABLE(a_m16n8k8_tf32, i == 0 || i == 2 ? groupID : groupID + 8,
      i < 2 ? threadID_in_group : threadID_in_group + 4)
TABLE(b_m16n8k8_tf32, i == 0 ? threadID_in_group : threadID_in_group + 4,
      groupID)
// m16n8k16, .f16 and .bf16
TABLE(a_m16n8k16, i < 2 || (4 <= i && i < 6) ? groupID : groupID + 8,
      threadID_in_group * 2 + (i & 1) + (i < 4 ? 0 : 8))
TABLE(b_m16n8k16, threadID_in_group * 2 + (i & 1) + (i < 2 ? 0 : 8), groupID)
// m8n8k16, 8-bit integers
TABLE(a_m8n8k16, groupID, threadID_in_group * 4 + i)
TABLE(b_m8n8k16, threadID_in_group * 4 + i, groupID)
TABLE(c_m8n8, groupID, threadID_in_group * 2 + i)
// m16n8k32, 8-bit integers and floats
TABLE(a_m16n8k32, i < 4 || (8 <= i && i < 12) ? groupID : groupID + 8,
      threadID_in_group * 4 + (i & 3) + (i < 8 ? 0 : 16))
TABLE(b_m16n8k32, threadID_in_group * 4 + (i & 3) + (i < 4 ? 0 : 16), groupID)
TABLE(c_m16n8, i < 2 ? groupID : groupID + 8, threadID_in_group * 2 + (i & 1))

typedef struct product {
  void (*function)(hd_sim_warp_t *);
  int m, k;
  element_t a, b, c;
  table_t at_a, at_b, at_c;
} product_t;

#define ROW(name, m, k, a, b, c, shape)                                        \
  {hd_sim_mma_##name,        m, k, a, b, c, a_##shape, b_##shape,              \
   m == 8 ? c_m8n8 : c_m16n8}
static const product_t products[] = {
    ROW(m16n8k8_f32_f16, 16, 8, F16, F16, F32, m16n8k8),
    ROW(m16n8k8_f16_f16, 16, 8, F16, F16, F16, m16n8k8),
    ROW(m16n8k8_f32_bf16, 16, 8, BF16, BF16, F32, m16n8k8),
    ROW(m16n8k8_f32_tf32, 16, 8, TF32, TF32, F32, m16n8k8_tf32),
    ROW(m16n8k16_f32_f16, 16, 16, F16, F16, F32, m16n8k16),
    ROW(m16n8k16_f16_f16, 16, 16, F16, F16, F16, m16n8k16),
    ROW(m16n8k16_f32_bf16, 16, 16, BF16, BF16, F32, m16n8k16),
    ROW(m8n8k16_i32_i8, 8, 16, I8, I8, I32, m8n8k16),
    ROW(m8n8k16_i32_i8_u8, 8, 16, I8, U8, I32, m8n8k16),
    ROW(m8n8k16_i32_u8_i8, 8, 16, U8, I8, I32, m8n8k16),
    ROW(m8n8k16_i32_u8, 8, 16, U8, U8, I32, m8n8k16),
    ROW(m16n8k32_i32_i8, 16, 32, I8, I8, I32, m16n8k32),
    ROW(m16n8k32_i32_i8_u8, 16, 32, I8, U8, I32, m16n8k32),
    ROW(m16n8k32_i32_u8_i8, 16, 32, U8, I8, I32, m16n8k32),
    ROW(m16n8k32_i32_u8, 16, 32, U8, U8, I32, m16n8k32),
    ROW(m16n8k32_f32_f8e4m3, 16, 32, E4M3, E4M3, F32, m16n8k32),
    ROW(m16n8k32_f32_f8e4m3_f8e5m2, 16, 32, E4M3, E5M2, F32, m16n8k32),
    ROW(m16n8k32_f32_f8e5m2_f8e4m3, 16, 32, E5M2, E4M3, F32, m16n8k32),
    ROW(m16n8k32_f32_f8e5m2, 16, 32, E5M2, E5M2, F32, m16n8k32),
};

// A number that the type holds: to 7 for e5m2 by 1, unsigned for u8.
static int small(element_t type, int seed) {
  int value = (seed * 40503 >> 4) % 7 - 3;
  if (type == U8)
    return 190 + value; // Read as signed this would be another number.
  return type == I8 ? value * 40 : value;
}

static void check_product(const product_t *p) {
  static fixture_t x;
  static char a[32][16], b[32][16], c[32][16];
  int va[16][32], vb[32][8], vc[16][8];
  make_warp(&x, 0);
  int na = p->m * p->k / 32, nb = p->k * 8 / 32, nc = p->m * 8 / 32;
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < na; i++) {
      position_t at = p->at_a(lane, i);
      va[at.row][at.column] = small(p->a, 1 + at.row * 37 + at.column * 101);
      encode(p->a, va[at.row][at.column], a[lane] + i * (int)bytes_of[p->a]);
    }
    for (int i = 0; i < nb; i++) {
      position_t at = p->at_b(lane, i);
      vb[at.row][at.column] = small(p->b, 5 + at.row * 53 + at.column * 71);
      encode(p->b, vb[at.row][at.column], b[lane] + i * (int)bytes_of[p->b]);
    }
    for (int i = 0; i < nc; i++) {
      position_t at = p->at_c(lane, i);
      vc[at.row][at.column] = at.row * 8 + at.column - 50;
      encode(p->c, vc[at.row][at.column], c[lane] + i * (int)bytes_of[p->c]);
    }
    x.slots[lane][0] = bits_of(c[lane]);
    x.slots[lane][1] = bits_of(a[lane]);
    x.slots[lane][2] = bits_of(b[lane]);
  }
  p->function(&x.warp);
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < nc; i++) {
      position_t at = p->at_c(lane, i);
      int sum = vc[at.row][at.column];
      for (int k = 0; k < p->k; k++)
        sum += va[at.row][k] * vb[k][at.column];
      char expected[4];
      encode(p->c, sum, expected);
      assert_memory_equal(c[lane] + i * (int)bytes_of[p->c], expected,
                          bytes_of[p->c]);
    }
  }
}

static void mma_multiplies_fragments(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof products / sizeof *products; i++)
    check_product(&products[i]);
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
              cmocka_unit_test(ldmatrix_spreads_rows),
              cmocka_unit_test(stmatrix_undoes_ldmatrix),
              cmocka_unit_test(mma_multiplies_fragments),
              cmocka_unit_test(bits_are_counted),
              cmocka_unit_test(halves_are_fused),
              cmocka_unit_test(approximations_are_exact_math),
              cmocka_unit_test(every_intrinsic_has_its_function))
