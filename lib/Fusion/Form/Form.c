// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which nodes become one kernel. Five sweeps over the graph:
//
//   anchors, forwards      every task that is not pointwise begins a group and
//                          takes epilogues as far as they go;
//   concatenations         of what anchors' kernels store are none of a
//   kernel's
//                          business: it is stored in place;
//   hubs, forwards         so does a pointwise node that several others read,
//                          or that others read and that comes out;
//   prologues, backwards   what is left is computed where it is read, when all
//                          who read it are in groups and that costs less, or
//                          begins a group of its own;
//   order                  groups in an order in which each comes after those
//                          whose results it reads.
//
// A node joins a group only where no path leads out of the group and back.
#include "Fusion/Compose/Compose.h"
#include "Fusion/Form/FormState.h"
#include "Fusion/Views.h"
#include "Graph/Loops.h"

#include <string.h>

// --- What is known of the graph ---

static void add_use(hd_former_t *f, const hd_value_t *value, uint32_t node) {
  hd_uses_t *uses = hd_former_uses(f, value);
  if (uses->nodes.size == 0 || uses->nodes.data[uses->nodes.size - 1] != node)
    hd_vec_push(f->arena, &uses->nodes, node);
}

hd_uses_t *hd_former_uses(hd_former_t *f, const hd_value_t *value) {
  hd_uses_t *uses = hd_ptr_map_find(&f->uses, value);
  if (!uses) {
    uses = HD_ARENA_NEW(f->arena, hd_uses_t);
    uses->giver = -1;
    hd_ptr_map_set(f->arena, &f->uses, value, uses);
  }
  return uses;
}

static void look(hd_former_t *f) {
  const hd_graph_t *graph = f->graph;
  size_t count = graph->nodes.size;
  f->nodes = HD_ARENA_ARRAY(f->arena, hd_formed_t, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    hd_pointwise_t p;
    f->nodes[i] = (hd_formed_t){
        .node = node,
        .why = node->schedule ? "it has a kernel of its own"
                              : hd_fusion_pointwise(f->fusion, node, &p)};
    f->nodes[i].cost = f->nodes[i].why ? 0 : hd_fusion_cost(&p);
    for (uint32_t k = 0; k < node->num_inputs; k++)
      if (node->inputs[k])
        add_use(f, node->inputs[k], i);
    for (uint32_t k = 0; k < node->num_outputs; k++)
      if (node->outputs[k])
        hd_former_uses(f, node->outputs[k])->giver = (int64_t)i;
  }
  for (size_t i = 0; i < graph->outputs.size; i++)
    hd_former_uses(f, graph->outputs.data[i])->is_output = true;
}

// --- Anchors ---

// Why none of the anchor's outputs may be changed on its way, or NULL: some are
// written once and not read again.
static const char *closed(hd_former_t *f, const hd_node_t *node) {
  if (node->schedule)
    return NULL; // Its kernel tells, when it is joined.
  const hd_flattened_t *flattened = hd_fusion_flatten(f->fusion, node);
  if (!flattened)
    return "it cannot be scheduled";
  const hd_task_t *flat = flattened->flat;
  for (size_t i = 0; i < flat->definitions.size; i++)
    if (flat->definitions.data[i]->kind == HD_SCATTER)
      return "it scatters, so an element is not final when it is stored";
  const char *why = NULL;
  for (uint32_t k = 0; k < node->num_outputs; k++)
    if (!(why = hd_former_read_again(f, node, k)))
      return NULL;
  return why;
}

// The groups that the graph has already stay what they are.
static void old_groups(hd_former_t *f) {
  uint32_t number = 0, group = 0;
  for (uint32_t i = 0; i < f->graph->nodes.size; i++) {
    const hd_node_t *node = f->graph->nodes.data[i];
    if (!node->group)
      continue;
    if (node->group != number) {
      uint32_t anchor = i;
      while (!f->graph->nodes.data[anchor]->anchor)
        anchor++;
      group = hd_former_begin(f, anchor);
      f->groups.data[group].is_fixed = true;
      number = node->group;
    }
    if (i != f->groups.data[group].anchor)
      hd_former_join(f, i, group);
  }
}

static void anchors(hd_former_t *f) {
  for (uint32_t i = 0; i < f->graph->nodes.size; i++) {
    if (f->nodes[i].group || !f->nodes[i].why || !f->nodes[i].node->task)
      continue;
    const char *why = closed(f, f->nodes[i].node);
    uint32_t group = hd_former_begin(f, i);
    f->groups.data[group].is_heavy = true;
    if (why)
      f->groups.data[group].closed = why;
    hd_former_grow(f, group);
  }
}

static bool is_left(const hd_former_t *f, uint32_t node) {
  return !f->nodes[node].group && !f->nodes[node].why;
}

// --- Concatenations ---

