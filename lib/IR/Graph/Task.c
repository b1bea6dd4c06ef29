// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Graph/Task.h"

#include <assert.h>
#include <string.h>

static const hd_task_function_info_t functions[] = {
#define HD_TASK_FUNCTION(name, text, arity, instructions)                      \
  {text, arity, instructions},
#include "IR/Graph/TaskFunctions.def"
#undef HD_TASK_FUNCTION
};

const hd_task_function_info_t *
hd_task_function_info(hd_task_function_t function) {
  return &functions[function];
}

const char *hd_term_kind_text(hd_term_kind_t kind) {
  static const char *const texts[] = {
#define HD_TERM(name, text) text,
#include "IR/Graph/Terms.def"
#undef HD_TERM
  };
  return texts[kind];
}

const char *hd_scan_part_name(hd_scan_part_t part) {
  static const char *const names[] = {"to", "before", "from", "after"};
  return names[part];
}

static const struct {
  const char *name;
  hd_expr_kind_t op;
} monoids[] = {
#define HD_MONOID(name, text, op) {text, HD_EXPR_##op},
#include "IR/Graph/Monoids.def"
#undef HD_MONOID
};

hd_expr_kind_t hd_monoid_operator(hd_builtin_monoid_t monoid) {
  return monoids[monoid].op;
}

const char *hd_monoid_name(hd_builtin_monoid_t monoid) {
  return monoids[monoid].name;
}

const char *hd_limit_name(hd_limit_t limit) {
  return limit == HD_LIMIT_LARGEST ? "largest" : "smallest";
}

bool hd_task_type_equal(hd_task_type_t a, hd_task_type_t b) {
  return a.var == b.var && (a.var || a.scalar == b.scalar);
}

const char *hd_task_type_name(hd_task_type_t type) {
  return type.var ? type.var->name : hd_scalar_name(type.scalar);
}

static_assert(HD_SCALAR_COUNT <= 32, "a bit for each scalar");

