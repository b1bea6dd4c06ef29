// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files share that replace accesses.
#ifndef HIDET_FUSION_ACCESSSTATE_H
#define HIDET_FUSION_ACCESSSTATE_H

#include "Fusion/Access.h"

typedef struct hd_accessor {
  hd_builder_t b;
  const hd_access_hook_t *hooks;
  size_t num_hooks;
  bool has_effects; // Among the expressions that are being rewritten.
} hd_accessor_t;

// NULL where there is none.
const hd_access_hook_t *hd_accessor_hook(const hd_accessor_t *a,
                                         const hd_var_t *param);

// Expressions that are evaluated one after the other, all before anything else
// happens; NULL among them is none. out[i] takes the place of exprs[i]; what
// has to come before them is pushed. They may be the same array.
void hd_access_exprs(hd_accessor_t *a, const hd_expr_t *const *exprs,
                     size_t count, const hd_expr_t **out);
static inline const hd_expr_t *hd_access_expr(hd_accessor_t *a,
                                              const hd_expr_t *e) {
  hd_access_exprs(a, &e, 1, &e);
  return e;
}

// Names the indices of an access in i32 or i64, as hooks expect them.
void hd_access_name_indices(hd_accessor_t *a, const hd_expr_t *const *indices,
                            unsigned count, const hd_expr_t **at);
// What the hook has in place of the lanes from `at` on.
const hd_expr_t *hd_access_load(hd_accessor_t *a, const hd_access_hook_t *hook,
                                const hd_expr_t *const *at, hd_type_t type);
void hd_access_store(hd_accessor_t *a, const hd_access_hook_t *hook,
                     const hd_expr_t *const *at, const hd_expr_t *value);

// Whether an intrinsic's call is an ordinary access, but for the caches.
bool hd_access_is_cached_load(const hd_expr_t *e);
bool hd_access_is_cached_store(const hd_expr_t *e);
// Whether it does nothing but tell the caches of a place.
bool hd_access_is_prefetch(const hd_expr_t *e);

#endif
