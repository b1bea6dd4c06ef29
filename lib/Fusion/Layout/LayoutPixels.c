// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images of a few channels that a kernel reads as they lie, pixel by pixel. Of
// these only the weights are written anew, elements of the window before
// channels, which are filled up to 8 bytes, and what they make of them last:
//
//   y[b, f, i, j] = sum(p: 3, u: 7, v: 7) x[b, p, i * 2 + u - 3, j * 2 + v - 3]
//   else 0 * w[f, p, u, v]
//
// becomes
//
//   pixels[u, v, e, f] = w[f, e, u, v] else 0
//   y[b, f, i, j] = sum(u: 7, v: 7, e: 4) x[b, e, i * 2 + u - 3, j * 2 + v - 3]
//   else 0 * pixels[u, v, e, f]
//
// What is outside x along e is 0 as its borders are.
#include "Fusion/Fuse.h"
#include "Fusion/Layout/LayoutImage.h"

#include <string.h>

typedef struct pixels {
  hd_laid_image_t image;
  const hd_task_value_t *packed; // The weights,
  const hd_task_t *pack;         // whose copy it is.
} pixels_t;

// The axis of the weights that an index is along, or, without one, the only
// one of one element that is read at 0; the rank where there is none such.
static unsigned axis_of(const hd_term_t *w, const hd_index_t *index) {
  unsigned found = w->u.value->rank;
  for (uint32_t a = 0; a < w->u.value->rank; a++) {
    const hd_term_t *place = w->operands[a];
    if (place->kind != HD_TERM_INDEX && !hd_flat_is_int(place, 0))
      return w->u.value->rank;
    bool is_it =
        index
            ? place->kind == HD_TERM_INDEX && place->u.index == index &&
                  hd_flat_range(index) == hd_flat_size(w->u.value, a)
            : place->kind != HD_TERM_INDEX && hd_flat_size(w->u.value, a) == 1;
    if (is_it)
      found = a;
  }
  return found;
}

// Whether an axis of x is the channels, and windows run along others.
static bool has_channels(hd_laid_image_t *image, const hd_contraction_t *sum,
                         uint32_t axis, int64_t most) {
  const hd_term_t *x = image->x, *w = image->w;
  hd_side_t side;
  if (!hd_side_read(image->l->arena, x, axis, sum->sum->u.reduction, &side) ||
      !hd_side_is_plain(&side) || side.at ||
      hd_flat_size(x->u.value, axis) > most ||
      (side.in ? hd_flat_range(side.in) : 1) != hd_flat_size(x->u.value, axis))
    return false;
  image->channel = axis;
  image->p = side.in && hd_flat_range(side.in) > 1 ? side.in : NULL;
  image->channel_of_w = axis_of(w, side.in);
  if (image->channel_of_w == w->u.value->rank && !image->p)
    image->channel_of_w = axis_of(w, NULL);
  return image->channel_of_w < w->u.value->rank &&
         (!side.in || (hd_layout_count_places(x, side.in) == 1 &&
                       hd_layout_count_places(w, side.in) == 1));
}

// Of x: few channels along one axis, and a window along another.
static bool fits(hd_laid_image_t *image, const hd_contraction_t *sum) {
  const hd_term_t *x = image->x;
  hd_scalar_t type = image->form->type;
  if (hd_scalar_bits(type) != 16 || !hd_type_is_float(hd_type(type)) ||
      sum->batch.size > 1)
    return false;
  int64_t most =
      HD_MOST_PIXEL_BITS / (int64_t)hd_scalar_bits(x->type.scalar) - 1;
  bool has_window = false;
  for (uint32_t a = 0; a < x->u.value->rank; a++) {
    hd_side_t side;
    if (!hd_side_read(image->l->arena, x, a, sum->sum->u.reduction, &side))
      return false;
    has_window |= side.at && side.in && hd_flat_range(side.in) > 1;
  }
  // Of several axes that may be the channels, those of the batch are first.
  for (uint32_t a = x->u.value->rank; has_window && a-- > 0;)
    if (has_channels(image, sum, a, most))
      return true;
  return false;
}

// --- The tasks ---

// The axes of the weights in the order that they are packed in: the window's,
// the channels, and the result's.
static void order_axes(const hd_laid_image_t *image, unsigned *axes) {
  const hd_term_t *w = image->w;
  unsigned n = 0;
  for (int results = 0; results < 2; results++) {
    for (uint32_t a = 0; a < w->u.value->rank; a++) {
      bool is_results =
          w->operands[a]->kind == HD_TERM_INDEX &&
          hd_flat_is_among(image->d->indices, image->d->num_indices,
                           w->operands[a]->u.index);
      if (a != image->channel_of_w && is_results == results)
        axes[n++] = a;
    }
    if (!results)
      axes[n++] = image->channel_of_w;
  }
}

