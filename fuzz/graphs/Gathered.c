// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Motifs that begin with what an index chooses.
#include "Steps.h"

typedef fuzz_value_t *V;

void fuzz_embedding(fuzz_graph_t *g) {
  int64_t n = fuzz_in(g, 2, 9), m = fuzz_size(g), d = fuzz_size(g);
  hd_tensor_type_t type = fuzz_shape(HD_I64, 1, m, 0, 0);
  V x = fuzz_call(g, "gather", fuzz_weight(g, fuzz_shape(g->type, 3, 1, n, d)),
                  fuzz_leaf(g, &type, 0, (double)n - 1, false), NULL);
  x = x ? fuzz_with(g, "add", x) : NULL;
  if (x && fuzz_is_float(x->data->type))
    fuzz_with(g, "layer_norm", x);
}

void fuzz_experts(fuzz_graph_t *g) {
  V x = fuzz_some(g, 1, 4);
  hd_scalar_t type = x->data->type;
  int64_t k = fuzz_last_of(x), m = fuzz_rows_of(x);
  int64_t e = fuzz_in(g, 1, 5), n = fuzz_size(g);
  hd_tensor_type_t indices = fuzz_shape(HD_I64, 2, 1, m, 0);
  V w = fuzz_call(g, "gather_rows",
                  fuzz_weight(g, fuzz_shape(type, 3, 1, e, n * k)),
                  fuzz_leaf(g, &indices, 0, (double)e - 1, false), NULL);
  bool first = fuzz_once_in(g, 2);
  w = fuzz_reshaped(g, w,
                    first ? fuzz_shape(type, 3, m, n, k)
                          : fuzz_shape(type, 3, m, k, n));
  V r = fuzz_reshaped(g, x,
                      first ? fuzz_shape(type, 3, m, k, 1)
                            : fuzz_shape(type, 3, m, 1, k));
  fuzz_chain(g,
             first ? fuzz_two(g, "matmul", w, r) : fuzz_two(g, "matmul", r, w),
             fuzz_in(g, 0, 3));
}
