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
#include "Fusion/Layout/LayoutImage.h"
#include "Schedule/Terms/Affine.h"

typedef struct padding {
  hd_laid_image_t image;
  hd_side_t sides[HD_MAX_RANK]; // Of x.
  const hd_index_t *v;          // Of the sum: the last window's, for which e
                                // stands as well.
  int64_t piece;                // Elements that are copied as one.
  int64_t channels, window;     // Filled up.
  const hd_task_value_t *padded, *filled;
  const hd_task_t *pad, *fill; // They copy.
} padding_t;

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
  hd_laid_image_t *image = &p->image;
  uint32_t rank = image->x->u.value->rank;
  bool is_summed = false; // Along another axis.
  image->p = NULL;
  image->channel = rank;
  for (uint32_t a = 0; a < rank; a++) {
    hd_side_t *side = &p->sides[a];
    if (!hd_side_read(image->l->arena, image->x, a, sum->sum->u.reduction,
                      side))
      return false;
    int64_t size = hd_flat_size(image->x->u.value, a);
    bool is_plain = !side->at && side->first == 0;
    if (is_plain && side->in && side->dilation == 1 && !image->p &&
        hd_flat_range(side->in) == size && size < p->piece) {
      image->channel = a;
      image->p = side->in;
    } else if (is_plain && side->in) {
      is_summed = true;
    } else if (is_plain && !image->p && size == 1) {
      image->channel = a;
    }
  }
  if (rank < 2 || image->channel >= rank - 1 ||
      (!image->p && (is_summed || sum->batch.size > 1)))
    return false;
  const hd_side_t *last = &p->sides[rank - 1];
  // Windows that do not overlap read each element once.
  if (!last->in || !last->at || last->dilation != 1 ||
      last->step >= hd_flat_range(last->in))
    return false;
  p->v = last->in;
  p->channels = fill_channels(range_of(image->p), last->step, p->piece);
  return true;
}

// Whether a weight's place is that index.
static bool is_place(const hd_term_t *place, const hd_index_t *index) {
  return place->kind == HD_TERM_INDEX && place->u.index == index;
}

// Whether w is read at plain indices, p and v among them, each once and over
// the whole of its axis; x uses them once as well. Where there is no p an axis
// of one element stands for it.
static bool has_plain_places(padding_t *p) {
  hd_laid_image_t *image = &p->image;
  const hd_term_t *x = image->x, *w = image->w;
  image->channel_of_w = w->u.value->rank;
  for (uint32_t a = 0; a < w->u.value->rank; a++) {
    const hd_term_t *place = w->operands[a];
    int64_t size = hd_flat_size(w->u.value, a);
    if (place->kind != HD_TERM_INDEX && !hd_flat_is_int(place, 0))
      return false;
    if ((is_place(place, image->p) || is_place(place, p->v)) &&
        hd_flat_range(place->u.index) != size)
      return false;
    if (image->p ? is_place(place, image->p)
                 : place->kind != HD_TERM_INDEX && size == 1)
      image->channel_of_w = a;
  }
  return image->p != p->v && image->channel_of_w < w->u.value->rank &&
         (!image->p || (hd_layout_count_places(w, image->p) == 1 &&
                        hd_layout_count_places(x, image->p) == 1)) &&
         hd_layout_count_places(w, p->v) == 1 &&
         hd_layout_count_places(x, p->v) == 1;
}

static bool fits(hd_laid_image_t *image, const hd_contraction_t *sum) {
  padding_t *p = (padding_t *)image;
  size_t bits = hd_scalar_bits(image->form->type);
  if (bits != 8 && bits != 16)
    return false;
  p->piece = HD_LAYOUT_PIECE_BITS / (int64_t)bits;
  return find_windows(p, sum) && has_plain_places(p);
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
  hd_arena_t *arena = p->image.l->arena;
  const hd_task_value_t *x = p->image.x->u.value;
  uint32_t last = x->rank - 1;
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, x->rank);
  const hd_term_t *places[HD_MAX_RANK];
  unsigned n = 0;
  for (uint32_t a = 0; a < last; a++) {
    if (a == p->image.channel)
      continue;
    shape[n] = hd_side_reach(&p->sides[a]);
    indices[n] = name_axis(arena, n, shape[n]);
    places[a] =
        operate(arena, HD_EXPR_ADD, hd_layout_index_term(arena, indices[n]),
                p->sides[a].first);
    n++;
  }
  const hd_side_t *row = p->sides + last;
  int64_t pixels = (range_of(row->at) - 1) * row->step + p->window;
  while (pixels * p->channels % p->piece != 0)
    pixels++;
  shape[n] = pixels * p->channels;
  indices[n] = name_axis(arena, n, shape[n]);
  const hd_term_t *e = hd_flat_index(arena, indices[n]);
  places[last] =
      operate(arena, HD_EXPR_ADD, operate(arena, HD_EXPR_DIV, e, p->channels),
              row->first);
  places[p->image.channel] = operate(arena, HD_EXPR_MOD, e, p->channels);
  return hd_layouts_copying_task(arena, x, shape, n + 1, indices, places);
}