// w in that order, its channels filled up.
static const hd_task_t *pack_task(const hd_laid_image_t *image,
                                  int64_t *shape) {
  hd_arena_t *arena = image->l->arena;
  const hd_task_value_t *w = image->w->u.value;
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, w->rank);
  const hd_term_t *places[HD_MAX_RANK];
  unsigned axes[HD_MAX_RANK];
  order_axes(image, axes);
  for (uint32_t n = 0; n < w->rank; n++) {
    unsigned a = axes[n];
    shape[n] =
        a == image->channel_of_w ? hd_flat_range(image->e) : hd_flat_size(w, a);
    indices[n] = hd_flat_index_make(
        arena, hd_arena_printf(arena, "at%u", (unsigned)n), shape[n]);
    places[a] = hd_layout_index_term(arena, indices[n]);
  }
  return hd_layouts_copying_task(arena, w, shape, w->rank, indices, places);
}

// For hd_flat_rewrite(): the sum over the filled channels.
static const hd_term_t *read_pixels(void *argument, const hd_term_t *term) {
  const pixels_t *p = argument;
  const hd_laid_image_t *image = &p->image;
  hd_arena_t *arena = image->l->arena;
  const hd_task_value_t *x = image->x->u.value;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  const hd_term_t *e = hd_flat_index(arena, image->e);
  if (hd_flat_is_load(term) && term->u.value == x) {
    memcpy(operands, term->operands, x->rank * sizeof(*operands));
    operands[image->channel] = e;
    operands[x->rank] = hd_flat_float(arena, x->type.scalar, 0);
    hd_term_t *load = hd_term_make(arena, HD_TERM_LOADELSE, term->type,
                                   operands, x->rank + 1);
    load->u.value = x;
    load->loc = term->loc;
    return load;
  }
  if (hd_flat_is_load(term) && term->u.value == image->w->u.value) {
    unsigned axes[HD_MAX_RANK];
    order_axes(image, axes);
    for (uint32_t n = 0; n < image->w->u.value->rank; n++)
      operands[n] =
          axes[n] == image->channel_of_w ? e : term->operands[axes[n]];
    return hd_flat_load(arena, p->packed, operands);
  }
  return term->kind == HD_TERM_REDUCE ? hd_laid_image_sum(image, term, NULL)
                                      : term;
}

static void make_tasks(pixels_t *p) {
  hd_laid_image_t *image = &p->image;
  hd_arena_t *arena = image->l->arena;
  const hd_task_value_t *x = image->x->u.value, *w = image->w->u.value;
  int64_t shape[HD_MAX_RANK], bits = hd_scalar_bits(x->type.scalar);
  int64_t piece = HD_PIXEL_BITS / bits;
  int64_t channels = hd_flat_size(x, image->channel);
  image->e =
      hd_flat_index_make(arena, "e", (channels + piece - 1) / piece * piece);
  p->pack = pack_task(image, shape);
  p->packed = hd_flat_value_make(arena, "w", HD_VALUE_INPUT, w->type.scalar,
                                 shape, w->rank);
  image->made = hd_laid_image_task(image, x, p->packed, read_pixels, p);
}

// --- The graph ---

static bool find_image(hd_layouts_t *l, size_t n, pixels_t *p) {
  if (!hd_laid_image_find(&p->image, l, n, fits))
    return false;
  make_tasks(p);
  // Not so where what comes first in memory of the result is the weights'.
  const hd_product_form_t *form = hd_product_forms_get(
      &l->forms, l->arena, p->image.made->definitions.data[0]);
  return form && !form->no_pixels;
}

double hd_layouts_price_of_pixels(hd_layouts_t *l, size_t n) {
  pixels_t p;
  return find_image(l, n, &p) ? hd_layouts_price(l, p.image.made) : 0;
}

// Where nothing is known of either it stays.
static bool is_worth_it(const hd_laid_image_t *image) {
  double before = hd_layouts_price(image->l, image->flat);
  double after = hd_layouts_price(image->l, image->made);
  return after > 0 && (before == 0 || after < before);
}

const hd_graph_t *hd_layouts_read_pixels(hd_layouts_t *l, bool explain) {
  bool any = false;
  hd_layouts_begin(l);
  for (size_t i = 0; i < l->graph->nodes.size; i++) {
    pixels_t p;
    const hd_laid_image_t *image = &p.image;
    if (!find_image(l, i, &p) || !is_worth_it(image) ||
        !hd_step(&l->module->context->steps, HD_STEP_FUSION,
                 "of '%s', whose pixels %s reads as they lie",
                 hd_value_label(hd_laid_image_operand(image, image->x)),
                 image->node->op)) {
      hd_vec_push(l->arena, &l->made->nodes, image->node);
      continue;
    }
    any = true;
    const hd_value_t *x = hd_laid_image_operand(image, image->x);
    const hd_value_t *w = hd_laid_image_operand(image, image->w);
    if (explain)
      hd_remark(&l->module->context->diags, image->node->loc,
                "layout: '%s' stays as it lies, and its weights have pixels of "
                "%lld channels",
                hd_value_label(x), (long long)hd_flat_range(image->e));
    hd_laid_image_put(
        image, "pixels", x,
        hd_layouts_put_copy(l, w, p.pack, "pixels", image->node->loc));
  }
  return any ? l->made : l->graph;
}