// Whether nobody but the one at hand has a value be something else, too:
// another shape, or a part of another result. Kernels read rows that lie apart.
static bool is_one_view(const hd_former_t *f, const hd_uses_t *uses) {
  unsigned views = 0;
  hd_concatenation_t c;
  for (size_t i = 0; i < uses->nodes.size; i++) {
    const hd_node_t *reader = f->nodes[uses->nodes.data[i]].node;
    views += !reader->task || reader->schedule || hd_node_is_reshape(reader) ||
             hd_node_concatenates(f->fusion->scheduler, reader, &c);
  }
  return views <= 1;
}

// The value that the kernel of an anchor stores, of which this one is another
// shape; NULL: some other thing gives it. rows: it will lie in rows of another.
static const hd_value_t *stored_root(hd_former_t *f, const hd_value_t *value,
                                     bool rows) {
  for (;;) {
    const hd_uses_t *uses = hd_former_uses(f, value);
    if (uses->giver < 0 || uses->is_output || (rows && !is_one_view(f, uses)))
      return NULL;
    const hd_formed_t *giver = &f->nodes[uses->giver];
    const hd_forming_t *group = &f->groups.data[giver->group];
    if (giver->is_view || group->is_heavy || group->is_fixed)
      return value;
    if (!hd_node_is_reshape(giver->node))
      return NULL;
    value = giver->node->inputs[0];
  }
}

static bool is_view(hd_former_t *f, const hd_node_t *node) {
  hd_concatenation_t c;
  const hd_value_t *roots[HD_MAX_PARTS];
  if (node->schedule || !hd_node_concatenates(f->fusion->scheduler, node, &c))
    return false;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    roots[i] = stored_root(f, node->inputs[i], c.rows > 1);
    if (!roots[i] || hd_ptr_map_get(&f->placed, roots[i]))
      return false;
    for (uint32_t k = 0; k < i; k++)
      if (roots[k] == roots[i])
        return false;
  }
  if (!hd_step(&f->module->context->steps, HD_STEP_FUSION,
               "of %s '%s' into its operands", node->op, hd_node_label(node)))
    return false;
  for (uint32_t i = 0; i < node->num_inputs; i++)
    hd_ptr_map_set(f->arena, &f->placed, roots[i], node);
  return true;
}

// Where kernels store all that is put together they may as well store it in
// place.
static void concatenations(hd_former_t *f) {
  for (uint32_t i = 0; i < f->graph->nodes.size; i++) {
    hd_formed_t *formed = &f->nodes[i];
    if (formed->group || formed->why || !is_view(f, formed->node))
      continue;
    formed->is_view = true;
    formed->why = "its operands are stored in it, and it moves nothing";
  }
}

// --- Hubs ---

// A node that several read, and that is too dear to be computed for each; one
// that is stored anyway, for it comes out of the graph, and that others read.
static void hubs(hd_former_t *f) {
  for (uint32_t i = 0; i < f->graph->nodes.size; i++) {
    if (!is_left(f, i) || !f->nodes[i].node->task)
      continue;
    const hd_uses_t *uses = hd_former_uses(f, f->nodes[i].node->outputs[0]);
    size_t left = 0;
    for (size_t k = 0; k < uses->nodes.size; k++)
      left += is_left(f, uses->nodes.data[k]);
    if (left < 1 || (!uses->is_output &&
                     (uses->nodes.size < 2 || hd_former_is_cheap(f, i))))
      continue;
    f->nodes[i].no_prologue.why =
        uses->is_output
            ? "it comes out of the graph, so it is stored"
            : hd_arena_printf(f->arena,
                              "%zu nodes read it, and at %.0f operations an "
                              "element it is computed once",
                              uses->nodes.size, f->nodes[i].cost);
    hd_former_grow(f, hd_former_begin(f, i));
  }
}

// --- Prologues ---

static void add_group(hd_former_t *f, hd_numbers_t *groups, uint32_t group) {
  if (f->groups.data[group].seen != f->stamp)
    hd_vec_push(f->arena, groups, group);
  f->groups.data[group].seen = f->stamp;
}

// The groups that read what a node gives, each once; or why it is not read in
// kernels alone.
static const char *reading_groups(hd_former_t *f, uint32_t node,
                                  hd_numbers_t *groups) {
  const hd_uses_t *uses = hd_former_uses(f, f->nodes[node].node->outputs[0]);
  groups->size = 0;
  f->stamp++;
  if (uses->is_output)
    return "it comes out of the graph, so it is stored";
  for (size_t i = 0; i < uses->nodes.size; i++) {
    const hd_formed_t *user = &f->nodes[uses->nodes.data[i]];
    if (!user->group || f->groups.data[user->group].is_fixed)
      return hd_arena_printf(f->arena, "%s '%s' reads it, %s", user->node->op,
                             hd_node_label(user->node),
                             user->group ? "whose group is the graph's own"
                                         : "which is no kernel");
    if (!user->is_prologue)
      add_group(f, groups, user->group);
    for (size_t k = 0; k < user->copies.size; k++)
      add_group(f, groups, user->copies.data[k]);
  }
  return NULL;
}

