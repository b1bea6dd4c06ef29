// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Graph/Bind/Arithmetic.h"
#include "IR/Text/Library.h"
#include "UnitTest.h"

// What the bodies in lib/Graph/operators say.
static void check(hd_arithmetic_t expected, const char *const *names) {
  hd_context_t context;
  hd_context_init(&context);
  for (size_t i = 0; names[i]; i++) {
    const hd_task_t *task = hd_library_task(&context, names[i]);
    assert_non_null(task);
    if (hd_task_arithmetic(task) != expected)
      fail_msg("%s: %d", names[i], (int)hd_task_arithmetic(task));
  }
  hd_context_fini(&context);
}

static void what_moves_or_picks_is_no_arithmetic(void **state) {
  (void)state;
  static const char *const names[] = {
      "copy",        "relu",        "abs",          "neg",
      "transpose",   "slice",       "concat",       "pad_constant",
      "tile",        "trilu",       "where",        "maximum",
      "clip",        "clip_low",    "max_pool",     "global_max_pool",
      "gather",      "gather_rows", "scatter_rows", "reduce_max",
      "mask_scores", "mask_length", "is_nan",       "within_length",
      NULL};
  check(HD_ARITHMETIC_NONE, names);
}

static void sums_of_products_are_products(void **state) {
  (void)state;
  static const char *const names[] = {"matmul", "conv", "conv_transpose", NULL};
  check(HD_ARITHMETIC_PRODUCT, names);
}

// thresholded_relu compares with what it does not choose; resample sums up in
// the type of x; conv_deform's offsets are no factors; in a sum of squares the
// factors are one tensor.
static void all_else_is_other(void **state) {
  (void)state;
  static const char *const names[] = {"add",
                                      "mul",
                                      "sigmoid",
                                      "exp",
                                      "softmax",
                                      "layer_norm",
                                      "rms_norm",
                                      "reduce_sum",
                                      "reduce_l2",
                                      "reduce_sum_square",
                                      "sign",
                                      "thresholded_relu",
                                      "average_pool",
                                      "conv_deform",
                                      "resample",
                                      "equal",
                                      "arg_max",
                                      "cumsum",
                                      "prelu",
                                      "lstm_cell",
                                      "pow",
                                      "scatter_rows_add",
                                      "hardmax",
                                      "max_pool_indices",
                                      NULL};
  check(HD_ARITHMETIC_OTHER, names);
}

HD_UNIT_TESTS(cmocka_unit_test(what_moves_or_picks_is_no_arithmetic),
              cmocka_unit_test(sums_of_products_are_products),
              cmocka_unit_test(all_else_is_other))
