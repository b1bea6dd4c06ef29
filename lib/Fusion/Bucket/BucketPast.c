// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What terms are where an index is past its extent. A sum of products over p
// takes nothing from there where both operands are 0, a softmax nothing where
// its operand is -inf: then the task stays what it is, and what knows it (rules
// of rewriting, templates, attention) knows it still. Results are followed,
// too: the softmax is 0 there, and so need not be made 0 for the product behind
// it.

#include "Fusion/Bucket/BucketState.h"

#include <math.h>
#include <string.h>

typedef enum past_kind {
  PAST_SAME,  // It does not depend on the index.
  PAST_VALUE, // A number.
  PAST_OPEN,  // Anything.
} past_kind_t;

typedef struct past {
  past_kind_t kind;
  double value;
} past_t;

typedef struct looker {
  hd_bucket_node_t *n;
  bool assumes; // That inputs may be made so: notes it. Else what they are.
  double assumed;
} looker_t;

static const past_t same = {PAST_SAME, 0}, open = {PAST_OPEN, 0};

static past_t past_number(double value) {
  return isnan(value) ? open : (past_t){PAST_VALUE, value};
}

static past_t look(looker_t *l, const hd_term_t *term, const hd_index_t *g);

// --- Seals ---

static size_t input_of(const hd_bucket_node_t *n,
                       const hd_task_value_t *value) {
  size_t i = 0;
  while (i < n->flat->inputs.size && n->flat->inputs.data[i] != value)
    i++;
  return i;
}

// Has an input be a number past an extent of an axis. False where it has to be
// another one there already.
static bool seal(hd_bucket_node_t *n, size_t input, unsigned axis,
                 double value) {
  hd_bucket_seal_t *s = &n->seals[input];
  const hd_bucket_tensor_t *t = hd_bucket_tensor(n->b, n->node->inputs[input]);
  if (s->wanted && s->value != value)
    return false;
  s->wanted = true;
  s->value = value;
  if (!t->known[axis] || t->past[axis] != value)
    s->any = s->axes[axis] = true;
  return true;
}

// What an input is past the extent of an axis.
static past_t look_input(looker_t *l, const hd_task_value_t *value,
                         unsigned axis) {
  hd_bucket_node_t *n = l->n;
  size_t i = input_of(n, value);
  const hd_bucket_seal_t *s = n->seals ? &n->seals[i] : NULL;
  const hd_bucket_tensor_t *t = hd_bucket_flat_tensor(n, value);
  if (s && s->any && s->axes[axis])
    return past_number(s->value);
  if (l->assumes)
    return seal(n, i, axis, l->assumed) ? past_number(l->assumed) : open;
  return t->known[axis] && !(s && s->any) ? past_number(t->past[axis]) : open;
}

// --- Terms ---

static const hd_definition_t *definition_of(const hd_bucket_node_t *n,
                                            const hd_task_value_t *value) {
  for (size_t i = 0; i < n->flat->definitions.size; i++)
    if (n->flat->definitions.data[i]->targets[0] == value)
      return n->flat->definitions.data[i];
  return NULL;
}

static past_t look_load(looker_t *l, const hd_term_t *term,
                        const hd_index_t *g) {
  unsigned rank = term->u.value->rank;
  past_t found = same;
  for (unsigned i = 0; i < rank; i++) {
    if (!hd_flat_uses(term->operands[i], g))
      continue;
    if (found.kind != PAST_SAME || !hd_bucket_links(l->n, term, i))
      return open;
    const hd_definition_t *d = definition_of(l->n, term->u.value);
    if (d && d->num_targets > 1)
      return open;
    found =
        d ? look(l, d->term, d->indices[i]) : look_input(l, term->u.value, i);
  }
  return term->kind == HD_TERM_LOADELSE ? open : found;
}

