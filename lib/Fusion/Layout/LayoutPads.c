// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images of a few channels, as networks begin. No order of axes makes pieces of
// 16 bytes of them, so what a convolution reads is copied once, with its
// channels last and filled up, and with its borders:
//
//   y[b, f, i, j] = sum(p: 3, u: 7, v: 7) x[b, p, i * 2 + u - 3, j * 2 + v - 3]
//   else 0 * w[f, p, u, v]
//
// becomes
//
//   padded[b, r, e] = x[b, e % 4, r - 3, e / 4 - 3] else 0
//   filled[f, u, e: 32] = w[f, e % 4, u, e / 4] else 0
//   y[b, f, i, j] = sum(u: 7, e: 32) padded[b, i * 2 + u, j * 8 + e] *
//   filled[f, u, e]
//
// where elements of a row lie side by side, pixel after pixel. An axis of one
// element is a channel, too, as sound and pictures in grey have one.
#include "Fusion/Fuse.h"
#include "Fusion/Layout/LayoutState.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Terms/Affine.h"
#include "Schedule/Terms/Side.h"

#include <string.h>

// The one place of an operand along an axis: domain * stride + window - pad.
typedef struct window {
  const hd_index_t *at; // Of the result; NULL: none.
  const hd_index_t *in; // Of the sum; NULL: none.
  int64_t stride, step, pad;
} window_t;

typedef struct padding {
  hd_layouts_t *l;
  const hd_node_t *node;
  const hd_task_t *flat;
  const hd_definition_t *d;
  const hd_term_t *x, *w; // Loads.
  unsigned channel;       // Axes of x and w: the channels'.
  unsigned channel_of_w;
  window_t windows[HD_MAX_RANK];
  const hd_index_t *p, *v;  // Of the sum: the channels', NULL where there is
                            // one, and the last window's,
  const hd_index_t *e;      // and what stands for both.
  int64_t piece;            // Elements that are copied as one.
  int64_t channels, window; // Filled up.
  const hd_task_value_t *padded, *filled;
  const hd_task_t *pad, *fill; // They copy;
  hd_task_t *made;             // what stands for the convolution.
} padding_t;

// What a place is along one axis of x.
static bool find_window(padding_t *p, const hd_contraction_t *sum,
                        const hd_term_t *place, window_t *window) {
  hd_linear_t at;
  *window = (window_t){0};
  if (!hd_affine_of(p->l->arena, place, &at) || at.size > 2)
    return false;
  window->pad = -at.constant;
  for (unsigned i = 0; i < at.size; i++) {
    const hd_term_t *atom = at.terms[i].term;
    int64_t factor = at.terms[i].factor;
    if (atom->kind != HD_TERM_INDEX || factor < 1)
      return false;
    const hd_index_t *index = atom->u.index;
    if (hd_flat_is_among(sum->k.indices, sum->k.count, index) && !window->in) {
      window->in = index;
      window->step = factor;
    } else if (hd_flat_is_among(p->d->indices, p->d->num_indices, index) &&
               !window->at) {
      window->at = index;
      window->stride = factor;
    } else {
      return false;
    }
  }
  return true;
}

static int64_t range_of(const hd_index_t *index) {
  return index ? hd_flat_range(index) : 1;
}

// So many that pieces are aligned wherever a window begins.
static int64_t fill_channels(int64_t channels, int64_t stride, int64_t piece) {
  int64_t filled = 1;
  while (filled < channels || (filled < piece && filled * stride % piece != 0))
    filled *= 2;
  return filled;
}

// Of x: few channels somewhere, and a window along the last axis whose pieces
// are aligned when channels are filled up.
static bool find_windows(padding_t *p, const hd_contraction_t *sum) {
  uint32_t rank = p->x->u.value->rank;
  bool is_summed = false; // Along another axis.
  p->p = NULL;
  p->channel = rank;
  for (uint32_t a = 0; a < rank; a++) {
    window_t *window = &p->windows[a];
    if (!find_window(p, sum, p->x->operands[a], window))
      return false;
    int64_t size = hd_flat_size(p->x->u.value, a);
    bool is_plain = !window->at && window->pad == 0;
    if (is_plain && window->in && window->step == 1 && !p->p &&
        hd_flat_range(window->in) == size && size < p->piece) {
      p->channel = a;
      p->p = window->in;
    } else if (is_plain && window->in) {
      is_summed = true;
    } else if (is_plain && !p->p && size == 1) {
      p->channel = a;
    }
  }
  if (rank < 2 || p->channel >= rank - 1 ||
      (!p->p && (is_summed || sum->batch.size > 1)))
    return false;
  const window_t *last = &p->windows[rank - 1];
  // Windows that do not overlap read each element once.
  if (!last->in || !last->at || last->step != 1 ||
      last->stride >= hd_flat_range(last->in))
    return false;
  p->v = last->in;
  p->channels = fill_channels(range_of(p->p), last->stride, p->piece);
  return true;
}

