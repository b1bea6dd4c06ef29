// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which values of a graph have another axis last in memory.
//
//   y[b, f, i, j] = sum(p, u, v) x[b, p, i + u, j + v] * w[f, p, u, v]
//
// A template's kernel wants pieces of 16 bytes, along the sum or along the
// result. Along u and v, and along i and j, elements lie apart or are not
// aligned; along p they lie together where p is x's last axis. So x wants that:
// it is a seed (LayoutSeeds.c). From there it spreads: a node whose result's
// axis runs with the operand's (an activation, a pooling, a residual) wants
// both alike; and a sum of products wants its result's axis that comes from the
// weights last where its operand's axis that it sums over is, for who reads it
// is mostly one again. It ends at what has its last axis last already, and at
// what stays as it is.
#include "Fusion/Fuse.h"
#include "Fusion/Layout/LayoutState.h"
#include "Fusion/Passes.h"
#include "Graph/Names.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Schedule.h"
#include "Schedule/Terms/Affine.h"
#include "Schedule/Terms/Flatten.h"
#include "Schedule/Terms/Prepare.h"

// --- The flat tasks of nodes ---

// y[i] = x[p(i)], for a reshape.
static const hd_task_t *flat_reshape(hd_layouts_t *l, const hd_node_t *node) {
  hd_arena_t *arena = l->arena;
  hd_tensor_type_t from = hd_scheduled_type(node->inputs[0]);
  hd_tensor_type_t to = hd_scheduled_type(node->outputs[0]);
  hd_task_t *flat = HD_ARENA_NEW(arena, hd_task_t);
  const hd_task_value_t *x = hd_flat_value_make(
      arena, "x", HD_VALUE_INPUT, from.type, from.shape, from.rank);
  hd_task_value_t *y = hd_flat_value_make(arena, "y", HD_VALUE_OUTPUT, to.type,
                                          to.shape, to.rank);
  const hd_index_t *indices[HD_MAX_RANK];
  const hd_term_t *at[HD_MAX_RANK], *places[HD_MAX_RANK];
  for (unsigned i = 0; i < to.rank; i++) {
    indices[i] = hd_flat_index_make(arena, hd_arena_printf(arena, "at%u", i),
                                    to.shape[i]);
    at[i] = hd_layout_index_term(arena, indices[i]);
  }
  hd_index_places(arena, hd_index_linear(arena, to.shape, to.rank, at),
                  from.shape, from.rank, places);
  y->loc = node->loc;
  flat->name = "reshape";
  flat->loc = node->loc;
  hd_vec_push(arena, &flat->inputs, x);
  hd_vec_push(arena, &flat->outputs, (const hd_task_value_t *)y);
  hd_vec_push(arena, &flat->definitions,
              (const hd_definition_t *)hd_flat_define(
                  arena, y, indices, hd_flat_load(arena, x, places)));
  return flat;
}

static const hd_task_t *make_flat(hd_layouts_t *l, const hd_node_t *node) {
  hd_context_t *context = l->module->context;
  if (!node->task)
    return flat_reshape(l, node);
  const hd_task_binding_t *binding = hd_node_bind(context, l->arena, node);
  hd_task_t *flat =
      binding ? hd_task_flatten(context, l->arena, binding, node->loc) : NULL;
  if (flat)
    hd_task_inline(l->arena, flat);
  return flat;
}

// Nodes that compute the same share one.
static const hd_task_t *flat_of(hd_layouts_t *l, const hd_node_t *node) {
  hd_buffer_t key;
  hd_buffer_init_local(&key, l->arena->budget);
  hd_node_key(&key, node);
  const char *text = hd_buffer_text(&key);
  const hd_task_t *flat = hd_key_map_find_name(&l->known, text);
  if (!flat && (flat = make_flat(l, node)))
    hd_key_map_set_name(l->arena, &l->known,
                        hd_arena_strndup(l->arena, text, key.size), flat);
  hd_buffer_fini(&key);
  return flat;
}

// Whether a node's operands and results may have any layout.
static bool is_free(const hd_node_t *node, const hd_task_t *flat) {
  bool ok = flat && !node->schedule && !node->group;
  for (size_t i = 0; ok && i < flat->definitions.size; i++)
    ok = flat->definitions.data[i]->kind == HD_DEFINE &&
         flat->definitions.data[i]->num_targets == 1;
  return ok;
}

// --- Values ---

static hd_laid_value_t *add_value(hd_layouts_t *l, const hd_value_t *value) {
  hd_laid_value_t *laid = hd_laid_value(l, value);
  if (laid || !value)
    return laid;
  laid = HD_ARENA_NEW(l->arena, hd_laid_value_t);
  *laid = (hd_laid_value_t){.value = value, .last = {-1, 0}};
  laid->fixed = !hd_value_is_concrete(value) || hd_value_is_packed(value);
  hd_ptr_map_set(l->arena, &l->values, value, laid);
  return laid;
}

static void add_fixed(hd_layouts_t *l, const hd_value_t *value) {
  if (value)
    add_value(l, value)->fixed = true;
}

