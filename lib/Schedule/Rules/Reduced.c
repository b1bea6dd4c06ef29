// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Definitions that are a function of one reduction.
#include "Schedule/Rules/Rules.h"

typedef struct finder {
  const hd_term_t *found;
  unsigned count;
} finder_t;

// Reductions that are evaluated whatever happens.
static bool find_reductions(void *argument, const hd_term_t *term) {
  finder_t *f = argument;
  if (term->kind == HD_TERM_REDUCE) {
    f->found = term;
    f->count++;
  }
  bool lazy = term->kind == HD_TERM_SELECT || term->kind == HD_TERM_LOADELSE ||
              (term->kind == HD_TERM_OPERATOR &&
               (term->u.op == HD_EXPR_AND || term->u.op == HD_EXPR_OR));
  return term->kind != HD_TERM_REDUCE && term->kind != HD_TERM_SCAN && !lazy;
}

bool hd_reduced_find(hd_arena_t *arena, const hd_definition_t *d,
                     hd_reduced_t *reduced) {
  finder_t f = {0};
  *reduced = (hd_reduced_t){.definition = d};
  hd_flat_walk(d->term, find_reductions, &f);
  if (f.count != 1)
    return false;
  reduced->reduction = f.found;
  reduced->result = f.found;
  if (d->num_targets > 1)
    return true;
  hd_variable_t *cell = HD_ARENA_NEW(arena, hd_variable_t);
  *cell = (hd_variable_t){.name = "reduced", .type = f.found->type};
  hd_term_t *bound = hd_term_make(arena, HD_TERM_BOUND, f.found->type, NULL, 0);
  bound->u.variable = cell;
  reduced->cell = cell;
  reduced->result = hd_flat_replace(arena, d->term, f.found, bound);
  return true;
}

void hd_draft_store_reduced(hd_kernel_draft_t *draft,
                            const hd_reduced_t *reduced,
                            const hd_expr_t *const *values) {
  const hd_definition_t *d = reduced->definition;
  if (!reduced->cell) {
    for (uint32_t i = 0; i < d->num_targets; i++)
      hd_draft_store(draft, d, i, values[i]);
    return;
  }
  hd_ptr_map_set(draft->b.arena, &draft->t.variables, reduced->cell, values[0]);
  hd_draft_store(draft, d, 0, hd_translate(&draft->t, reduced->result));
}

bool hd_can_share(const hd_term_t *reduction) {
  for (unsigned i = 0; i < reduction->num_operands; i++)
    if (hd_scalar_bits(reduction->operands[i]->type.scalar) < 8)
      return false;
  return true;
}

typedef struct contiguity {
  const hd_index_t *index;
  bool found;
} contiguity_t;

static bool is_last(void *argument, const hd_term_t *term) {
  contiguity_t *c = argument;
  if (hd_flat_is_load(term)) {
    uint32_t rank = term->u.value->rank;
    c->found |= rank && hd_flat_uses(term->operands[rank - 1], c->index);
  }
  return !c->found;
}

bool hd_reads_along(const hd_term_t *term, const hd_index_t *const *indices,
                    unsigned count) {
  for (unsigned i = count; i-- > 0;)
    if (hd_flat_range(indices[i]) > 1) {
      contiguity_t c = {indices[i], false};
      hd_flat_walk(term, is_last, &c);
      return c.found;
    }
  return false;
}
