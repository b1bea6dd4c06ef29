// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph that comes out of folding norms: nodes that take the place of a
// norm and its products, all after what they read.
#include "Fusion/Compose/FoldState.h"
#include "Graph/Names.h"
#include "Graph/Prepare.h"
#include "IR/Text/Library.h"

#include <string.h>

enum { MAX_ATTRIBUTES = 3 };

// --- Nodes ---

static const hd_value_t *new_value(hd_folder_t *f, const char *name,
                                   hd_scalar_t type, const int64_t *shape,
                                   unsigned rank, hd_loc_t loc) {
  return hd_value_make(f->arena, hd_name_unique(f->arena, &f->names, name),
                       type, shape, rank, loc);
}

typedef struct maker {
  hd_folder_t *f;
  const hd_norm_t *norm;
  const char *name; // That values are named after.
  hd_loc_t loc;
} maker_t;

static const hd_attribute_t *attribute(maker_t *m, hd_attribute_t attribute) {
  hd_attribute_t *made = HD_ARENA_NEW(m->f->arena, hd_attribute_t);
  *made = attribute;
  made->loc = m->loc;
  return made;
}

static const hd_attribute_t *type_attribute(maker_t *m, const char *name,
                                            hd_scalar_t type) {
  return attribute(m, (hd_attribute_t){.name = name,
                                       .kind = HD_ATTRIBUTE_TYPE,
                                       .u.type = type});
}

// A node of the library's task, or a reshape; entries of attributes may be
// NULL.
static hd_node_t *put_made(maker_t *m, const char *op, unsigned num_inputs,
                           const hd_value_t *const *inputs,
                           unsigned num_outputs,
                           const hd_value_t *const *outputs,
                           const hd_attribute_t *const *attributes) {
  hd_arena_t *arena = m->f->arena;
  hd_node_t *node = HD_ARENA_NEW(arena, hd_node_t);
  const hd_value_t **values =
      HD_ARENA_ARRAY(arena, const hd_value_t *, num_inputs + num_outputs);
  const hd_attribute_t **given =
      HD_ARENA_ARRAY(arena, const hd_attribute_t *, MAX_ATTRIBUTES);
  memcpy(values, inputs, num_inputs * sizeof(values[0]));
  memcpy(values + num_inputs, outputs, num_outputs * sizeof(values[0]));
  *node = (hd_node_t){.op = op,
                      .loc = m->loc,
                      .num_inputs = num_inputs,
                      .inputs = values,
                      .num_outputs = num_outputs,
                      .outputs = values + num_inputs,
                      .attributes = given};
  if (strcmp(op, "reshape") != 0)
    node->task = hd_library_task(m->f->module->context, op);
  for (unsigned i = 0; attributes && i < MAX_ATTRIBUTES; i++)
    if (attributes[i])
      given[node->num_attributes++] = attributes[i];
  for (unsigned i = 0; i < num_outputs; i++)
    if (outputs[i])
      hd_ptr_map_set(arena, &m->f->givers, outputs[i], node);
  return node;
}

static const hd_value_t *put_one(maker_t *m, const char *op,
                                 unsigned num_inputs,
                                 const hd_value_t *const *inputs,
                                 const hd_value_t *output,
                                 const hd_attribute_t *only) {
  const hd_attribute_t *attributes[MAX_ATTRIBUTES] = {only};
  put_made(m, op, num_inputs, inputs, 1, &output, attributes);
  return output;
}

static const hd_value_t *put_cast(maker_t *m, const hd_value_t *x,
                                  hd_scalar_t type) {
  hd_tensor_type_t from = hd_scheduled_type(x);
  if (from.type == type)
    return x;
  return put_one(m, "cast", 1, &x,
                 new_value(m->f, m->name, type, from.shape, from.rank, m->loc),
                 type_attribute(m, "U", type));
}

static const hd_value_t *put_reshape(maker_t *m, const hd_value_t *x,
                                     const int64_t *shape, unsigned rank) {
  hd_tensor_type_t from = hd_scheduled_type(x);
  if (from.rank == rank &&
      memcmp(from.shape, shape, rank * sizeof(shape[0])) == 0)
    return x;
  return put_one(m, "reshape", 1, &x,
                 new_value(m->f, m->name, x->type, shape, rank, m->loc), NULL);
}

// --- Constants ---

// Whether a node gives elements of its operands, of any type.
static bool moves(const hd_node_t *node) {
  return hd_node_is_reshape(node) || strcmp(node->op, "transpose") == 0 ||
         strcmp(node->op, "slice") == 0 ||
         strncmp(node->op, "concat", strlen("concat")) == 0;
}