static const hd_value_t *input_of(const padding_t *p, const hd_term_t *load) {
  return hd_node_input_of(p->node, p->flat, load->u.value);
}

// Whether a weight's place is that index.
static bool is_place(const hd_term_t *place, const hd_index_t *index) {
  return place->kind == HD_TERM_INDEX && place->u.index == index;
}

// Whether w is read at plain indices, p and v among them, each once and over
// the whole of its axis; x uses them once as well. Where there is no p an axis
// of one element stands for it.
static bool has_plain_places(padding_t *p) {
  p->channel_of_w = p->w->u.value->rank;
  for (uint32_t a = 0; a < p->w->u.value->rank; a++) {
    const hd_term_t *place = p->w->operands[a];
    int64_t size = hd_flat_size(p->w->u.value, a);
    if (place->kind != HD_TERM_INDEX && !hd_flat_is_int(place, 0))
      return false;
    if ((is_place(place, p->p) || is_place(place, p->v)) &&
        hd_flat_range(place->u.index) != size)
      return false;
    if (p->p ? is_place(place, p->p)
             : place->kind != HD_TERM_INDEX && size == 1)
      p->channel_of_w = a;
  }
  return p->p != p->v && p->channel_of_w < p->w->u.value->rank &&
         (!p->p || (hd_layout_count_places(p->w, p->p) == 1 &&
                    hd_layout_count_places(p->x, p->p) == 1)) &&
         hd_layout_count_places(p->w, p->v) == 1 &&
         hd_layout_count_places(p->x, p->v) == 1;
}

// Whether the node is such a convolution.
static bool find_convolution(padding_t *p) {
  hd_contraction_t sum;
  if (!p->flat || p->flat->definitions.size != 1)
    return false;
  p->d = p->flat->definitions.data[0];
  const hd_product_form_t *form =
      p->d->kind == HD_DEFINE
          ? hd_product_forms_get(&p->l->forms, p->l->arena, p->d)
          : NULL;
  size_t bits = form ? hd_scalar_bits(form->type) : 0;
  if ((bits != 8 && bits != 16) ||
      !hd_contraction_find(p->l->arena, p->d, &sum))
    return false;
  p->piece = HD_LAYOUT_PIECE_BITS / (int64_t)bits;
  for (int swap = 0; swap < 2; swap++) {
    p->x = swap ? sum.b->operands[0] : sum.a->operands[0];
    p->w = swap ? sum.a->operands[0] : sum.b->operands[0];
    if (!hd_is_image(p->x) || p->w->kind != HD_TERM_LOAD ||
        !input_of(p, p->x) || !input_of(p, p->w))
      continue;
    const hd_laid_value_t *w = hd_laid_value(p->l, input_of(p, p->w));
    const hd_laid_value_t *x = hd_laid_value(p->l, input_of(p, p->x));
    if (w->prepared && !x->prepared && find_windows(p, &sum) &&
        has_plain_places(p) &&
        hd_layout_is_read_once(p->d->term, p->x->u.value) &&
        hd_layout_is_read_once(p->d->term, p->w->u.value))
      return true;
  }
  return false;
}

// --- The tasks ---

static const hd_index_t *name_axis(hd_arena_t *arena, unsigned n,
                                   int64_t size) {
  return hd_flat_index_make(arena, hd_arena_printf(arena, "at%u", n), size);
}

static const hd_term_t *operate(hd_arena_t *arena, hd_expr_kind_t op,
                                const hd_term_t *term, int64_t value) {
  return hd_index_simplify(arena, hd_flat_operate_int(arena, op, term, value));
}

