// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which flat tasks are products whose columns stand in pairs.
#include "Schedule/Product/Pairs.h"
#include "Schedule/Terms/Affine.h"

static const char no_pairs[] = "it is no product whose columns stand in pairs";

typedef struct finder {
  hd_arena_t *arena;
  const hd_definition_t *d;             // Of y.
  const hd_task_value_t *t;             // The product.
  const hd_index_t *indices[3];         // z, i and the pair.
  const hd_term_t *places[HD_MAX_RANK]; // Of y, by them.
  const hd_variable_t *cells[2];
  bool fits;
} finder_t;

static bool is_pointwise(const hd_definition_t *d) {
  return d->kind == HD_DEFINE && d->num_targets == 1 &&
         d->targets[0]->kind == HD_VALUE_OUTPUT &&
         !hd_flat_has(d->term, HD_TERM_REDUCE) &&
         !hd_flat_has(d->term, HD_TERM_SCAN);
}

// Which of its pair an element of the product is: 0, 1; 2: of another.
static unsigned which_of(const finder_t *f, const hd_term_t *load) {
  int64_t shape[HD_MAX_RANK], own[3];
  const hd_term_t *at[3];
  for (uint32_t i = 0; i < f->t->rank; i++)
    shape[i] = hd_flat_size(f->t, i);
  for (int i = 0; i < 3; i++) {
    own[i] = hd_flat_range(f->indices[i]);
    at[i] = hd_flat_index(f->arena, f->indices[i]);
  }
  own[2] *= 2;
  const hd_term_t *even = hd_flat_operate_int(f->arena, HD_EXPR_MUL, at[2], 2);
  hd_index_place_t given = {f->t->rank, shape, load->operands};
  unsigned which = 0;
  for (; which < 2; which++) {
    at[2] = hd_flat_operate_int(f->arena, HD_EXPR_ADD, even, which);
    if (hd_index_same_number(f->arena, &given, &(hd_index_place_t){3, own, at}))
      break;
  }
  return which;
}

// For hd_flat_rewrite(): indices of y's definition are places of a pair's
// element, and what it reads of the product are cells.
static const hd_term_t *put_cells(void *argument, const hd_term_t *term) {
  finder_t *f = argument;
  for (uint32_t i = 0; term->kind == HD_TERM_INDEX && i < f->d->num_indices;
       i++)
    if (f->d->indices[i] == term->u.index)
      return f->places[i];
  term = hd_index_simplify_load(f->arena, term);
  bool loads = hd_flat_is_load(term);
  if (!loads || term->u.value != f->t)
    return term;
  unsigned which = term->kind == HD_TERM_LOAD ? which_of(f, term) : 2;
  f->fits &= which < 2;
  if (!f->fits)
    return term;
  hd_term_t *cell = hd_term_make(f->arena, HD_TERM_BOUND, f->t->type, NULL, 0);
  cell->u.variable = f->cells[which];
  return cell;
}

// y over z, i and the pair, counted row-major.
static void set_places(finder_t *f, hd_form_tensor_t *c) {
  const hd_task_value_t *y = f->d->targets[0];
  int64_t shape[HD_MAX_RANK];
  const hd_term_t *own[3];
  for (int i = 0; i < 3; i++)
    own[i] = hd_flat_index(f->arena, f->indices[i]);
  for (uint32_t i = 0; i < y->rank; i++)
    shape[i] = hd_flat_size(y, i);
  hd_index_places(f->arena, hd_index_linear(f->arena, c->shape, 3, own), shape,
                  y->rank, f->places);
}

const char *hd_pairs_product_find(hd_arena_t *arena,
                                  const hd_definition_t *const *data,
                                  size_t count, hd_product_form_t *form) {
  if (count == 1)
    return hd_product_form_find_few(arena, data[0], form);
  const char *why = hd_normed_definitions_find(arena, data, count, form);
  return why                                           ? why
         : !form->normed->parts || form->normed->keeps ? no_pairs
                                                       : NULL;
}

const char *hd_pairs_form_find(hd_arena_t *arena, const hd_task_t *flat,
                               hd_product_form_t *form) {
  size_t count = flat->definitions.size;
  if (count != 2 && count != 3)
    return no_pairs;
  const hd_definition_t *product = flat->definitions.data[count - 2];
  const hd_definition_t *last = flat->definitions.data[count - 1];
  if (!hd_flat_is_local(product) || !is_pointwise(last) ||
      hd_pairs_product_find(arena, flat->definitions.data, count - 1, form) ||
      form->c.same != product->targets[0] || form->sizes[HD_AXIS_N] % 2 != 0 ||
      hd_flat_count(last->targets[0]) * 2 != hd_flat_count(form->c.same) ||
      last->num_indices != last->targets[0]->rank)
    return no_pairs;
  finder_t f = {
      .arena = arena, .d = last, .t = product->targets[0], .fits = true};
  int64_t pairs = form->sizes[HD_AXIS_N] / 2;
  f.indices[0] = form->c.indices[0];
  f.indices[1] = form->c.indices[1];
  f.indices[2] = hd_flat_index_make(arena, "j", pairs);
  for (int i = 0; i < 2; i++) {
    hd_variable_t *cell = HD_ARENA_NEW(arena, hd_variable_t);
    *cell = (hd_variable_t){.name = i ? "second" : "first", .type = f.t->type};
    f.cells[i] = cell;
  }
  form->c.same = NULL;
  form->c.indices[2] = f.indices[2];
  form->c.shape[2] = form->c.pitch = pairs;
  set_places(&f, &form->c);
  const hd_term_t *value = hd_flat_rewrite(arena, last->term, put_cells, &f);
  if (!f.fits)
    return no_pairs;
  form->result.d = last;
  form->result.reduced.cell = f.cells[0];
  form->result.second = f.cells[1];
  form->result.value = value;
  for (uint32_t i = 0; i < last->num_indices; i++)
    form->result.places[i] = f.places[i];
  return NULL;
}
