// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normal form of a definition that sums over windows, channel by channel.
#include "Schedule/Terms/Affine.h"
#include "Schedule/Terms/Side.h"
#include "Schedule/Window/Window.h"

enum {
  SIDES = 2,
  BYTES = 16,
  NO_AXIS = HD_MAX_RANK,
  ANYWHERE = 1 << 30 // So far a kernel may read behind the image.
};

typedef struct finder {
  hd_arena_t *arena;
  const hd_definition_t *d;
  const hd_reduction_t *r;
  const hd_term_t *x, *w; // Loads.
  const hd_index_t *channel;
  unsigned num_sides, num_batch;
  hd_side_t sides[SIDES]; // A line has NO_AXIS for its rows.
  const hd_index_t *batch[HD_MAX_RANK];
  uint32_t batch_axes[HD_MAX_RANK]; // Of x, where those run.
} finder_t;

static bool is_among(const hd_index_t *const *indices, unsigned count,
                     const hd_index_t *index) {
  for (unsigned i = 0; i < count; i++)
    if (indices[i] == index)
      return true;
  return false;
}

static bool is_summed(const finder_t *f, const hd_index_t *index) {
  return is_among(f->r->indices, f->r->num_indices, index);
}

// The index that a place is; NULL: it is none, or *ok is false.
static const hd_index_t *plain_index(const hd_term_t *place, bool *ok) {
  bool fixed = hd_flat_is_int(place, 0);
  *ok = fixed || place->kind == HD_TERM_INDEX;
  return *ok && !fixed ? place->u.index : NULL;
}

// Weights are read at plain indices, each once; the one of them that is not
// summed over is the channel.
static bool find_channel(finder_t *f) {
  f->channel = NULL;
  for (uint32_t a = 0; a < f->w->u.value->rank; a++) {
    bool ok;
    const hd_index_t *index = plain_index(f->w->operands[a], &ok);
    if (!ok)
      return false;
    for (uint32_t b = 0; index && b < a; b++)
      if (f->w->operands[b]->kind == HD_TERM_INDEX &&
          f->w->operands[b]->u.index == index)
        return false;
    if (!index || is_summed(f, index))
      continue;
    if (f->channel)
      return false;
    f->channel = index;
  }
  return f->channel != NULL;
}

static bool add_side(finder_t *f, const hd_side_t *side) {
  if (f->num_sides == SIDES)
    return false;
  f->sides[f->num_sides++] = *side;
  return true;
}

// Where all is plain along an axis it is one of the batch.
static bool find_sides(finder_t *f) {
  unsigned channels = 0;
  f->num_sides = f->num_batch = 0;
  for (uint32_t a = 0; a < f->x->u.value->rank; a++) {
    hd_side_t side;
    if (!hd_side_read(f->arena, f->x, a, f->r, &side))
      return false;
    bool plain = !side.in && hd_side_is_plain(&side);
    if (side.at == f->channel) {
      channels += plain;
      continue;
    }
    if (!plain) {
      if (!add_side(f, &side))
        return false;
    } else if (side.at) {
      f->batch_axes[f->num_batch] = a;
      f->batch[f->num_batch++] = side.at;
    }
  }
  return channels == 1 && f->num_sides > 0;
}

// The last axis of the batch is a side without a window, where there is but
// one: neighbours along it read the same weights.
static void complete_sides(finder_t *f) {
  if (f->num_sides == SIDES || !f->num_batch)
    return;
  uint32_t axis = f->batch_axes[--f->num_batch];
  hd_side_t side = {axis, f->batch[f->num_batch], NULL, 1, 1, 0};
  f->sides[f->num_sides++] = side;
  if (f->sides[0].axis > axis) {
    f->sides[1] = f->sides[0];
    f->sides[0] = side;
  }
}

static unsigned count_uses(const finder_t *f, const hd_index_t *index) {
  unsigned count = is_among(f->batch, f->num_batch, index);
  for (unsigned i = 0; i < f->num_sides; i++)
    count += (f->sides[i].at == index) + (f->sides[i].in == index);
  return count + (f->channel == index);
}

// Whether every index has its one place, in the image and, of those summed
// over, in the weights.
static bool is_complete(const finder_t *f) {
  for (uint32_t i = 0; i < f->d->num_indices; i++)
    if (hd_flat_range(f->d->indices[i]) > 1 &&
        count_uses(f, f->d->indices[i]) != 1)
      return false;
  for (uint32_t i = 0; i < f->r->num_indices; i++) {
    const hd_index_t *index = f->r->indices[i];
    if (hd_flat_range(index) > 1 &&
        (count_uses(f, index) != 1 || !hd_flat_uses(f->w, index)))
      return false;
  }
  return true;
}

// Which factor is the image, and which the weights.
static bool find_operands(finder_t *f, const hd_term_t *a, const hd_term_t *b) {
  for (int swap = 0; swap < 2; swap++) {
    f->x = swap ? b : a;
    f->w = swap ? a : b;
    if (!hd_is_image(f->x) || f->w->kind != HD_TERM_LOAD || !find_channel(f) ||
        !find_sides(f))
      continue;
    complete_sides(f);
    if (is_complete(f))
      return true;
  }
  return false;
}

