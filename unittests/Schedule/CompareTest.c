// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of the scheduler and the reference evaluator agree about tasks of
// the operator library, for sizes that lead to each of the rules.
#include "ScheduleHelp.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct row {
  const char *task, *inputs, *attributes;
} row_t;

// clang-format off
static const row_t rows[] = {
    {"copy", "i2[3, 5, 7]", ""},
    {"copy", "f4e2m1[33]", ""},
    {"copy", "bool[]", ""},
    {"copy", "f32[0, 4]", ""},
    {"relu", "f32[70, 64, 33]", ""},
    {"abs", "f8e4m3[100]", ""},
    {"exp", "bf16[5, 100]", ""},
    {"sqrt", "f64[100]", ""},
    {"tanh", "f16[77]", ""},
    {"slice", "i16[9, 8]", "start=[1, 7] stride=[2, -2] size=[4, 4]"},
    {"expand", "u8[3, 1]", "sizes=[3, 4]"},
    {"tile", "f32[3, 4]", "repeats=[2, 3]"},
    {"concat", "u4[3, 4, 5] u4[3, 2, 5]", ""},
    {"concat", "f32[3, 0, 5] f32[3, 2, 5]", ""},
    {"concat", "i8[1, 4, 5] i8[1, 2, 5] i8[1, 1, 5] i8[1, 3, 5]", ""},
    {"pad_constant", "f32[3, 4] f32[]", "before=[1, 2] size=[6, 6]"},
    {"pad_edge", "f16[3, 4]", "before=[1, 2] size=[6, 6]"},
    {"pad_reflect", "f32[3, 4]", "before=[2, 3] size=[7, 9]"},
    {"pad_wrap", "i32[3, 4]", "before=[2, 3] size=[7, 9]"},
    {"trilu", "f32[2, 5, 6]", "k=-1 upper=1"},
    {"gather", "f32[2, 9, 3] i32[5]", ""},
    {"gather_elements", "bool[2, 9, 3] i64[2, 4, 3]", ""},
    {"scatter_elements", "f32[2, 9, 3] i64[2, 7, 3] f32[2, 7, 3]", ""},
    {"scatter_elements", "f32[1, 9, 3] i64[1, 900, 3] f32[1, 900, 3]", ""},
    {"scatter_elements_add", "f16[2, 9, 3] i32[2, 7, 3] f16[2, 7, 3]", ""},
    {"scatter_elements_mul", "i64[2, 9, 3] i64[2, 7, 3] i64[2, 7, 3]", ""},
    {"scatter_rows_max", "u8[2, 9, 3] i64[2, 7] u8[2, 7, 3]", ""},
    {"scatter_rows", "i4[2, 9, 3] i64[2, 7] i4[2, 7, 3]", ""},
    {"scatter_rows_add", "i32[1, 9, 3] i64[1, 900] i32[1, 900, 3]", ""},
    {"sort_descending", "f32[2, 9, 3]", "m=9"},
    {"sort_ascending", "i16[1, 9000, 2]", "m=5"},
    {"sort_ascending", "f16[1, 5000, 1]", "m=2000"},
    {"sort_ascending", "f16[1, 5000, 1]", "m=0"},
    {"sort_descending", "bf16[2, 300, 3]", "m=100"},
    {"sort_ascending", "i4[1, 100, 2]", "m=5"},
    {"sort_descending", "u2[3, 40, 1]", "m=40"},
    {"sort_ascending", "f8e4m3[2, 70, 1]", "m=70"},
    {"sort_ascending", "f4e2m1[2, 70, 2]", "m=70"},
    {"sort_descending", "f8e8m0[2, 70, 2]", "m=7"},
    {"sort_descending", "f64[1, 6000, 1]", "m=6000"},
    {"eye", "", "n=4 m=6 k=1 T=f32"},
    {"reduce_sum", "f32[3, 100, 1]", ""},
    {"reduce_sum", "f32[3, 0, 5]", ""},
    {"reduce_sum", "i8[3, 100, 4]", ""},
    {"reduce_sum", "f16[2, 1000, 40]", ""},
    {"reduce_sum", "f64[1, 200000, 1]", ""},
    {"reduce_prod", "f64[4, 5, 6]", ""},
    {"reduce_mean", "bf16[3, 70, 2]", ""},
    {"reduce_log_sum_exp", "f32[5, 1, 9]", ""},
    {"reduce_log_sum_exp", "f32[5, 99, 1]", ""},
    {"reduce_max", "f16[5, 300, 2]", ""},
    {"reduce_max_integer", "u64[5, 300, 2]", ""},
    {"reduce_max_integer", "i2[4, 64, 2]", ""},
    {"reduce_max_integer", "u4[1, 70000, 3]", ""},
    {"reduce_max_bool", "bool[5, 80, 2]", ""},
    {"arg_max", "i4[5, 300, 2]", ""},
    {"cumsum", "i4[3, 90, 5]", ""},
    {"matmul", "i4[33, 65] i4[65, 33]", ""},
    {"reduce_min", "f64[1, 70000, 1]", ""},
    {"arg_max", "f32[5, 300, 2]", ""},
    {"arg_max_last", "i32[5, 300, 1]", ""},
    {"arg_min", "i32[1, 70000, 2]", ""},
    {"arg_min_last", "f16[3, 7, 2]", ""},
    {"cumsum", "f32[3, 17, 4]", ""},
    {"cumsum_exclusive", "f16[3, 17, 4]", ""},
    {"cumsum", "f64[2, 4200, 1]", ""},
    {"softmax", "f32[3, 17, 4]", "s=1"},
    {"softmax", "f16[70, 5]", "s=1"},
    {"softmax", "f32[5, 1030]", "s=1"},
    {"softmax", "f64[2, 2000]", "s=1"},
    {"softmax", "bf16[2, 20000]", "s=1"},
    {"softmax", "bf16[3, 9, 200]", "s=1"},
    {"softmax", "f32[1, 21, 17000]", "s=1"},
    {"log_softmax", "f16[3, 170]", "s=1"},
    {"log_softmax", "f32[300, 64]", "s=1"},
    {"batch_norm", "f32[2, 5, 6, 7] f32[5] f32[5] f32[5] f32[5]", "epsilon=1e2"},
    {"layer_norm", "f32[4, 3, 90] f32[90] f32[90]", "s=2 epsilon=1e-3 count=90"},
    {"rms_norm", "bf16[4, 300]", "s=1 epsilon=1e-3 count=300"},
    {"group_norm", "f32[2, 3, 4, 50] f32[3, 4] f32[3, 4]", "epsilon=1e-3 count=200"},
    {"group_norm", "f16[2, 3, 5, 7, 9] f16[3, 5] f16[3, 5]", "epsilon=1e-3 count=315"},
    {"layer_norm", "f32[4, 3, 90] f32[3, 90] f32[3, 90]", "s=1 epsilon=1e-3 count=270"},
    {"layer_norm_statistics", "f16[40, 72]", "s=1 epsilon=1e-3 count=72"},
    {"batch_norm_training", "f32[3, 5, 6, 7] f32[5] f32[5] f32[5] f32[5]",
     "epsilon=1e-3 momentum=0.9 count=126"},
    {"mean_variance_normalize", "f32[3, 50, 4]", "s=2 count=150"},
    {"l1_normalize", "f16[2, 60, 3]", "s=1"},
    {"l2_normalize", "f32[7, 60]", "s=1"},
    {"local_response_norm", "f32[2, 9, 5, 4]", "alpha=1e-2 beta=0.75 bias=1.0 size=3"},
    {"local_response_norm", "f32[2, 20, 32, 64]", "alpha=1e-2 beta=0.75 bias=1.0 size=3"},
    {"max_pool", "f32[2, 3, 9, 10]",
     "least=-1e30 window=[3, 3] strides=[2, 2] pads=[1, 1] dilations=[1, 1] sizes=[5, 5]"},
    {"global_average_pool", "f16[2, 3, 19, 10]", "count=190"},
    {"global_average_pool", "f32[1, 300, 14, 14]", "count=196"},
    {"matmul", "f32[2, 3, 20, 30] f32[3, 30, 25]", ""},
    {"matmul", "f16[20, 30] f16[2, 30, 25]", ""},
    {"matmul", "f64[1, 1, 300] f64[300, 40]", ""},
    {"matmul", "f16[1, 2100] f16[2100, 70]", ""},
    {"matmul", "f32[2, 300] f32[70, 300]", "tb=1"},
    {"matmul", "bf16[70, 130] bf16[90, 130]", "tb=1"},
    {"matmul", "i32[70, 130] i32[70, 90]", "ta=1"},
    {"matmul", "u8[33, 65] u8[66, 33]", "ta=1 tb=1"},
    {"conv", "f32[2, 8, 11] f32[16, 8, 3]",
     "strides=[1] pads=[1] dilations=[1] sizes=[11]"},
    {"conv", "f16[1, 8, 9, 7, 5] f16[9, 8, 3, 2, 1]",
     "strides=[2, 1, 1] pads=[1, 1, 0] dilations=[1, 2, 1] sizes=[5, 7, 5]"},
    {"conv", "f32[2, 8, 9, 9] f32[16, 2, 3, 3]",
     "groups=4 strides=[1, 1] pads=[1, 1] dilations=[1, 1] sizes=[9, 9]"},
    {"conv_transpose", "f32[2, 8, 5, 5] f32[8, 9, 3, 3]",
     "groups=1 strides=[2, 2] pads=[1, 1] dilations=[1, 1] sizes=[10, 10]"},
};
// clang-format on

