// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A byte that follows from one other byte, element by element, is a function of
// 256 values: a table, computed by the same nodes from all bytes. Quantized
// models have long ones, a GELU of seven quantizations:
//
//   a: f32[2, 40] = dequantize_scale(x, s)
//   b: f32[2, 40] = erf(a)
//   c: f32[2, 40] = divide_by(b, u)
//   y: i8[2, 40] = to_byte(c, z)
//
// becomes, where that takes longer than to look it up,
//
//   const t: i8[256] = ...
//   y: i8[2, 40] = look_up(x, t)
//
// A table that is a line, rounded and clamped, as of relu(a), is computed as
// that,
//
//   y: i8[2, 40] = rescale(x, zero, factor, to, least, most) { V = i8 }
//
// where its steps are the byte's own,
//
//   y: i8[2, 40] = clamp_byte(x, least, most)
//
// and what gives the same byte is not computed.
#include "Graph/Rewrite/Rescale.h"
#include "Graph/Rewrite/RewriteState.h"
#include "IR/Text/Library.h"

#include <string.h>

// A table is looked up where computing it takes that many operations, and is a
// line or a clamp from fewer on. Where a chain is very long, another begins.
enum { LOOK_UP_COST = 24, LEAST_COST = 8, MOST_COST = 1000 };
enum { DIVISION_COST = 16 };

// What a value follows from, element by element, and at what cost.
typedef struct origin {
  hd_rw_value_t *from;
  unsigned cost;
} origin_t;

typedef struct bytes {
  hd_rw_graph_t *g;
  hd_ptr_map_t origins; // Of values: origin_t; none: several, or otherwise.
  bool failed;          // After an error.
} bytes_t;

static bool is_byte(const hd_rw_value_t *value) {
  return value->type.type == HD_I8 || value->type.type == HD_U8;
}

// --- Nodes that compute element by element ---

static bool is_own_element(const hd_term_t *load, const hd_definition_t *d) {
  if (load->num_operands == 0)
    return true;
  if (load->num_operands != d->num_indices)
    return false;
  for (unsigned i = 0; i < load->num_operands; i++)
    if (load->operands[i]->kind != HD_TERM_INDEX ||
        load->operands[i]->u.index != d->indices[i])
      return false;
  return true;
}

// Whether it is another number for other elements.
static bool varies(const hd_term_t *term) {
  if (term->kind == HD_TERM_LOAD)
    return term->num_operands > 0;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (varies(term->operands[i]))
      return true;
  return term->kind == HD_TERM_INDEX;
}

// Adds what an element takes; false where it is not computed of the same
// element of the operands alone.
static bool add_cost(const hd_term_t *term, const hd_definition_t *d,
                     unsigned *cost) {
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
  case HD_TERM_LIMIT:
    return true;
  case HD_TERM_LOAD:
    return is_own_element(term, d);
  case HD_TERM_OPERATOR:
    if (varies(term))
      *cost += term->u.op == HD_EXPR_DIV ? DIVISION_COST : 1;
    break;
  case HD_TERM_SELECT:
    *cost += 1;
    break;
  case HD_TERM_FUNCTION:
    *cost += hd_task_function_info(term->u.function)->instructions;
    break;
  case HD_TERM_CAST:
  case HD_TERM_BITCAST:
    break;
  default:
    return false;
  }
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!add_cost(term->operands[i], d, cost))
      return false;
  return true;
}

// Whether it is written for any shape, and so for a table's.
static bool takes_any_shape(const hd_definition_t *d) {
  return d->num_indices == 1 &&
         (d->indices[0]->range->kind == HD_TERM_PACK ||
          d->indices[0]->range->kind == HD_TERM_BROADCAST);
}

bool hd_rw_is_by_element(const hd_node_t *node, unsigned *cost) {
  const hd_task_t *task = node->task;
  if (!task || node->num_outputs != 1 || task->definitions.size != 1)
    return false;
  const hd_definition_t *d = task->definitions.data[0];
  for (uint32_t i = 0; i < node->num_attributes; i++)
    if (node->attributes[i]->kind != HD_ATTRIBUTE_TYPE)
      return false;
  return d->kind == HD_DEFINE && d->num_targets == 1 && takes_any_shape(d) &&
         add_cost(d->term, d, cost);
}

static bool has_shape_of(const hd_rw_value_t *a, const hd_rw_value_t *b) {
  return a->type.rank == b->type.rank &&
         memcmp(a->type.shape, b->type.shape,
                a->type.rank * sizeof(a->type.shape[0])) == 0;
}

