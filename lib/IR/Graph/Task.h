// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks: what an operator computes, element by element (docs/IR.md, "Tasks").
// A task is a list of definitions; each says every element of one or several
// tensors by a term over their indices. Everything is immutable once made and
// lives in the module's arena.
//
// To evaluate a task: bind types, sizes and packs by the inputs' shapes; take
// the definitions in order; run over the domain of each (the ranges of its
// indices) and evaluate its terms. To derive index maps: the operands of a
// LOAD are terms over the indices in scope.
#ifndef HIDET_IR_GRAPH_TASK_H
#define HIDET_IR_GRAPH_TASK_H

#include "IR/Module.h"
#include "IR/Scalar.h"

// Operands that a list stands for, at most.
enum { HD_MAX_LISTED = 64 };

typedef struct hd_term hd_term_t;

typedef enum hd_term_kind {
#define HD_TERM(name, text) HD_TERM_##name,
#include "IR/Graph/Terms.def"
#undef HD_TERM
  HD_TERM_COUNT
} hd_term_kind_t;

typedef enum hd_task_function {
#define HD_TASK_FUNCTION(name, text, arity, instructions) HD_TASK_##name,
#include "IR/Graph/TaskFunctions.def"
#undef HD_TASK_FUNCTION
  HD_TASK_FUNCTION_COUNT
} hd_task_function_t;

typedef enum hd_builtin_monoid {
#define HD_MONOID(name, text, op) HD_MONOID_##name,
#include "IR/Graph/Monoids.def"
#undef HD_MONOID
  HD_MONOID_COUNT // A declared one.
} hd_builtin_monoid_t;

// A type variable: one of a set of scalars, or the type in which values of
// another one are accumulated (f32 for narrow floats, i32 for narrow integers,
// else itself), or what one of two others stands for, the first one where
// nothing says which.
typedef struct hd_type_var {
  const char *name;
  hd_loc_t loc;
  uint32_t scalars;                      // A bit for each hd_scalar_t.
  bool restricted;                       // By a where clause, which is printed.
  const struct hd_type_var *accumulates; // NULL: it accumulates none.
  const struct hd_type_var *either[2];   // NULL: there is no choice.
} hd_type_var_t;

// A scalar type, or a variable that stands for one.
typedef struct hd_task_type {
  hd_scalar_t scalar;
  const hd_type_var_t *var; // NULL: scalar it is.
} hd_task_type_t;

// A size is bound by the shapes of the inputs, or computed from data and
// bounded (bound is not NULL).
typedef struct hd_size {
  const char *name;
  hd_loc_t loc;
  const hd_term_t *bound;
} hd_size_t;

// Some axes under one name, bound by the shapes of the inputs, or by the values
// of an attribute; or the axes to which other packs broadcast: aligned at the
// right, 1 stretched.
typedef struct hd_pack {
  const char *name; // NULL for a broadcast.
  hd_loc_t loc;
  const struct hd_task_value *attribute; // Whose values its sizes are, or NULL.
  const struct hd_pack *like;            // As many axes as this one, or NULL.
  uint32_t num_parts;
  const struct hd_pack *const *parts;
} hd_pack_t;

// An index with its range, 0 .. range - 1; over a pack where the range is one.
typedef struct hd_index {
  const char *name;
  hd_loc_t loc;
  const hd_term_t *range;
  bool written; // The range stands in the text; else it is that of the tensor
                // defined, or of the first access.
} hd_index_t;

typedef enum hd_value_kind {
  HD_VALUE_INPUT,
  HD_VALUE_ATTRIBUTE, // A number, or one for each axis of a pack.
  HD_VALUE_OUTPUT,
  HD_VALUE_LOCAL,
} hd_value_kind_t;

typedef struct hd_task_value {
  const char *name;
  hd_loc_t loc;
  hd_value_kind_t kind;
  hd_task_type_t type;
  uint32_t rank;                 // Of entries in shape; a pack counts once.
  const hd_term_t *const *shape; // Sizes and packs.
  const hd_pack_t *pack;         // ATTRIBUTE over a pack, else NULL.
  // Of an input, whose axes may lie in another order than the shape has them:
  // the attribute that says it. A bool: the last two have changed places. One
  // over the pack that is the shape: axis n of the shape is the tensor's axis
  // by[n]. NULL: they lie as in the shape.
  const struct hd_task_value *by;
  const hd_term_t *initial; // ATTRIBUTE: its default, or NULL.
} hd_task_value_t;