// What a type tells apart, relative to the largest number, after sums in
// another order.
static double tolerance_of(hd_scalar_t type) {
  if (!hd_type_is_float(hd_type(type)))
    return 0;
  return 16 * ldexp(1, -(int)hd_scalar_digits(type));
}

static void expect_same(const hd_task_run_t *run, const row_t *row,
                        const hd_host_tensor_t *a, const hd_host_tensor_t *b) {
  double most = 0;
  for (int64_t k = 0; k < b->count; k++)
    if (isfinite(hd_host_tensor_get(b, k)))
      most = fmax(most, fabs(hd_host_tensor_get(b, k)));
  for (int64_t k = 0; k < b->count; k++) {
    double x = hd_host_tensor_get(a, k), y = hd_host_tensor_get(b, k);
    bool same = x == y || (isnan(x) && isnan(y)) ||
                fabs(x - y) <= tolerance_of(b->type) * most;
    if (!same) {
      hd_buffer_t printed = run->printed;
      fail_msg("%s(%s): element %lld is %.9g and not %.9g\n%s", row->task,
               row->inputs, (long long)k, x, y, hd_buffer_text(&printed));
    }
  }
}

// Rows count from the front alone: what is drawn below 0 is taken as if above.
static void keep_rows_inside(hd_task_run_t *run, const char *task) {
  hd_host_tensor_t *at = &run->inputs[1];
  for (int64_t k = 0; !strncmp(task, "scatter_rows", 12) && k < at->count; k++)
    hd_host_tensor_set_int(at, k, imaxabs(hd_host_tensor_get_int(at, k)));
}

static void compare(const row_t *row) {
  hd_task_run_t run;
  hd_host_tensor_t expected[MAX_TENSORS];
  hd_run_prepare(&run, row->task, row->inputs, row->attributes);
  keep_rows_inside(&run, row->task);
  hd_run_evaluate(&run, expected);
  hd_run_task(&run);
  for (unsigned i = 0; i < run.num_outputs; i++)
    expect_same(&run, row, &run.outputs[i], &expected[i]);
  hd_run_task_checked(&run);
  for (unsigned i = 0; i < run.num_outputs; i++) {
    expect_same(&run, row, &run.outputs[i], &expected[i]);
    hd_host_tensor_fini(&expected[i]);
  }
  hd_run_end(&run);
}

static void agrees_with_the_evaluator(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    compare(&rows[i]);
}

HD_UNIT_TESTS(cmocka_unit_test(agrees_with_the_evaluator))
