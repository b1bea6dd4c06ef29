// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normal form of a sum of products, which templates implement:
//
//   c[z, i, j] = sum(p) a[z, i, p] * b[z, p, j]
//
// Each of its axes is some indices of the task's definition, counted row-major.
// An operand is whatever term stands there, in its own type; what the
// definition makes of the sum and where it goes comes behind it.
#ifndef HIDET_SCHEDULE_PRODUCT_PRODUCT_H
#define HIDET_SCHEDULE_PRODUCT_PRODUCT_H

#include "Schedule/Template/Candidates.h"
#include "Schedule/Template/FormTensor.h"
#include "Support/Map.h"

typedef enum hd_form_axis {
  HD_AXIS_BATCH,
  HD_AXIS_M,
  HD_AXIS_N,
  HD_AXIS_K,
  HD_PRODUCT_AXES
} hd_form_axis_t;

// Of what templates may have maps of, behind a and b: the image.
enum { HD_PRODUCT_IMAGE = 2 };

// Of a pixel of few channels: what a thread reads of it at once, and all.
enum { HD_PIXEL_BITS = 64, HD_MOST_PIXEL_BITS = 128 };

typedef struct hd_product_form {
  hd_form_result_t result; // In c.
  int64_t sizes[HD_PRODUCT_AXES];
  hd_scalar_t type;   // Of the operands.
  hd_scalar_t second; // Of b, where it is of another; else void.
  bool rows;          // b is [z, j, p]: neighbours along the sum.
  hd_form_tensor_t a, b, c;
  // a as [z, p, i], where that is how whole pieces of 16 bytes lie, for kernels
  // that take it so.
  bool turned;
  hd_form_tensor_t turned_a;
  // The narrower tensor that b is computed from, element for element
  // (kept.same; NULL: there is none), and how many neighbours along the sum,
  // from a multiple of so many on, are computed with the same of everything
  // else.
  hd_form_tensor_t kept;
  int64_t alike;
  const struct hd_normed *normed; // NULL: the product alone.
  // The image whose windows are a's rows; NULL: there is none. Why it has no
  // tensor map, and is none of few channels, as no_map has it.
  const struct hd_product_image *image;
  const char *no_image, *no_pixels;
} hd_product_form_t;

// a[0, (image, i, j), (u, v, p)]
//   = x[image, i * step + u * dilation - pad, j * .. + v * .. - .., p]
//
// row-major both, and zeros outside x, which lies with its channels last where
// it has a tensor map.
typedef struct hd_product_image {
  hd_form_tensor_t x;
  // Of few channels, x[image, row, column, channel], wherever that lies: its
  // places are counted from the first that is read, borders included, and
  // behind the last there are zeros.
  hd_form_tensor_t pixels;
  int64_t sizes[2];  // Of x, its height and width; of a line 1 and its length.
  int64_t places[2]; // Of i and j,
  int64_t window[2]; // of u and v.
  int64_t steps[2], dilations[2], pads[2];
  int64_t channels;
  const char *given; // Of a kernel's compile-time parameters.
} hd_product_image_t;

// A product of rows that are normalized first,
//
//   c[z, i, j] = (sum(p) a[z, i, p] * b[z, p, j] - mean[z, i] * u[j])
//                * inverse[z, i] + v[j]
//
// where inverse is 1 / sqrt(variance + epsilon); without a mean, and what is
// multiplied with it or added, inverse is of the mean of squares. With parts,
// statistics of so many pieces of a row are there: a has the distances from its
// piece's mean, b is longer than a's rows by a row for each piece, by which the
// distance of its mean from the row's is multiplied, and there is no u. With
// parts and without a mean a is the rows, and their squares are those of its
// parts.
typedef struct hd_normed {
  bool centred;  // There is a mean.
  bool keeps;    // Mean and inverse are somebody's results.
  int64_t parts; // 0: statistics are found in a.
  hd_form_tensor_t u, v, epsilon, mean, inverse;
  hd_form_tensor_t centre, squares; // Of parts.
} hd_normed_t;

// NULL, or why a definition has no such form; accumulated in f32.
const char *hd_product_form_find(hd_arena_t *arena, const hd_definition_t *d,
                                 hd_product_form_t *form);

// The same, with a few rows or one: what is rows of b where no template takes
// it.
const char *hd_product_form_find_few(hd_arena_t *arena,
                                     const hd_definition_t *d,
                                     hd_product_form_t *form);

// Forms of definitions, each looked for once: nodes that compute the same share
// a flat task, and a look takes more memory than the task. Begins as zeros, and
// belongs to one arena.
typedef struct hd_product_forms {
  bool few;
  hd_ptr_map_t known;
} hd_product_forms_t;

// NULL: the definition has no such form. As hd_product_form_find(), or, where
// `few` is set, as hd_product_form_find_few().
const hd_product_form_t *hd_product_forms_get(hd_product_forms_t *forms,
                                              hd_arena_t *arena,
                                              const hd_definition_t *d);

// The contraction that the form is of: of the definition, or of what that is
// with indices split in two.
bool hd_product_contraction_find(hd_arena_t *arena, const hd_definition_t *d,
                                 hd_contraction_t *c);

// Sets the form's image, where it has one.
void hd_product_image_find(hd_arena_t *arena, const hd_contraction_t *c,
                           const hd_term_t *a, hd_product_form_t *form);

// Sets what b is computed from, where that is one tensor for the most part.
void hd_product_kept_find(hd_arena_t *arena, hd_product_form_t *form);

// The kernel computes all that the definition makes of the sum, and rounds it:
// c is the target, where that lies as c does.
void hd_product_form_round(hd_arena_t *arena, hd_product_form_t *form);

// NULL, or why the definitions of a flat task are no such product: the
// statistics of the rows, then what is made of them.
const char *hd_normed_form_find(hd_arena_t *arena, const hd_task_t *flat,
                                hd_product_form_t *form);

// The same of some definitions of a task, one behind the other.
const char *hd_normed_definitions_find(hd_arena_t *arena,
                                       const hd_definition_t *const *data,
                                       size_t count, hd_product_form_t *form);

// Those of a flat task's inputs that will be computed where they are loaded, as
// hd_surroundings_t has it: they are no tensors, although they look like
// some here.
void hd_product_form_mark(hd_product_form_t *form, const hd_task_t *flat,
                          uint64_t computed);

// a as a template's kernel has it.
static inline const hd_form_tensor_t *
hd_product_form_a(const hd_product_form_t *form,
                  const hd_template_t *template) {
  return form->turned && template->takes_turned ? &form->turned_a : &form->a;
}

// Which of the library's forms it is.
hd_form_kind_t hd_product_form_kind(const hd_product_form_t *form);
// Rows (side 0) or columns (1) of the image from the first that a window reads
// to the last; 0 where there is no image.
int64_t hd_product_image_span(const hd_product_image_t *image, int side);

// The microseconds that a candidate is expected to take: they grow with what it
// does, and are right within a factor of two or so. Source: the roofline of a
// step (tensor cores against the L2 cache), the latency of what is not under
// way, waves of blocks.
double hd_product_price(const hd_machine_t *machine, const hd_form_t *asked,
                        const hd_candidate_t *c);
// Threads of all blocks together, each counted once, and once for each of its
// steps: what the simulator's time grows with.
double hd_product_turns(const hd_form_t *form, const hd_candidate_t *c);

// The form as templates are asked about it.
hd_form_t hd_product_form_ask(hd_arena_t *arena, const hd_product_form_t *form);

#endif
