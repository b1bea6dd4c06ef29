// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is the same of convolutions whose images are copied and of those whose
// images stay as they lie.
#include "Fusion/Layout/LayoutImage.h"

#include "Fusion/Fuse.h"

const hd_value_t *hd_laid_image_operand(const hd_laid_image_t *image,
                                        const hd_term_t *load) {
  return hd_node_input_of(image->node, image->flat, load->u.value);
}

bool hd_laid_image_find(hd_laid_image_t *image, hd_layouts_t *l, size_t n,
                        hd_laid_image_fn_t fits) {
  *image = (hd_laid_image_t){
      .l = l, .node = l->graph->nodes.data[n], .flat = l->flats[n]};
  hd_contraction_t sum;
  if (!image->flat || image->flat->definitions.size != 1)
    return false;
  const hd_definition_t *d = image->flat->definitions.data[0];
  image->d = d;
  image->form = d->kind == HD_DEFINE
                    ? hd_product_forms_get(&l->forms, l->arena, d)
                    : NULL;
  if (!image->form || !hd_contraction_find(l->arena, d, &sum))
    return false;
  for (int swap = 0; swap < 2; swap++) {
    image->x = swap ? sum.b->operands[0] : sum.a->operands[0];
    image->w = swap ? sum.a->operands[0] : sum.b->operands[0];
    if (!hd_is_image(image->x) || image->w->kind != HD_TERM_LOAD)
      continue;
    const hd_value_t *x = hd_laid_image_operand(image, image->x);
    const hd_value_t *w = hd_laid_image_operand(image, image->w);
    if (x && w && hd_laid_value(l, w)->prepared &&
        !hd_laid_value(l, x)->prepared && fits(image, &sum) &&
        hd_layout_is_read_once(d->term, image->x->u.value) &&
        hd_layout_is_read_once(d->term, image->w->u.value))
      return true;
  }
  return false;
}

const hd_term_t *hd_laid_image_sum(const hd_laid_image_t *image,
                                   const hd_term_t *term,
                                   const hd_index_t *other) {
  hd_arena_t *arena = image->l->arena;
  hd_reduction_t *reduction =
      HD_ARENA_COPY(arena, hd_reduction_t, term->u.reduction);
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, reduction->num_indices + 1);
  unsigned n = 0;
  for (uint32_t i = 0; i < reduction->num_indices; i++)
    if (reduction->indices[i] != image->p && reduction->indices[i] != other)
      indices[n++] = reduction->indices[i];
  indices[n++] = image->e;
  reduction->indices = indices;
  reduction->num_indices = n;
  hd_term_t *made = hd_flat_like(arena, term, term->operands);
  made->u.reduction = reduction;
  return made;
}

hd_task_t *hd_laid_image_task(const hd_laid_image_t *image,
                              const hd_task_value_t *x,
                              const hd_task_value_t *w, hd_flat_leave_t leave,
                              void *argument) {
  hd_arena_t *arena = image->l->arena;
  hd_task_t *task = hd_flat_emptied(arena, image->flat);
  for (size_t i = 0; i < image->flat->inputs.size; i++) {
    const hd_task_value_t *input = image->flat->inputs.data[i];
    hd_vec_push(arena, &task->inputs,
                input == image->x->u.value   ? x
                : input == image->w->u.value ? w
                                             : input);
  }
  hd_definition_t *d = HD_ARENA_COPY(arena, hd_definition_t, image->d);
  d->term = hd_flat_rewrite(arena, image->d->term, leave, argument);
  hd_vec_push(arena, &task->definitions, (const hd_definition_t *)d);
  return task;
}

void hd_laid_image_put(const hd_laid_image_t *image, const char *what,
                       const hd_value_t *x, const hd_value_t *w) {
  const hd_node_t *node = image->node;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(image->l->arena, const hd_value_t *, node->num_inputs);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    const hd_task_value_t *input = image->flat->inputs.data[i];
    inputs[i] = input == image->x->u.value   ? x
                : input == image->w->u.value ? w
                                             : node->inputs[i];
  }
  hd_layouts_put_task(image->l, node, image->made, what, inputs, node->outputs);
}
