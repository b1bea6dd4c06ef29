// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms that cost no kernel.
//
//   s = add(p, r)                  what a product's kernel stores
//   h = layer_norm(s, g, b)
//   y = matmul(cast(h), w)
//   z = add(q, h)                  somebody else
//
// becomes
//
//   x = narrow(s)
//   y, mean, inverse = norm_matmul(x, w * g, u, v)
//   h = normalize_rows(x, mean, inverse, g, b)
//   z = add(q, h)
//
// for  norm(x) w = inverse (x (g w) - mean u) + v,  where u are the sums of the
// columns of g w, and v = b w. The product finds mean and inverse beside its
// products (templates of the form `normed`), x is stored by the kernel that
// computes it, and h is computed where it is read. What stands beside x depends
// on constants alone.
//
// Where the kernel that stores s has its neighbours side by side, it leaves the
// statistics of parts of its rows:
//
//   x, centre, squares = centre_rows(reshape(s))
//   y, mean, inverse = centred_matmul(x, centre, squares, w * g and sums, v)
//   h = normalize_rows(s, mean, inverse, g, b)
//
// where x is each part around its own mean, so that little is lost when it is
// rounded. Of a norm without a mean it leaves the sums of squares alone, and
// the rows stay what they are:
//
//   squares = square_rows(reshape(s))
//   y, inverse = scaled_matmul(narrow(s), squares, w * g)
//
// It is one decision for all who read a norm. Where x comes from no anchor that
// would store it on the way, where a product is not with a constant matrix,
// where x would be rounded before it is normalized (which loses what is small
// beside the mean, and what f16 does not hold), where no template answers, or
// where products become slower by more than the norm's kernel takes, the norm
// stays a kernel.
#include "Fusion/Compose/FoldNorms.h"
#include "Fusion/Compose/FoldState.h"
#include "Fusion/Fuse.h"
#include "Fusion/Passes.h"
#include "Graph/Names.h"
#include "Graph/Prepare.h"
#include "IR/Graph/Loop.h"
#include "IR/Text/Library.h"
#include "Schedule/Template/Candidates.h"
#include "Schedule/Template/Machine.h"

#include <math.h>
#include <string.h>

enum {
  MOST_LOOKS = 64, // At nodes before a norm.
  MOST_STEPS = 8,  // From a norm to a product, that round or reshape.
  LEAST_PART = 16, // Neighbours whose statistics a product leaves: few of them
  MOST_PART = 64   // are many numbers to merge, many take some lanes longer.
};

// Of a matrix' bytes, what it is made of where that is packed.
static const double FEWER = 0.75;

// --- What is known of the graph ---

static hd_numbers_t *readers_of(hd_folder_t *f, const hd_value_t *value) {
  hd_numbers_t *readers = hd_ptr_map_find(&f->readers, value);
  if (!readers) {
    readers = HD_ARENA_NEW(f->arena, hd_numbers_t);
    hd_ptr_map_set(f->arena, &f->readers, value, readers);
  }
  return readers;
}

static void take_value(hd_folder_t *f, const hd_value_t *value) {
  if (value)
    hd_name_unique(f->arena, &f->names, value->name);
}

static void look_at(hd_folder_t *f, uint32_t number) {
  const hd_node_t *node = f->graph->nodes.data[number];
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (node->inputs[i])
      hd_vec_push(f->arena, readers_of(f, node->inputs[i]), number);
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    if (!node->outputs[i])
      continue;
    take_value(f, node->outputs[i]);
    hd_ptr_map_set(f->arena, &f->givers, node->outputs[i], node);
  }
  uint32_t *place = HD_ARENA_NEW(f->arena, uint32_t);
  *place = number;
  hd_ptr_map_set(f->arena, &f->order, node, place);
}