// --- Origins ---

static void set_origin(bytes_t *b, hd_rw_value_t *value, hd_rw_value_t *from,
                       unsigned cost) {
  origin_t *origin = HD_ARENA_NEW(b->g->arena, origin_t);
  *origin = (origin_t){from, cost};
  hd_ptr_map_set(b->g->arena, &b->origins, value, origin);
}

static void find_origin(bytes_t *b, const hd_rw_node_t *node) {
  unsigned cost = 1, before = 0;
  hd_rw_value_t *from = NULL;
  hd_rw_value_t *y = node->node.num_outputs ? node->outputs[0] : NULL;
  if (!y || y->constant)
    return;
  bool follows = hd_rw_is_by_element(&node->node, &cost);
  for (uint32_t i = 0; follows && i < node->node.num_inputs; i++) {
    hd_rw_value_t *x = node->inputs[i];
    const origin_t *origin = hd_ptr_map_get(&b->origins, x);
    if (x->type.rank == 0 && hd_rw_known(b->g, x, &b->failed))
      continue;
    // One number for all elements would be as many as the table has.
    follows = origin && node->node.task->inputs.data[i]->rank > 0 &&
              has_shape_of(x, y) && (!from || from == origin->from);
    if (!follows)
      break;
    from = origin->from;
    before = before > origin->cost ? before : origin->cost;
  }
  if (follows && from && before + cost < MOST_COST)
    set_origin(b, y, from, before + cost);
  else if (is_byte(y))
    set_origin(b, y, y, 0);
}

// --- Tables ---

static const hd_host_tensor_t *all_bytes(hd_arena_t *arena, hd_scalar_t type) {
  unsigned char *bytes = HD_ARENA_ARRAY(arena, unsigned char, HD_BYTES);
  hd_host_tensor_t *tensor = HD_ARENA_NEW(arena, hd_host_tensor_t);
  *tensor = (hd_host_tensor_t){.type = type,
                               .rank = 1,
                               .shape = {HD_BYTES},
                               .count = HD_BYTES,
                               .data = bytes,
                               .bytes = HD_BYTES};
  for (int i = 0; i < HD_BYTES; i++)
    bytes[i] = (unsigned char)i;
  return tensor;
}

// What a value is of all bytes, of which tables has that of its origin. NULL
// after an error.
static hd_rw_value_t *table_of(bytes_t *b, hd_ptr_map_t *tables,
                               hd_rw_value_t *value) {
  hd_rw_value_t *table = hd_ptr_map_find(tables, value);
  if (table || value->constant)
    return table ? table : value;
  hd_arena_t *arena = b->g->arena;
  const hd_node_t *node = &value->def->node;
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    bool failed = false;
    hd_rw_value_t *input = table_of(b, tables, value->def->inputs[i]);
    data[i] = input ? hd_rw_known(b->g, input, &failed) : NULL;
    if (!data[i])
      return NULL;
  }
  if (!hd_rw_evaluate(b->g, node, data, value->value->name, &table))
    return NULL;
  hd_ptr_map_set(arena, tables, value, table);
  return table;
}

static hd_rw_value_t *number(hd_rw_graph_t *g, const char *base, float x) {
  float *data = HD_ARENA_NEW(g->arena, float);
  hd_host_tensor_t *tensor = HD_ARENA_NEW(g->arena, hd_host_tensor_t);
  *data = x;
  *tensor = (hd_host_tensor_t){.type = HD_F32,
                               .count = 1,
                               .data = (unsigned char *)data,
                               .bytes = sizeof *data};
  return hd_rw_constant(g, base, tensor);
}

// The value in a node's place: of that task, of the inputs. named: its type is
// the attribute V.
static bool put_task(bytes_t *b, hd_rw_node_t *node, const char *task,
                     bool named, hd_rw_value_t *const *inputs,
                     uint32_t num_inputs) {
  hd_rw_graph_t *g = b->g;
  hd_rw_value_t *y = node->outputs[0];
  hd_attribute_t *attribute = HD_ARENA_NEW(g->arena, hd_attribute_t);
  const hd_attribute_t **attributes =
      HD_ARENA_ARRAY(g->arena, const hd_attribute_t *, 1);
  *attribute = (hd_attribute_t){.name = "V", .kind = HD_ATTRIBUTE_TYPE};
  attribute->u.type = y->type.type;
  attributes[0] = attribute;
  hd_node_t made = {.op = task,
                    .task = hd_library_task(g->module->context, task),
                    .label = node->node.label,
                    .loc = node->node.loc,
                    .num_inputs = num_inputs,
                    .num_outputs = 1,
                    .num_attributes = named,
                    .attributes = attributes};
  hd_rw_value_t **outputs = made.task ? hd_rw_put(g, &made, inputs, &y->type,
                                                  node, y->value->name, NULL)
                                      : NULL;
  if (outputs && hd_rw_can_replace(y, outputs[0]))
    hd_rw_replace(g, y, outputs[0]);
  return outputs;
}

