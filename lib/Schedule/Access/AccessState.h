// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files share that replace accesses.
#ifndef HIDET_SCHEDULE_ACCESS_ACCESSSTATE_H
#define HIDET_SCHEDULE_ACCESS_ACCESSSTATE_H

#include "Schedule/Access/Access.h"

// 0 <= index < size
typedef struct hd_access_guard {
  const hd_expr_t *index, *size;
} hd_access_guard_t;

// A load that was replaced, and the name of what it gives.
typedef struct hd_access_known {
  const hd_expr_t *load, *value;
} hd_access_known_t;

// A yield to one tensor became one to another, at the same indices.
typedef struct hd_access_moved {
  const hd_var_t *from, *to;
} hd_access_moved_t;

// What results are staged in has elements of another type now.
typedef struct hd_access_staged {
  const hd_var_t *from, *to;
} hd_access_staged_t;

// What a yield of those that a point becomes reads, the number-th global load
// of its value, is read before into a register that lies like another.
typedef struct hd_access_early {
  const hd_var_t *like;
  unsigned yield, number;
  const hd_var_t *tensor; // That is loaded (NULL: it is not early after all),
  const hd_var_t *cells;  // and where it is then.
  bool shares;            // An entry before it has the same registers.
} hd_access_early_t;

typedef struct hd_accessor {
  hd_builder_t b;
  const hd_access_hook_t *hooks;
  size_t num_hooks;
  // The expressions that are being rewritten; whether some have effects; loads
  // in them whose values have names that are visible.
  const hd_expr_t *const *roots;
  size_t num_roots;
  bool has_effects;
  HD_VEC(hd_access_known_t) known;
  // In the value of a load point: what loads there are outside their tensors
  // by, so that the element is 0.
  bool is_guarded;
  // Loads are computed from this element, as hooks have it.
  bool has_kept;
  const hd_expr_t *kept;
  HD_VEC(hd_access_guard_t) guards;
  HD_VEC(hd_access_moved_t) moved;
  HD_VEC(hd_access_staged_t) staged;
  HD_VEC(hd_access_early_t) early;
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

// Pushes what takes the place of a statement, of a block's statements.
void hd_access_stmt(hd_accessor_t *a, const hd_stmt_t *stmt);
// The point, and the loop that is all its own (its mapping rewritten; or NULL).
void hd_access_point(hd_accessor_t *a, const hd_stmt_t *loop,
                     const hd_stmt_t *point);
// Whether a hook replaces anything that the point does.
bool hd_access_has_point(const hd_accessor_t *a, const hd_stmt_t *point);

// index >= 0 && index < size && ... for each axis, and of all lanes; NULL:
// always.
const hd_expr_t *hd_access_inside(hd_accessor_t *a, const hd_tensor_t *tensor,
                                  const hd_expr_t *const *at, unsigned lanes);
// 0; of vectors, each lane.
const hd_expr_t *hd_access_zero(hd_accessor_t *a, hd_type_t type);

// Names the indices of an access in i32 or i64, as hooks expect them.
void hd_access_name_indices(hd_accessor_t *a, const hd_expr_t *const *indices,
                            unsigned count, const hd_expr_t **at);
// e, where loads of global memory give 0 outside their tensors.
const hd_expr_t *hd_access_or_zero(hd_accessor_t *a, const hd_expr_t *e);
// What is evaluated where it is needed: statements, then a value.
typedef struct hd_access_lazy {
  hd_stmt_list_t stmts;
  const hd_expr_t *value;
} hd_access_lazy_t;

// A register for a value of that type, of several lanes too; its value; a lazy
// value put into it. init may be NULL.
const hd_var_t *hd_access_cell(hd_accessor_t *a, hd_type_t type,
                               const hd_expr_t *init);
const hd_expr_t *hd_access_get_cell(hd_accessor_t *a, const hd_var_t *cell,
                                    hd_type_t type);
void hd_access_to_cell(hd_accessor_t *a, const hd_access_lazy_t *lazy,
                       const hd_var_t *cell);

// What a hook has in place of several lanes from `at` on; of those outside,
// otherwise.
const hd_expr_t *hd_access_load_lanes(hd_accessor_t *a,
                                      const hd_access_hook_t *hook,
                                      const hd_expr_t *const *at,
                                      hd_type_t type);
const hd_expr_t *hd_access_load_some_lanes(hd_accessor_t *a,
                                           const hd_access_hook_t *hook,
                                           const hd_expr_t *const *at,
                                           hd_type_t type,
                                           hd_access_lazy_t *otherwise);
// value: of one lane or several, a constant or a name.
void hd_access_store(hd_accessor_t *a, const hd_access_hook_t *hook,
                     const hd_expr_t *const *at, const hd_expr_t *value);

// Whether an intrinsic's call is an ordinary access, but for the caches.
bool hd_access_is_cached_load(const hd_expr_t *e);
bool hd_access_is_cached_store(const hd_expr_t *e);
// Whether it does nothing but tell the caches of a place.
bool hd_access_is_prefetch(const hd_expr_t *e);

#endif