static void look(hd_folder_t *f) {
  const hd_graph_t *graph = f->graph;
  for (size_t i = 0; i < graph->inputs.size; i++)
    take_value(f, graph->inputs.data[i]);
  for (size_t i = 0; i < graph->constants.size; i++)
    take_value(f, graph->constants.data[i]);
  f->known = hd_graph_known(f->arena, graph);
  for (uint32_t i = 0; i < graph->nodes.size; i++)
    look_at(f, i);
  for (size_t i = 0; i < graph->outputs.size; i++)
    hd_ptr_map_set(f->arena, &f->outputs, graph->outputs.data[i], graph);
}

static bool is_known(const hd_folder_t *f, const hd_value_t *value) {
  return hd_ptr_map_get(&f->known, value);
}

static bool is_task(const hd_folder_t *f, const hd_node_t *node,
                    const char *name) {
  return node->task &&
         node->task == hd_library_task(f->module->context, name) &&
         !node->schedule && !node->pin && !node->group;
}

static int64_t last_of(const hd_value_t *value) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  return type.rank ? type.shape[type.rank - 1] : 1;
}

// --- Norms ---

// Whether a node is a norm over the last axis, with a constant scale.
static bool find_norm(const hd_folder_t *f, const hd_node_t *node,
                      hd_norm_t *norm) {
  bool centred = is_task(f, node, "layer_norm");
  if (!centred && !is_task(f, node, "rms_norm_scale"))
    return false;
  const hd_attribute_t *epsilon = hd_node_attribute(node, "epsilon");
  *norm = (hd_norm_t){.node = node,
                      .x = node->inputs[0],
                      .scale = node->inputs[1],
                      .bias = centred ? node->inputs[2] : NULL,
                      .epsilon = epsilon->u.f};
  return epsilon->kind == HD_ATTRIBUTE_FLOAT && norm->scale->rank == 1 &&
         is_known(f, norm->scale) && (!centred || is_known(f, norm->bias)) &&
         !is_known(f, norm->x) && hd_type_is_float(hd_type(norm->scale->type));
}

static bool is_behind(const hd_folder_t *f, const hd_node_t *x,
                      const hd_node_t *y) {
  const uint32_t *a = x ? hd_ptr_map_get(&f->order, x) : NULL;
  const uint32_t *b = y ? hd_ptr_map_get(&f->order, y) : NULL;
  return a && (!b || *a > *b);
}

// The anchor whose kernel computes a value on the way of its result, the last
// one: from there on, elements stay what they are. NULL: there is none.
static const hd_node_t *
stored_on_the_way(hd_folder_t *f, const hd_value_t *value, unsigned *looks) {
  const hd_node_t *node = hd_ptr_map_get(&f->givers, value), *last = NULL;
  hd_pointwise_t p;
  if (!node || !*looks || hd_node_is_loop(node) || is_known(f, value))
    return NULL;
  --*looks;
  if (hd_fusion_pointwise(f->fusion, node, &p))
    return node->task ? node : NULL;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    const hd_node_t *anchor =
        hd_fold_count(node->inputs[i]) == hd_fold_count(value)
            ? stored_on_the_way(f, node->inputs[i], looks)
            : NULL;
    last = is_behind(f, anchor, last) ? anchor : last;
  }
  return last;
}

// --- Products ---

typedef struct found {
  hd_folder_t *f;
  hd_norm_t *norm;
  hd_fold_nodes_t products;
  hd_fold_nodes_t back; // Conversions to what the norm gave.
} found_t;

// The bytes of the constants that a value is made of.
static double constant_bytes(hd_folder_t *f, const hd_value_t *value,
                             unsigned steps) {
  const hd_node_t *giver = hd_ptr_map_get(&f->givers, value);
  double bytes = 0;
  if (!giver || !steps || hd_node_is_loop(giver))
    return (double)hd_fold_count(value) * hd_scalar_bits(value->type) / 8;
  for (uint32_t i = 0; i < giver->num_inputs; i++)
    if (giver->inputs[i])
      bytes += constant_bytes(f, giver->inputs[i], steps - 1);
  return bytes;
}

