// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks that read extents: flat tasks of one input more, `extents`. Numbers
// that differ with the size are read there; reductions leave out what is not
// real; what may read outside where it is not real is not evaluated there.

#include "Fusion/Bucket/BucketState.h"
#include "Graph/Bind/Arithmetic.h"

#include <string.h>

static bool is_name_of(const hd_task_t *flat, const char *name) {
  for (size_t i = 0; i < flat->inputs.size; i++)
    if (!strcmp(flat->inputs.data[i]->name, name))
      return true;
  for (size_t i = 0; i < flat->outputs.size; i++)
    if (!strcmp(flat->outputs.data[i]->name, name))
      return true;
  for (size_t i = 0; i < flat->locals.size; i++)
    if (!strcmp(flat->locals.data[i]->name, name))
      return true;
  return false;
}

hd_task_value_t *hd_bucket_extents(hd_bucketer_t *b, const hd_task_t *flat) {
  hd_task_value_t *value = HD_ARENA_NEW(b->arena, hd_task_value_t);
  const hd_term_t **shape = HD_ARENA_ARRAY(b->arena, const hd_term_t *, 1);
  const char *name = "extents";
  while (is_name_of(flat, name))
    name = hd_arena_printf(b->arena, "%s_", name);
  shape[0] = b->num_extents;
  *value = (hd_task_value_t){.name = name,
                             .kind = HD_VALUE_INPUT,
                             .type = hd_flat_type(HD_I64),
                             .rank = 1,
                             .shape = shape};
  return value;
}

const hd_term_t *hd_bucket_read(hd_bucketer_t *b,
                                const hd_task_value_t *extents, int slot) {
  hd_bucket_record_t *record = b->record;
  size_t i = 0;
  while (i < record->read.size && record->read.data[i] != slot)
    i++;
  if (i == record->read.size)
    hd_vec_push(b->arena, &record->read, slot);
  const hd_term_t *place = hd_flat_int(b->arena, HD_I64, (int64_t)i);
  return hd_flat_load(b->arena, extents, &place);
}

// --- What is real ---

const hd_term_t *hd_bucket_both(hd_arena_t *arena, const hd_term_t *a,
                                const hd_term_t *b) {
  return !a ? b : !b ? a : hd_flat_operate(arena, HD_EXPR_AND, a, b);
}

const hd_term_t *hd_bucket_real(hd_bucketer_t *b,
                                const hd_task_value_t *extents,
                                const hd_term_t *place,
                                const hd_digits_t *axis) {
  const hd_term_t *real = NULL;
  int64_t stride = 1;
  for (unsigned i = axis->count; i-- > 0;) {
    hd_extent_t d = axis->digits[i];
    if (hd_extent_varies(d)) {
      const hd_term_t *digit = place;
      if (stride > 1)
        digit = hd_flat_operate_int(b->arena, HD_EXPR_DIV, digit, stride);
      if (i > 0)
        digit = hd_flat_operate_int(b->arena, HD_EXPR_MOD, digit, d.bound);
      real = hd_bucket_both(b->arena,
                            hd_flat_operate(b->arena, HD_EXPR_LT, digit,
                                            hd_bucket_read(b, extents, d.slot)),
                            real);
    }
    stride *= d.bound;
  }
  return real;
}

// --- Terms ---

typedef struct changer {
  hd_bucket_node_t *n;
  const hd_task_value_t *extents;
} changer_t;

static const hd_term_t *cast(hd_arena_t *arena, hd_term_kind_t kind,
                             hd_scalar_t type, const hd_term_t *term) {
  return term->type.scalar == type
             ? term
             : hd_term_make(arena, kind, hd_flat_type(type), &term, 1);
}

static const hd_term_t *read_number(const changer_t *c, const hd_term_t *term) {
  hd_bucketer_t *b = c->n->b;
  hd_extent_t number = hd_bucket_number(b, term, 0);
  hd_scalar_t type = (hd_scalar_t)term->type.scalar;
  if (!hd_extent_varies(number))
    return term;
  const hd_term_t *read = hd_bucket_read(b, c->extents, number.slot);
  if (hd_type_is_float(hd_type(type))) // Its bits.
    read = cast(b->arena, HD_TERM_BITCAST, HD_F64, read);
  return cast(b->arena, HD_TERM_CAST, type, read);
}

static const hd_term_t *leave_out(const changer_t *c, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  hd_arena_t *arena = c->n->b->arena;
  const hd_term_t *operands[8], *real = NULL;
  if (!hd_bucket_reduces(c->n, term) || term->num_operands > 8)
    return term;
  for (uint32_t i = 0; i < r->num_indices; i++)
    real = hd_bucket_both(
        arena, real,
        hd_bucket_real(c->n->b, c->extents, hd_flat_index(arena, r->indices[i]),
                       &hd_bucket_index(c->n, r->indices[i])->digits));
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] = hd_flat_select(
        arena, real, term->operands[i],
        hd_flat_identity(arena, r->monoid, i,
                         (hd_scalar_t)term->operands[i]->type.scalar));
  return hd_flat_rebuild(arena, term, operands);
}

