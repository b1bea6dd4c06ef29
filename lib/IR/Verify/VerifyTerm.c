// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Terms of tasks: what they read is known before them, indices are bound, types
// and packs fit.
#include "IR/Verify/TaskVerifier.h"

void hd_task_fault(hd_task_verifier_t *v, hd_loc_t loc, const char *format,
                   ...) {
  va_list args;
  va_start(args, format);
  hd_error(v->diags, loc, HD_E0310, hd_arena_vprintf(&v->arena, format, args));
  va_end(args);
  v->errors++;
}

static bool is_subset(hd_task_type_t type, const char *set) {
  return !(hd_task_type_scalars(type) & ~hd_scalar_set(set));
}

void hd_expect_type(hd_task_verifier_t *v, const hd_term_t *term,
                    hd_task_type_t type) {
  if (hd_task_type_equal(term->type, type))
    return;
  hd_error(v->diags, term->loc, HD_E0203, hd_task_type_name(type),
           hd_task_type_name(term->type));
  v->errors++;
}

void hd_expect_i64(hd_task_verifier_t *v, const hd_term_t *term) {
  hd_expect_type(v, term, (hd_task_type_t){HD_I64, NULL});
}

void hd_expect_single(hd_task_verifier_t *v, const hd_term_t *term) {
  if (term->pack)
    hd_task_fault(v, term->loc, "a pack of values stands where one is needed");
}

bool hd_term_is_known(hd_term_kind_t kind) {
  switch (kind) {
  case HD_TERM_CONST:
  case HD_TERM_LIMIT:
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_PERMUTE:
  case HD_TERM_ATTRIBUTE:
  case HD_TERM_OPERATOR:
  case HD_TERM_SELECT:
  case HD_TERM_CAST:
    return true;
  case HD_TERM_INDEX:
  case HD_TERM_BOUND:
  case HD_TERM_BITCAST:
  case HD_TERM_FUNCTION:
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
  case HD_TERM_COUNT:
    break;
  }
  return false;
}

bool hd_term_is_shape(const hd_term_t *term) {
  if (!hd_term_is_known((hd_term_kind_t)term->kind))
    return false;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!hd_term_is_shape(term->operands[i]))
      return false;
  return true;
}

void hd_verify_extent(hd_task_verifier_t *v, const hd_term_t *term,
                      const char *what) {
  hd_verify_term(v, term);
  hd_expect_i64(v, term);
  if (!hd_term_is_shape(term))
    hd_task_fault(v, term->loc,
                  "%s is computed from sizes, attributes and constants alone",
                  what);
}

bool hd_task_is_defined(const hd_task_verifier_t *v,
                        const hd_task_value_t *value) {
  if (value->kind == HD_VALUE_INPUT || value->kind == HD_VALUE_ATTRIBUTE)
    return true;
  for (size_t i = 0; i < v->defined.size; i++)
    if (v->defined.data[i] == value)
      return true;
  return false;
}

void hd_expect_defined(hd_task_verifier_t *v, const hd_task_value_t *value,
                       hd_loc_t loc) {
  if (!hd_task_is_defined(v, value))
    hd_task_fault(v, loc, "'%s' is read before it is defined", value->name);
}

// operands index the axes of shape.
void hd_verify_axes(hd_task_verifier_t *v, const hd_task_value_t *value,
                    const hd_term_t *const *operands, unsigned count,
                    hd_loc_t loc) {
  if (count != value->rank) {
    hd_error(v->diags, loc, HD_E0207, value->name,
             hd_rank_text(&v->arena, value->rank, count));
    v->errors++;
    return;
  }
  for (unsigned i = 0; i < count; i++) {
    const hd_pack_t *axes = value->shape[i]->pack;
    if (!is_subset(operands[i]->type, "integer"))
      hd_task_fault(v, operands[i]->loc, "an index has type %s",
                    hd_task_type_name(operands[i]->type));
    if (!axes != !operands[i]->pack)
      hd_task_fault(v, operands[i]->loc,
                    axes ? "these axes are indexed by a pack, '..'"
                         : "this axis is indexed by one value");
    else if (axes && !hd_pack_reaches(operands[i]->pack, axes))
      hd_task_fault(
          v, operands[i]->loc,
          "an index over one pack does not index another that does not "
          "broadcast to it");
  }
}

static bool is_in_scope(const hd_task_verifier_t *v, const hd_index_t *index) {
  for (size_t i = v->indices.size; i-- > 0;)
    if (v->indices.data[i] == index)
      return true;
  return false;
}