// x with its channels last, filled up, and all that windows reach.
static const hd_task_t *pad_task(padding_t *p, int64_t *shape) {
  hd_arena_t *arena = p->l->arena;
  const hd_task_value_t *x = p->x->u.value;
  uint32_t last = x->rank - 1;
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, x->rank);
  const hd_term_t *places[HD_MAX_RANK];
  unsigned n = 0;
  for (uint32_t a = 0; a < last; a++) {
    const window_t *window = &p->windows[a];
    if (a == p->channel)
      continue;
    shape[n] = (range_of(window->at) - 1) * window->stride +
               (range_of(window->in) - 1) * window->step + 1;
    indices[n] = name_axis(arena, n, shape[n]);
    places[a] = operate(arena, HD_EXPR_SUB,
                        hd_layout_index_term(arena, indices[n]), window->pad);
    n++;
  }
  const window_t *row = p->windows + last;
  int64_t pixels = (range_of(row->at) - 1) * row->stride + p->window;
  while (pixels * p->channels % p->piece != 0)
    pixels++;
  shape[n] = pixels * p->channels;
  indices[n] = name_axis(arena, n, shape[n]);
  const hd_term_t *e = hd_flat_index(arena, indices[n]);
  places[last] = operate(arena, HD_EXPR_SUB,
                         operate(arena, HD_EXPR_DIV, e, p->channels), row->pad);
  places[p->channel] = operate(arena, HD_EXPR_MOD, e, p->channels);
  return hd_layouts_copying_task(arena, x, shape, n + 1, indices, places);
}

// w with v and the channels last, as one axis, filled up.
static const hd_task_t *fill_task(padding_t *p, int64_t *shape) {
  hd_arena_t *arena = p->l->arena;
  const hd_task_value_t *w = p->w->u.value;
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, w->rank);
  const hd_term_t *places[HD_MAX_RANK];
  unsigned n = 0, last = w->rank - 2;
  shape[last] = p->window * p->channels;
  indices[last] = name_axis(arena, last, shape[last]);
  const hd_term_t *e = hd_flat_index(arena, indices[last]);
  for (uint32_t a = 0; a < w->rank; a++) {
    if (a == p->channel_of_w) {
      places[a] = operate(arena, HD_EXPR_MOD, e, p->channels);
    } else if (is_place(p->w->operands[a], p->v)) {
      places[a] = operate(arena, HD_EXPR_DIV, e, p->channels);
    } else {
      shape[n] = hd_flat_size(w, a);
      indices[n] = name_axis(arena, n, shape[n]);
      places[a] = hd_layout_index_term(arena, indices[n++]);
    }
  }
  return hd_layouts_copying_task(arena, w, shape, w->rank - 1, indices, places);
}

// For hd_flat_rewrite(): the sum over what is filled up. p and v are 0, where
// they are added up with other indices.
static const hd_term_t *leave(void *argument, const hd_term_t *term) {
  padding_t *p = argument;
  hd_arena_t *arena = p->l->arena;
  const hd_term_t *operands[HD_MAX_RANK];
  unsigned n = 0;
  if (is_place(term, p->p) || is_place(term, p->v))
    return hd_flat_int(arena, HD_I64, 0);
  if (hd_flat_is_load(term) && term->u.value == p->x->u.value) {
    uint32_t last = p->x->u.value->rank - 1;
    for (uint32_t a = 0; a < last; a++)
      if (a != p->channel)
        operands[n++] =
            operate(arena, HD_EXPR_ADD, term->operands[a], p->windows[a].pad);
    const hd_term_t *pixel =
        operate(arena, HD_EXPR_ADD, term->operands[last], p->windows[last].pad);
    operands[n] = hd_index_simplify(
        arena, hd_flat_operate(arena, HD_EXPR_ADD,
                               operate(arena, HD_EXPR_MUL, pixel, p->channels),
                               hd_flat_index(arena, p->e)));
    return hd_flat_load(arena, p->padded, operands);
  }
  if (hd_flat_is_load(term) && term->u.value == p->w->u.value) {
    for (uint32_t a = 0; a < p->w->u.value->rank; a++)
      if (a != p->channel_of_w && !is_place(p->w->operands[a], p->v))
        operands[n++] = term->operands[a];
    operands[n] = hd_flat_index(arena, p->e);
    return hd_flat_load(arena, p->filled, operands);
  }
  if (term->kind != HD_TERM_REDUCE)
    return term;
  hd_reduction_t *reduction =
      HD_ARENA_COPY(arena, hd_reduction_t, term->u.reduction);
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, reduction->num_indices);
  for (uint32_t i = 0; i < reduction->num_indices; i++)
    if (reduction->indices[i] != p->p && reduction->indices[i] != p->v)
      indices[n++] = reduction->indices[i];
  indices[n++] = p->e;
  reduction->indices = indices;
  reduction->num_indices = n;
  hd_term_t *made = hd_flat_like(arena, term, term->operands);
  made->u.reduction = reduction;
  return made;
}