typedef struct hd_variable {
  const char *name;
  hd_loc_t loc;
  hd_task_type_t type;
} hd_variable_t;

// An associative combination of tuples with an identity.
typedef struct hd_monoid {
  hd_builtin_monoid_t builtin;
  const char *name;
  hd_loc_t loc;
  // Of declared ones, an entry for each component:
  uint32_t size;
  const hd_variable_t *const *left, *const *right;
  const hd_term_t *const *identity, *const *result;
  // A fold: not associative, so combined from the left, one after the other.
  bool in_order;
} hd_monoid_t;

// Which part of the axis a scan combines, i being where it stands.
typedef enum hd_scan_part {
  HD_SCAN_TO,     // 0 .. i
  HD_SCAN_BEFORE, // 0 .. i - 1
  HD_SCAN_FROM,   // i .. n - 1
  HD_SCAN_AFTER,  // i + 1 .. n - 1
  HD_SCAN_PARTS
} hd_scan_part_t;

typedef struct hd_reduction {
  const hd_monoid_t *monoid;
  uint32_t num_indices;
  const hd_index_t *const *indices;
  hd_scan_part_t part; // SCAN, which has one index.
  const hd_term_t *at; // SCAN: where it stands.
} hd_reduction_t;

struct hd_term {
  uint8_t kind; // hd_term_kind_t
  bool untyped; // A bare number that no neighbour gave a type.
  uint16_t num_operands;
  uint16_t height; // As hd_expr_t's.
  hd_task_type_t type;
  const hd_pack_t *pack; // One value for each of its axes (of the pack that it
                         // is like, where it is); NULL: one value.
  hd_loc_t loc;
  union {
    int64_t i;
    double f;
    hd_limit_t limit;
    const hd_size_t *size;
    const hd_pack_t *pack;
    const hd_index_t *index;
    const hd_task_value_t *value;
    const hd_variable_t *variable;
    hd_expr_kind_t op;
    hd_task_function_t function;
    const hd_reduction_t *reduction;
  } u;
  const hd_term_t *operands[];
};

typedef enum hd_definition_kind {
  HD_DEFINE,      // targets[indices] = term, for each point of the domain
  HD_SCATTER,     // for each point of the domain: combine into target[at]
  HD_DEFINE_SIZE, // size = term
  HD_SORT,        // target[.., j, ..] = the r whose term is the j-th
} hd_definition_kind_t;

// What a scatter does with several values for one element.
typedef enum hd_duplicates {
  HD_DUPLICATES_COMBINE, // by the monoid
  HD_DUPLICATES_FIRST,   // in row-major order of the domain
  HD_DUPLICATES_LAST,
} hd_duplicates_t;

typedef struct hd_definition {
  hd_definition_kind_t kind;
  hd_loc_t loc;
  uint32_t num_targets; // More than one: the term is a reduction or a scan.
  const hd_task_value_t *const *targets;
  const hd_size_t *size; // DEFINE_SIZE
  uint32_t num_indices;  // The domain.
  const hd_index_t *const *indices;
  const hd_term_t *term;
  // SCATTER: what is outside is an error of the data, or dropped; elements not
  // met keep the value of onto, or the monoid's identity where that is NULL.
  bool drops;
  hd_duplicates_t duplicates;
  const hd_monoid_t *monoid;
  const hd_term_t *const *at; // An entry for each axis of the target.
  const hd_task_value_t *onto;
  // SORT: the domain is the target's, and behind it the index r that is sorted;
  // its places go along one of the target's indices, which the term does not
  // use. Equal ones keep their order; NaN is greater than all.
  const hd_index_t *along;
  bool descends;
} hd_definition_t;