static const uint32_t float_scalars = 0
#define HD_SCALAR(scalar, text, bits, class, digits, most, least)              \
  | (uint32_t)(HD_CLASS_##class == HD_CLASS_FLOAT) << HD_##scalar
#include "IR/Scalars.def"
#undef HD_SCALAR
    ;
static const uint32_t integer_scalars = 0
#define HD_SCALAR(scalar, text, bits, class, digits, most, least)              \
  | (uint32_t)(HD_CLASS_##class == HD_CLASS_SIGNED ||                          \
               HD_CLASS_##class == HD_CLASS_UNSIGNED)                          \
          << HD_##scalar
#include "IR/Scalars.def"
#undef HD_SCALAR
    ;

uint32_t hd_scalar_set(const char *name) {
  uint32_t numbers = float_scalars | integer_scalars;
  return strcmp(name, "float") == 0     ? float_scalars
         : strcmp(name, "integer") == 0 ? integer_scalars
         : strcmp(name, "number") == 0  ? numbers
         : strcmp(name, "any") == 0     ? numbers | UINT32_C(1) << HD_BOOL
                                        : 0;
}

bool hd_task_type_is_float(hd_task_type_t type) {
  return !(hd_task_type_scalars(type) & ~float_scalars);
}

hd_scalar_t hd_scalar_accumulator(hd_scalar_t scalar) {
  hd_type_t type = hd_type(scalar);
  if (hd_type_is_float(type))
    return scalar == HD_F64 ? HD_F64 : HD_F32;
  if (hd_scalar_bits(scalar) >= 32 || hd_type_is_bool(type))
    return scalar;
  // Sums of bytes are what tensor cores have them in, whatever their sign.
  bool is_signed = hd_type_is_signed(type) || hd_scalar_bits(scalar) <= 8;
  return is_signed ? HD_I32 : HD_U32;
}

bool hd_task_is_same_item(const hd_task_t *a, const hd_task_t *b) {
  return a == b || (a && b && a->text && a->text == b->text);
}

const char *hd_task_order_fault(const hd_task_value_t *value) {
  const hd_task_value_t *by = value->by;
  uint32_t rank = value->rank;
  if (!by)
    return NULL;
  if (by->kind != HD_VALUE_ATTRIBUTE || by->type.var)
    return "is no attribute that says an order";
  if (!by->pack && by->type.scalar == HD_BOOL)
    return rank >= 2 && !value->shape[rank - 1]->pack &&
                   !value->shape[rank - 2]->pack
               ? NULL
               : "is a bool, for a tensor whose last two axes are no pack";
  if (!by->pack || by->type.scalar != HD_I64)
    return "is neither a bool nor an i64 over a pack";
  return rank == 1 && value->shape[0]->kind == HD_TERM_PACK &&
                 hd_pack_root(value->shape[0]->u.pack) == hd_pack_root(by->pack)
             ? NULL
             : "is over another pack than the one that is the shape";
}

bool hd_task_type_is_free(hd_task_type_t type) {
  return type.var && !type.var->accumulates && !type.var->either[0];
}

uint32_t hd_task_type_scalars(hd_task_type_t type) {
  if (!type.var)
    return UINT32_C(1) << type.scalar;
  uint32_t set = 0;
  for (int i = 0; i < 2 && type.var->either[i]; i++)
    set |= hd_task_type_scalars((hd_task_type_t){HD_VOID, type.var->either[i]});
  if (!type.var->accumulates)
    return set ? set : type.var->scalars;
  for (int i = 0; i < HD_SCALAR_COUNT; i++)
    if (type.var->accumulates->scalars >> i & 1)
      set |= UINT32_C(1) << hd_scalar_accumulator((hd_scalar_t)i);
  return set;
}

hd_term_t *hd_term_make(hd_arena_t *arena, hd_term_kind_t kind,
                        hd_task_type_t type, const hd_term_t *const *operands,
                        unsigned count) {
  hd_term_t *term =
      hd_arena_alloc(arena, sizeof *term + count * sizeof operands[0]);
  term->kind = (uint8_t)kind;
  term->type = type;
  term->num_operands = (uint16_t)count;
  unsigned height = 0;
  for (unsigned i = 0; i < count; i++) {
    term->operands[i] = operands[i];
    if (operands[i]->height > height)
      height = operands[i]->height;
  }
  term->height = (uint16_t)(height < UINT16_MAX ? height + 1 : height);
  if (count)
    term->loc = operands[0]->loc;
  return term;
}

bool hd_term_equal(const hd_term_t *a, const hd_term_t *b) {
  if (a == b)
    return true;
  if (a->kind != b->kind || !hd_task_type_equal(a->type, b->type) ||
      a->pack != b->pack || a->num_operands != b->num_operands)
    return false;
  bool has_payload = a->kind != HD_TERM_SELECT && a->kind != HD_TERM_CAST &&
                     a->kind != HD_TERM_BITCAST;
  // Payloads are of one size but for these.
  if (a->kind == HD_TERM_OPERATOR   ? a->u.op != b->u.op
      : a->kind == HD_TERM_FUNCTION ? a->u.function != b->u.function
      : a->kind == HD_TERM_LIMIT    ? a->u.limit != b->u.limit
                                    : has_payload && a->u.i != b->u.i)
    return false;
  for (unsigned i = 0; i < a->num_operands; i++)
    if (!hd_term_equal(a->operands[i], b->operands[i]))
      return false;
  return true;
}

const hd_pack_t *hd_pack_root(const hd_pack_t *pack) {
  return pack->like ? pack->like : pack;
}

bool hd_pack_reaches(const hd_pack_t *from, const hd_pack_t *to) {
  if (from == to)
    return true;
  for (uint32_t i = 0; from && i < from->num_parts; i++)
    if (hd_pack_reaches(hd_pack_root(from->parts[i]), to))
      return true;
  return false;
}

// --- Names ---

const hd_task_value_t *hd_task_find_value(const hd_task_t *task,
                                          const char *name) {
  for (size_t i = 0; i < task->inputs.size; i++)
    if (strcmp(task->inputs.data[i]->name, name) == 0)
      return task->inputs.data[i];
  for (size_t i = 0; i < task->outputs.size; i++)
    if (strcmp(task->outputs.data[i]->name, name) == 0)
      return task->outputs.data[i];
  for (size_t i = 0; i < task->locals.size; i++)
    if (strcmp(task->locals.data[i]->name, name) == 0)
      return task->locals.data[i];
  return NULL;
}

const hd_task_value_t *hd_task_find_attribute(const hd_task_t *task,
                                              const char *name) {
  for (size_t i = 0; i < task->inputs.size; i++)
    if (task->inputs.data[i]->kind == HD_VALUE_ATTRIBUTE &&
        strcmp(task->inputs.data[i]->name, name) == 0)
      return task->inputs.data[i];
  return NULL;
}

const hd_pack_t *hd_task_find_pack(const hd_task_t *task, const char *name) {
  for (size_t i = 0; i < task->packs.size; i++)
    if (task->packs.data[i]->name &&
        strcmp(task->packs.data[i]->name, name) == 0)
      return task->packs.data[i];
  return NULL;
}

const hd_size_t *hd_task_find_size(const hd_task_t *task, const char *name) {
  for (size_t i = 0; i < task->sizes.size; i++)
    if (strcmp(task->sizes.data[i]->name, name) == 0)
      return task->sizes.data[i];
  return NULL;
}

hd_type_var_t *hd_task_find_type(const hd_task_t *task, const char *name) {
  for (size_t i = 0; i < task->types.size; i++)
    if (strcmp(task->types.data[i]->name, name) == 0)
      return task->types.data[i];
  return NULL;
}
