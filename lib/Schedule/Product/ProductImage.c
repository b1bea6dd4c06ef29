// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products whose rows are windows of an image: convolutions. With its channels
// last the copy engine reads them (im2col); of few channels a kernel reads the
// image itself, however it lies.
#include "Schedule/Product/Product.h"
#include "Schedule/Terms/Side.h"

enum { SIDES = 2, CHUNK_BITS = 128 };
enum { ANYWHERE = 1 << 30 }; // So far a kernel may read behind the image.
// What a tensor map has room for.
enum {
  MOST_STEP = 8,
  LEAST_CORNER = -128,
  MOST_CORNER = 127,
  MOST_OFFSET = 255
};

typedef struct finder {
  hd_arena_t *arena;
  const hd_contraction_t *c;
  const hd_term_t *load;
  const hd_index_t *image, *channel; // NULL: one.
  uint32_t image_axis, channel_axis;
  unsigned count;
  hd_side_t sides[SIDES];
} finder_t;

// Whether an axis is these indices, in order; those of one value, and NULL,
// left aside.
static bool is_made_of(const hd_axis_t *axis, const hd_index_t *const *indices,
                       unsigned count) {
  unsigned n = 0;
  for (unsigned i = 0; i < axis->count; i++) {
    if (hd_flat_range(axis->indices[i]) == 1)
      continue;
    while (n < count && (!indices[n] || hd_flat_range(indices[n]) == 1))
      n++;
    if (n == count || indices[n++] != axis->indices[i])
      return false;
  }
  while (n < count && (!indices[n] || hd_flat_range(indices[n]) == 1))
    n++;
  return n == count;
}

// The innermost of the sum's indices is the channel, where all that it is
// added to is 0.
static bool find_channel(finder_t *f) {
  const hd_axis_t *k = &f->c->k;
  unsigned last = k->count;
  while (last > 0 && hd_flat_range(k->indices[last - 1]) == 1)
    last--;
  hd_side_t side;
  for (uint32_t a = 0; last > 0 && a < f->load->u.value->rank; a++) {
    if (!hd_side_read(f->arena, f->load, a, f->c->sum->u.reduction, &side) ||
        side.in != k->indices[last - 1])
      continue;
    f->channel = side.in;
    f->channel_axis = a;
    return !side.at && hd_side_is_plain(&side);
  }
  return false;
}

// [image, row, column] and the channel anywhere, or without some of the first
// two.
static bool find_sides(finder_t *f) {
  uint32_t rank = f->load->u.value->rank;
  const hd_reduction_t *sum = f->c->sum->u.reduction;
  if (rank < 2 || !find_channel(f))
    return false;
  for (uint32_t a = 0, left = rank - 1; a < rank; a++) {
    hd_side_t side;
    if (a == f->channel_axis)
      continue;
    if (!hd_side_read(f->arena, f->load, a, sum, &side))
      return false;
    if (left-- <= SIDES) {
      f->sides[f->count++] = side;
      continue;
    }
    if (!hd_side_is_plain(&side) || side.in || (side.at && f->image))
      return false;
    if (side.at) {
      f->image = side.at;
      f->image_axis = a;
    }
  }
  return f->count > 0;
}

// Why there is no tensor map.
static const char *obstacle(const finder_t *f,
                            const hd_product_image_t *image) {
  const hd_task_value_t *x = f->load->u.value;
  if (f->channel_axis != x->rank - 1 ||
      image->channels != hd_flat_size(x, f->channel_axis))
    return "is an image whose channels are not last, or not all of them are "
           "read";
  if (image->channels * (int64_t)hd_scalar_bits(x->type.scalar) % CHUNK_BITS !=
      0)
    return "has channels that are no multiples of 16 bytes";
  for (int i = 0; i < SIDES; i++) {
    int64_t reach = (image->window[i] - 1) * image->dilations[i];
    int64_t upper = (image->places[i] - 1) * image->steps[i] - image->pads[i] -
                    (image->sizes[i] - 1);
    if (image->steps[i] > MOST_STEP || -image->pads[i] < LEAST_CORNER ||
        -image->pads[i] > MOST_CORNER || upper < LEAST_CORNER ||
        upper > MOST_CORNER || reach > MOST_OFFSET)
      return "has windows that no tensor map describes";
  }
  return NULL;
}

static void set_side(hd_product_image_t *image, int n, const finder_t *f,
                     const hd_side_t *side) {
  image->sizes[n] = hd_flat_size(f->load->u.value, side->axis);
  image->places[n] = side->at ? hd_flat_range(side->at) : 1;
  image->window[n] = side->in ? hd_flat_range(side->in) : 1;
  image->steps[n] = side->step;
  image->dilations[n] = side->dilation;
  image->pads[n] = -side->first;
}