static bool is_variable_of(const hd_monoid_t *monoid,
                           const hd_variable_t *variable) {
  for (uint32_t i = 0; monoid && i < monoid->size; i++)
    if (monoid->left[i] == variable || monoid->right[i] == variable)
      return true;
  return false;
}

// Defined for every scalar that the type may be.
bool hd_task_op_is_defined(hd_expr_kind_t op, hd_task_type_t type) {
  uint32_t scalars = hd_task_type_scalars(type);
  for (int i = 0; i < HD_SCALAR_COUNT; i++)
    if (scalars >> i & 1 && !hd_expr_defined(op, hd_type((hd_scalar_t)i)))
      return false;
  return true;
}

static void verify_operator(hd_task_verifier_t *v, const hd_term_t *term) {
  const hd_expr_info_t *info = hd_expr_info(term->u.op);
  unsigned arity = info->form == HD_FORM_UNARY ? 1 : 2;
  if (info->form == HD_FORM_LEAF || info->form == HD_FORM_OTHER ||
      term->num_operands != arity) {
    hd_task_fault(v, term->loc, "%s is no operator of %u operands", info->name,
                  term->num_operands);
    return;
  }
  const hd_term_t *a = term->operands[0];
  if (!hd_task_op_is_defined(term->u.op, a->type)) {
    hd_error(v->diags, term->loc, HD_E0205, info->spelling,
             hd_task_type_name(a->type));
    v->errors++;
  }
  if (arity == 2) {
    const hd_term_t *b = term->operands[1];
    hd_expect_type(v, b, a->type);
    if (a->pack && b->pack && a->pack != b->pack)
      hd_task_fault(v, term->loc, "the operands are packs of different axes");
  }
  bool compares = info->form == HD_FORM_COMPARE;
  hd_expect_type(v, term, compares ? (hd_task_type_t){HD_BOOL, NULL} : a->type);
}

void hd_verify_ranges(hd_task_verifier_t *v, const hd_index_t *const *indices,
                      unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    hd_verify_extent(v, indices[i]->range, "a range");
    if (is_in_scope(v, indices[i]))
      hd_task_fault(v, indices[i]->loc, "'%s' is bound twice",
                    indices[i]->name);
  }
  for (unsigned i = 0; i < count; i++)
    hd_vec_push(&v->arena, &v->indices, indices[i]);
}

static void verify_reduction(hd_task_verifier_t *v, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  const hd_monoid_t *monoid = r->monoid;
  bool is_declared = monoid->builtin == HD_MONOID_COUNT;
  size_t outer = v->indices.size;
  if (term->kind == HD_TERM_SCAN) {
    hd_verify_term(v, r->at);
    hd_expect_i64(v, r->at);
    hd_expect_single(v, r->at);
    if (r->num_indices != 1 || r->indices[0]->range->pack)
      hd_task_fault(v, term->loc, "a scan runs along one axis");
  }
  if (monoid->in_order &&
      (term->kind != HD_TERM_SCAN ||
       (r->part != HD_SCAN_TO && r->part != HD_SCAN_BEFORE)))
    hd_task_fault(v, term->loc, "'%s', a fold, is for scans from the left",
                  monoid->name);
  hd_verify_ranges(v, r->indices, r->num_indices);
  unsigned size = is_declared ? monoid->size : 1;
  if (term->num_operands != size) {
    hd_error(v->diags, term->loc, HD_E0206, monoid->name, (int)size,
             size == 1 ? "component" : "components", (int)term->num_operands);
    v->errors++;
  }
  for (unsigned i = 0; i < term->num_operands; i++) {
    hd_verify_term(v, term->operands[i]);
    hd_expect_single(v, term->operands[i]);
    if (is_declared && i < size)
      hd_expect_type(v, term->operands[i], monoid->left[i]->type);
  }
  v->indices.size = outer;
  if (!is_declared && term->num_operands &&
      !hd_task_op_is_defined(hd_monoid_operator(monoid->builtin),
                             term->operands[0]->type)) {
    hd_error(v->diags, term->loc, HD_E0205, monoid->name,
             hd_task_type_name(term->operands[0]->type));
    v->errors++;
  }
}

// A size that the data decides stands in a signature, and after it is defined.
void hd_verify_data_size(hd_task_verifier_t *v, const hd_term_t *term) {
  bool known = !v->in_definitions || !term->u.size->bound;
  for (size_t i = 0; !known && i < v->sizes.size; i++)
    known = v->sizes.data[i] == term->u.size;
  if (!known)
    hd_task_fault(v, term->loc, "the size '%s' is used before it is defined",
                  term->u.size->name);
}