// A task with a list of operands, x...: its text, and the tasks that it is read
// as, one for each number of operands (hd_task_for(), IR/Text/Parser.h).
typedef struct hd_task_text {
  hd_module_t *module;           // Which all of them belong to.
  const char *text;              // From its first word to its last brace.
  uint32_t source;               // Where the tokens come from.
  const struct hd_token *tokens; // The first is behind the name.
  uint32_t num_others;           // Operands that are none of the list.
  const hd_task_t *tasks[HD_MAX_LISTED]; // Of 1, 2, ...; NULL: not read yet.
} hd_task_text_t;

struct hd_task {
  const char *name;
  hd_loc_t loc;
  hd_task_text_t *text; // That it is read from; NULL: it has no list.
  HD_VEC(hd_type_var_t *) types;
  HD_VEC(const hd_size_t *) sizes;
  HD_VEC(const hd_pack_t *) packs;
  HD_VEC(const hd_task_value_t *) inputs; // And attributes, in order.
  HD_VEC(const hd_task_value_t *) outputs;
  HD_VEC(const hd_task_value_t *) locals;
  HD_VEC(const hd_term_t *) conditions; // where: bool, over sizes
  HD_VEC(const hd_monoid_t *) monoids;
  HD_VEC(const hd_definition_t *) definitions;
};

typedef struct hd_task_function_info {
  const char *name;
  unsigned arity;
  unsigned instructions; // Of one of f32, roughly.
} hd_task_function_info_t;

const hd_task_function_info_t *
hd_task_function_info(hd_task_function_t function);
const char *hd_term_kind_text(hd_term_kind_t kind);
const char *hd_scan_part_name(hd_scan_part_t part);
// The operator of a builtin monoid, and its name.
hd_expr_kind_t hd_monoid_operator(hd_builtin_monoid_t monoid);
const char *hd_monoid_name(hd_builtin_monoid_t monoid);
const char *hd_limit_name(hd_limit_t limit); // "largest"

// What is wrong with the order of a value's axes; NULL: nothing.
const char *hd_task_order_fault(const hd_task_value_t *value);
// Whether a type is one that operands or attributes bind: a variable that
// follows from no other.
bool hd_task_type_is_free(hd_task_type_t type);
bool hd_task_type_equal(hd_task_type_t a, hd_task_type_t b);
const char *hd_task_type_name(hd_task_type_t type);
// The scalars that a type may be, a bit for each.
uint32_t hd_task_type_scalars(hd_task_type_t type);
// Whether it can be nothing but a float.
bool hd_task_type_is_float(hd_task_type_t type);
// A set of scalars by name: "any", "number", "float", "integer"; 0: none such.
uint32_t hd_scalar_set(const char *name);
// The scalar in which sums of another are kept.
hd_scalar_t hd_scalar_accumulator(hd_scalar_t scalar);

// What a name is in a task; NULL: not that.
const hd_task_value_t *hd_task_find_value(const hd_task_t *task,
                                          const char *name);
const hd_task_value_t *hd_task_find_attribute(const hd_task_t *task,
                                              const char *name);
const hd_pack_t *hd_task_find_pack(const hd_task_t *task, const char *name);
const hd_size_t *hd_task_find_size(const hd_task_t *task, const char *name);
hd_type_var_t *hd_task_find_type(const hd_task_t *task, const char *name);

// Whether both are one item of a module: the same, or read from one text.
bool hd_task_is_same_item(const hd_task_t *a, const hd_task_t *b);

// Structural equality; indices and values by address.
bool hd_term_equal(const hd_term_t *a, const hd_term_t *b);
// The pack that has as many axes: the one that it is like, or itself.
const hd_pack_t *hd_pack_root(const hd_pack_t *pack);
// Whether an index over the axes of one pack may index those of another: the
// same, or one that broadcasts to it. Both are roots.
bool hd_pack_reaches(const hd_pack_t *from, const hd_pack_t *to);

// Any term; height and location follow from the operands where there are some.
hd_term_t *hd_term_make(hd_arena_t *arena, hd_term_kind_t kind,
                        hd_task_type_t type, const hd_term_t *const *operands,
                        unsigned count);

// The rules of docs/IR.md; reports every fault.
bool hd_task_verify(hd_context_t *context, const hd_task_t *task);
void hd_task_print(const hd_task_t *task, hd_buffer_t *out);

#endif
