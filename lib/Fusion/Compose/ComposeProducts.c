// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two products with rows between them become one node, where a template makes
// one kernel of that:
//
//   s = matmul(q, k)        t = add(s, mask)
//   r = softmax(t)          o = matmul(r, v)
//
// becomes o = matmul_attention(q, k, mask, v), whose task is all of theirs.
//
// From each product the graph is walked back to the next products that its
// operands follow from. What lies on the ways between the two is taken if
// nobody else reads anything of it: then no path leads out of it and back.
#include "Fusion/Compose/ComposeState.h"
#include "Fusion/Group/GroupState.h"
#include "Schedule/Attention/Attention.h"
#include "Schedule/Rules/Contract.h"
#include "Schedule/Terms/Prepare.h"

#include <string.h>

enum { MOST_BETWEEN = 100 }; // Nodes, of the graph's order.

static bool is_product(hd_composer_t *c, const hd_composed_node_t *info) {
  hd_contraction_t found;
  for (size_t i = 0; info->flat && i < info->flat->definitions.size; i++) {
    const hd_definition_t *d = info->flat->definitions.data[i];
    if (d->kind == HD_DEFINE && hd_contraction_find_few(c->arena, d, &found))
      return true;
  }
  return false;
}

static bool depends_on_set(const hd_composer_t *c, const hd_node_t *node) {
  for (uint32_t k = 0; k < node->num_inputs; k++) {
    const hd_composed_node_t *giver = hd_composer_giver(c, node->inputs[k]);
    if (giver && c->in[giver - c->nodes])
      return true;
  }
  return false;
}

static bool is_read_in(const hd_composer_t *c, const bool *needed,
                       const hd_composed_node_t *info) {
  for (uint32_t k = 0; k < info->node->num_outputs; k++) {
    const hd_numbers_t *readers =
        info->node->outputs[k]
            ? hd_ptr_map_get(&c->readers, info->node->outputs[k])
            : NULL;
    for (size_t i = 0; readers && i < readers->size; i++)
      if (readers->data[i] >= c->low && readers->data[i] < c->high &&
          needed[readers->data[i] - c->low])
        return true;
  }
  return false;
}

static bool is_read_outside(const hd_composer_t *c, const hd_node_t *node) {
  for (uint32_t k = 0; k < node->num_outputs; k++)
    if (node->outputs[k] && hd_composer_is_read_outside(c, node->outputs[k]))
      return true;
  return false;
}

// Puts all that lies between two nodes, and them, into the set. False where one
// of them is in another composite, has a kernel of its own, is pinned or is
// read by others, and where none reduces.
static bool set_between(hd_composer_t *c, size_t first, size_t last) {
  bool needed[MOST_BETWEEN + 1] = {false};
  c->low = first;
  c->high = last + 1;
  for (size_t i = first; i <= last; i++)
    c->in[i] = i == first || depends_on_set(c, c->nodes[i].node);
  needed[last - first] = true;
  for (size_t i = last; i-- > first;)
    needed[i - first] = is_read_in(c, needed, &c->nodes[i]);
  bool fits = true, reduces = false;
  for (size_t i = first; i <= last; i++) {
    const hd_composed_node_t *info = &c->nodes[i];
    c->in[i] &= needed[i - first];
    reduces |= c->in[i] && i != first && i != last && info->reduces;
    fits &= !c->in[i] ||
            (!info->composite && !info->node->group && !info->node->pin &&
             (info->flat || hd_node_is_reshape(info->node)));
  }
  for (size_t i = first; i < last; i++)
    fits &= !c->in[i] || !is_read_outside(c, c->nodes[i].node);
  return fits && reduces && c->in[last];
}

static void clear(hd_composer_t *c) {
  for (size_t i = c->low; i < c->high; i++)
    c->in[i] = false;
}

// --- Broadcast operands ---

// Whether a node repeats elements of its input, and does nothing else.
static bool is_broadcast(const hd_composed_node_t *info) {
  const hd_task_t *flat = info->flat;
  return flat && flat->definitions.size == 1 && flat->inputs.size == 1 &&
         flat->outputs.size == 1 && info->is_pointwise && !info->composite &&
         !info->node->group && !info->node->pin &&
         flat->definitions.data[0]->term->kind == HD_TERM_LOAD &&
         hd_flat_count(flat->inputs.data[0]) <
             hd_flat_count(flat->outputs.data[0]);
}

// Adds a node and the reshapes between it and what reads it; the set begins
// with it at the latest.
static void add_way(hd_composer_t *c, const hd_composed_node_t *node,
                    const hd_composed_node_t *reader) {
  for (; reader != node; reader = hd_composer_giver(c, reader->node->inputs[0]))
    c->in[reader - c->nodes] = true;
  size_t at = (size_t)(node - c->nodes);
  c->in[at] = true;
  c->low = at < c->low ? at : c->low;
}

