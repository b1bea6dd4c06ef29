// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products whose rows are windows of an image with its channels last:
// convolutions, as the copy engine reads them (im2col).
#include "Schedule/Product/Product.h"
#include "Schedule/Terms/Side.h"

enum { SIDES = 2, CHUNK_BITS = 128 };
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

// [image, row, column, channel], or without some of the first three.
static bool find_sides(finder_t *f) {
  uint32_t rank = f->load->u.value->rank, last = rank - 1;
  const hd_reduction_t *sum = f->c->sum->u.reduction;
  hd_side_t side;
  if (rank < 2 || !hd_side_read(f->arena, f->load, last, sum, &side) ||
      !hd_side_is_plain(&side) || side.at || !side.in ||
      hd_flat_range(side.in) != hd_flat_size(f->load->u.value, last))
    return false;
  f->channel = side.in;
  for (uint32_t a = 0; a < last; a++) {
    if (!hd_side_read(f->arena, f->load, a, sum, &side))
      return false;
    if (a + SIDES >= last && f->count < SIDES) {
      f->sides[f->count++] = side;
      continue;
    }
    if (!hd_side_is_plain(&side) || side.in || (side.at && f->image))
      return false;
    f->image = side.at ? side.at : f->image;
  }
  return f->count > 0;
}

static const char *obstacle(const hd_product_image_t *image, int64_t bits) {
  if (image->channels * bits % CHUNK_BITS != 0)
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
  return obstacle(image, hd_scalar_bits(f->load->type.scalar));
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
  form->no_image = find_image(&f, image);
  form->image = NULL;
  if (form->no_image)
    return;
  image->given = given_by(arena, image);
  form->image = image;
}