static const char *prologue_obstacle(hd_former_t *f, uint32_t node,
                                     uint32_t group) {
  hd_group_t *g = f->groups.data[group].group;
  const hd_value_t *value = f->nodes[node].node->outputs[0];
  const hd_node_t *reader;
  if (hd_former_reads_live(f, node, group))
    return "it depends on the kernel's result";
  for (size_t i = 0; (reader = hd_group_reader(g, value, i)); i++)
    if (hd_fusion_reads_by_data(f->fusion, reader, value))
      return "data decide which of its elements are read";
  if (hd_former_spoils_copies(f, node, group))
    return "a product copies it to shared memory, and would put it there "
           "element by element";
  const char *why = hd_former_cycle(f, node, group);
  if (why)
    return why;
  why = hd_group_add_prologue(g, f->nodes[node].node,
                              hd_former_most_terms(f, group));
  if (!why)
    hd_group_drop_prologue(g, f->nodes[node].node);
  return why;
}

static void copy_into(hd_former_t *f, uint32_t node, uint32_t group) {
  hd_group_add_prologue(f->groups.data[group].group, f->nodes[node].node,
                        UINT64_MAX);
  hd_former_add(f, node, group);
}

// Why a node is not computed where it is read, in all groups that read it.
static hd_refusal_t try_prologue(hd_former_t *f, uint32_t node,
                                 hd_numbers_t *groups) {
  hd_refusal_t no = {.why = reading_groups(f, node, groups)};
  if (!no.why && groups->size == 0)
    no.why = "nobody reads it";
  for (size_t i = 0; !no.why && i < groups->size; i++)
    no = (hd_refusal_t){groups->data[i],
                        prologue_obstacle(f, node, groups->data[i])};
  if (no.why)
    return no;
  no = (hd_refusal_t){0, hd_former_dear(f, node, groups->data, groups->size)};
  if (!no.why && !hd_former_asks(f, node, groups->data[0]))
    no.why = "it was not asked for";
  return no;
}

static bool join_readers(hd_former_t *f, uint32_t node) {
  hd_numbers_t groups = {0};
  f->nodes[node].no_prologue = try_prologue(f, node, &groups);
  if (f->nodes[node].no_prologue.why)
    return false;
  hd_former_plant(f, node, groups.data[0], false);
  for (size_t i = 0; i < groups.size; i++)
    copy_into(f, node, groups.data[i]);
  f->nodes[node].group = groups.data[0];
  f->nodes[node].copies = groups;
  f->nodes[node].is_prologue = true;
  return true;
}

static void prologues(hd_former_t *f) {
  for (uint32_t i = (uint32_t)f->graph->nodes.size; i-- > 0;) {
    hd_budget_check(&f->module->context->budget);
    if (is_left(f, i) && !join_readers(f, i) && f->nodes[i].node->task)
      hd_former_begin(f, i);
  }
}

static const hd_graph_t *
compose_weights(hd_fusion_t *fusion, const hd_graph_t *graph, bool explain) {
  return hd_graph_compose_weights(fusion, graph, false, explain);
}

typedef const hd_graph_t *(*compose_fn_t)(hd_fusion_t *fusion,
                                          const hd_graph_t *graph,
                                          bool explain);
// In the order in which they have their turn.
static const compose_fn_t compose[] = {
    hd_graph_compose_sums, hd_graph_compose_products, hd_graph_compose_chosen,
    compose_weights,       hd_graph_compose,
};

static const hd_graph_t *fuse(hd_module_t *module, const hd_graph_t *graph,
                              bool explain) {
  hd_arena_t *arena = &module->arena;
  hd_former_t f = {.module = module,
                   .arena = arena,
                   .graph = graph,
                   .first_grouped = UINT32_MAX};
  unsigned errors = module->context->diags.num_errors;
  hd_scheduler_t *scheduler = hd_scheduler_create(module, arena);
  f.fusion = hd_fusion_create(module, scheduler, graph);
  for (size_t i = 0; i < sizeof(compose) / sizeof(*compose); i++) {
    const hd_graph_t *before = f.graph;
    f.graph = compose[i](f.fusion, before, explain);
    if (f.graph != before)
      f.fusion = hd_fusion_create(module, scheduler, f.graph);
  }
  hd_vec_push(arena, &f.groups, (hd_forming_t){0}); // 0 is none.
  look(&f);
  if (module->context->diags.num_errors > errors)
    return NULL;
  old_groups(&f);
  anchors(&f);
  concatenations(&f);
  hubs(&f);
  prologues(&f);
  hd_former_trim(&f);
  if (explain)
    hd_former_explain(&f);
  return hd_former_graph(&f);
}

typedef struct fuse_bodies {
  hd_module_t *module;
  bool explain;
} fuse_bodies_t;

static const hd_graph_t *fuse_body(void *argument, const hd_graph_t *body) {
  const fuse_bodies_t *f = argument;
  return hd_graph_fuse(f->module, hd_graph_outputs_apart(f->module, body),
                       f->explain);
}

const hd_graph_t *hd_graph_fuse(hd_module_t *module, const hd_graph_t *graph,
                                bool explain) {
  fuse_bodies_t f = {module, explain};
  graph = fuse(module, graph, explain);
  return graph ? hd_graph_change_bodies(&module->arena, graph, fuse_body, &f)
               : NULL;
}
