// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first slice: the naive matrix product as PTX and as host code.
#include "CodeGenTest.h"

static const char matmul[] =
    "kernel matmul(m: i32, n: i32, k: i32, in a: f32[m, k], in b: f32[k, n],\n"
    "              out c: f32[m, n])\n"
    "  grid(ceildiv(n, 16), ceildiv(m, 16)) block(16, 16) min_blocks(2)\n"
    "{\n"
    "  let i = block.y * 16 + thread.y\n"
    "  let j = block.x * 16 + thread.x\n"
    "  if i < m && j < n {\n"
    "    register s: f32 = 0\n"
    "    for p in 0..k {\n"
    "      s = s + a[i, p] * b[p, j]\n"
    "    }\n"
    "    c[i, j] = s\n"
    "  }\n"
    "}\n";

static void ptx_has_launch_bounds_and_plain_arithmetic(void **state) {
  (void)state;
  program_t p;
  program_init(&p, matmul);
  char *ptx = program_ptx(&p, "sm_80");
  assert_non_null(ptx);
  assert_non_null(strstr(ptx, ".target sm_80"));
  assert_non_null(strstr(ptx, ".visible .entry matmul("));
  assert_non_null(strstr(ptx, ".maxntid 16, 16, 1"));
  assert_non_null(strstr(ptx, ".minnctapersm 2"));
  assert_non_null(strstr(ptx, "ld.global.nc.f32"));
  assert_non_null(strstr(ptx, "mul.rn.f32"));
  assert_non_null(strstr(ptx, "add.rn.f32"));
  assert_null(strstr(ptx, "fma"));
  free(ptx);
  program_fini(&p);
}

enum { M = 35, N = 20, K = 17 };

static void host_code_multiplies(void **state) {
  (void)state;
  static float a[M * K], b[K * N], c[M * N];
  for (int i = 0; i < M * K; i++)
    a[i] = (float)(i * 7 % 13) - 6;
  for (int i = 0; i < K * N; i++)
    b[i] = (float)(i * 5 % 11) - 5;
  int32_t m = M, n = N, k = K;
  float *pa = a, *pb = b, *pc = c;
  void *args[] = {&m, &n, &k, &pa, &pb, &pc};
  program_t p;
  program_init(&p, matmul);
  program_run(&p, args, 2, 3);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      float sum = 0; // Exact: small integers.
      for (int q = 0; q < K; q++)
        sum += a[i * K + q] * b[q * N + j];
      assert_true(c[i * N + j] == sum);
    }
  program_fini(&p);
}

HD_UNIT_TESTS(cmocka_unit_test(ptx_has_launch_bounds_and_plain_arithmetic),
              cmocka_unit_test(host_code_multiplies))