// --- The form ---

// How many neighbours along an index lie side by side, aligned.
static int64_t lanes_of(hd_arena_t *arena, const hd_term_t *load,
                        const hd_index_t *index) {
  const hd_task_value_t *value = load->u.value;
  int64_t shape[HD_MAX_RANK], bits = hd_scalar_bits(load->type.scalar);
  hd_linear_t number;
  for (uint32_t i = 0; i < value->rank; i++)
    shape[i] = hd_flat_size(value, i);
  if (bits < 8 ||
      !hd_affine_of(arena,
                    hd_index_linear(arena, shape, value->rank, load->operands),
                    &number))
    return 0;
  int64_t lanes = BYTES * 8 / bits;
  bool along = false;
  while (lanes > 1 &&
         (number.constant % lanes != 0 || hd_flat_range(index) % lanes != 0))
    lanes /= 2;
  for (unsigned i = 0; i < number.size; i++) {
    const hd_linear_term_t *part = &number.terms[i];
    bool self =
        part->term->kind == HD_TERM_INDEX && part->term->u.index == index;
    along |= self && part->factor == 1;
    while (!self && lanes > 1 && part->factor % lanes != 0)
      lanes /= 2;
  }
  return along ? lanes : 0;
}

static hd_axis_t axis_of(const hd_index_t *const *indices, unsigned count) {
  hd_axis_t axis = {.count = count};
  for (unsigned i = 0; i < count; i++)
    axis.indices[i] = indices[i];
  axis.size = hd_flat_points(indices, count);
  return axis;
}

static hd_axis_t axis_of_one(const hd_index_t *index) {
  return axis_of(&index, index != NULL);
}

// The image by its own places, zeros beyond it.
static void set_image(hd_window_form_t *form, const finder_t *f,
                      const hd_form_digits_t *digits) {
  static const char *const names[SIDES] = {"row", "column"};
  hd_arena_t *arena = f->arena;
  hd_form_tensor_t *x = &form->x;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  *x = (hd_form_tensor_t){.rank = 4};
  x->indices[0] = digits->places[HD_WINDOW_BATCH];
  x->shape[0] = form->sizes[HD_WINDOW_BATCH];
  x->indices[3] = digits->places[HD_WINDOW_CHANNELS];
  x->shape[3] = form->sizes[HD_WINDOW_CHANNELS];
  for (uint32_t a = 0; a < f->x->num_operands; a++)
    operands[a] =
        a < f->x->u.value->rank
            ? hd_index_simplify(arena,
                                hd_form_put_digits(digits, f->x->operands[a]))
            : f->x->operands[a];
  for (unsigned i = 0; i < SIDES; i++) {
    x->shape[i + 1] = hd_side_reach(&f->sides[i]);
    x->indices[i + 1] = hd_flat_index_make(arena, names[i], ANYWHERE);
    if (f->sides[i].axis != NO_AXIS)
      operands[f->sides[i].axis] = hd_index_simplify(
          arena, hd_flat_operate_int(arena, HD_EXPR_ADD,
                                     hd_flat_index(arena, x->indices[i + 1]),
                                     f->sides[i].first));
  }
  operands[f->x->u.value->rank] = hd_flat_float(arena, form->type, 0);
  hd_term_t *load = hd_term_make(arena, HD_TERM_LOADELSE, f->x->type, operands,
                                 f->x->u.value->rank + 1);
  load->u.value = f->x->u.value;
  load->loc = f->x->loc;
  x->term = load;
}

// Whether the image's axes are those of the batch, its rows, columns and all of
// its channels, in this order, whole where a map takes them for one; those of
// one element left aside.
static bool is_in_order(const hd_window_form_t *form, const finder_t *f) {
  const hd_task_value_t *value = f->x->u.value;
  uint32_t last = value->rank - 1;
  unsigned batch = 0, side = f->sides[0].axis == NO_AXIS;
  for (uint32_t a = 0; a < last; a++) {
    if (batch < f->num_batch && f->batch_axes[batch] == a) {
      if (hd_flat_size(value, a) != hd_flat_range(f->batch[batch]))
        return false;
      batch++;
    } else if (batch == f->num_batch && side < SIDES &&
               f->sides[side].axis == a) {
      side++;
    } else if (hd_flat_size(value, a) != 1) {
      return false;
    }
  }
  return batch == f->num_batch && side == SIDES &&
         hd_flat_size(value, last) == form->sizes[HD_WINDOW_CHANNELS];
}

// Why there is no tensor map of the image without its borders.
static const char *obstacle(const hd_window_form_t *form, const finder_t *f) {
  if (!is_in_order(form, f))
    return "does not lie row after row in memory, channels last";
  return form->sizes[HD_WINDOW_CHANNELS] * (int64_t)hd_scalar_bits(form->type) %
                     (BYTES * 8) !=
                 0
             ? "has rows that are no multiples of 16 bytes"
             : NULL;
}

