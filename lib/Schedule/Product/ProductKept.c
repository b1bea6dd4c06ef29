// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a product's matrix is computed from, where that is a narrower tensor
// that has an element for each of the matrix's, in their order: weights of 4
// bits beside scales of groups of them.
//
//   b[z, j, p] = f16((f32(q[j, p]) - 8) * f32(s[j, p / 128]))
//
// A kernel may copy q as it lies, and have b computed where it multiplies.
#include "Schedule/Product/Product.h"
#include "Schedule/Terms/Affine.h"

enum { MOST_ALIKE = 1 << 16 };

typedef struct finder {
  hd_arena_t *arena;
  hd_product_form_t *form;
  const hd_task_value_t *kept;
} finder_t;

// Whether a load is of the tensor's element that is the operand's.
static bool is_element(const finder_t *f, const hd_term_t *term) {
  return term->kind == HD_TERM_LOAD &&
         hd_scalar_bits(term->u.value->type.scalar) <
             hd_scalar_bits(f->form->type) &&
         hd_form_tensor_is(f->arena, &f->form->b, term->u.value,
                           term->operands);
}

static bool is_no_element(void *argument, const hd_term_t *term) {
  finder_t *f = argument;
  if (is_element(f, term))
    f->kept = term->u.value;
  return !f->kept;
}

static const hd_term_t *put_cell(void *argument, const hd_term_t *term) {
  finder_t *f = argument;
  if (term->kind != HD_TERM_LOAD || term->u.value != f->kept ||
      !is_element(f, term))
    return term;
  hd_term_t *cell = hd_term_make(f->arena, HD_TERM_BOUND, term->type, NULL, 0);
  cell->u.variable = f->form->b.cell;
  return cell;
}

typedef struct pieces {
  hd_arena_t *arena;
  const hd_index_t *last, *rest;
  const hd_term_t *as;
  bool has_rest;
} pieces_t;

static const hd_term_t *put_pieces(void *argument, const hd_term_t *term) {
  const pieces_t *p = argument;
  if (term->kind == HD_TERM_INDEX && term->u.index == p->last)
    return p->as;
  return hd_index_simplify_load(p->arena, term);
}

static bool note_rest(void *argument, const hd_term_t *term) {
  pieces_t *p = argument;
  p->has_rest |= term->kind == HD_TERM_INDEX && term->u.index == p->rest;
  return !p->has_rest;
}

// Whether the term is the same for `size` neighbours along the sum, from a
// multiple of so many on: for that index as piece * size + rest.
static bool is_alike(hd_arena_t *arena, const hd_term_t *term,
                     const hd_form_tensor_t *b, int64_t size) {
  pieces_t p = {.arena = arena, .last = b->indices[2]};
  const hd_index_t *piece =
      hd_flat_index_make(arena, "piece", (b->shape[2] + size - 1) / size);
  p.rest = hd_flat_index_make(arena, "rest", size);
  p.as = hd_flat_operate(arena, HD_EXPR_ADD,
                         hd_flat_operate_int(arena, HD_EXPR_MUL,
                                             hd_flat_index(arena, piece), size),
                         hd_flat_index(arena, p.rest));
  hd_flat_walk(hd_flat_rewrite(arena, term, put_pieces, &p), note_rest, &p);
  return !p.has_rest;
}

void hd_product_kept_find(hd_arena_t *arena, hd_product_form_t *form) {
  finder_t f = {.arena = arena, .form = form};
  if (!form->rows || form->b.same || hd_flat_is_load(form->b.term))
    return;
  hd_flat_walk(form->b.term, is_no_element, &f);
  if (!f.kept)
    return;
  hd_variable_t *cell = HD_ARENA_NEW(arena, hd_variable_t);
  *cell = (hd_variable_t){.name = "kept", .type = f.kept->type};
  form->b.cell = cell;
  form->b.through = hd_flat_rewrite(arena, form->b.term, put_cell, &f);
  form->kept = form->b;
  form->kept.term = form->kept.through = NULL;
  form->kept.same = f.kept;
  form->alike = MOST_ALIKE;
  while (form->alike > 1 &&
         !is_alike(arena, form->b.through, &form->b, form->alike))
    form->alike /= 2;
}