static void add_node(hd_layouts_t *l, size_t n) {
  const hd_node_t *node = l->graph->nodes.data[n];
  bool prepared = true, known = node->task || hd_node_is_reshape(node);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    hd_laid_value_t *x = add_value(l, node->inputs[i]);
    prepared &= !x || x->prepared;
  }
  const hd_task_t *flat = known && !prepared ? flat_of(l, node) : NULL;
  if (!is_free(node, flat))
    flat = NULL;
  l->flats[n] = flat;
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!flat)
      add_fixed(l, node->inputs[i]);
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i]) {
      hd_laid_value_t *y = add_value(l, node->outputs[i]);
      y->prepared = prepared;
      y->fixed |= !flat;
    }
}

static void add_values(hd_layouts_t *l) {
  const hd_graph_t *graph = l->graph;
  for (size_t i = 0; i < graph->inputs.size; i++)
    add_fixed(l, graph->inputs.data[i]);
  for (size_t i = 0; i < graph->constants.size; i++) {
    add_fixed(l, graph->constants.data[i]);
    hd_laid_value(l, graph->constants.data[i])->prepared = true;
  }
  l->flats = HD_ARENA_ARRAY(l->arena, const hd_task_t *, graph->nodes.size + 1);
  for (size_t i = 0; i < graph->nodes.size; i++)
    add_node(l, i);
  for (size_t i = 0; i < graph->outputs.size; i++)
    add_fixed(l, graph->outputs.data[i]);
}

// --- Links ---

typedef struct linker {
  hd_layouts_t *l;
  const hd_node_t *node;
  const hd_task_t *flat;
  const hd_definition_t *d;
  hd_laid_value_t *result;     // Of the definition at hand.
  const hd_contraction_t *sum; // Which that is; NULL: none.
} linker_t;

const hd_index_t *hd_layout_index(hd_arena_t *arena, const hd_term_t *place) {
  hd_linear_t sum;
  const hd_index_t *index = NULL;
  if (!hd_affine_of(arena, place, &sum))
    return NULL;
  for (unsigned i = 0; i < sum.size; i++)
    if (sum.terms[i].factor == 1 && sum.terms[i].term->kind == HD_TERM_INDEX) {
      if (index)
        return NULL;
      index = sum.terms[i].term->u.index;
    }
  return index;
}

// Whether a place moves with one index alone, and at most by groups with
// others: not a window's, which moves with the result's, too.
static bool is_no_window(hd_arena_t *arena, const hd_term_t *place) {
  hd_linear_t sum;
  unsigned indices = 0;
  if (!hd_affine_of(arena, place, &sum))
    return false;
  for (unsigned i = 0; i < sum.size; i++)
    indices += sum.terms[i].term->kind == HD_TERM_INDEX;
  return indices == 1;
}

static int find_index(const hd_index_t *const *indices, unsigned count,
                      const hd_index_t *index) {
  for (unsigned i = 0; i < count; i++)
    if (indices[i] == index)
      return (int)i;
  return -1;
}

// The result's axis that comes from the other operand: the longest.
static int other_axis(const linker_t *k, const hd_task_value_t *operand) {
  const hd_axis_t *axis =
      hd_flat_reads(k->sum->a, operand) ? &k->sum->n : &k->sum->m;
  const hd_index_t *longest = NULL;
  for (unsigned i = 0; i < axis->count; i++)
    if (!longest || hd_flat_range(axis->indices[i]) > hd_flat_range(longest))
      longest = axis->indices[i];
  return find_index(k->d->indices, k->d->num_indices, longest);
}

static void link_values(linker_t *k, hd_laid_value_t *x, hd_last_t last,
                        hd_last_t result_last) {
  hd_arena_t *arena = k->l->arena;
  hd_layout_link_t there = {last, k->result, result_last};
  hd_layout_link_t back = {result_last, x, last};
  hd_vec_push(arena, &x->links, there);
  hd_vec_push(arena, &k->result->links, back);
}

// Of an axis of a load and the result's that runs with it, and of those before
// them that belong to them.
static void link_axes(linker_t *k, hd_laid_value_t *x, const hd_term_t *load,
                      unsigned axis, int result_axis) {
  hd_layout_digits_t digits =
      hd_layout_digits(k->l->arena, load, axis, k->d, (unsigned)result_axis);
  link_values(k, x, (hd_last_t){(int)axis, digits.load},
              (hd_last_t){result_axis, digits.result});
  for (unsigned n = 2; n <= axis + 1; n++) {
    int last = hd_layout_block(load, axis, k->d, n);
    if (last >= 0)
      link_values(k, x, (hd_last_t){(int)axis, n}, (hd_last_t){last, n});
  }
}

// The graph's value that a task's tensor is; NULL: a local one.
static hd_laid_value_t *value_of(const linker_t *k,
                                 const hd_task_value_t *tensor) {
  const hd_value_t *input = hd_node_input_of(k->node, k->flat, tensor);
  if (input)
    return hd_laid_value(k->l, input);
  for (size_t i = 0; i < k->flat->outputs.size; i++)
    if (k->flat->outputs.data[i] == tensor)
      return hd_laid_value(k->l, k->node->outputs[i]);
  return NULL;
}