// Whether a matrix is made of fewer bits, which products may read in its place
// as long as it is not scaled.
static bool is_packed(hd_folder_t *f, const hd_value_t *matrix) {
  double bytes = (double)hd_fold_count(matrix) * hd_scalar_bits(matrix->type);
  return constant_bytes(f, matrix, MOST_STEPS) < FEWER * bytes / 8;
}

static bool is_product(const found_t *found, const hd_node_t *node,
                       const hd_value_t *operand) {
  const hd_folder_t *f = found->f;
  if (!is_task(f, node, "matmul") || node->inputs[0] != operand ||
      node->inputs[1]->rank != 2 || !is_known(f, node->inputs[1]))
    return false;
  const hd_attribute_t *ta = hd_node_attribute(node, "ta");
  return !(ta && ta->u.i) && operand->rank >= 1 &&
         last_of(operand) == last_of(found->norm->x) &&
         !is_packed(found->f, node->inputs[1]);
}

// What reads a norm, rounded and in other shapes: products, and others.
static void find_readers(found_t *found, const hd_value_t *value,
                         unsigned steps) {
  hd_folder_t *f = found->f;
  const hd_numbers_t *readers = readers_of(f, value);
  found->norm->others |= hd_ptr_map_get(&f->outputs, value) != NULL;
  for (size_t i = 0; i < readers->size; i++) {
    const hd_node_t *node = f->graph->nodes.data[readers->data[i]];
    const hd_value_t *output = node->num_outputs ? node->outputs[0] : NULL;
    hd_scalar_t type = output ? output->type : HD_VOID;
    bool is_cast = is_task(f, node, "cast") && hd_type_is_float(hd_type(type));
    if (output && is_product(found, node, value))
      hd_vec_push(f->arena, &found->products, node);
    else if (is_cast && type == found->norm->node->outputs[0]->type) {
      hd_vec_push(f->arena, &found->back, node);
      found->norm->others = true;
    } else if (steps > 0 && (is_cast || hd_node_is_reshape(node))) {
      find_readers(found, output, steps - 1);
    } else {
      found->norm->others = true;
    }
  }
}

// --- Decisions ---

// Into parts of how many neighbours, which the kernel of an anchor stores side
// by side, rows are best divided, so that there are eights of them, 16 bytes in
// a matrix, and what that kernel takes more than the best one, which is less
// than a launch, or the statistics would have one (Form/FormGrow.c); 0: into
// none.
static int64_t part_of(hd_folder_t *f, const hd_norm_t *norm,
                       const hd_node_t *anchor, double *more) {
  const hd_machine_t *machine = &f->module->context->schedules->machine;
  int64_t length = last_of(norm->x), best = 0;
  const hd_candidates_t *all =
      hd_fold_candidates(f, anchor, HD_FORM_KIND_PRODUCT);
  for (int64_t part = MOST_PART; part >= LEAST_PART; part /= 2) {
    const hd_candidate_t *c =
        length % (8 * part) ? NULL : hd_candidates_with_rows(all, part);
    double costs = c ? c->us - all->data[0].us : INFINITY;
    if (costs >= (best ? *more : machine->launch))
      continue;
    best = part;
    *more = costs;
  }
  return best;
}

// What products take where the norm is folded, and they and its kernel where
// it is not; false: no template answers.
static bool compare(const found_t *found, double *folded, double *apart) {
  hd_folder_t *f = found->f;
  const hd_norm_t *norm = found->norm;
  *folded = 0;
  *apart = hd_fold_price_norm(f, norm);
  for (size_t i = 0; i < found->products.size; i++) {
    const hd_node_t *product = found->products.data[i];
    double before = hd_fold_price(f, product, HD_FORM_KIND_PRODUCT);
    double after =
        hd_fold_price(f, hd_fold_probe(f, norm, product),
                      norm->part ? HD_FORM_KIND_CENTRED : HD_FORM_KIND_NORMED);
    *apart += before;
    *folded += after;
    if (before == 0 || after == 0)
      return false;
  }
  return true;
}