// w with v and the channels last, as one axis, filled up.
static const hd_task_t *fill_task(padding_t *p, int64_t *shape) {
  hd_arena_t *arena = p->image.l->arena;
  const hd_task_value_t *w = p->image.w->u.value;
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, w->rank);
  const hd_term_t *places[HD_MAX_RANK];
  unsigned n = 0, last = w->rank - 2;
  shape[last] = p->window * p->channels;
  indices[last] = name_axis(arena, last, shape[last]);
  const hd_term_t *e = hd_flat_index(arena, indices[last]);
  for (uint32_t a = 0; a < w->rank; a++) {
    if (a == p->image.channel_of_w) {
      places[a] = operate(arena, HD_EXPR_MOD, e, p->channels);
    } else if (is_place(p->image.w->operands[a], p->v)) {
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
  const hd_laid_image_t *image = &p->image;
  hd_arena_t *arena = image->l->arena;
  const hd_term_t *operands[HD_MAX_RANK];
  unsigned n = 0;
  if (is_place(term, image->p) || is_place(term, p->v))
    return hd_flat_int(arena, HD_I64, 0);
  if (hd_flat_is_load(term) && term->u.value == image->x->u.value) {
    uint32_t last = image->x->u.value->rank - 1;
    for (uint32_t a = 0; a < last; a++)
      if (a != image->channel)
        operands[n++] =
            operate(arena, HD_EXPR_SUB, term->operands[a], p->sides[a].first);
    const hd_term_t *pixel =
        operate(arena, HD_EXPR_SUB, term->operands[last], p->sides[last].first);
    operands[n] = hd_index_simplify(
        arena, hd_flat_operate(arena, HD_EXPR_ADD,
                               operate(arena, HD_EXPR_MUL, pixel, p->channels),
                               hd_flat_index(arena, image->e)));
    return hd_flat_load(arena, p->padded, operands);
  }
  if (hd_flat_is_load(term) && term->u.value == image->w->u.value) {
    for (uint32_t a = 0; a < image->w->u.value->rank; a++)
      if (a != image->channel_of_w && !is_place(image->w->operands[a], p->v))
        operands[n++] = term->operands[a];
    operands[n] = hd_flat_index(arena, image->e);
    return hd_flat_load(arena, p->filled, operands);
  }
  return term->kind == HD_TERM_REDUCE ? hd_laid_image_sum(image, term, p->v)
                                      : term;
}

// --- The nodes ---

static void make_tasks(padding_t *p) {
  hd_laid_image_t *image = &p->image;
  hd_arena_t *arena = image->l->arena;
  const hd_task_value_t *x = image->x->u.value, *w = image->w->u.value;
  int64_t shape[HD_MAX_RANK];
  p->window = hd_flat_range(p->v);
  while (p->window * p->channels % p->piece != 0)
    p->window++;
  image->e = hd_flat_index_make(arena, "e", p->window * p->channels);
  p->pad = pad_task(p, shape);
  p->padded = hd_flat_value_make(arena, "x", HD_VALUE_INPUT, x->type.scalar,
                                 shape, x->rank - 1);
  p->fill = fill_task(p, shape);
  p->filled = hd_flat_value_make(arena, "w", HD_VALUE_INPUT, w->type.scalar,
                                 shape, w->rank - 1);
  image->made = hd_laid_image_task(image, p->padded, p->filled, leave, p);
}

// Whether it takes less than as it was, or read as it lies, with the copy.
// Where nothing is known of one of them it does.
static bool is_worth_it(const padding_t *p, size_t number, bool explain) {
  const hd_laid_image_t *image = &p->image;
  hd_layouts_t *l = image->l;
  double before = hd_layouts_price(l, image->flat);
  double pixels = hd_layouts_price_of_pixels(l, number);
  double after = hd_layouts_price(l, image->made);
  double copy = hd_layouts_price_of_copy(l, image->x->u.value, p->padded);
  if (explain && after > 0)
    hd_remark(
        &l->module->context->diags, image->node->loc,
        "layout: %.2f us are expected of %s '%s' with its channels filled "
        "up and %.2f us of the copy, %.2f us of its pixels as they lie, "
        "%.2f us as it is",
        after, image->node->op, hd_node_label(image->node), copy, pixels,
        before);
  if (pixels > 0 && (before == 0 || pixels < before))
    before = pixels;
  return before == 0 || after == 0 || after + copy < before;
}

static void put_padded(const padding_t *p) {
  const hd_laid_image_t *image = &p->image;
  const hd_value_t *padded =
      hd_layouts_put_copy(image->l, hd_laid_image_operand(image, image->x),
                          p->pad, "padded", image->node->loc);
  const hd_value_t *filled =
      hd_layouts_put_copy(image->l, hd_laid_image_operand(image, image->w),
                          p->fill, "filled", image->node->loc);
  hd_laid_image_put(image, "filled", padded, filled);
}

const hd_graph_t *hd_layouts_pad(hd_layouts_t *l, bool explain) {
  bool any = false;
  hd_layouts_begin(l);
  for (size_t i = 0; i < l->graph->nodes.size; i++) {
    padding_t p;
    const hd_laid_image_t *image = &p.image;
    bool is_one = hd_laid_image_find(&p.image, l, i, fits);
    if (is_one)
      make_tasks(&p);
    if (!is_one || !is_worth_it(&p, i, explain) ||
        !hd_step(&l->module->context->steps, HD_STEP_FUSION,
                 "of '%s', whose channels are filled up for %s",
                 hd_value_label(hd_laid_image_operand(image, image->x)),
                 image->node->op)) {
      hd_vec_push(l->arena, &l->made->nodes, image->node);
      continue;
    }
    any = true;
    if (explain)
      hd_remark(&l->module->context->diags, image->node->loc,
                "layout: the %lld channels of '%s' are filled up to %lld, and "
                "borders are kept with them",
                (long long)range_of(image->p),
                hd_value_label(hd_laid_image_operand(image, image->x)),
                (long long)p.channels);
    put_padded(&p);
  }
  return any ? l->made : l->graph;
}