// What depends on constants alone in f32: not what was rounded, but what it was
// made of, a few steps back.
static const hd_value_t *wider(maker_t *m, const hd_value_t *value,
                               unsigned steps) {
  hd_folder_t *f = m->f;
  const hd_value_t *known = hd_ptr_map_get(&f->wide, value);
  const hd_node_t *giver = hd_ptr_map_get(&f->givers, value);
  if (known || value->type == HD_F32)
    return known ? known : value;
  if (steps > 0 && giver && giver->task && strcmp(giver->op, "cast") == 0 &&
      hd_type_is_float(hd_type(giver->inputs[0]->type)) &&
      hd_scalar_bits(giver->inputs[0]->type) > hd_scalar_bits(value->type)) {
    known = wider(m, giver->inputs[0], steps - 1);
  } else if (steps > 0 && giver && moves(giver) && giver->num_inputs <= 8) {
    const hd_value_t *inputs[8];
    hd_tensor_type_t type = hd_scheduled_type(value);
    for (uint32_t i = 0; i < giver->num_inputs; i++)
      inputs[i] = wider(m, giver->inputs[i], steps - 1);
    known = new_value(f, m->name, HD_F32, type.shape, type.rank, m->loc);
    hd_node_t *node =
        put_made(m, giver->op, giver->num_inputs, inputs, 1, &known, NULL);
    node->task = giver->task; // That for as many operands.
    node->num_attributes = giver->num_attributes;
    node->attributes = giver->attributes;
  } else {
    known = put_cast(m, value, HD_F32);
  }
  hd_ptr_map_set(f->arena, &f->wide, value, known);
  return known;
}

static const hd_value_t *wide(maker_t *m, const hd_value_t *value) {
  enum { STEPS = 16 };
  return wider(m, value, STEPS);
}

// What stands beside x in a product: the matrix with the scale in its rows, the
// sums of its columns, and the bias times the matrix.
typedef struct beside {
  const hd_value_t *w, *u, *v;
} beside_t;

// The sums of the columns of a matrix [k, n], or [n, k] where it is turned, and
// of each part of its rows apart where there are parts: behind its rows, then.
static const hd_value_t *put_sums(maker_t *m, const hd_value_t *w, bool turned,
                                  int64_t k, int64_t n) {
  int64_t part = m->norm->part ? m->norm->part : k, t = k / part;
  const int64_t cube[] = {turned ? n * t : t, part, turned ? 1 : n};
  const int64_t sums[] = {cube[0], cube[2]};
  const hd_value_t *rounded = put_reshape(m, put_cast(m, w, HD_F32), cube, 3);
  const hd_value_t *u =
      put_one(m, "reduce_sum", 1, &rounded,
              new_value(m->f, m->name, HD_F32, sums, 2, m->loc), NULL);
  if (!m->norm->part)
    return put_reshape(m, u, &n, 1);
  const int64_t rows[] = {turned ? n : 1, k, turned ? 1 : n};
  const int64_t more[] = {rows[0], t, rows[2]},
                all[] = {rows[0], k + t, rows[2]};
  const int64_t both[] = {turned ? n : k + t, turned ? k + t : n};
  const hd_value_t *pieces[] = {put_reshape(m, w, rows, 3),
                                put_reshape(m, u, more, 3)};
  return put_reshape(m,
                     put_one(m, "rows_behind", 2, pieces,
                             new_value(m->f, m->name, w->type, all, 3, m->loc),
                             NULL),
                     both, 2);
}

static beside_t put_beside(maker_t *m, const hd_node_t *product) {
  const hd_norm_t *norm = m->norm;
  const hd_value_t *given = product->inputs[1];
  const hd_attribute_t *tb = hd_node_attribute(product, "tb");
  bool turned = tb && tb->u.i;
  hd_tensor_type_t type = hd_scheduled_type(given);
  int64_t k = type.shape[turned], n = type.shape[!turned];
  beside_t b = {.w = given};
  if (norm->scale) {
    const int64_t column[] = {k, 1}, row[] = {1, k};
    const hd_value_t *factors[] = {
        wide(m, given),
        put_reshape(m, wide(m, norm->scale), turned ? row : column, 2)};
    b.w = put_cast(
        m,
        put_one(m, "mul", 2, factors,
                new_value(m->f, m->name, HD_F32, type.shape, 2, m->loc), NULL),
        given->type);
  }
  if (!norm->bias)
    return b;
  // Of the matrix as it is rounded, so that what is subtracted is what the
  // product has too much.
  const int64_t line[] = {1, k}, row[] = {1, n};
  b.u = put_sums(m, b.w, turned, k, n);
  const hd_value_t *factors[] = {put_reshape(m, wide(m, norm->bias), line, 2),
                                 wide(m, given)};
  b.v =
      put_reshape(m,
                  put_one(m, "matmul", 2, factors,
                          new_value(m->f, m->name, HD_F32, row, 2, m->loc), tb),
                  &n, 1);
  return b;
}