static void set_map(hd_window_form_t *form, const finder_t *f) {
  const hd_task_value_t *value = f->x->u.value;
  form->image = (hd_form_tensor_t){.rank = 4,
                                   .shape = {form->sizes[HD_WINDOW_BATCH], 1, 1,
                                             form->sizes[HD_WINDOW_CHANNELS]},
                                   .same = value,
                                   .no_map = obstacle(form, f)};
  for (unsigned i = 0; i < SIDES; i++) {
    const hd_side_t *side = &f->sides[i];
    form->pads[i] = -side->first;
    if (side->axis != NO_AXIS)
      form->image.shape[i + 1] = hd_flat_size(value, side->axis);
  }
}

void hd_window_form_mark(hd_window_form_t *form, const hd_task_t *flat,
                         uint64_t computed) {
  if (computed & hd_form_tensor_input(&form->image, flat))
    form->image.no_map = "is computed where it is loaded";
}

static void set_form(hd_window_form_t *form, finder_t *f) {
  static const char *const names[HD_WINDOW_WIDTH + 1] = {"z", "i", "j",
                                                         "f", "u", "v"};
  hd_arena_t *arena = f->arena;
  if (f->num_sides == 1) { // A line: its columns.
    f->sides[1] = f->sides[0];
    f->sides[0] = (hd_side_t){NO_AXIS, NULL, NULL, 1, 1, 0};
  }
  hd_axis_t axes[HD_WINDOW_WIDTH + 1] = {
      axis_of(f->batch, f->num_batch), axis_of_one(f->sides[0].at),
      axis_of_one(f->sides[1].at),     axis_of_one(f->channel),
      axis_of_one(f->sides[0].in),     axis_of_one(f->sides[1].in)};
  const hd_index_t *places[HD_WINDOW_WIDTH + 1];
  for (int n = 0; n <= HD_WINDOW_WIDTH; n++) {
    form->sizes[n] = axes[n].size;
    places[n] = hd_flat_index_make(arena, names[n], axes[n].size);
  }
  form->sizes[HD_WINDOW_ROW_STEP] = f->sides[0].step;
  form->sizes[HD_WINDOW_COLUMN_STEP] = f->sides[1].step;
  for (int i = 0; i < SIDES; i++)
    form->dilations[i] = f->sides[i].dilation;
  hd_form_digits_t digits = {.arena = arena,
                             .count = HD_WINDOW_WIDTH + 1,
                             .axes = axes,
                             .places = places};
  set_image(form, f, &digits);
  set_map(form, f);
  hd_form_tensor_begin(&form->w, &digits, HD_WINDOW_HEIGHT, HD_WINDOW_WIDTH,
                       HD_WINDOW_CHANNELS);
  hd_form_tensor_load(&form->w, &digits, f->w, false);
  form->y = (hd_form_tensor_t){.rank = 4};
  for (int i = 0; i < 4; i++) {
    form->y.indices[i] = places[i];
    form->y.shape[i] = axes[i].size;
  }
  hd_form_result_set(&form->result, &digits, &form->y);
}

// Kernels count in i32 the elements of the result, and those of tiles that
// stick out.
static bool is_within_i32(const hd_window_form_t *form) {
  int64_t elements = 1;
  for (int i = HD_WINDOW_BATCH; i <= HD_WINDOW_CHANNELS; i++)
    if (__builtin_mul_overflow(elements, form->sizes[i], &elements))
      return false;
  for (int i = 0; i < HD_WINDOW_SIZES; i++)
    if (form->sizes[i] > INT32_MAX / 4)
      return false;
  return elements <= INT32_MAX / 2;
}

const char *hd_window_form_find(hd_arena_t *arena, const hd_definition_t *d,
                                hd_window_form_t *form) {
  static const char *const none = "it sums over no windows of channels";
  *form = (hd_window_form_t){.result = {.d = d}};
  if (d->kind != HD_DEFINE || d->num_targets > 1 ||
      d->num_indices > HD_MAX_RANK ||
      !hd_reduced_find(arena, d, &form->result.reduced))
    return none;
  const hd_term_t *sum = form->result.reduced.reduction;
  const hd_term_t *product = sum->operands[0];
  if (sum->num_operands != 1 || sum->type.scalar != HD_F32 ||
      sum->u.reduction->monoid->builtin != HD_MONOID_SUM ||
      product->kind != HD_TERM_OPERATOR || product->u.op != HD_EXPR_MUL)
    return none;
  const hd_term_t *a = hd_form_narrow(product->operands[0], HD_F32);
  const hd_term_t *b = hd_form_narrow(product->operands[1], HD_F32);
  a = a ? a : product->operands[0];
  b = b ? b : product->operands[1];
  finder_t f = {.arena = arena, .d = d, .r = sum->u.reduction};
  if (a->type.scalar != b->type.scalar || !find_operands(&f, a, b))
    return none;
  form->type = a->type.scalar;
  int64_t along_x = lanes_of(arena, f.x, f.channel);
  int64_t along_w = lanes_of(arena, f.w, f.channel);
  form->lanes = along_x < along_w ? along_x : along_w;
  set_form(form, &f);
  return is_within_i32(form) ? NULL : "its sizes are too large for it";
}
