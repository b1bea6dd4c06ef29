// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions of images of a few channels by weights that are constants, and
// what stands for them with their channels filled up.
#ifndef HIDET_FUSION_LAYOUT_LAYOUTIMAGE_H
#define HIDET_FUSION_LAYOUT_LAYOUTIMAGE_H

#include "Fusion/Layout/LayoutState.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Rules/Contract.h"
#include "Schedule/Terms/Side.h"

typedef struct hd_laid_image {
  hd_layouts_t *l;
  const hd_node_t *node;
  const hd_task_t *flat;
  const hd_definition_t *d;
  const hd_product_form_t *form;  // As a product.
  const hd_term_t *x, *w;         // Loads.
  unsigned channel, channel_of_w; // Axes of x and of w,
  const hd_index_t *p;            // where the sum's index stands; NULL: 0 does.
  const hd_index_t *e;            // What stands for it, filled up.
  hd_task_t *made;                // What stands for the convolution.
} hd_laid_image_t;

// Of the convolution at hand, x and w being one of its operands each: whether
// they are such, with what is found of them.
typedef bool (*hd_laid_image_fn_t)(hd_laid_image_t *image,
                                   const hd_contraction_t *sum);

// Whether node number n is a convolution that fits, of an image that is no
// constant by weights that are, each of which is read in one place.
bool hd_laid_image_find(hd_laid_image_t *image, hd_layouts_t *l, size_t n,
                        hd_laid_image_fn_t fits);
// The node's operand that a load is of; NULL: none.
const hd_value_t *hd_laid_image_operand(const hd_laid_image_t *image,
                                        const hd_term_t *load);
// For hd_flat_rewrite(): the sum over e, without p and another index.
const hd_term_t *hd_laid_image_sum(const hd_laid_image_t *image,
                                   const hd_term_t *term,
                                   const hd_index_t *other);
// The convolution with x and w in the place of its own, its term rewritten.
hd_task_t *hd_laid_image_task(const hd_laid_image_t *image,
                              const hd_task_value_t *x,
                              const hd_task_value_t *w, hd_flat_leave_t leave,
                              void *argument);
// Puts a node that computes `made` of x and w into the graph that is made.
void hd_laid_image_put(const hd_laid_image_t *image, const char *what,
                       const hd_value_t *x, const hd_value_t *w);

#endif