// Adds those that give operands of the set and nobody else; whether there are
// any.
static bool add_broadcasts(hd_composer_t *c) {
  bool any = false;
  for (size_t i = c->low; i < c->high; i++)
    for (uint32_t k = 0; c->in[i] && k < c->nodes[i].node->num_inputs; k++) {
      const hd_composed_node_t *first =
          hd_composer_giver(c, c->nodes[i].node->inputs[k]);
      const hd_composed_node_t *giver = first;
      while (giver && hd_node_is_reshape(giver->node))
        giver = hd_composer_giver(c, giver->node->inputs[0]);
      if (giver && is_broadcast(giver))
        add_way(c, giver, first);
    }
  // Readers come behind what they read; the last node gives the set's result.
  for (size_t i = c->high - 1; i-- > c->low;) {
    c->in[i] = c->in[i] && !is_read_outside(c, c->nodes[i].node);
    any |= c->in[i] && is_broadcast(&c->nodes[i]);
  }
  return any;
}

// --- The search ---

// through: broadcasts in the set are read through.
static bool merge(hd_composer_t *c, hd_arena_t *arena, bool through,
                  hd_composite_t *out) {
  if (!hd_composer_merge(c, arena, "attention", out) ||
      (through && out->outputs.size != 1))
    return false;
  hd_composer_put_numbers(arena, &out->merged);
  if (through)
    hd_task_inline(arena, out->merged.flat);
  return true;
}

// NULL, or why the set is not one kernel. What is asked of a task is asked
// once: a model's layers are alike.
static const char *obstacle(hd_composer_t *c, hd_arena_t *scratch,
                            bool through) {
  hd_composite_t tried;
  hd_buffer_t text;
  if (!merge(c, scratch, through, &tried))
    return "what is between cannot be one task";
  hd_buffer_init_local(&text, scratch->budget);
  hd_task_print(tried.merged.flat, &text);
  const char *key = hd_arena_strndup(scratch, hd_buffer_text(&text), text.size);
  hd_buffer_fini(&text);
  hd_verdict_t *verdict = hd_key_map_find_name(&c->asked, key);
  if (verdict)
    return verdict->why;
  const char *why =
      hd_attention_obstacle(c->module->context, scratch, tried.merged.flat);
  verdict = HD_ARENA_NEW(c->arena, hd_verdict_t);
  if (why)
    verdict->why = hd_arena_strndup(c->arena, why, strlen(why));
  key = hd_arena_strndup(c->arena, key, strlen(key));
  hd_key_map_set_name(c->arena, &c->asked, key, verdict);
  return verdict->why;
}

// Adds what repeats keys and values for heads that share them: where the few
// queries of all those heads are rows of one product, each key is read once
// then; others read keys where they are, by the copy engine, too. False, and
// the set between two nodes as it was, where that is not so.
static bool add_shared(hd_composer_t *c, hd_arena_t *scratch, size_t first,
                       size_t last) {
  hd_composite_t tried;
  hd_attention_form_t form;
  if (!add_broadcasts(c))
    return false;
  if (merge(c, scratch, true, &tried) &&
      !hd_attention_form_find(scratch, tried.merged.flat, &form) &&
      (form.sizes[HD_ATTENTION_QUERY] <= HD_FRAGMENT_ROWS ||
       (!form.map_k.no_map && !form.map_v.no_map)) &&
      !obstacle(c, scratch, true))
    return true;
  clear(c);
  set_between(c, first, last);
  return false;
}

// --- What says how many keys there are ---

enum { MOST_COPIED = 16 };

// Whether a node makes numbers of numbers, element by element: part of a mask.
static bool makes_mask(const hd_composed_node_t *info) {
  const hd_node_t *node = info->node;
  return info->flat && info->is_pointwise && !info->composite && !node->group &&
         !node->pin && node->num_outputs == 1 && node->outputs[0] &&
         !hd_type_is_float(hd_type(node->outputs[0]->type));
}

// Copies what makes the masks that a node reads, through reshapes.
static void copy_masks(hd_composer_t *c, const hd_node_t *node) {
  for (uint32_t k = 0; k < node->num_inputs; k++) {
    const hd_composed_node_t *giver = hd_composer_giver(c, node->inputs[k]);
    while (giver && hd_node_is_reshape(giver->node))
      giver = hd_composer_giver(c, giver->node->inputs[0]);
    if (!giver || c->in[giver - c->nodes] || !makes_mask(giver))
      continue;
    copy_masks(c, giver->node);
    uint32_t number = (uint32_t)(giver - c->nodes);
    bool is_there = false;
    for (size_t i = 0; i < c->copied.size; i++)
      is_there |= c->copied.data[i] == number;
    if (!is_there && c->copied.size < MOST_COPIED)
      hd_vec_push(c->arena, &c->copied, number);
  }
}

