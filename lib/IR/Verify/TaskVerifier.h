// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the verifier of tasks share (VerifyTask.c: signatures and
// definitions, VerifyTerm.c: terms).
#ifndef HIDET_IR_VERIFY_TASKVERIFIER_H
#define HIDET_IR_VERIFY_TASKVERIFIER_H

#include "IR/Graph/Task.h"

typedef struct hd_task_verifier {
  hd_diagnostics_t *diags;
  hd_arena_t arena; // Scratch.
  const hd_task_t *task;
  HD_VEC(const hd_index_t *) indices; // In scope.
  const hd_monoid_t *monoid;          // Whose terms are being looked at.
  bool in_identity;
  HD_VEC(const hd_task_value_t *) defined;
  HD_VEC(const hd_size_t *) sizes; // Defined ones, of those that data decides.
  bool in_definitions;             // Where those must be known.
  unsigned errors;
} hd_task_verifier_t;

// --- VerifyTerm.c ---

// Reports what has no code of its own.
__attribute__((format(printf, 3, 4))) void
hd_task_fault(hd_task_verifier_t *v, hd_loc_t loc, const char *format, ...);

void hd_verify_term(hd_task_verifier_t *v, const hd_term_t *term);
// A size or a rank: of what is known before any element is.
void hd_verify_extent(hd_task_verifier_t *v, const hd_term_t *term,
                      const char *what);
// Operands that index the axes of a value.
void hd_verify_axes(hd_task_verifier_t *v, const hd_task_value_t *value,
                    const hd_term_t *const *operands, unsigned count,
                    hd_loc_t loc);
// Brings the indices into scope.
void hd_verify_ranges(hd_task_verifier_t *v, const hd_index_t *const *indices,
                      unsigned count);
// A size that data decides is read after its definition alone.
void hd_verify_data_size(hd_task_verifier_t *v, const hd_term_t *term);
// Each reports what is not so; single: no pack.
void hd_expect_type(hd_task_verifier_t *v, const hd_term_t *term,
                    hd_task_type_t type);
void hd_expect_i64(hd_task_verifier_t *v, const hd_term_t *term);
void hd_expect_single(hd_task_verifier_t *v, const hd_term_t *term);
void hd_expect_defined(hd_task_verifier_t *v, const hd_task_value_t *value,
                       hd_loc_t loc);
// So far.
bool hd_task_is_defined(const hd_task_verifier_t *v,
                        const hd_task_value_t *value);
bool hd_task_op_is_defined(hd_expr_kind_t op, hd_task_type_t type);
// Known before any element is: of sizes, packs, attributes, constants and
// arithmetic on them alone; whether a term of that kind is one of these.
bool hd_term_is_shape(const hd_term_t *term);
bool hd_term_is_known(hd_term_kind_t kind);

#endif
