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
#include "Fusion/Layout/LayoutState.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Terms/Affine.h"
#include "Schedule/Terms/Side.h"

#include <string.h>

typedef struct pixels {
  hd_layouts_t *l;
  const hd_node_t *node;
  const hd_task_t *flat;
  const hd_definition_t *d;
  const hd_term_t *x, *w;         // Loads.
  unsigned channel, channel_of_w; // Axes of x and of w,
  const hd_index_t *p;            // where the sum's index stands; NULL: 0 does.
  const hd_index_t *e;            // What stands for it, filled up.
  const hd_task_value_t *packed;  // The weights,
  const hd_task_t *pack;          // whose copy it is;
  hd_task_t *made;                // what stands for the convolution.
} pixels_t;

static const hd_value_t *input_of(const pixels_t *p, const hd_term_t *load) {
  return hd_node_input_of(p->node, p->flat, load->u.value);
}

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
static bool has_channels(pixels_t *p, const hd_contraction_t *sum,
                         uint32_t axis, int64_t most) {
  const hd_reduction_t *r = sum->sum->u.reduction;
  hd_side_t side;
  if (!hd_side_read(p->l->arena, p->x, axis, r, &side) ||
      !hd_side_is_plain(&side) || side.at ||
      hd_flat_size(p->x->u.value, axis) > most ||
      (side.in ? hd_flat_range(side.in) : 1) !=
          hd_flat_size(p->x->u.value, axis))
    return false;
  p->channel = axis;
  p->p = side.in && hd_flat_range(side.in) > 1 ? side.in : NULL;
  p->channel_of_w = axis_of(p->w, side.in);
  if (p->channel_of_w == p->w->u.value->rank && !p->p)
    p->channel_of_w = axis_of(p->w, NULL);
  return p->channel_of_w < p->w->u.value->rank &&
         (!side.in || (hd_layout_count_places(p->x, side.in) == 1 &&
                       hd_layout_count_places(p->w, side.in) == 1));
}

// Of x: few channels along one axis, and a window along another.
static bool find_channels(pixels_t *p, const hd_contraction_t *sum) {
  int64_t most =
      HD_MOST_PIXEL_BITS / (int64_t)hd_scalar_bits(p->x->type.scalar) - 1;
  bool has_window = false;
  for (uint32_t a = 0; a < p->x->u.value->rank; a++) {
    hd_side_t side;
    if (!hd_side_read(p->l->arena, p->x, a, sum->sum->u.reduction, &side))
      return false;
    has_window |= side.at && side.in && hd_flat_range(side.in) > 1;
  }
  // Of several axes that may be the channels, those of the batch are first.
  for (uint32_t a = p->x->u.value->rank; has_window && a-- > 0;)
    if (has_channels(p, sum, a, most))
      return true;
  return false;
}

static bool find_convolution(pixels_t *p) {
  hd_contraction_t sum;
  if (!p->flat || p->flat->definitions.size != 1)
    return false;
  p->d = p->flat->definitions.data[0];
  const hd_product_form_t *form =
      p->d->kind == HD_DEFINE
          ? hd_product_forms_get(&p->l->forms, p->l->arena, p->d)
          : NULL;
  if (!form || hd_scalar_bits(form->type) != 16 ||
      !hd_type_is_float(hd_type(form->type)) ||
      !hd_contraction_find(p->l->arena, p->d, &sum) || sum.batch.size > 1)
    return false;
  for (int swap = 0; swap < 2; swap++) {
    p->x = swap ? sum.b->operands[0] : sum.a->operands[0];
    p->w = swap ? sum.a->operands[0] : sum.b->operands[0];
    if (!hd_is_image(p->x) || p->w->kind != HD_TERM_LOAD ||
        !input_of(p, p->x) || !input_of(p, p->w))
      continue;
    const hd_laid_value_t *w = hd_laid_value(p->l, input_of(p, p->w));
    const hd_laid_value_t *x = hd_laid_value(p->l, input_of(p, p->x));
    if (w->prepared && !x->prepared && find_channels(p, &sum) &&
        hd_layout_is_read_once(p->d->term, p->x->u.value) &&
        hd_layout_is_read_once(p->d->term, p->w->u.value))
      return true;
  }
  return false;
}

// --- The tasks ---

// The axes of the weights in the order that they are packed in: the window's,
// the channels, and the result's.
static void order_axes(const pixels_t *p, unsigned *axes) {
  const hd_term_t *w = p->w;
  unsigned n = 0;
  for (int results = 0; results < 2; results++) {
    for (uint32_t a = 0; a < w->u.value->rank; a++) {
      bool is_results = w->operands[a]->kind == HD_TERM_INDEX &&
                        hd_flat_is_among(p->d->indices, p->d->num_indices,
                                         w->operands[a]->u.index);
      if (a != p->channel_of_w && is_results == results)
        axes[n++] = a;
    }
    if (!results)
      axes[n++] = p->channel_of_w;
  }
}

// w in that order, its channels filled up.
static const hd_task_t *pack_task(const pixels_t *p, int64_t *shape) {
  hd_arena_t *arena = p->l->arena;
  const hd_task_value_t *w = p->w->u.value;
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, w->rank);
  const hd_term_t *places[HD_MAX_RANK];
  unsigned axes[HD_MAX_RANK];
  order_axes(p, axes);
  for (uint32_t n = 0; n < w->rank; n++) {
    unsigned a = axes[n];
    shape[n] = a == p->channel_of_w ? hd_flat_range(p->e) : hd_flat_size(w, a);
    indices[n] = hd_flat_index_make(
        arena, hd_arena_printf(arena, "at%u", (unsigned)n), shape[n]);
    places[a] = hd_layout_index_term(arena, indices[n]);
  }
  return hd_layouts_copying_task(arena, w, shape, w->rank, indices, places);
}

