// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which axes are last in memory, from those who want it so:
//
//   y[b, f, i, j] = sum(p, u, v) x[b, p, i + u, j + v] * w[f, p, u, v]
//   y[b, f, i, j] = sum(u, v) x[b, f, i + u, j + v] * w[f, u, v]
//   y[b, f, i, j] = max(u, v) x[b, f, i + u, j + v]
//
// A product wants the axis that it sums over, p; windows of each channel by
// itself, f, so that neighbours along f, which are read and weighed alike, are
// who reads them; where nothing is weighed, and inputs or outputs have channels
// elsewhere, they would be turned for nothing. A line of one axis of windows
// has neighbours along that. What products want goes before.
#include "Fusion/Fuse.h"
#include "Fusion/Layout/LayoutState.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Rules/Rules.h"

// A definition of a node's task.
typedef struct seeder {
  hd_layouts_t *l;
  const hd_node_t *node;
  const hd_task_t *flat;
  const hd_definition_t *d;
} seeder_t;

static const hd_term_t *without_cast(const hd_term_t *term) {
  return term->kind == HD_TERM_CAST ? term->operands[0] : term;
}

// The graph's value that a load reads; NULL: it is none, or reads another.
static hd_laid_value_t *operand_of(const seeder_t *s, const hd_term_t *load) {
  return hd_flat_is_load(load)
             ? hd_laid_value(s->l,
                             hd_node_input_of(s->node, s->flat, load->u.value))
             : NULL;
}

static bool has_one(const hd_value_t *value, int axis) {
  int64_t size;
  return hd_expr_fold_int(value->shape[axis], &size) && size == 1;
}

// Whether an axis is last as it is.
static bool is_last(const hd_value_t *value, unsigned axis) {
  for (int i = (int)axis + 1; i < value->rank; i++)
    if (!has_one(value, i))
      return false;
  return true;
}

static void choose(hd_layouts_t *l, hd_laid_value_t *x, unsigned axis,
                   unsigned count) {
  if (x->fixed || x->prepared || x->last.axis >= 0 || is_last(x->value, axis))
    return;
  if (!hd_step(&l->module->context->steps, HD_STEP_FUSION,
               "of axis %u of '%s', which is last in memory", axis,
               hd_value_label(x->value)))
    return;
  x->last = (hd_last_t){(int)axis, count};
  hd_vec_push(l->arena, &l->chosen, x);
}

static bool is_whole_pieces(const hd_term_t *load, unsigned axis) {
  int64_t piece =
      HD_LAYOUT_PIECE_BITS / (int64_t)hd_scalar_bits(load->type.scalar);
  return hd_flat_size(load->u.value, axis) % piece == 0;
}

// --- Products ---

// Whether an axis that a sum runs along would be read in whole pieces if it
// were last; *axis is which.
static bool has_axis(const hd_contraction_t *sum, const hd_term_t *load,
                     unsigned *axis) {
  bool found = false;
  for (uint32_t a = 0; hd_flat_is_load(load) && a < load->u.value->rank; a++) {
    const hd_term_t *place = load->operands[a];
    if (place->kind != HD_TERM_INDEX ||
        !hd_flat_is_among(sum->k.indices, sum->k.count, place->u.index) ||
        !is_whole_pieces(load, a))
      continue;
    found = true;
    *axis = a;
  }
  return found;
}

static void seed_operand(const seeder_t *s, const hd_contraction_t *sum,
                         const hd_term_t *term, const hd_term_t *other) {
  const hd_term_t *load = without_cast(term);
  hd_laid_value_t *x = operand_of(s, load);
  hd_laid_value_t *w = operand_of(s, without_cast(other));
  unsigned axis;
  if (x && w && w->prepared && has_axis(sum, load, &axis))
    choose(s->l, x, axis, 1);
}

static void seed_product(const seeder_t *s) {
  hd_contraction_t sum;
  const hd_product_form_t *form =
      hd_product_forms_get(&s->l->forms, s->l->arena, s->d);
  if (!form || !hd_product_contraction_find(s->l->arena, s->d, &sum))
    return;
  if (form->a.piece != HD_FORM_WIDE)
    seed_operand(s, &sum, sum.a, sum.b);
  if (form->b.piece != HD_FORM_WIDE)
    seed_operand(s, &sum, sum.b, sum.a);
}

// --- Windows ---