static void verify_leaf(hd_task_verifier_t *v, const hd_term_t *term) {
  if (term->kind == HD_TERM_SIZE)
    hd_verify_data_size(v, term);
  else if (term->kind == HD_TERM_INDEX && !is_in_scope(v, term->u.index)) {
    hd_error(v->diags, term->loc, HD_E0301, term->u.index->name);
    v->errors++;
  } else if (term->kind == HD_TERM_BOUND &&
             (v->in_identity || !is_variable_of(v->monoid, term->u.variable))) {
    hd_error(v->diags, term->loc, HD_E0301, term->u.variable->name);
    v->errors++;
  } else if (term->kind == HD_TERM_ATTRIBUTE &&
             term->u.value->kind != HD_VALUE_ATTRIBUTE) {
    hd_task_fault(v, term->loc, "'%s' is no attribute", term->u.value->name);
  }
}

// Of whatever the types may be; a bool has no bits of its own.
static bool same_bits(hd_task_type_t a, hd_task_type_t b) {
  uint32_t scalars = hd_task_type_scalars(a) | hd_task_type_scalars(b);
  unsigned bits = 0;
  for (int i = 0; i < HD_SCALAR_COUNT; i++) {
    unsigned these = hd_scalar_bits((hd_scalar_t)i);
    if (!(scalars >> i & 1))
      continue;
    if (i == HD_BOOL || these == 0 || (bits && these != bits))
      return false;
    bits = these;
  }
  return true;
}

static void verify_one(hd_task_verifier_t *v, const hd_term_t *term) {
  unsigned count = term->num_operands;
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_LIMIT:
    if (is_subset(term->type, "number"))
      break;
    hd_error(v->diags, term->loc, HD_E0205, hd_limit_name(term->u.limit),
             hd_task_type_name(term->type));
    v->errors++;
    break;
  case HD_TERM_CONST:
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_INDEX:
  case HD_TERM_ATTRIBUTE:
  case HD_TERM_BOUND:
    verify_leaf(v, term);
    break;
  case HD_TERM_PERMUTE:
    hd_verify_extent(v, term->operands[1], "an order");
    break;
  case HD_TERM_OPERATOR:
    verify_operator(v, term);
    break;
  case HD_TERM_SELECT:
    hd_expect_type(v, term->operands[0], (hd_task_type_t){HD_BOOL, NULL});
    hd_expect_type(v, term->operands[1], term->type);
    hd_expect_type(v, term->operands[2], term->type);
    break;
  case HD_TERM_CAST:
    if (hd_task_type_equal(term->type, term->operands[0]->type))
      hd_task_fault(v, term->loc, "a conversion to the type at hand");
    break;
  case HD_TERM_BITCAST:
    if (!same_bits(term->type, term->operands[0]->type))
      hd_task_fault(v, term->loc, "a bitcast between types of different sizes");
    break;
  case HD_TERM_FUNCTION:
    if (count != hd_task_function_info(term->u.function)->arity ||
        !is_subset(term->type, "float")) {
      hd_error(v->diags, term->loc, HD_E0205,
               hd_task_function_info(term->u.function)->name,
               hd_task_type_name(term->type));
      v->errors++;
    }
    for (unsigned i = 0; i < count; i++)
      hd_expect_type(v, term->operands[i], term->type);
    break;
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    hd_expect_defined(v, term->u.value, term->loc);
    count -= term->kind == HD_TERM_LOADELSE;
    hd_verify_axes(v, term->u.value, term->operands, count, term->loc);
    hd_expect_type(v, term, term->u.value->type);
    if (term->kind == HD_TERM_LOADELSE)
      hd_expect_type(v, term->operands[count], term->type);
    break;
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
  case HD_TERM_COUNT:
    break;
  }
}

void hd_verify_term(hd_task_verifier_t *v, const hd_term_t *term) {
  if (term->kind == HD_TERM_REDUCE || term->kind == HD_TERM_SCAN) {
    verify_reduction(v, term);
    return;
  }
  for (unsigned i = 0; i < term->num_operands; i++) {
    const hd_term_t *operand = term->operands[i];
    hd_verify_term(v, operand);
    bool is_tuple =
        (operand->kind == HD_TERM_REDUCE || operand->kind == HD_TERM_SCAN) &&
        operand->num_operands > 1;
    if (is_tuple)
      hd_task_fault(v, operand->loc,
                    "a tuple is no operand: define several tensors");
  }
  verify_one(v, term);
}
