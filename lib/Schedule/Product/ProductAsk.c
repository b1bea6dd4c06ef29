// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product's form as templates are asked about it.
#include "Schedule/Product/Product.h"

int64_t hd_product_image_span(const hd_product_image_t *image, int side) {
  return image ? (image->window[side] - 1) * image->dilations[side] + 1 : 0;
}

// What the form gives of the kernel's compile-time parameters.
static const char *given_by(hd_arena_t *arena, const hd_product_form_t *form) {
  const char *given = hd_arena_printf(
      arena, "T = %s, O = %s, ROWS = %s", hd_scalar_name(form->type),
      hd_scalar_name(form->result.type), form->rows ? "true" : "false");
  const hd_normed_t *n = form->normed;
  return n && n->parts
             ? hd_arena_printf(arena, "%s, PARTS = %lld, MEAN = %s, KEEP = %s",
                               given, (long long)n->parts,
                               n->centred ? "true" : "false",
                               n->keeps ? "true" : "false")
         : n ? hd_arena_printf(arena, "%s, MEAN = %s", given,
                               n->centred ? "true" : "false")
             : given;
}

hd_form_kind_t hd_product_form_kind(const hd_product_form_t *form) {
  const hd_normed_t *n = form->normed;
  return !n         ? HD_FORM_KIND_PRODUCT
         : n->parts ? HD_FORM_KIND_CENTRED
                    : HD_FORM_KIND_NORMED;
}

// Elements of the result that lie side by side where rows begin and at each
// multiple of them; 0: whole pieces of 16 bytes, or nothing is known of it.
static unsigned aligned_of(const hd_product_form_t *form) {
  int64_t n = form->sizes[HD_AXIS_N];
  unsigned aligned = 1;
  if (!form->c.same ||
      n % (HD_FORM_WIDE * 8 / hd_scalar_bits(form->result.type)) == 0)
    return 0;
  while (n % (2 * (int64_t)aligned) == 0)
    aligned *= 2;
  return aligned;
}

hd_form_t hd_product_form_ask(hd_arena_t *arena,
                              const hd_product_form_t *form) {
  hd_form_t asked = {
      .kind = hd_product_form_kind(form),
      .type = form->type,
      .second = form->second,
      .kept = form->kept.same ? form->kept.same->type.scalar : HD_VOID,
      .names = {[HD_TEMPLATE_STORED] =
                    (int64_t)hd_scalar_bits(form->result.type),
                [HD_TEMPLATE_ROWS] = form->rows,
                [HD_TEMPLATE_TURNED] = form->turned,
                [HD_TEMPLATE_KEPT] = form->b.kept,
                [HD_TEMPLATE_MEAN] = form->normed && form->normed->centred,
                [HD_TEMPLATE_ALIKE] = form->kept.same ? form->alike : 0,
                [HD_TEMPLATE_HIGH] = hd_product_image_span(form->image, 0),
                [HD_TEMPLATE_WIDE] = hd_product_image_span(form->image, 1),
                [HD_TEMPLATE_DOWN] = form->image ? form->image->steps[0] : 0,
                [HD_TEMPLATE_ACROSS] = form->image ? form->image->steps[1] : 0},
      .no_map = {form->a.no_map, form->b.no_map, form->no_image},
      .no_turned_map = form->turned_a.no_map,
      .values = given_by(arena, form),
      .aligned = aligned_of(form),
      .given = {[HD_PRODUCT_IMAGE] = form->image ? form->image->given : NULL},
      .no_read = {[HD_PRODUCT_IMAGE] = form->no_pixels},
      .price = hd_product_price,
      .turns = hd_product_turns,
      .of = form};
  for (int i = 0; i < HD_PRODUCT_AXES; i++)
    asked.sizes[i] = form->sizes[i];
  return asked;
}