// For hd_flat_rewrite(): the sum over the filled channels.
static const hd_term_t *read_pixels(void *argument, const hd_term_t *term) {
  const pixels_t *p = argument;
  hd_arena_t *arena = p->l->arena;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  const hd_term_t *e = hd_flat_index(arena, p->e);
  if (hd_flat_is_load(term) && term->u.value == p->x->u.value) {
    uint32_t rank = p->x->u.value->rank;
    memcpy(operands, term->operands, rank * sizeof(*operands));
    operands[p->channel] = e;
    operands[rank] = hd_flat_float(arena, p->x->type.scalar, 0);
    hd_term_t *load =
        hd_term_make(arena, HD_TERM_LOADELSE, term->type, operands, rank + 1);
    load->u.value = p->x->u.value;
    load->loc = term->loc;
    return load;
  }
  if (hd_flat_is_load(term) && term->u.value == p->w->u.value) {
    unsigned axes[HD_MAX_RANK];
    order_axes(p, axes);
    for (uint32_t n = 0; n < p->w->u.value->rank; n++)
      operands[n] = axes[n] == p->channel_of_w ? e : term->operands[axes[n]];
    return hd_flat_load(arena, p->packed, operands);
  }
  if (term->kind != HD_TERM_REDUCE)
    return term;
  hd_reduction_t *reduction =
      HD_ARENA_COPY(arena, hd_reduction_t, term->u.reduction);
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, reduction->num_indices + 1);
  unsigned n = 0;
  for (uint32_t i = 0; i < reduction->num_indices; i++)
    if (reduction->indices[i] != p->p)
      indices[n++] = reduction->indices[i];
  indices[n++] = p->e;
  reduction->indices = indices;
  reduction->num_indices = n;
  hd_term_t *made = hd_flat_like(arena, term, term->operands);
  made->u.reduction = reduction;
  return made;
}

static void make_tasks(pixels_t *p) {
  hd_arena_t *arena = p->l->arena;
  hd_scalar_t type = p->x->type.scalar;
  int64_t shape[HD_MAX_RANK], bits = hd_scalar_bits(type);
  int64_t piece = HD_PIXEL_BITS / bits;
  int64_t channels = hd_flat_size(p->x->u.value, p->channel);
  p->e = hd_flat_index_make(arena, "e", (channels + piece - 1) / piece * piece);
  p->pack = pack_task(p, shape);
  p->packed = hd_flat_value_make(arena, "w", HD_VALUE_INPUT, p->w->type.scalar,
                                 shape, p->w->u.value->rank);
  p->made = hd_flat_emptied(arena, p->flat);
  for (size_t i = 0; i < p->flat->inputs.size; i++)
    hd_vec_push(arena, &p->made->inputs,
                p->flat->inputs.data[i] == p->w->u.value
                    ? p->packed
                    : p->flat->inputs.data[i]);
  hd_definition_t *d = HD_ARENA_COPY(arena, hd_definition_t, p->d);
  d->term = hd_flat_rewrite(arena, p->d->term, read_pixels, p);
  hd_vec_push(arena, &p->made->definitions, (const hd_definition_t *)d);
}

// --- The graph ---

static bool find_image(hd_layouts_t *l, size_t n, pixels_t *p) {
  *p = (pixels_t){.l = l, .node = l->graph->nodes.data[n], .flat = l->flats[n]};
  if (!find_convolution(p))
    return false;
  make_tasks(p);
  // Not so where what comes first in memory of the result is the weights'.
  const hd_product_form_t *form =
      hd_product_forms_get(&l->forms, l->arena, p->made->definitions.data[0]);
  return form && !form->no_pixels;
}

double hd_layouts_price_of_pixels(hd_layouts_t *l, size_t n) {
  pixels_t p;
  return find_image(l, n, &p) ? hd_layouts_price(l, p.made) : 0;
}

// Where nothing is known of either it stays.
static bool is_worth_it(const pixels_t *p) {
  double before = hd_layouts_price(p->l, p->flat);
  double after = hd_layouts_price(p->l, p->made);
  return after > 0 && (before == 0 || after < before);
}

static void put_packed(const pixels_t *p) {
  hd_layouts_t *l = p->l;
  const hd_value_t *packed = hd_layouts_put_copy(l, input_of(p, p->w), p->pack,
                                                 "pixels", p->node->loc);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(l->arena, const hd_value_t *, p->node->num_inputs);
  for (uint32_t i = 0; i < p->node->num_inputs; i++)
    inputs[i] =
        p->flat->inputs.data[i] == p->w->u.value ? packed : p->node->inputs[i];
  hd_layouts_put_task(l, p->node, p->made, "pixels", inputs, p->node->outputs);
}

const hd_graph_t *hd_layouts_read_pixels(hd_layouts_t *l, bool explain) {
  bool any = false;
  hd_layouts_begin(l);
  for (size_t i = 0; i < l->graph->nodes.size; i++) {
    pixels_t p;
    if (!find_image(l, i, &p) || !is_worth_it(&p) ||
        !hd_step(&l->module->context->steps, HD_STEP_FUSION,
                 "of '%s', whose pixels %s reads as they lie",
                 hd_value_label(input_of(&p, p.x)), p.node->op)) {
      hd_vec_push(l->arena, &l->made->nodes, l->graph->nodes.data[i]);
      continue;
    }
    any = true;
    if (explain)
      hd_remark(&l->module->context->diags, p.node->loc,
                "layout: '%s' stays as it lies, and its weights have pixels of "
                "%lld channels",
                hd_value_label(input_of(&p, p.x)),
                (long long)hd_flat_range(p.e));
    put_packed(&p);
  }
  return any ? l->made : l->graph;
}
