// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel would store several times: a rotation of a product's columns,
//
//   a = mul(p, cosine)      low, high = the halves of p
//   r = add(a, mul(concat(neg(high), low), sine))
//
// makes three values of p for a kernel that puts them together. p is stored
// instead, once, in whole rows, and that kernel reads it.
#include "Fusion/Form/FormState.h"
#include "Schedule/Template/Fits.h"

// Whether all that is made of a value, through reshapes, computes with single
// elements, at places that it knows.
static bool is_read_by_pointwise(hd_former_t *f, const hd_value_t *value) {
  const hd_uses_t *uses = hd_former_uses(f, value);
  for (size_t i = 0; i < uses->nodes.size; i++) {
    const hd_formed_t *reader = &f->nodes[uses->nodes.data[i]];
    if (hd_node_is_reshape(reader->node)
            ? !is_read_by_pointwise(f, reader->node->outputs[0])
            : reader->why ||
                  hd_fusion_reads_by_data(f->fusion, reader->node, value))
      return false;
  }
  return !uses->is_output;
}

// What the members of a group that read a value, and who reads these, store.
typedef struct spread {
  double bytes;
  bool plain; // All are as soon computed again, and read by elements.
} spread_t;

typedef struct along {
  const hd_definition_t *d;
  bool plain;
} along_t;

static bool note_along(void *argument, const hd_term_t *term) {
  along_t *a = argument;
  uint32_t last = a->d->num_indices - 1;
  a->plain &= term->kind != HD_TERM_FUNCTION;
  if (hd_flat_is_load(term) && term->num_operands == last + 1)
    a->plain &= hd_flat_uses(term->operands[last], a->d->indices[last]);
  return a->plain;
}

// Whether a node computes each element of others that lie as its own do, by no
// function.
static bool is_along(hd_former_t *f, const hd_node_t *node) {
  hd_pointwise_t p;
  if (hd_fusion_pointwise(f->fusion, node, &p))
    return false;
  if (hd_node_is_reshape(node))
    return true;
  along_t a = {p.definition, p.definition && p.definition->num_indices};
  if (a.plain)
    hd_flat_walk(p.definition->term, note_along, &a);
  return a.plain;
}

static void spread_from(hd_former_t *f, const hd_forming_t *g,
                        const hd_value_t *value, spread_t *s) {
  const hd_node_t *reader;
  for (size_t i = 0; s->plain && (reader = hd_group_reader(g->group, value, i));
       i++) {
    const hd_value_t *y = reader->outputs[0];
    s->plain = reader->num_outputs == 1 && is_along(f, reader);
    if (s->plain && hd_group_is_kept(g->group, y)) {
      s->bytes += hd_scheduled_bytes(y);
      s->plain = is_read_by_pointwise(f, y);
    }
    if (s->plain)
      spread_from(f, g, y, s);
  }
}

// Whether storing so many bytes less is worth what computing again takes.
static bool is_much(const hd_former_t *f, double bytes) {
  const hd_schedule_options_t *options = f->module->context->schedules;
  if (!options || !options->machine.count)
    return bytes > 0;
  return bytes / options->machine.gbs * 1e-3 >
         hd_fits.fusion_spread * options->machine.launch;
}

bool hd_former_is_spread(hd_former_t *f, const hd_forming_t *g,
                         const hd_node_t *node) {
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    const hd_value_t *x = node->inputs[i];
    const hd_uses_t *uses = x ? hd_former_uses(f, x) : NULL;
    spread_t s = {.plain = true};
    if (!x || uses->giver < 0 || uses->nodes.size < 2 ||
        f->nodes[uses->giver].group != f->nodes[g->anchor].group)
      continue;
    spread_from(f, g, x, &s);
    double instead = hd_group_is_kept(g->group, x) ? 0 : hd_scheduled_bytes(x);
    if (s.plain && is_much(f, s.bytes - instead))
      return true;
  }
  return false;
}
