// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What products copy to shared memory: pieces of 16 bytes, or of 8 or 4, asked
// for long before they are needed. Where a prologue takes their place that
// computes, or that leaves no two neighbours side by side,
//
//   s[i, c] = t[i, c % 2 * 58 + c / 2]
//   y[i, j] = sum(p: 58) s[i, 58 + p] * w[j, p]
//
// elements pass through registers instead, while everybody waits, in each of
// many steps.
#include "Fusion/Form/FormState.h"
#include "Schedule/Attention/Attention.h"

// The anchor's input that an operand of a product is, where that is read from a
// value, as it is or by prologues that move elements; else NULL.
static const hd_value_t *operand_of(hd_former_t *f, const hd_forming_t *g,
                                    const hd_form_tensor_t *operand,
                                    const hd_value_t *value) {
  const hd_node_t *anchor = f->nodes[g->anchor].node;
  const hd_task_t *flat = hd_fusion_flatten(f->fusion, anchor)->flat;
  const hd_term_t *term = operand->term;
  const hd_value_t *input = hd_flat_is_load(term)
                                ? hd_node_input_of(anchor, flat, term->u.value)
                                : NULL;
  return input && hd_group_leads_to(g->group, value, input) ? input : NULL;
}

// Whether what a term reads differs from element to element.
static bool chooses(const hd_term_t *term) {
  return hd_flat_has(term, HD_TERM_LOADELSE) ||
         hd_flat_has(term, HD_TERM_SELECT);
}

static bool moves(const hd_pointwise_t *p) {
  return p->definition && p->definition->term->kind == HD_TERM_LOAD;
}

// Whether what a node moves is of one that chooses elements, and that is not
// stored yet: one kernel stores both.
static bool moves_chosen(hd_former_t *f, uint32_t node) {
  hd_pointwise_t p;
  for (;;) {
    if (hd_fusion_pointwise(f->fusion, f->nodes[node].node, &p))
      return false;
    if (p.definition && !moves(&p))
      return chooses(p.definition->term);
    const hd_value_t *from = f->nodes[node].node->inputs[0];
    int64_t giver = hd_former_uses(f, from)->giver;
    if (giver < 0 || f->nodes[giver].group || f->nodes[giver].is_view)
      return false;
    node = (uint32_t)giver;
  }
}

// Whether no pieces are left of an operand that is read in such, where a node
// takes its place that moves elements.
static bool parts_pieces(hd_former_t *f, const hd_forming_t *g,
                         const hd_form_tensor_t *operand,
                         const hd_value_t *input, const hd_node_t *node) {
  const hd_term_t *const *places = operand->term->operands;
  if (!hd_form_tensor_piece(f->arena, operand,
                            hd_group_element(g->group, input, places)) ||
      hd_group_add_prologue(g->group, node, UINT64_MAX))
    return false;
  const hd_term_t *element = hd_group_element(g->group, input, places);
  hd_group_drop_prologue(g->group, node);
  return !hd_form_tensor_piece(f->arena, operand, element);
}

// Whether an operand that is copied would be computed instead.
static bool spoils_operand(hd_former_t *f, const hd_forming_t *g,
                           const hd_form_tensor_t *operand,
                           const hd_node_t *node, const hd_pointwise_t *p) {
  const hd_value_t *input = operand_of(f, g, operand, node->outputs[0]);
  return input && (!moves(p) || parts_pieces(f, g, operand, input, node));
}

// The same for an attention: keys and values pass by for each block of queries,
// which are read once. What is moved is read where it is.
static bool spoils_keys(hd_former_t *f, const hd_forming_t *g,
                        const hd_attention_form_t *form, const hd_node_t *node,
                        const hd_pointwise_t *p) {
  return !moves(p) &&
         ((form->k.piece && spoils_operand(f, g, &form->k, node, p)) ||
          (form->v.piece && spoils_operand(f, g, &form->v, node, p)));
}

bool hd_former_spoils_copies(hd_former_t *f, uint32_t node, uint32_t group) {
  enum { FEW = 128 }; // Along the sum.
  const hd_forming_t *g = &f->groups.data[group];
  const hd_schedule_options_t *options = f->module->context->schedules;
  const hd_node_t *anchor = f->nodes[g->anchor].node;
  hd_pointwise_t p;
  if (!options || !options->machine.count || !anchor->task ||
      anchor->schedule ||
      hd_fusion_pointwise(f->fusion, f->nodes[node].node, &p) || !p.definition)
    return false;
  hd_flattened_t *flattened = hd_fusion_flatten(f->fusion, anchor);
  const hd_node_t *own = f->nodes[node].node;
  bool is_chosen = chooses(p.definition->term) || moves_chosen(f, node);
  const hd_attention_form_t *attention =
      flattened ? hd_flattened_attention(f->arena, flattened) : NULL;
  if (attention)
    return spoils_keys(f, g, attention, own, &p);
  for (size_t i = 0; flattened && i < flattened->flat->definitions.size; i++) {
    const hd_product_form_t *form = hd_product_forms_get(
        &f->forms, f->arena, flattened->flat->definitions.data[i]);
    if (!form || (form->sizes[HD_AXIS_K] <= FEW && !is_chosen))
      continue;
    // Of an image of few channels nothing is copied.
    if (((form->a.piece || (form->turned && form->no_pixels)) &&
         spoils_operand(f, g, &form->a, own, &p)) ||
        (form->b.piece && spoils_operand(f, g, &form->b, own, &p)))
      return true;
  }
  return false;
}