// Past an extent is outside.
static const hd_term_t *guard(const changer_t *c, const hd_term_t *term) {
  const hd_bucket_tensor_t *t = hd_bucket_flat_tensor(c->n, term->u.value);
  const hd_term_t *real = NULL;
  hd_arena_t *arena = c->n->b->arena;
  for (unsigned i = 0; i < term->u.value->rank; i++)
    if (!hd_bucket_links(c->n, term, i))
      real = hd_bucket_both(
          arena, real,
          hd_bucket_real(c->n->b, c->extents, term->operands[i], &t->axes[i]));
  return real ? hd_flat_select(arena, real, term,
                               term->operands[term->num_operands - 1u])
              : term;
}

// A place that data choose, past an extent, is past the bound: an index that is
// outside the tensor is so at each size.
static const hd_term_t *check_places(const changer_t *c,
                                     const hd_term_t *term) {
  const hd_task_value_t *value = term->u.value;
  const hd_bucket_tensor_t *t = hd_bucket_flat_tensor(c->n, value);
  const hd_term_t *operands[HD_MAX_RANK];
  hd_arena_t *arena = c->n->b->arena;
  for (unsigned i = 0; i < value->rank; i++) {
    operands[i] = term->operands[i];
    if (!hd_digits_vary(&t->axes[i]) || hd_bucket_links(c->n, term, i) ||
        !hd_bucket_is_chosen(c->n, operands[i]))
      continue;
    const hd_term_t *place = hd_flat_cast(arena, operands[i], HD_I64);
    operands[i] = hd_flat_select(
        arena, hd_bucket_real(c->n->b, c->extents, place, &t->axes[i]), place,
        hd_flat_int(arena, HD_I64, hd_flat_size(value, i)));
  }
  return hd_flat_rebuild(arena, term, operands);
}

static const hd_term_t *change(void *argument, const hd_term_t *term) {
  const changer_t *c = argument;
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
    return read_number(c, term);
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
    return leave_out(c, term);
  case HD_TERM_LOAD:
    return term->u.value == c->extents ? term : check_places(c, term);
  case HD_TERM_LOADELSE:
    return guard(c, term);
  default:
    return term;
  }
}

// --- Definitions ---

static const hd_term_t *zero(hd_arena_t *arena, const hd_term_t *like) {
  hd_scalar_t type = (hd_scalar_t)like->type.scalar;
  return hd_type_is_float(hd_type(type)) ? hd_flat_float(arena, type, 0)
                                         : hd_flat_int(arena, type, 0);
}

// Evaluated at real places alone.
static const hd_term_t *where_real(const changer_t *c, const hd_definition_t *d,
                                   const hd_term_t *term) {
  hd_arena_t *arena = c->n->b->arena;
  const hd_term_t *real = NULL;
  for (uint32_t i = 0; i < d->num_indices; i++)
    real = hd_bucket_both(
        arena, real,
        hd_bucket_real(c->n->b, c->extents, hd_flat_index(arena, d->indices[i]),
                       &hd_bucket_index(c->n, d->indices[i])->digits));
  return real ? hd_flat_select(arena, real, term, zero(arena, term)) : term;
}

static hd_definition_t *change_definition(changer_t *c,
                                          const hd_definition_t *d) {
  hd_definition_t *made = HD_ARENA_COPY(c->n->b->arena, hd_definition_t, d);
  made->term = hd_flat_rewrite(c->n->b->arena, d->term, change, c);
  if (c->n->risks && d->num_targets == 1)
    made->term = where_real(c, d, made->term);
  return made;
}

hd_task_t *hd_bucket_task(hd_bucket_node_t *n) {
  hd_bucketer_t *b = n->b;
  changer_t c = {n, hd_bucket_extents(b, n->flat)};
  hd_task_t *task = HD_ARENA_COPY(b->arena, hd_task_t, n->flat);
  memset(&task->definitions, 0, sizeof(task->definitions));
  memset(&task->inputs, 0, sizeof(task->inputs));
  for (size_t i = 0; i < n->flat->inputs.size; i++)
    hd_vec_push(b->arena, &task->inputs, n->flat->inputs.data[i]);
  hd_vec_push(b->arena, &task->inputs, c.extents);
  for (size_t i = 0; i < n->flat->definitions.size; i++) {
    const hd_definition_t *d = n->flat->definitions.data[i];
    if (n->risks && d->num_targets > 1)
      return NULL;
    hd_vec_push(b->arena, &task->definitions,
                (const hd_definition_t *)change_definition(&c, d));
  }
  return task;
}

