// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the verifier share.
#ifndef HIDET_IR_VERIFY_VERIFIERSTATE_H
#define HIDET_IR_VERIFY_VERIFIERSTATE_H

#include "IR/EarlyLaunch.h"
#include "IR/Visible.h"
#include "Support/Map.h"

typedef struct hd_verifier {
  hd_diagnostics_t *diags;
  hd_arena_t arena; // Scratch.
  const hd_func_t *func;
  hd_visible_t visible;
  int loops;             // Around the statement being looked at.
  const hd_stmt_t *tile; // The loop over a mapping that is all the point's own.
  hd_ptr_map_t views;    // Of a plan: to what they are of.
  hd_early_launches_t *early; // Of a plan that has programmatic launches.
  bool signature; // Of a fn: its tensors have sizes that callers settle.
  bool host;      // In launch clauses: device.sms, no thread or block.
  unsigned errors;
} hd_verifier_t;

// Each reports what is wrong and goes on.
void hd_verify_expr(hd_verifier_t *v, const hd_expr_t *e);
void hd_verify_type(hd_verifier_t *v, const hd_expr_t *e, hd_type_t type);
void hd_verify_distinct(hd_verifier_t *v, const hd_func_t *func,
                        const hd_expr_t *const *args);
void hd_verify_intrinsic(hd_verifier_t *v, const hd_expr_t *e);
void hd_verify_intrinsic_fault(hd_verifier_t *v, const hd_expr_t *e,
                               const char *why);
void hd_verify_map(hd_verifier_t *v, const hd_var_t *var);
// A copy by one of the kernel's tensor maps; and all copies of a function that
// is called with one.
void hd_verify_copy(hd_verifier_t *v, const hd_expr_t *intrinsic);
void hd_verify_copies(hd_verifier_t *v, const hd_expr_t *call);
void hd_verify_block(hd_verifier_t *v, hd_block_t block);
// Makes a variable visible; one that is already is declared twice.
void hd_verifier_declare(hd_verifier_t *v, const hd_var_t *var);
// A value of that type; what: it is called so where it has another.
void hd_verify_value(hd_verifier_t *v, const hd_expr_t *e, hd_type_t type,
                     const char *what);
// An integer over constants and parameters.
void hd_verify_size(hd_verifier_t *v, const hd_expr_t *e, const char *what);
void hd_verify_index(hd_verifier_t *v, const hd_expr_t *e);
void hd_verify_tensor(hd_verifier_t *v, const hd_var_t *var);
// A vector access needs its elements side by side: false, and reported, where
// the layout does not keep them so.
void hd_verify_lanes(hd_verifier_t *v, const hd_var_t *var, bool linear,
                     unsigned lanes, hd_loc_t loc);
// A part of a tensor of the plan.
void hd_verify_view(hd_verifier_t *v, const hd_stmt_t *stmt);
// Whether two tensors of the plan are one, or may have memory in common.
bool hd_verifier_overlaps(const hd_verifier_t *v, const hd_var_t *a,
                          const hd_var_t *b);
void hd_verify_point(hd_verifier_t *v, const hd_stmt_t *stmt);
bool hd_verifier_sees(const hd_verifier_t *v, const hd_var_t *var);
void hd_verify_fault(hd_verifier_t *v, hd_loc_t loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