static hd_task_t *convolution_task(padding_t *p) {
  hd_arena_t *arena = p->l->arena;
  hd_task_t *task = hd_flat_emptied(arena, p->flat);
  for (size_t i = 0; i < p->flat->inputs.size; i++) {
    const hd_task_value_t *input = p->flat->inputs.data[i];
    if (input == p->x->u.value)
      input = p->padded;
    else if (input == p->w->u.value)
      input = p->filled;
    hd_vec_push(arena, &task->inputs, input);
  }
  hd_definition_t *d = HD_ARENA_COPY(arena, hd_definition_t, p->d);
  d->term = hd_flat_rewrite(arena, p->d->term, leave, p);
  hd_vec_push(arena, &task->definitions, (const hd_definition_t *)d);
  return task;
}

// --- The nodes ---

static void make_tasks(padding_t *p) {
  hd_layouts_t *l = p->l;
  int64_t x[HD_MAX_RANK], w[HD_MAX_RANK];
  p->window = hd_flat_range(p->v);
  while (p->window * p->channels % p->piece != 0)
    p->window++;
  p->e = hd_flat_index_make(l->arena, "e", p->window * p->channels);
  p->pad = pad_task(p, x);
  p->fill = fill_task(p, w);
  p->padded = hd_flat_value_make(l->arena, "x", HD_VALUE_INPUT,
                                 p->x->type.scalar, x, p->x->u.value->rank - 1);
  p->filled = hd_flat_value_make(l->arena, "w", HD_VALUE_INPUT,
                                 p->w->type.scalar, w, p->w->u.value->rank - 1);
  p->made = convolution_task(p);
}

// Whether it takes less than as it was, or read as it lies, with the copy.
// Where nothing is known of one of them it does.
static bool is_worth_it(const padding_t *p, size_t number, bool explain) {
  hd_layouts_t *l = p->l;
  double before = hd_layouts_price(l, p->flat);
  double pixels = hd_layouts_price_of_pixels(l, number);
  double after = hd_layouts_price(l, p->made);
  double copy = hd_layouts_price_of_copy(l, p->x->u.value, p->padded);
  if (explain && after > 0)
    hd_remark(
        &l->module->context->diags, p->node->loc,
        "layout: %.2f us are expected of %s '%s' with its channels filled "
        "up and %.2f us of the copy, %.2f us of its pixels as they lie, "
        "%.2f us as it is",
        after, p->node->op, hd_node_label(p->node), copy, pixels, before);
  if (pixels > 0 && (before == 0 || pixels < before))
    before = pixels;
  return before == 0 || after == 0 || after + copy < before;
}

static void put_padded(padding_t *p) {
  hd_layouts_t *l = p->l;
  const hd_value_t *from = input_of(p, p->x);
  const hd_value_t *weight = input_of(p, p->w);
  const hd_value_t *padded =
      hd_layouts_put_copy(l, from, p->pad, "padded", p->node->loc);
  const hd_value_t *filled =
      hd_layouts_put_copy(l, weight, p->fill, "filled", p->node->loc);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(l->arena, const hd_value_t *, p->node->num_inputs);
  for (uint32_t i = 0; i < p->node->num_inputs; i++)
    inputs[i] = p->flat->inputs.data[i] == p->x->u.value   ? padded
                : p->flat->inputs.data[i] == p->w->u.value ? filled
                                                           : p->node->inputs[i];
  hd_layouts_put_task(l, p->node, p->made, "filled", inputs, p->node->outputs);
}

const hd_graph_t *hd_layouts_pad(hd_layouts_t *l, bool explain) {
  bool any = false;
  hd_layouts_begin(l);
  for (size_t i = 0; i < l->graph->nodes.size; i++) {
    padding_t p = {
        .l = l, .node = l->graph->nodes.data[i], .flat = l->flats[i]};
    bool is_one = find_convolution(&p);
    if (is_one)
      make_tasks(&p);
    if (!is_one || !is_worth_it(&p, i, explain) ||
        !hd_step(&l->module->context->steps, HD_STEP_FUSION,
                 "of '%s', whose channels are filled up for %s",
                 hd_value_label(input_of(&p, p.x)), p.node->op)) {
      hd_vec_push(l->arena, &l->made->nodes, p.node);
      continue;
    }
    any = true;
    if (explain)
      hd_remark(&l->module->context->diags, p.node->loc,
                "layout: the %lld channels of '%s' are filled up to %lld, and "
                "borders are kept with them",
                (long long)range_of(p.p), hd_value_label(input_of(&p, p.x)),
                (long long)p.channels);
    put_padded(&p);
  }
  return any ? l->made : l->graph;
}