static past_t look_operator(looker_t *l, const hd_term_t *term,
                            const hd_index_t *g) {
  past_t a = look(l, term->operands[0], g);
  past_t c = term->num_operands > 1 ? look(l, term->operands[1], g) : same;
  if (a.kind == PAST_OPEN || c.kind == PAST_OPEN)
    return open;
  bool both = a.kind == PAST_VALUE && c.kind == PAST_VALUE;
  // The other one is finite, or the result is NaN without what is past, too.
  bool infinite = isinf(a.kind == PAST_VALUE ? a.value : c.value);
  double sign = term->u.op == HD_EXPR_SUB && a.kind != PAST_VALUE ? -1 : 1;
  switch (term->u.op) {
  case HD_EXPR_MUL:
    return both ? past_number(a.value * c.value) : open;
  case HD_EXPR_ADD:
    return both       ? past_number(a.value + c.value)
           : infinite ? past_number(a.kind == PAST_VALUE ? a.value : c.value)
                      : open;
  case HD_EXPR_SUB:
    return both ? past_number(a.value - c.value)
           : infinite
               ? past_number(sign * (a.kind == PAST_VALUE ? a.value : c.value))
               : open;
  case HD_EXPR_DIV:
    return c.kind == PAST_SAME && a.value == 0 ? past_number(0) : open;
  case HD_EXPR_NEG:
    return past_number(-a.value);
  default:
    return open;
  }
}

static past_t look_function(looker_t *l, const hd_term_t *term,
                            const hd_index_t *g) {
  past_t a = look(l, term->operands[0], g);
  for (unsigned i = 1; i < term->num_operands; i++)
    if (look(l, term->operands[i], g).kind != PAST_SAME)
      return open;
  if (a.kind != PAST_VALUE || term->num_operands > 1)
    return open;
  switch (term->u.function) {
  case HD_TASK_EXP:
    return a.value == 0 || isinf(a.value) ? past_number(exp(a.value)) : open;
  case HD_TASK_ABS:
    return past_number(fabs(a.value));
  default:
    return open;
  }
}

static past_t look_select(looker_t *l, const hd_term_t *term,
                          const hd_index_t *g) {
  past_t a = look(l, term->operands[1], g);
  past_t c = look(l, term->operands[2], g);
  bool equal =
      a.kind == PAST_VALUE && c.kind == PAST_VALUE && a.value == c.value;
  return equal ? a : open;
}

static bool is_number(const hd_term_t *term, past_t *number) {
  if (term->kind != HD_TERM_CONST)
    return false;
  *number = past_number(hd_type_is_float(hd_type(term->type.scalar))
                            ? term->u.f
                            : (double)term->u.i);
  return true;
}

// An access to a constant of one element, the same at all sizes.
static bool is_constant(const hd_bucket_node_t *n, const hd_term_t *term,
                        past_t *number) {
  bool loads = hd_flat_is_load(term);
  if (!loads || hd_flat_count(term->u.value) != 1)
    return false;
  size_t i = input_of(n, term->u.value);
  const hd_value_t *value =
      i < n->flat->inputs.size ? n->node->inputs[i] : NULL;
  if (!value || !value->constant || hd_bucket_stands(n->b, value) != value)
    return false;
  const hd_host_tensor_t *data = hd_constant_load(n->b->module, value);
  if (data)
    *number = past_number(hd_host_tensor_get(data, 0));
  return data != NULL;
}

static past_t look(looker_t *l, const hd_term_t *term, const hd_index_t *g) {
  past_t number;
  if (is_number(term, &number) || is_constant(l->n, term, &number))
    return number;
  if (!hd_flat_uses(term, g))
    return same;
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    return look_load(l, term, g);
  case HD_TERM_OPERATOR:
    return look_operator(l, term, g);
  case HD_TERM_FUNCTION:
    return look_function(l, term, g);
  case HD_TERM_SELECT:
    return look_select(l, term, g);
  case HD_TERM_CAST: {
    past_t a = look(l, term->operands[0], g);
    bool floats = hd_type_is_float(hd_type(term->type.scalar)) &&
                  hd_type_is_float(hd_type(term->operands[0]->type.scalar));
    bool kept =
        a.kind != PAST_VALUE || a.value == 0 ||
        (floats && isinf(a.value) && hd_scalar_bits(term->type.scalar) >= 16);
    return kept ? a : open;
  }
  default:
    return open;
  }
}