// NULL where it is not.
static const char *what_is_dear(hd_folder_t *f, double folded, double apart) {
  return folded <= apart
             ? NULL
             : hd_arena_printf(f->arena,
                               "%.2f us are expected where it is folded, %.2f "
                               "us where it is a kernel",
                               folded, apart);
}

// NULL where the norm is to be folded: by the statistics that the product
// before leaves, or by those that the products find.
static const char *obstacle(found_t *found) {
  hd_folder_t *f = found->f;
  hd_norm_t *norm = found->norm;
  if (!found->products.size)
    return "no product with a constant matrix reads it";
  hd_scalar_t type = found->products.data[0]->inputs[0]->type;
  hd_scalar_t own = norm->node->outputs[0]->type;
  for (size_t i = 0; i < found->products.size; i++)
    if (found->products.data[i]->inputs[0]->type != type)
      return "products read it in several types";
  if (norm->others && own != type && own != HD_F32)
    return "it is read in another type";
  if (type == HD_F64 || norm->x->type == HD_F64)
    return "statistics that are folded are f32";
  unsigned looks = MOST_LOOKS;
  const hd_node_t *anchor = stored_on_the_way(f, norm->x, &looks);
  if (!anchor)
    return "no kernel computes what it reads on the way of its result";
  double folded, apart, more = 0;
  norm->part = part_of(f, norm, anchor, &more);
  const char *dear =
      norm->part && compare(found, &folded, &apart)
          ? what_is_dear(f, folded + more, apart)
          : "no template answers for a product of normalized rows";
  if (!dear)
    return NULL;
  bool answered = norm->part && folded > 0;
  norm->part = 0;
  if (!f->rounds && hd_scalar_bits(norm->x->type) > hd_scalar_bits(type))
    return answered ? dear
                    : "its rows would be rounded before they are normalized";
  return compare(found, &folded, &apart) ? what_is_dear(f, folded, apart)
                                         : dear;
}

static bool fold(hd_folder_t *f, const hd_node_t *node, bool explain) {
  hd_norm_t norm;
  found_t found = {.f = f, .norm = &norm};
  if (!node->num_outputs || !node->outputs[0] || !find_norm(f, node, &norm))
    return false;
  hd_budget_check(&f->module->context->budget);
  find_readers(&found, node->outputs[0], MOST_STEPS);
  const char *why = obstacle(&found);
  if (!why && !hd_step(&f->module->context->steps, HD_STEP_FUSION,
                       "of %s '%s' into the products that read it", node->op,
                       hd_node_label(node)))
    why = "it was not asked for";
  if (explain)
    hd_remark(&f->module->context->diags, node->loc, "fold: %s '%s': %s%s",
              node->op, hd_node_label(node),
              why         ? "a kernel of its own: "
              : norm.part ? "folded into the products before and behind it"
                          : "folded into the products that read it",
              why ? why : "");
  if (why)
    return false;
  hd_fold_make(f, &norm, &found.products, &found.back);
  return true;
}

const hd_graph_t *hd_graph_fold_norms(hd_module_t *module,
                                      const hd_graph_t *graph, bool rounds,
                                      bool explain) {
  const hd_schedule_options_t *options = module->context->schedules;
  if (!options || !options->machine.count) // No template answers.
    return graph;
  hd_folder_t f = {.module = module,
                   .arena = &module->arena,
                   .graph = graph,
                   .rounds = rounds};
  f.fusion = hd_fusion_create(
      module, hd_scheduler_create(module, &module->arena), graph);
  look(&f);
  bool folded = false;
  for (size_t i = 0; i < graph->nodes.size; i++)
    folded |= fold(&f, graph->nodes.data[i], explain);
  return folded ? hd_fold_graph(&f) : graph;
}

bool hd_pass_fold_norms(hd_module_t *module, const hd_graph_t *graph,
                        const hd_pass_args_t *args, hd_item_t *version) {
  version->u.graph =
      hd_graph_check_tasks(module, graph)
          ? hd_graph_fold_norms(
                module, graph,
                hd_pass_option_is(args->options, "rows", "rounded"),
                args->explain)
          : NULL;
  return version->u.graph != NULL;
}