static bool has_load(const hd_term_t *term, const hd_task_value_t *of) {
  if (hd_flat_is_load(term) && term->u.value == of)
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (has_load(term->operands[i], of))
      return true;
  return term->kind == HD_TERM_SCAN && has_load(term->u.reduction->at, of);
}

bool hd_bucket_reads(const hd_task_t *task) {
  const hd_task_value_t *extents = task->inputs.data[task->inputs.size - 1];
  for (size_t i = 0; i < task->definitions.size; i++)
    if (has_load(task->definitions.data[i]->term, extents))
      return true;
  return false;
}

// --- Types ---

// Puts a type variable in the place of a float.
typedef struct typer {
  hd_arena_t *arena;
  hd_scalar_t type; // HD_VOID: none was met.
  hd_type_var_t *var;
  hd_ptr_map_t values;
} typer_t;

static bool is_of_one(typer_t *t, hd_scalar_t type) {
  if (!hd_type_is_float(hd_type(type)))
    return true;
  if (t->type == HD_VOID)
    t->type = type;
  return t->type == type;
}

static bool are_of_one(typer_t *t, const hd_term_t *term) {
  bool same = is_of_one(t, (hd_scalar_t)term->type.scalar);
  for (unsigned i = 0; same && i < term->num_operands; i++)
    same = are_of_one(t, term->operands[i]);
  return same;
}

static hd_task_type_t typed(const typer_t *t, hd_task_type_t type) {
  return type.scalar == t->type ? (hd_task_type_t){HD_VOID, t->var} : type;
}

static const hd_task_value_t *typed_value(typer_t *t,
                                          const hd_task_value_t *value) {
  const hd_task_value_t *known = hd_ptr_map_get(&t->values, value);
  if (known)
    return known;
  hd_task_value_t *made = HD_ARENA_COPY(t->arena, hd_task_value_t, value);
  made->type = typed(t, value->type);
  hd_ptr_map_set(t->arena, &t->values, value, made);
  return made;
}

static const hd_term_t *typed_term(typer_t *t, const hd_term_t *term) {
  const hd_term_t *operands[HD_MAX_RANK + 1];
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] = typed_term(t, term->operands[i]);
  hd_term_t *made =
      hd_term_make(t->arena, (hd_term_kind_t)term->kind, typed(t, term->type),
                   operands, term->num_operands);
  made->u = term->u;
  made->loc = term->loc;
  if (hd_flat_is_load(term))
    made->u.value = typed_value(t, term->u.value);
  return made;
}

// One definition, without reductions, conversions and functions.
static bool may_be_typed(const hd_term_t *term) {
  bool may = term->num_operands <= HD_MAX_RANK + 1 &&
             !hd_flat_is_reduction(term) && term->kind != HD_TERM_BITCAST &&
             term->kind != HD_TERM_LIMIT;
  for (unsigned i = 0; may && i < term->num_operands; i++)
    may = may_be_typed(term->operands[i]);
  return may;
}

hd_task_t *hd_bucket_generalize(hd_bucketer_t *b, hd_task_t *task) {
  const hd_definition_t *d = task->definitions.data[0];
  typer_t t = {.arena = b->arena, .type = HD_VOID};
  if (task->definitions.size != 1 || task->outputs.size != 1 ||
      d->kind != HD_DEFINE || !may_be_typed(d->term) ||
      !are_of_one(&t, d->term) || t.type == HD_VOID ||
      task->outputs.data[0]->type.scalar != t.type ||
      hd_task_arithmetic(task) != HD_ARITHMETIC_NONE)
    return task;
  t.var = HD_ARENA_NEW(b->arena, hd_type_var_t);
  *t.var = (hd_type_var_t){
      .name = "T", .scalars = hd_scalar_set("float"), .restricted = true};
  hd_task_t *made = HD_ARENA_NEW(b->arena, hd_task_t);
  hd_definition_t *definition = HD_ARENA_NEW(b->arena, hd_definition_t);
  const hd_task_value_t **target =
      HD_ARENA_ARRAY(b->arena, const hd_task_value_t *, 1);
  *made = (hd_task_t){.name = task->name, .loc = task->loc};
  hd_vec_push(b->arena, &made->types, t.var);
  for (size_t i = 0; i < task->inputs.size; i++)
    hd_vec_push(b->arena, &made->inputs, typed_value(&t, task->inputs.data[i]));
  target[0] = typed_value(&t, task->outputs.data[0]);
  hd_vec_push(b->arena, &made->outputs, target[0]);
  *definition = *d;
  definition->targets = target;
  definition->term = typed_term(&t, d->term);
  hd_vec_push(b->arena, &made->definitions,
              (const hd_definition_t *)definition);
  return made;
}