// --- Norms ---

// x as products read it. Statistics are of what it is then, so nothing is lost
// but what rounding loses. f16 does not hold all that may stand before a norm:
// it is made smaller on the way, which a norm does not see but for its epsilon.
// Of rows in parts, x as it is, but for that.
static const hd_value_t *put_rounded(maker_t *m, hd_scalar_t narrow,
                                     double *epsilon) {
  static const double smaller = 1.0 / 16;
  const hd_value_t *x = m->norm->x;
  hd_tensor_type_t from = hd_scheduled_type(x);
  hd_scalar_t type = m->norm->part ? from.type : narrow;
  *epsilon = m->norm->epsilon;
  if (from.type == narrow || narrow != HD_F16)
    return put_cast(m, x, type);
  *epsilon *= smaller * smaller;
  const hd_value_t *y =
      new_value(m->f, m->name, type, from.shape, from.rank, m->loc);
  const hd_attribute_t *attributes[] = {
      type_attribute(m, "U", type),
      attribute(m, (hd_attribute_t){.name = "factor",
                                    .kind = HD_ATTRIBUTE_FLOAT,
                                    .u.f = smaller}),
      NULL};
  put_made(m, "narrow", 1, &x, 1, &y, attributes);
  return y;
}

// Rows in parts: each around its own mean, and narrow; the means and sums of
// squares. Without means, the rows as they are.
typedef struct parts {
  const hd_value_t *x, *centre, *squares;
} parts_t;

static parts_t put_parts(maker_t *m, const hd_value_t *x, hd_scalar_t narrow) {
  hd_tensor_type_t type = hd_scheduled_type(x);
  int64_t count = hd_fold_count(x), shape[HD_MAX_RANK];
  unsigned rank = type.rank;
  memcpy(shape, type.shape, rank * sizeof(shape[0]));
  const int64_t rows[] = {count / shape[rank - 1],
                          shape[rank - 1] / m->norm->part, m->norm->part};
  const hd_value_t *pieces = put_reshape(m, x, rows, 3);
  parts_t parts = {new_value(m->f, m->name, narrow, rows, 3, m->loc),
                   new_value(m->f, m->name, HD_F32, rows, 2, m->loc),
                   new_value(m->f, m->name, HD_F32, rows, 2, m->loc)};
  if (!m->norm->bias) {
    parts.x = put_cast(m, x, narrow);
    put_one(m, "square_rows", 1, &pieces, parts.squares, NULL);
    return parts;
  }
  const hd_value_t *outputs[] = {parts.x, parts.centre, parts.squares};
  const hd_attribute_t *attributes[] = {type_attribute(m, "U", narrow), NULL,
                                        NULL};
  put_made(m, "centre_rows", 1, &pieces, 3, outputs, attributes);
  parts.x = put_reshape(m, parts.x, type.shape, rank);
  return parts;
}

// Values in the shape of a product's rows, with another last axis.
static const hd_value_t *put_like_rows(maker_t *m, const hd_value_t *value,
                                       hd_tensor_type_t rows) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  rows.shape[rows.rank - 1] = type.shape[type.rank - 1];
  return put_reshape(m, value, rows.shape, rows.rank);
}

static void put_product(maker_t *m, const hd_node_t *product,
                        const hd_value_t *rounded, const parts_t *parts,
                        double epsilon, const hd_value_t **mean,
                        const hd_value_t **inverse) {
  hd_tensor_type_t type = hd_scheduled_type(product->inputs[0]);
  beside_t b = put_beside(m, product);
  bool centred = m->norm->bias;
  if (inverse) {
    *inverse =
        new_value(m->f, m->name, HD_F32, type.shape, type.rank - 1, m->loc);
    if (centred)
      *mean =
          new_value(m->f, m->name, HD_F32, type.shape, type.rank - 1, m->loc);
  }
  const hd_value_t *x = parts ? parts->x : rounded;
  const hd_value_t *inputs[5];
  unsigned num_inputs = 0;
  inputs[num_inputs++] = put_reshape(m, x, type.shape, type.rank);
  if (parts && centred)
    inputs[num_inputs++] = put_like_rows(m, parts->centre, type);
  if (parts)
    inputs[num_inputs++] = put_like_rows(m, parts->squares, type);
  if (!parts || !centred)
    inputs[num_inputs++] = b.w;
  if (centred) {
    inputs[num_inputs++] = b.u; // With parts, behind the matrix.
    inputs[num_inputs++] = b.v;
  }
  const hd_value_t *outputs[3] = {product->outputs[0]};
  if (inverse && centred)
    outputs[1] = *mean;
  if (inverse)
    outputs[centred ? 2 : 1] = *inverse;
  const hd_attribute_t *attributes[] = {
      hd_node_attribute(product, "tb"), hd_node_attribute(product, "R"),
      attribute(m, (hd_attribute_t){.name = "epsilon",
                                    .kind = HD_ATTRIBUTE_FLOAT,
                                    .u.f = epsilon})};
  unsigned num_outputs = centred ? 3 : 2 - (parts && !inverse);
  hd_node_t *node = put_made(m, hd_fold_product(m->norm, inverse), num_inputs,
                             inputs, num_outputs, outputs, attributes);
  node->label = product->label;
}