// The axis of an image that is one of the result's, too, and of the weights,
// where there are some: the longest of those, beside two axes or more that
// windows slide along. -1: there is none.
static int find_channel(const seeder_t *s, const hd_reduction_t *sum,
                        const hd_term_t *x, const hd_term_t *w) {
  unsigned sliding = 0;
  int channel = -1;
  for (uint32_t a = 0; a < x->u.value->rank; a++) {
    const hd_term_t *place = x->operands[a];
    bool slides = false;
    for (uint32_t i = 0; i < sum->num_indices; i++)
      slides |=
          place->kind != HD_TERM_INDEX && hd_flat_uses(place, sum->indices[i]);
    sliding += slides;
    if (place->kind != HD_TERM_INDEX || hd_flat_range(place->u.index) == 1 ||
        !hd_flat_is_among(s->d->indices, s->d->num_indices, place->u.index) ||
        (w && !hd_flat_uses(w, place->u.index)))
      continue;
    if (is_whole_pieces(x, a) &&
        (channel < 0 || hd_flat_size(x->u.value, a) >
                            hd_flat_size(x->u.value, (unsigned)channel)))
      channel = (int)a;
  }
  return sliding > 1 ? channel : -1;
}

// Whether an axis is one of a value whose layout is given, an input's or an
// output's, through nodes that leave elements in their order alone: then it
// would be turned there, and nothing is gained.
static bool meets_fixed(const seeder_t *s, hd_laid_value_t *image, int axis) {
  typedef struct place {
    hd_laid_value_t *value;
    int axis;
  } place_t;
  HD_VEC(place_t) all = {0};
  hd_ptr_map_t met = {0};
  place_t first = {image, axis};
  hd_ptr_map_set(s->l->arena, &met, image, image);
  hd_vec_push(s->l->arena, &all, first);
  for (size_t i = 0; i < all.size; i++) {
    place_t at = all.data[i];
    if (at.value->fixed)
      return true;
    for (size_t n = 0; n < at.value->links.size; n++) {
      const hd_layout_link_t *link = &at.value->links.data[n];
      if (link->last.axis != at.axis || hd_ptr_map_get(&met, link->other))
        continue;
      place_t next = {link->other, link->other_last.axis};
      hd_ptr_map_set(s->l->arena, &met, link->other, link->other);
      hd_vec_push(s->l->arena, &all, next);
    }
  }
  return false;
}

static void seed_image(const seeder_t *s, const hd_reduction_t *sum,
                       const hd_term_t *x, const hd_term_t *w) {
  hd_laid_value_t *image = operand_of(s, x);
  hd_laid_value_t *weights = w ? operand_of(s, w) : NULL;
  if (!image || (w && (!weights || !weights->prepared)))
    return;
  int axis = find_channel(s, sum, x, w);
  if (axis >= 0 && (w || !meets_fixed(s, image, axis)))
    choose(s->l, image, (unsigned)axis, 1);
}

static void seed_windows(const seeder_t *s) {
  hd_reduced_t reduced;
  if (s->d->kind != HD_DEFINE || !hd_reduced_find(s->l->arena, s->d, &reduced))
    return;
  const hd_reduction_t *sum = reduced.reduction->u.reduction;
  const hd_term_t *term = without_cast(reduced.reduction->operands[0]);
  if (hd_flat_is_load(term)) {
    seed_image(s, sum, term, NULL);
  } else if (term->kind == HD_TERM_OPERATOR && term->u.op == HD_EXPR_MUL) {
    const hd_term_t *a = without_cast(term->operands[0]);
    const hd_term_t *b = without_cast(term->operands[1]);
    seed_image(s, sum, a, b);
    seed_image(s, sum, b, a);
  }
}

// --- All ---

static void spread(hd_layouts_t *l) {
  for (size_t i = 0; i < l->chosen.size; i++) {
    hd_laid_value_t *x = l->chosen.data[i];
    // First who has all of its axes, then who has the last one.
    for (int whole = 1; whole >= 0; whole--)
      for (size_t n = 0; n < x->links.size; n++) {
        const hd_layout_link_t *link = &x->links.data[n];
        if (link->last.axis == x->last.axis &&
            (!whole || link->last.count == x->last.count))
          choose(l, link->other, (unsigned)link->other_last.axis,
                 whole ? link->other_last.count : 1);
      }
  }
}

static void seed(hd_layouts_t *l, void (*want)(const seeder_t *)) {
  for (size_t n = 0; n < l->graph->nodes.size; n++) {
    seeder_t s = {l, l->graph->nodes.data[n], l->flats[n], NULL};
    for (size_t i = 0; s.flat && i < s.flat->definitions.size; i++) {
      s.d = s.flat->definitions.data[i];
      want(&s);
    }
  }
  spread(l);
}

void hd_layouts_seed(hd_layouts_t *l) {
  seed(l, seed_product);
  seed(l, seed_windows);
}