static bool knows_limit(hd_composer_t *c, hd_arena_t *scratch, bool through) {
  hd_composite_t tried;
  hd_attention_form_t form;
  return merge(c, scratch, through, &tried) &&
         !hd_attention_form_find(scratch, tried.merged.flat, &form) &&
         form.limit->kind != HD_TERM_CONST;
}

// A model computes its mask once for all layers, from positions; where that
// tells which keys a row need not look at, each attention has it for itself.
// False, and nothing is copied, where it does not.
static bool add_masks(hd_composer_t *c, hd_arena_t *scratch, bool through) {
  if (knows_limit(c, scratch, through))
    return false;
  for (size_t i = c->low; i < c->high; i++)
    if (c->in[i])
      copy_masks(c, c->nodes[i].node);
  if (c->copied.size && c->copied.size < MOST_COPIED &&
      knows_limit(c, scratch, true) && !obstacle(c, scratch, true))
    return true;
  c->copied.size = 0;
  return false;
}

static bool take_between(hd_composer_t *c, size_t first, size_t last,
                         bool explain) {
  hd_arena_t scratch;
  if (!set_between(c, first, last)) {
    clear(c);
    return false;
  }
  hd_arena_init_local(&scratch, &c->module->context->budget);
  bool shares = add_shared(c, &scratch, first, last);
  bool through = add_masks(c, &scratch, shares) || shares;
  const char *why = through ? NULL : obstacle(c, &scratch, false);
  if (why && explain)
    hd_remark(&c->module->context->diags, c->nodes[last].node->loc,
              "fuse: not one kernel, %s '%s' and %s '%s': %s",
              c->nodes[first].node->op, hd_node_label(c->nodes[first].node),
              c->nodes[last].node->op, hd_node_label(c->nodes[last].node), why);
  hd_arena_fini(&scratch);
  hd_composite_t *found = HD_ARENA_NEW(c->arena, hd_composite_t);
  bool taken = !why && merge(c, c->arena, through, found) &&
               (c->looks || hd_composer_asks(c, found));
  c->copied.size = 0;
  clear(c);
  if (taken)
    hd_composer_take(c, found);
  return taken;
}

// The products that the operands of one follow from, the nearest first; what
// they follow from is theirs.
static void compose_to(hd_composer_t *c, size_t last, const bool *products,
                       bool explain) {
  bool seen[MOST_BETWEEN + 1] = {false};
  size_t low = last > MOST_BETWEEN ? last - MOST_BETWEEN : 0;
  seen[last - low] = true;
  for (size_t i = last + 1; i-- > low;) {
    if (!seen[i - low])
      continue;
    if (i != last && products[i]) {
      if (take_between(c, i, last, explain))
        return;
      continue;
    }
    const hd_node_t *node = c->nodes[i].node;
    for (uint32_t k = 0; k < node->num_inputs; k++) {
      const hd_composed_node_t *giver = hd_composer_giver(c, node->inputs[k]);
      if (giver && (size_t)(giver - c->nodes) >= low)
        seen[(size_t)(giver - c->nodes) - low] = true;
    }
  }
}

static void find_composites(hd_composer_t *c, hd_fusion_t *fusion,
                            bool explain) {
  const hd_schedule_options_t *options = c->module->context->schedules;
  if (!options || !options->machine.count)
    return;
  hd_composer_look(c, fusion);
  bool *products = HD_ARENA_ARRAY(c->arena, bool, c->num_nodes + 1);
  for (size_t i = 0; i < c->num_nodes; i++)
    products[i] = is_product(c, &c->nodes[i]);
  for (size_t i = 0; i < c->num_nodes; i++)
    if (products[i] && !c->nodes[i].composite)
      compose_to(c, i, products, explain);
}

const hd_graph_t *hd_graph_compose_products(hd_fusion_t *fusion,
                                            const hd_graph_t *graph,
                                            bool explain) {
  hd_composer_t c = {
      .module = fusion->module, .arena = fusion->arena, .graph = graph};
  find_composites(&c, fusion, explain);
  return c.composites.size ? hd_composer_graph(&c, explain) : graph;
}

void hd_graph_find_composed(hd_fusion_t *fusion, const hd_graph_t *graph,
                            hd_ptr_map_t *nodes) {
  hd_composer_t c = {.module = fusion->module,
                     .arena = fusion->arena,
                     .graph = graph,
                     .looks = true};
  find_composites(&c, fusion, false);
  for (size_t i = 0; i < c.num_nodes; i++)
    if (c.nodes[i].composite)
      hd_ptr_map_set(c.arena, nodes, c.nodes[i].node, c.nodes[i].node);
}