// --- Whether a task takes nothing from there ---

static bool is_identity(const hd_term_t *term, double value) {
  bool is_float = hd_type_is_float(hd_type(term->type.scalar));
  switch (term->u.reduction->monoid->builtin) {
  case HD_MONOID_SUM:
    return value == 0;
  case HD_MONOID_MAX:
    return is_float && value == -INFINITY;
  case HD_MONOID_MIN:
    return is_float && value == INFINITY;
  default:
    return false;
  }
}

typedef struct trial {
  looker_t look;
  bool ok;
} trial_t;

static void try_reduction(trial_t *t, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  hd_bucket_node_t *n = t->look.n;
  t->ok &= term->kind == HD_TERM_REDUCE && term->num_operands == 1;
  for (uint32_t i = 0; t->ok && i < r->num_indices; i++) {
    if (!hd_digits_vary(&hd_bucket_index(n, r->indices[i])->digits))
      continue;
    past_t past = look(&t->look, term->operands[0], r->indices[i]);
    t->ok = past.kind == PAST_VALUE && is_identity(term, past.value);
  }
}

// What an access past an extent is taken for, outside.
static void try_guard(trial_t *t, const hd_term_t *term) {
  hd_bucket_node_t *n = t->look.n;
  const hd_bucket_tensor_t *tensor = hd_bucket_flat_tensor(n, term->u.value);
  unsigned rank = term->u.value->rank;
  size_t input = input_of(n, term->u.value);
  for (unsigned i = 0; t->ok && i < rank; i++) {
    if (hd_bucket_links(n, term, i) || !hd_digits_vary(&tensor->axes[i]))
      continue;
    past_t value;
    t->ok = input < n->flat->inputs.size &&
            is_number(term->operands[rank], &value) &&
            value.kind == PAST_VALUE && seal(n, input, i, value.value);
  }
}

static bool try_term(void *argument, const hd_term_t *term) {
  trial_t *t = argument;
  if (t->ok && hd_flat_is_reduction(term) && hd_bucket_reduces(t->look.n, term))
    try_reduction(t, term);
  if (t->ok && term->kind == HD_TERM_LOADELSE)
    try_guard(t, term);
  return t->ok;
}

static bool try_number(hd_bucket_node_t *n, double assumed) {
  trial_t t = {.look = {n, true, assumed}, .ok = true};
  memset(n->seals, 0, (n->flat->inputs.size + 1) * sizeof(*n->seals));
  for (size_t i = 0; t.ok && i < n->flat->definitions.size; i++)
    hd_flat_walk(n->flat->definitions.data[i]->term, try_term, &t);
  return t.ok;
}

bool hd_bucket_find_seals(hd_bucket_node_t *n) {
  n->seals =
      HD_ARENA_ARRAY(n->b->arena, hd_bucket_seal_t, n->flat->inputs.size + 1);
  return try_number(n, 0) || try_number(n, -INFINITY) ||
         try_number(n, INFINITY);
}

void hd_bucket_find_past(hd_bucket_node_t *n) {
  looker_t l = {n, false, 0};
  for (size_t k = 0; k < n->flat->outputs.size; k++) {
    const hd_task_value_t *output = n->flat->outputs.data[k];
    hd_bucket_tensor_t *t = hd_bucket_flat_tensor(n, output);
    const hd_definition_t *d = definition_of(n, output);
    for (unsigned i = 0; d && t && i < output->rank; i++) {
      if (d->num_targets > 1 || !hd_digits_vary(&t->axes[i]))
        continue;
      past_t past = look(&l, d->term, d->indices[i]);
      t->known[i] = past.kind == PAST_VALUE;
      t->past[i] = past.value;
    }
  }
}