// The norm's value, by what a product found of its rows.
static void put_again(maker_t *m, const hd_value_t *rounded,
                      const hd_value_t *mean, const hd_value_t *inverse) {
  const hd_norm_t *norm = m->norm;
  const hd_value_t *y = norm->node->outputs[0];
  hd_tensor_type_t type = hd_scheduled_type(y);
  unsigned rank = type.rank - 1;
  inverse = put_reshape(m, inverse, type.shape, rank);
  if (mean)
    mean = put_reshape(m, mean, type.shape, rank);
  const hd_value_t *centred[] = {rounded, mean, inverse, norm->scale,
                                 norm->bias};
  const hd_value_t *scaled[] = {rounded, inverse, norm->scale};
  const hd_attribute_t *attributes[MAX_ATTRIBUTES] = {
      y->type != rounded->type ? type_attribute(m, "R", y->type) : NULL};
  hd_node_t *node =
      mean ? put_made(m, "normalize_rows", 5, centred, 1, &y, attributes)
           : put_made(m, "scale_rows", 3, scaled, 1, &y, attributes);
  node->label = norm->node->label;
}

void hd_fold_make(hd_folder_t *f, const hd_norm_t *norm,
                  const hd_fold_nodes_t *products,
                  const hd_fold_nodes_t *back) {
  const hd_value_t *mean = NULL, *inverse = NULL;
  maker_t m = {f, norm, norm->x->name, norm->node->loc};
  double epsilon;
  hd_scalar_t narrow = products->data[0]->inputs[0]->type;
  const hd_value_t *rounded = put_rounded(&m, narrow, &epsilon);
  parts_t parts = {0};
  if (norm->part)
    parts = put_parts(&m, rounded, narrow);
  for (size_t i = 0; i < products->size; i++) {
    bool asked = norm->others && i == 0; // For what it finds of the rows.
    put_product(&m, products->data[i], rounded, norm->part ? &parts : NULL,
                epsilon, asked ? &mean : NULL, asked ? &inverse : NULL);
  }
  if (norm->others)
    put_again(&m, rounded, mean, inverse);
  for (size_t i = 0; i < back->size; i++)
    put_one(&m, "reshape", 1, &norm->node->outputs[0],
            back->data[i]->outputs[0], NULL);
}

// --- The graph ---

// A node, of which so many inputs have been looked at.
typedef struct pending {
  const hd_node_t *node;
  uint32_t inputs;
} pending_t;

typedef struct order {
  hd_folder_t *f;
  hd_graph_t *graph;
  hd_ptr_map_t begun; // Nodes.
  HD_VEC(pending_t) pending;
} order_t;

static void begin_node(order_t *o, const hd_node_t *node) {
  if (!node || hd_ptr_map_get(&o->begun, node))
    return;
  hd_ptr_map_set(o->f->arena, &o->begun, node, node);
  hd_vec_push(o->f->arena, &o->pending, ((pending_t){node, 0}));
}

// After all that it reads.
static void put_node(order_t *o, const hd_node_t *node) {
  begin_node(o, node);
  while (o->pending.size) {
    pending_t *last = &o->pending.data[o->pending.size - 1];
    if (last->inputs == last->node->num_inputs) {
      hd_vec_push(o->f->arena, &o->graph->nodes, last->node);
      o->pending.size--;
      continue;
    }
    const hd_value_t *input = last->node->inputs[last->inputs++];
    if (input)
      begin_node(o, hd_ptr_map_get(&o->f->givers, input));
  }
}

const hd_graph_t *hd_fold_graph(hd_folder_t *f) {
  hd_graph_t *made = hd_graph_without_nodes(f->arena, f->graph);
  order_t order = {.f = f, .graph = made};
  for (size_t i = 0; i < f->graph->nodes.size; i++) {
    const hd_node_t *node = f->graph->nodes.data[i];
    for (uint32_t k = 0; k < node->num_outputs; k++)
      if (node->outputs[k])
        put_node(&order, hd_ptr_map_get(&f->givers, node->outputs[k]));
  }
  hd_graph_drop_unread(f->arena, made);
  return made;
}
