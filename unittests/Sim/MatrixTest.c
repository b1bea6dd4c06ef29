// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ldmatrix and stmatrix, and matrix fragments against products written from the
// PTX manual's tables.

#include "Support/Float.h"
#include "Warp.h"

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

HD_UNIT_TESTS(cmocka_unit_test(ldmatrix_spreads_rows),
              cmocka_unit_test(stmatrix_undoes_ldmatrix),
              cmocka_unit_test(mma_multiplies_fragments))
