// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedule templates: a head over a kernel with compile-time parameters. What
// is asked of a template before its kernel is read stands in the head: what it
// computes, which values are worth trying, what they demand, and the figures
// that a model of the hardware prices.
//
//   template product_mma implements product(z, m, n, k) {
//     kernel product_mma_tiles[BM in {64, 128}, BN in {64, 128}]
//     types {f16, bf16}
//     requires sm >= 80, BM * BN <= 8192
//     tile(BM, BN, 64) split(1) stages(3) threads(128) shared(3 * 64 * (BM +
//     BN) * 2)
//   }
#ifndef HIDET_IR_TEMPLATE_H
#define HIDET_IR_TEMPLATE_H

#include "IR/Tensor.h"
#include "Support/Vec.h"

// What a template implements.
typedef enum hd_form_kind {
#define HD_FORM(name, text, axes, operands, sizes, tensors, fewest)            \
  HD_FORM_KIND_##name,
#include "IR/Forms.def"
#undef HD_FORM
  HD_FORM_KIND_COUNT
} hd_form_kind_t;

// What of a head is a figure.
typedef enum hd_figure {
#define HD_FIGURE(name, clause, place, least, product, rows, attention,        \
                  window, grouped, text)                                       \
  HD_FIGURE_##name,
#include "IR/Figures.def"
#undef HD_FIGURE
  HD_FIGURE_COUNT
} hd_figure_t;

// The clause of a head that gives a figure.
const char *hd_figure_clause(hd_figure_t figure);
// Whether a figure may have that value in the head of a template for that form.
bool hd_figure_allows(hd_figure_t figure, hd_form_kind_t form, int64_t value);

typedef struct hd_choice {
  const hd_var_t *var; // Named like the kernel's compile-time parameter.
  uint32_t count;
  const int64_t *values;
} hd_choice_t;

// What a candidate must not break.
typedef struct hd_demand {
  const hd_expr_t *holds;
  const char *text; // As it was written.
} hd_demand_t;

// The names of a head beside the form's axes and the choices, all i32.
typedef enum hd_template_name {
#define HD_HEAD_NAME(enumerator, name, text) HD_TEMPLATE_##enumerator,
#include "IR/HeadNames.def"
#undef HD_HEAD_NAME
  HD_TEMPLATE_NAMES
} hd_template_name_t;

// Axes and operands at most.
enum { HD_FORM_AXES = 8, HD_FORM_OPERANDS = 3, HD_MAX_CHOICES = 12 };
// Likewise of a kernel's tensors that are none of the form's.
enum { HD_FORM_WORKSPACES = 4 };

typedef struct hd_form_info {
  const char *name;
  unsigned axes;
  const char *operands; // A letter for each that there may be a map of.
  unsigned sizes;       // That a kernel's parameters begin with.
  const char *tensors;  // That follow, as Forms.def has them,
  unsigned fewest;      // the last of which may be left out.
} hd_form_info_t;

const hd_form_info_t *hd_form_info(hd_form_kind_t kind);

// Expressions are of the form's axes, the choices and the names above.
typedef struct hd_template {
  const char *name;
  hd_loc_t loc;
  const char *text; // As it was written.
  hd_form_kind_t form;
  const hd_var_t *axes[HD_FORM_AXES]; // As many as the form has.
  const hd_var_t *names[HD_TEMPLATE_NAMES];
  const char *kernel;            // Of the same module.
  const struct hd_generic *then; // A kernel that runs behind it; NULL: none.
  bool takes_leaving; // The kernel has a compile-time parameter LEAVING,
  bool takes_turned;  // or TURNED,
  bool takes_second;  // or B,
  bool takes_kept;    // or Q,
  bool takes_aligned; // or ALIGNED.
  HD_VEC(hd_choice_t) choices;
  HD_VEC(hd_scalar_t) types;    // That the operands may have.
  bool maps[HD_FORM_OPERANDS];  // That the kernel has tensor maps of,
  bool reads[HD_FORM_OPERANDS]; // or loads, as it loads what has no letter.
  HD_VEC(hd_demand_t) demands;
  const hd_expr_t *figures[HD_FIGURE_COUNT]; // 0 for those that mean nothing.
} hd_template_t;

// Whether values, "T = f16, N = 3", are those of the parameters that the
// template's form gives its kernel, each one, and beside them only such as are
// offered to any kernel (Given.def).
bool hd_template_gives(const hd_template_t *template, const char *values);

#endif