// Whether neighbours along an axis are no piece, all of them, and windows slide
// along another: images of a few channels lie as they come.
static bool is_few(hd_arena_t *arena, const hd_term_t *load, unsigned axis) {
  bool slides = false;
  for (uint32_t a = 0; a < load->u.value->rank; a++)
    slides |= !is_no_window(arena, load->operands[a]) &&
              !hd_flat_is_int(load->operands[a], 0);
  return slides && hd_flat_size(load->u.value, axis) *
                           (int64_t)hd_scalar_bits(load->type.scalar) <
                       HD_LAYOUT_PIECE_BITS;
}

static bool link_load(void *argument, const hd_term_t *term) {
  linker_t *k = argument;
  hd_laid_value_t *x =
      hd_flat_is_load(term) ? value_of(k, term->u.value) : NULL;
  if (!x || x->prepared)
    return true;
  for (uint32_t a = 0; a < term->u.value->rank; a++) {
    const hd_index_t *index = hd_layout_index(k->l->arena, term->operands[a]);
    int axis = index ? find_index(k->d->indices, k->d->num_indices, index)
                     : hd_layout_digit_of(k->l->arena, term, a, k->d);
    if (axis >= 0) {
      link_axes(k, x, term, a, axis);
      continue;
    }
    if (index && k->sum && !is_few(k->l->arena, term, a) &&
        is_no_window(k->l->arena, term->operands[a]) &&
        find_index(k->sum->k.indices, k->sum->k.count, index) >= 0)
      axis = other_axis(k, term->u.value);
    if (axis >= 0)
      link_values(k, x, (hd_last_t){(int)a, 1}, (hd_last_t){axis, 1});
  }
  return true;
}

static void link_node(hd_layouts_t *l, size_t n) {
  linker_t k = {.l = l, .node = l->graph->nodes.data[n], .flat = l->flats[n]};
  for (size_t i = 0; k.flat && i < k.flat->definitions.size; i++) {
    hd_contraction_t sum;
    k.d = k.flat->definitions.data[i];
    k.result = value_of(&k, k.d->targets[0]);
    k.sum = hd_product_contraction_find(l->arena, k.d, &sum) ? &sum : NULL;
    if (k.result)
      hd_flat_walk(k.d->term, link_load, &k);
  }
}

// --- Choosing ---

// Begins anew with what a graph has become.
static void look(hd_layouts_t *l, const hd_graph_t *graph) {
  *l = (hd_layouts_t){.module = l->module,
                      .arena = l->arena,
                      .graph = graph,
                      .forms = l->forms,
                      .known = l->known,
                      .tasks = l->tasks,
                      .names = l->names};
  add_values(l);
}

static void say_chosen(const hd_layouts_t *l, const hd_laid_value_t *x) {
  unsigned before = x->last.count - 1;
  hd_remark(&l->module->context->diags, x->value->loc,
            "layout: axis %d of '%s' is last in memory%s", x->last.axis,
            hd_value_label(x->value),
            before == 0 ? ""
            : before == 1
                ? ", with the one before it"
                : hd_arena_printf(l->arena, ", with the %u before it", before));
}

// Which axes are last in memory.
static const hd_graph_t *choose_axes(hd_layouts_t *l, bool explain) {
  const hd_graph_t *graph = l->graph;
  for (size_t i = 0; i < graph->nodes.size; i++)
    link_node(l, i);
  hd_layouts_seed(l);
  for (size_t i = 0; explain && i < l->chosen.size; i++)
    say_chosen(l, l->chosen.data[i]);
  return l->chosen.size ? hd_layouts_apply(l) : graph;
}

const hd_graph_t *hd_graph_choose_layouts(hd_module_t *module,
                                          const hd_graph_t *graph,
                                          bool explain) {
  static const hd_graph_t *(*const steps[])(hd_layouts_t *, bool) = {
      choose_axes, hd_layouts_pad, hd_layouts_read_pixels, hd_layouts_pad_rows};
  const hd_schedule_options_t *options = module->context->schedules;
  if (!options || !options->machine.count) // No template answers.
    return graph;
  hd_layouts_t l = {.module = module, .arena = &module->arena, .graph = graph};
  hd_names_take(l.arena, &l.names, l.graph);
  add_values(&l);
  for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
    const hd_graph_t *made = steps[i](&l, explain);
    if (!made)
      return NULL;
    if (made != l.graph)
      look(&l, made);
  }
  return l.graph;
}

bool hd_pass_choose_layouts(hd_module_t *module, const hd_graph_t *graph,
                            const hd_pass_args_t *args, hd_item_t *version) {
  version->u.graph = hd_graph_check_tasks(module, graph)
                         ? hd_graph_choose_layouts(module, graph, args->explain)
                         : NULL;
  return version->u.graph != NULL;
}