static bool put_rescale(bytes_t *b, hd_rw_node_t *node, hd_rw_value_t *x,
                        const hd_rescale_t *r) {
  hd_rw_graph_t *g = b->g;
  hd_rw_value_t *inputs[] = {x,
                             number(g, "zero", r->zero),
                             number(g, "factor", r->factor),
                             number(g, "to", r->to),
                             number(g, "least", r->least),
                             number(g, "most", r->most)};
  return put_task(b, node, "rescale", true, inputs, 6);
}

static bool put_clamp(bytes_t *b, hd_rw_node_t *node, hd_rw_value_t *x,
                      const hd_rescale_t *r) {
  hd_rw_graph_t *g = b->g;
  hd_rw_value_t *inputs[] = {x, number(g, "least", r->least),
                             number(g, "most", r->most)};
  return put_task(b, node, "clamp_byte", false, inputs, 3);
}

static bool is_same(const unsigned char *table) {
  for (int i = 0; i < HD_BYTES; i++)
    if (table[i] != i)
      return false;
  return true;
}

static bool replace(bytes_t *b, hd_rw_node_t *node, const origin_t *origin) {
  hd_rw_graph_t *g = b->g;
  hd_rw_value_t *y = node->outputs[0], *x = origin->from;
  hd_ptr_map_t tables = {0};
  hd_rescale_t rescale;
  hd_scalar_t from = x->type.type, to = y->type.type;
  hd_ptr_map_set(g->arena, &tables, x,
                 hd_rw_constant(g, "bytes", all_bytes(g->arena, from)));
  hd_rw_value_t *inputs[] = {x, table_of(b, &tables, y)};
  if (!inputs[1])
    return false;
  const unsigned char *table = inputs[1]->value->constant->tensor->data;
  if (from == to && is_same(table) && hd_rw_can_replace(y, x)) {
    hd_rw_replace(g, y, x);
    return true;
  }
  if (origin->cost < LEAST_COST)
    return true;
  if (hd_rescale_find(table, from == HD_I8, to == HD_I8, &rescale))
    return from == to && rescale.is_clamp ? put_clamp(b, node, x, &rescale)
                                          : put_rescale(b, node, x, &rescale);
  return origin->cost < LOOK_UP_COST ||
         put_task(b, node, "look_up", true, inputs, 2);
}

static bool visit(bytes_t *b, hd_rw_node_t *node, bool explains) {
  hd_context_t *context = b->g->module->context;
  hd_rw_value_t *y = node->node.num_outputs ? node->outputs[0] : NULL;
  const origin_t *origin = y ? hd_ptr_map_get(&b->origins, y) : NULL;
  if (node->dead || !origin || !is_byte(y) || origin->cost == 0)
    return true;
  const char *label = node->node.label ? node->node.label : y->value->name;
  if (!hd_step(&context->steps, HD_STEP_REWRITE, "table at '%s'", label))
    return true;
  bool ok = replace(b, node, origin);
  if (ok && explains && node->dead)
    hd_remark(&context->diags, node->node.loc, "'%s' is a table of '%s'", label,
              origin->from->value->name);
  return ok;
}

bool hd_rw_look_up_bytes(hd_rw_graph_t *g, bool explains) {
  bytes_t b = {.g = g};
  HD_VEC(hd_rw_node_t *) nodes = {0};
  for (size_t i = 0; i < g->graph->inputs.size; i++) {
    hd_rw_value_t *x = hd_ptr_map_find(&g->values, g->graph->inputs.data[i]);
    if (x && is_byte(x))
      set_origin(&b, x, x, 0);
  }
  for (hd_rw_node_t *node = g->first; node; node = node->next) {
    find_origin(&b, node);
    hd_vec_push(g->arena, &nodes, node);
  }
  // The last ones first: what they pass on the way is gone then.
  bool ok = !b.failed;
  while (ok && nodes.size)
    ok = visit(&b, nodes.data[--nodes.size], explains);
  return ok;
}
