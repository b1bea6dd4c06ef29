// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products whose columns stand in pairs, of which a definition makes one
// element each:
//
//   t[z, i, j] = sum(p) a[z, i, p] * b[z, p, j]
//   y[z, i, j] = f(t[z, i, 2 * j], t[z, i, 2 * j + 1])
//
// A product and the gate that it is multiplied by are one of these, their
// matrices' columns side by side. t is nothing but registers: a kernel for
// products yields neighbours one after the other.
#ifndef HIDET_SCHEDULE_PRODUCT_PAIRS_H
#define HIDET_SCHEDULE_PRODUCT_PAIRS_H

#include "Schedule/Product/Product.h"

// NULL, or why these definitions of a task are no product of which pairs may be
// made: one alone, or the statistics of normalized rows and the product, of
// rows whose parts' squares are at hand.
const char *hd_pairs_product_find(hd_arena_t *arena,
                                  const hd_definition_t *const *data,
                                  size_t count, hd_product_form_t *form);

// NULL, or why a flat task is no such product. Then the form is that of t, with
// as many columns, but c and the result are those of y.
const char *hd_pairs_form_find(hd_arena_t *arena, const hd_task_t *flat,
                               hd_product_form_t *form);

// A kernel that yields pairs: its parameter, c: T[.., 2 * n], is one with n
// elements along the last axis, and what it yields there are vectors of two
// elements, which a hook takes apart (hd_access_hook_t.pairs). Its maps have
// boxes that are half as wide, or are left out. NULL where the kernel does
// something else to it than yield neighbours in loops that have them one after
// the other, from an even place on; *why then ends a sentence that begins with
// the tensor.
hd_func_t *hd_pairs_kernel(hd_arena_t *arena, const hd_func_t *kernel,
                           uint32_t param, const char **why);

#endif