// Of an image of few channels: x by its own places, zeros beyond it.
static void set_pixels(hd_product_image_t *image, const finder_t *f) {
  static const char *const names[] = {"image", "row", "column", "channel"};
  hd_arena_t *arena = f->arena;
  const hd_task_value_t *x = f->load->u.value;
  int64_t images = f->image ? hd_flat_range(f->image) : 1;
  const hd_term_t *operands[HD_MAX_RANK + 1], *at[HD_FORM_RANK];
  hd_form_tensor_t *pixels = &image->pixels;
  *pixels = (hd_form_tensor_t){.rank = HD_FORM_RANK,
                               .shape = {images, 1, 1, image->channels}};
  for (unsigned i = 0; i < HD_FORM_RANK; i++) {
    unsigned side = i - 1 + f->count - SIDES; // A line has columns.
    bool is_side = i > 0 && i <= SIDES && side < f->count;
    if (is_side)
      pixels->shape[i] = hd_side_reach(&f->sides[side]);
    pixels->indices[i] = hd_flat_index_make(
        arena, names[i], i > 0 && i <= SIDES ? ANYWHERE : pixels->shape[i]);
    at[i] = hd_flat_index(arena, pixels->indices[i]);
  }
  for (uint32_t a = 0; a < x->rank; a++)
    operands[a] = f->load->operands[a]; // 0 of what is none of these.
  if (f->image)
    operands[f->image_axis] = at[0];
  for (unsigned i = 0; i < f->count; i++)
    operands[f->sides[i].axis] = hd_index_simplify(
        arena,
        hd_flat_operate_int(arena, HD_EXPR_ADD, at[1 + SIDES - f->count + i],
                            f->sides[i].first));
  operands[f->channel_axis] = at[3];
  operands[x->rank] = hd_flat_float(arena, x->type.scalar, 0);
  hd_term_t *load = hd_term_make(arena, HD_TERM_LOADELSE, f->load->type,
                                 operands, x->rank + 1);
  load->u.value = x;
  load->loc = f->load->loc;
  pixels->term = load;
}

// Why kernels cannot read its pixels.
static const char *why_no_pixels(const finder_t *f,
                                 const hd_product_image_t *image) {
  const hd_scalar_t type = f->load->type.scalar;
  int64_t bits = image->channels * (int64_t)hd_scalar_bits(type);
  if (image->places[0] * image->places[1] == 1)
    return "has one window alone, which is a row";
  return !hd_type_is_float(hd_type(type)) || bits < HD_PIXEL_BITS ||
                 bits > HD_MOST_PIXEL_BITS || bits % HD_PIXEL_BITS != 0
             ? "has pixels of neither 8 nor 16 bytes"
             : NULL;
}

static const char *find_image(finder_t *f, hd_product_image_t *image) {
  static const char *const none = "is no image whose windows are read";
  const hd_contraction_t *c = f->c;
  if (!hd_is_image(f->load) || c->batch.size != 1 || !find_sides(f))
    return none;
  const hd_side_t *row = f->count == SIDES ? &f->sides[0] : NULL;
  const hd_side_t *column = &f->sides[f->count - 1];
  const hd_index_t *m[] = {f->image, row ? row->at : NULL, column->at};
  const hd_index_t *k[] = {row ? row->in : NULL, column->in, f->channel};
  if (!is_made_of(&c->m, m, 3) || !is_made_of(&c->k, k, 3))
    return none;
  *image = (hd_product_image_t){.sizes = {1, 1},
                                .places = {1, 1},
                                .window = {1, 1},
                                .steps = {1, 1},
                                .dilations = {1, 1},
                                .channels = hd_flat_range(f->channel)};
  if (row)
    set_side(image, 0, f, row);
  set_side(image, 1, f, column);
  image->x.same = f->load->u.value;
  // What is no window of several elements, or with steps, is a product of rows.
  if (image->window[0] * image->window[1] == 1 && image->steps[0] == 1 &&
      image->steps[1] == 1 && image->pads[0] == 0 && image->pads[1] == 0)
    return none;
  return NULL;
}

static const char *given_by(hd_arena_t *arena, const hd_product_image_t *m) {
  static const char *const names[] = {"I", "O", "K", "S", "D", "P"};
  const int64_t *pairs[] = {m->sizes, m->places,    m->window,
                            m->steps, m->dilations, m->pads};
  const char *text =
      hd_arena_printf(arena, "CH = %lld", (long long)m->channels);
  for (int i = 0; i < 6; i++)
    text = hd_arena_printf(arena, "%s, %sH = %lld, %sW = %lld", text, names[i],
                           (long long)pairs[i][0], names[i],
                           (long long)pairs[i][1]);
  return text;
}

void hd_product_image_find(hd_arena_t *arena, const hd_contraction_t *c,
                           const hd_term_t *a, hd_product_form_t *form) {
  finder_t f = {.arena = arena, .c = c, .load = a};
  hd_product_image_t *image = HD_ARENA_NEW(arena, hd_product_image_t);
  form->image = NULL;
  form->no_image = form->no_pixels = find_image(&f, image);
  if (form->no_image)
    return;
  form->no_image = obstacle(&f, image);
  form->no_pixels = why_no_pixels(&f, image);
  if (!form->no_pixels)
    set_pixels(image, &f);
  image->given = given_by(arena, image);
  form->image = image;
}
