// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions. Every node is immutable and lives in its module's arena; nodes
// may be shared. A node is a kind, a type, a payload (u) and operands, so a
// walk or a rewrite needs no case for each kind.
#ifndef HIDET_IR_EXPR_H
#define HIDET_IR_EXPR_H

#include "IR/Type.h"
#include "Support/Diagnostic.h"

typedef struct hd_var hd_var_t;
typedef struct hd_func hd_func_t;
typedef struct hd_expr hd_expr_t;

typedef enum hd_expr_kind {
#define HD_EXPR(name, spelling, form, precedence, commutative, payload)        \
  HD_EXPR_##name,
#include "IR/Exprs.def"
#undef HD_EXPR
  HD_EXPR_COUNT
} hd_expr_kind_t;

typedef enum hd_expr_form {
  HD_FORM_LEAF,
  HD_FORM_UNARY,
  HD_FORM_BINARY,
  HD_FORM_COMPARE,
  HD_FORM_CALL,
  HD_FORM_OTHER,
} hd_expr_form_t;

typedef enum hd_builtin {
#define HD_BUILTIN(name, text, least, greatest, where) HD_BUILTIN_##name,
#include "IR/Builtins.def"
#undef HD_BUILTIN
  HD_BUILTIN_COUNT
} hd_builtin_t;

typedef enum hd_expr_payload {
  HD_PAYLOAD_NONE,
  HD_PAYLOAD_VALUE,
  HD_PAYLOAD_VAR,
  HD_PAYLOAD_FUNC,
  HD_PAYLOAD_BUILTIN,
  HD_PAYLOAD_INTRINSIC,
} hd_expr_payload_t;

// What walks expressions recurses; the parser builds no higher ones.
enum { HD_MAX_HEIGHT = 2000 };

struct hd_expr {
  uint8_t kind;   // hd_expr_kind_t
  uint8_t linear; // Accesses: one operand, an offset into the storage: t@[x]
  hd_type_t type;
  uint16_t num_operands;
  uint16_t height; // Nodes on the longest way down; for bounding recursion.
  hd_loc_t loc;
  union {
    int64_t i; // CONST of an integer (sign- or zero-extended) or bool; LANE
    double f;  // CONST of a float, rounded to its type
    const hd_var_t *var;   // VAR, LOAD, LOADELSE, REF, TENSOR
    const hd_func_t *func; // CALL
    hd_builtin_t builtin;  // BUILTIN
    int intrinsic;         // INTRINSIC: hd_intrinsic_t
  } u;
  const hd_expr_t *operands[];
};

typedef struct hd_expr_info {
  const char *name; // "ADD"
  const char *spelling;
  hd_expr_form_t form;
  int precedence;
  bool commutative;
  hd_expr_payload_t payload;
} hd_expr_info_t;

extern const hd_expr_info_t hd_expr_infos[HD_EXPR_COUNT]; // By kind.
static inline const hd_expr_info_t *hd_expr_info(hd_expr_kind_t kind) {
  return &hd_expr_infos[kind];
}

typedef struct hd_builtin_info {
  const char *text;
  int64_t least, greatest;
  bool host; // Allowed in launch expressions only.
} hd_builtin_info_t;

const hd_builtin_info_t *hd_builtin_info(hd_builtin_t builtin);

// Constructors. They fold nothing and check nothing (the parser and the
// verifier do); the operands' array is copied. Result types follow from the
// operands where no type is given.
const hd_expr_t *hd_expr_int(hd_arena_t *arena, hd_type_t type, int64_t value);
const hd_expr_t *hd_expr_float(hd_arena_t *arena, hd_type_t type, double value);
const hd_expr_t *hd_expr_bool(hd_arena_t *arena, bool value);
const hd_expr_t *hd_expr_i32(hd_arena_t *arena, int64_t value);
const hd_expr_t *hd_expr_var(hd_arena_t *arena, const hd_var_t *var);
const hd_expr_t *hd_expr_builtin(hd_arena_t *arena, hd_builtin_t builtin);
const hd_expr_t *hd_expr_unary(hd_arena_t *arena, hd_expr_kind_t kind,
                               const hd_expr_t *a);
const hd_expr_t *hd_expr_binary(hd_arena_t *arena, hd_expr_kind_t kind,
                                const hd_expr_t *a, const hd_expr_t *b);
const hd_expr_t *hd_expr_select(hd_arena_t *arena, const hd_expr_t *condition,
                                const hd_expr_t *then,
                                const hd_expr_t *otherwise);
// a itself where it has that type.
const hd_expr_t *hd_expr_cast(hd_arena_t *arena, hd_type_t type,
                              const hd_expr_t *a);
