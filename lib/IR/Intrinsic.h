// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of intrinsics, its signatures taken apart.
#ifndef HIDET_IR_INTRINSIC_H
#define HIDET_IR_INTRINSIC_H

#include "IR/Expr.h"

typedef enum hd_intrinsic {
#define HD_INTRINSIC(id, ...) HD_INTRINSIC_##id,
#include "IR/Intrinsics.def"
#undef HD_INTRINSIC
  HD_INTRINSIC_COUNT
} hd_intrinsic_t;

typedef enum hd_intrinsic_kind {
  HD_INTRINSIC_PURE,
  HD_INTRINSIC_THREAD,
  HD_INTRINSIC_WARP,
  HD_INTRINSIC_BLOCK,
} hd_intrinsic_kind_t;

// The words of the traits column, as bits.
typedef enum hd_intrinsic_trait {
  HD_TRAIT_LOAD = 1 << 0,
  HD_TRAIT_STORE = 1 << 1,
  HD_TRAIT_ATOMIC = 1 << 2,
  HD_TRAIT_FENCE = 1 << 3,
  HD_TRAIT_COPY = 1 << 4,
  HD_TRAIT_BULK = 1 << 5,
  HD_TRAIT_IM2COL = 1 << 6,
  HD_TRAIT_POLLS = 1 << 7,
  HD_TRAIT_AWAITS_LAUNCH = 1 << 8,
  HD_TRAIT_SHUFFLE = 1 << 9,
  HD_TRAIT_ALIGNED = 1 << 10,
  HD_TRAIT_PREFETCH = 1 << 11,
  HD_TRAIT_WHOLE = 1 << 12,
} hd_intrinsic_trait_t;

// The names that an intrinsic may take. Operands hold them as i32 constants.
typedef enum hd_order {
  HD_RELAXED,
  HD_ACQUIRE,
  HD_RELEASE,
  HD_ACQ_REL,
  HD_SEQ_CST,
  HD_ORDER_COUNT
} hd_order_t;
typedef enum hd_sync_scope {
  HD_SYNC_WARP,
  HD_SYNC_BLOCK,
  HD_SYNC_CLUSTER,
  HD_SYNC_DEVICE,
  HD_SYNC_SYSTEM,
  HD_SYNC_COUNT
} hd_sync_scope_t;
// ld and st modifiers of PTX.
typedef enum hd_cache_op {
  HD_CACHE_CA,
  HD_CACHE_CG,
  HD_CACHE_CS,
  HD_CACHE_LU,
  HD_CACHE_CV,
  HD_CACHE_NC,
  HD_CACHE_WB,
  HD_CACHE_WT,
  HD_CACHE_EVICT_FIRST,
  HD_CACHE_EVICT_LAST,
  HD_CACHE_NO_ALLOCATE,
  HD_CACHE_COUNT
} hd_cache_op_t;

// What the L2 is to do with the lines of a bulk copy.
typedef enum hd_policy {
  HD_POLICY_NORMAL,
  HD_POLICY_EVICT_FIRST,
  HD_POLICY_EVICT_LAST,
  HD_POLICY_COUNT
} hd_policy_t;
// The axis of a matrix operand in shared memory along which it is contiguous.
typedef enum hd_major { HD_MAJOR_K, HD_MAJOR_MN, HD_MAJOR_COUNT } hd_major_t;

typedef enum hd_param_form {
  HD_PARAM_VALUE,
  HD_PARAM_CONST,    // #i32
  HD_PARAM_SHARED,   // s:
  HD_PARAM_GLOBAL,   // g:
  HD_PARAM_MEMORY,   // m:
  HD_PARAM_MATRIX,   // d:
  HD_PARAM_REGISTER, // r:
  HD_PARAM_ORDER,
  HD_PARAM_SCOPE,
  HD_PARAM_CACHE,
  HD_PARAM_POLICY,
  HD_PARAM_MAJOR,
} hd_param_form_t;

// From least to most: what is a multiple of step, or a power of two, where step
// is 0.
typedef struct hd_operand_range {
  int64_t least, most, step;
} hd_operand_range_t;

typedef struct hd_intrinsic_param {
  hd_param_form_t form;
  bool reads, writes; // A call, its place, or the tensor of its map.
  bool any;           // "any": a place of whatever element type.
  bool generic;       // T, or lanes times T's scalar: see type.lanes.
  // Registers whose number is told by the call: its operand #n divided by this;
  // 0: as type says.
  uint8_t divisor;
  hd_type_t
      type; // Where not generic; registers: the elements' type and number.
  hd_operand_range_t ranges[2]; // What a constant may be; none: anything.
  unsigned num_ranges;
} hd_intrinsic_param_t;

enum { HD_INTRINSIC_MAX_PARAMS = 12 };

typedef struct hd_intrinsic_info {
  const char *name;
  const char *signature, *type_names; // As the table has them.
  hd_intrinsic_kind_t kind;
  unsigned traits;
  int target;
  const char *ptx, *sim;
  unsigned num_types;
  hd_type_t types[16]; // What T may be; empty where there is no T.
  bool result_generic;
  hd_type_t result;
  unsigned num_params;
  unsigned num_required; // Without the trailing names.
  int count;             // The operand #n; -1: there is none.
  hd_intrinsic_param_t params[HD_INTRINSIC_MAX_PARAMS];
} hd_intrinsic_info_t;

// Thread-safe; the table is taken apart at the first call.
const hd_intrinsic_info_t *hd_intrinsic_info(hd_intrinsic_t intrinsic);
// Of a call of one.
const hd_intrinsic_info_t *hd_intrinsic_of(const hd_expr_t *call);

// The first row of that name; rows of one name (overloads) follow each other.
// HD_INTRINSIC_COUNT where there is none.
hd_intrinsic_t hd_intrinsic_find(const char *name);

// Of the overloads from a row on, the one that takes so many operands, and
// whose T may be type (HD_VOID: it has no T). HD_INTRINSIC_COUNT where there is
// none.
hd_intrinsic_t hd_intrinsic_overload(hd_intrinsic_t first, hd_type_t type,
                                     unsigned num_params);

// Whether an expression is the call of an intrinsic with one of the traits.
bool hd_expr_has_trait(const hd_expr_t *e, unsigned traits);

// How many elements of a register tensor the parameter i of a call takes.
unsigned hd_intrinsic_elements(const hd_intrinsic_info_t *info,
                               const hd_expr_t *call, unsigned i);

// Whether a constant operand may be the value.
bool hd_param_takes(const hd_intrinsic_param_t *param, int64_t value);

// The operand of a call is a name: of an order, a scope, a cache ...
static inline bool hd_param_is_name(hd_param_form_t form) {
  return form >= HD_PARAM_ORDER;
}
static inline bool hd_param_is_place(hd_param_form_t form) {
  return form >= HD_PARAM_SHARED && form <= HD_PARAM_REGISTER;
}
// The number of names of such an operand; a name, and back (-1: none such).
int hd_intrinsic_names(hd_param_form_t form);
const char *hd_intrinsic_name_text(hd_param_form_t form, int value);
int hd_intrinsic_name_find(hd_param_form_t form, const char *text);
// The name that is meant where none is written.
int hd_intrinsic_name_default(hd_param_form_t form);
// Whether the instruction of a row knows an order or a cache hint; every row
// knows the names of other forms.
bool hd_intrinsic_takes_name(const hd_intrinsic_info_t *info,
                             hd_param_form_t form, int value);

#endif