// kind: LOAD, LOADELSE (indices, then the default) or REF.
const hd_expr_t *hd_expr_access(hd_arena_t *arena, hd_expr_kind_t kind,
                                const hd_var_t *tensor, unsigned lanes,
                                const hd_expr_t *const *operands,
                                unsigned num_operands);
// LOAD or REF of the storage's element at offset: t@[offset].
const hd_expr_t *hd_expr_access_linear(hd_arena_t *arena, hd_expr_kind_t kind,
                                       const hd_var_t *tensor, unsigned lanes,
                                       const hd_expr_t *offset);
// Any node; payload and location are taken from like (may be NULL).
const hd_expr_t *hd_expr_make(hd_arena_t *arena, hd_expr_kind_t kind,
                              hd_type_t type, const hd_expr_t *like,
                              const hd_expr_t *const *operands,
                              unsigned num_operands);

// e with other operands, as many; e itself where they are the same.
const hd_expr_t *hd_expr_with(hd_arena_t *arena, const hd_expr_t *e,
                              const hd_expr_t *const *operands);

static inline bool hd_expr_is_const(const hd_expr_t *e) {
  return e->kind == HD_EXPR_CONST;
}
static inline bool hd_expr_is_access(const hd_expr_t *e) {
  return e->kind == HD_EXPR_LOAD || e->kind == HD_EXPR_LOADELSE ||
         e->kind == HD_EXPR_REF;
}
// Nothing is computed for it, so it may stand wherever its value is needed.
static inline bool hd_expr_is_trivial(const hd_expr_t *e) {
  return e->kind == HD_EXPR_CONST || e->kind == HD_EXPR_VAR ||
         e->kind == HD_EXPR_BUILTIN;
}
// Whether operand i is evaluated only where it is needed: the branches of ?:,
// the right side of && and ||, what stands for an element out of bounds.
static inline bool hd_expr_is_lazy(const hd_expr_t *e, unsigned i) {
  return e->kind == HD_EXPR_LOADELSE
             ? i + 1 == e->num_operands
             : i > 0 && (e->kind == HD_EXPR_SELECT || e->kind == HD_EXPR_AND ||
                         e->kind == HD_EXPR_OR);
}
// How many of an access's operands are indices.
static inline unsigned hd_expr_num_indices(const hd_expr_t *e) {
  return e->num_operands - (e->kind == HD_EXPR_LOADELSE);
}

// Whether an operator (a kind of form UNARY, BINARY, COMPARE or CALL) is
// defined for operands of a type.
bool hd_expr_defined(hd_expr_kind_t kind, hd_type_t type);
// The number of nodes of a tree, shared ones counted each time; at most limit.
size_t hd_expr_count(const hd_expr_t *e, size_t limit);
// Of a CONST.
static inline hd_number_t hd_expr_number(const hd_expr_t *e) {
  return hd_type_is_float(e->type) ? (hd_number_t){.f = e->u.f}
                                   : (hd_number_t){.i = e->u.i};
}
// True where e is an integer constant equal to value.
bool hd_expr_is_int(const hd_expr_t *e, int64_t value);
// Structural equality; locations do not matter.
bool hd_expr_equal(const hd_expr_t *a, const hd_expr_t *b);
// Whether what equals a part is evaluated with an expression, whatever its
// conditions come to.
bool hd_expr_evaluates(const hd_expr_t *e, const hd_expr_t *part);
// Equal expressions have equal hashes.
uint64_t hd_expr_hash(const hd_expr_t *e);

// What a scalar expression is worth, by the rules of docs/IR.md, the same as
// the emitted code gives; its type says which member of value is set. False
// where that is not known: it reads memory, or divides by zero where it is
// evaluated, or is of a type that is not computed here (floats but f32 and
// f64).
typedef struct hd_fold {
  // Gives leaves (VAR, BUILTIN) their value; false: it has none. May be NULL.
  bool (*leaf)(void *argument, const hd_expr_t *leaf, hd_number_t *value);
  void *argument;
  // Set, and the expression worth nothing, where a signed sum, difference or
  // product does not fit its type. NULL: integers wrap.
  bool *wrapped;
} hd_fold_t;
bool hd_expr_value(const hd_fold_t *fold, const hd_expr_t *e,
                   hd_number_t *value);
// As a constant, of constants alone: NULL where it is not known.
const hd_expr_t *hd_expr_fold(hd_arena_t *arena, const hd_expr_t *e);
// An integer or bool expression over constants alone.
bool hd_expr_fold_int(const hd_expr_t *e, int64_t *value);
// A number rounded to a float type, as a store and a load would. (More of such
// arithmetic: IR/Scalar.h.)
double hd_float_round(hd_scalar_t scalar, double value);

#endif
