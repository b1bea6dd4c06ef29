// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random valid rewrites: a chain of nodes on each side, terms of every kind
// that they may hold. What they compute is nobody's business here.
#include "IR/Generator.h"
#include "IR/Graph/RewriteRule.h"
#include "IR/Text/Library.h"

#include <string.h>

typedef struct maker {
  hd_generator_t *g;
  hd_rewrite_t *rule;
  hd_task_t *signature;
  hd_type_var_t *type;
  hd_size_t *size;
  hd_pack_t *pack, *like, *shape; // shape: of what a reshape gives.
  hd_task_value_t *start, *factor;
  hd_rule_value_t *x, *c;
} maker_t;

static const hd_task_type_t i64 = {HD_I64, NULL};

static unsigned below(maker_t *m, unsigned limit) {
  return hd_random_below(m->g, limit);
}

#define NEW(m, type) HD_ARENA_NEW((m)->g->arena, type)

// --- Terms ---

static hd_term_t *term(maker_t *m, hd_term_kind_t kind, hd_task_type_t type) {
  return hd_term_make(m->g->arena, kind, type, NULL, 0);
}

static const hd_term_t *number(maker_t *m) {
  hd_term_t *made = term(m, HD_TERM_CONST, i64);
  made->u.i = (int64_t)below(m, 9);
  return made;
}

static const hd_term_t *pack_of(maker_t *m, const hd_pack_t *pack) {
  hd_term_t *made = term(m, HD_TERM_PACK, i64);
  made->u.pack = pack;
  made->pack = hd_pack_root(pack);
  return made;
}

static const hd_term_t *leaf(maker_t *m, bool packs) {
  hd_term_t *made;
  switch (below(m, packs ? 4 : 2)) {
  case 0:
    return number(m);
  case 1:
    made = term(m, HD_TERM_SIZE, i64);
    made->u.size = m->size;
    return made;
  case 2:
    return pack_of(m, below(m, 2) ? m->pack : m->like);
  default:
    made = term(m, HD_TERM_ATTRIBUTE, i64);
    made->u.value = m->start;
    made->pack = m->pack;
    return made;
  }
}

static const hd_term_t *operate(maker_t *m, hd_expr_kind_t op,
                                hd_task_type_t type, const hd_term_t *a,
                                const hd_term_t *b) {
  const hd_term_t *operands[] = {a, b};
  hd_term_t *made =
      hd_term_make(m->g->arena, HD_TERM_OPERATOR, type, operands, 2);
  made->u.op = op;
  made->pack = a->pack ? a->pack : b->pack;
  return made;
}

static const hd_term_t *sum(maker_t *m, bool packs, unsigned depth) {
  static const hd_expr_kind_t ops[] = {HD_EXPR_ADD, HD_EXPR_SUB, HD_EXPR_MUL,
                                       HD_EXPR_DIV, HD_EXPR_MOD};
  if (!depth || below(m, 3) == 0)
    return leaf(m, packs);
  const hd_term_t *a = sum(m, packs, depth - 1), *b = sum(m, packs, depth - 1);
  return operate(m, ops[below(m, 5)], i64, a, b);
}

static const hd_term_t *condition(maker_t *m, unsigned depth) {
  static const hd_expr_kind_t compares[] = {HD_EXPR_EQ, HD_EXPR_NE, HD_EXPR_LT,
                                            HD_EXPR_LE};
  hd_task_type_t is_bool = {HD_BOOL, NULL}, type = {HD_VOID, m->type};
  if (depth && below(m, 2)) {
    const hd_term_t *a = condition(m, depth - 1);
    const hd_term_t *b = condition(m, depth - 1);
    return operate(m, below(m, 2) ? HD_EXPR_AND : HD_EXPR_OR, is_bool, a, b);
  }
  hd_expr_kind_t op = compares[below(m, 4)];
  if (below(m, 2)) {
    const hd_term_t *a = sum(m, true, 2), *b = sum(m, true, 2);
    return operate(m, op, is_bool, a, b);
  }
  hd_term_t *element = term(m, HD_TERM_LOAD, type);
  hd_term_t *value = term(m, HD_TERM_CONST, type);
  element->u.value = m->c->type;
  value->u.f = (double)below(m, 64) / 8 - 2;
  return operate(m, op, is_bool, element, value);
}

// --- Names ---

static hd_task_value_t *declare(maker_t *m, const char *name,
                                hd_value_kind_t kind, hd_task_type_t type,
                                const hd_term_t *const *shape, uint32_t rank) {
  hd_task_value_t *value = NEW(m, hd_task_value_t);
  *value = (hd_task_value_t){
      .name = name, .kind = kind, .type = type, .rank = rank, .shape = shape};
  if (kind == HD_VALUE_OUTPUT)
    hd_vec_push(m->g->arena, &m->signature->outputs,
                (const hd_task_value_t *)value);
  else
    hd_vec_push(m->g->arena, &m->signature->inputs,
                (const hd_task_value_t *)value);
  return value;
}

static hd_rule_value_t *value_of(maker_t *m, const char *name) {
  hd_rule_value_t *value = NEW(m, hd_rule_value_t);
  value->name = name;
  value->index = (uint32_t)m->rule->values.size;
  hd_vec_push(m->g->arena, &m->rule->values, value);
  return value;
}

static hd_pack_t *new_pack(maker_t *m, const char *name,
                           const hd_pack_t *like) {
  hd_pack_t *pack = NEW(m, hd_pack_t);
  *pack = (hd_pack_t){.name = name, .like = like};
  hd_vec_push(m->g->arena, &m->signature->packs, (const hd_pack_t *)pack);
  return pack;
}

static const hd_term_t *const *axes(maker_t *m, const hd_pack_t *pack,
                                    bool size) {
  const hd_term_t **shape = HD_ARENA_ARRAY(m->g->arena, const hd_term_t *, 2);
  hd_term_t *first = term(m, HD_TERM_SIZE, i64);
  first->u.size = m->size;
  shape[0] = size ? first : pack_of(m, pack);
  shape[1] = pack_of(m, pack);
  return shape;
}

// (x: T[n, ..s], y: T[..k like s], c: const T[], start: i64 over s, factor:
// f32)
static void make_signature(maker_t *m) {
  hd_task_type_t type = {HD_VOID, m->type}, f32 = {HD_F32, NULL};
  m->pack = new_pack(m, "s", NULL);
  m->x = value_of(m, "x");
  m->x->operand = true;
  m->x->type = declare(m, "x", HD_VALUE_INPUT, type, axes(m, m->pack, true), 2);
  m->like = new_pack(m, "k", m->pack);
  hd_rule_value_t *y = value_of(m, "y");
  y->operand = true;
  y->constant = below(m, 2);
  y->type = declare(m, "y", HD_VALUE_INPUT, type, axes(m, m->like, false), 1);
  m->c = value_of(m, "c");
  m->c->operand = m->c->constant = true;
  m->c->type = declare(m, "c", HD_VALUE_INPUT, type, NULL, 0);
  m->start = declare(m, "start", HD_VALUE_ATTRIBUTE, i64, NULL, 0);
  m->start->pack = m->pack;
  m->factor = declare(m, "factor", HD_VALUE_ATTRIBUTE, f32, NULL, 0);
}

// --- Nodes ---

static hd_rule_attribute_t *attribute(maker_t *m, hd_rule_node_t *node,
                                      const char *name) {
  enum { MOST = 4 };
  hd_rule_attribute_t *made = NEW(m, hd_rule_attribute_t);
  const hd_rule_attribute_t **list =
      (const hd_rule_attribute_t **)(uintptr_t)node->attributes;
  if (!list)
    list = HD_ARENA_ARRAY(m->g->arena, const hd_rule_attribute_t *, MOST);
  made->name = name;
  list[node->num_attributes++] = made;
  node->attributes = list;
  return made;
}

static hd_rule_value_t *add_node(maker_t *m, hd_rule_nodes_t *nodes,
                                 const char *op, const hd_rule_value_t *a,
                                 const hd_rule_value_t *b,
                                 hd_rule_value_t *result,
                                 hd_rule_node_t **made) {
  hd_rule_node_t *node = NEW(m, hd_rule_node_t);
  const hd_rule_value_t **inputs =
      HD_ARENA_ARRAY(m->g->arena, const hd_rule_value_t *, 2);
  const hd_rule_value_t **outputs =
      HD_ARENA_ARRAY(m->g->arena, const hd_rule_value_t *, 1);
  inputs[0] = a;
  inputs[1] = b;
  outputs[0] = result;
  *node = (hd_rule_node_t){.op = op,
                           .num_inputs = b ? 2 : 1,
                           .inputs = inputs,
                           .num_outputs = 1,
                           .outputs = outputs};
  if (op && strcmp(op, "reshape") != 0 && strcmp(op, "magnitudes") != 0)
    node->task = hd_library_task(m->g->module->context, op);
  hd_vec_push(m->g->arena, nodes, (const hd_rule_node_t *)node);
  if (result && nodes == &m->rule->right)
    result->right = node;
  else if (result)
    result->left = node;
  if (made)
    *made = node;
  return result;
}

static void term_attribute(maker_t *m, hd_rule_node_t *node, const char *name,
                           const hd_term_t *value) {
  hd_rule_attribute_t *a = attribute(m, node, name);
  a->kind = HD_RULE_TERM;
  a->term = value;
}

static const hd_term_t *attribute_term(maker_t *m, const hd_task_value_t *of) {
  hd_term_t *made = term(m, HD_TERM_ATTRIBUTE, of->type);
  made->u.value = of;
  made->pack = of->pack;
  return made;
}

static void list_attribute(maker_t *m, hd_rule_node_t *node, const char *name) {
  hd_rule_attribute_t *a = attribute(m, node, name);
  const hd_term_t **terms = HD_ARENA_ARRAY(m->g->arena, const hd_term_t *, 4);
  a->kind = HD_RULE_LIST;
  a->terms = terms;
  a->count = below(m, 4);
  for (uint32_t i = 0; i < a->count; i++)
    terms[i] = sum(m, true, 2);
}

// Everything that attributes may be, on either side.
static void slice_attributes(maker_t *m, hd_rule_node_t *node) {
  term_attribute(m, node, "start", attribute_term(m, m->start));
  list_attribute(m, node, "stride");
  term_attribute(m, node, "size", sum(m, true, 2));
}

static void make_left(maker_t *m) {
  hd_task_type_t type = {HD_VOID, m->type};
  hd_rule_nodes_t *left = &m->rule->left;
  hd_rule_node_t *node;
  hd_rule_value_t *a = add_node(m, left, "add", m->x, m->rule->values.data[1],
                                value_of(m, "a"), NULL);
  a = add_node(m, left, "elu", a, NULL, value_of(m, "b"), &node);
  term_attribute(m, node, "alpha", attribute_term(m, m->factor));
  a = add_node(m, left, "slice", a, NULL, value_of(m, "d"), &node);
  slice_attributes(m, node);
  m->shape = new_pack(m, "t", NULL);
  hd_rule_value_t *shaped = value_of(m, "e");
  shaped->type =
      declare(m, "e", HD_VALUE_INPUT, type, axes(m, m->shape, below(m, 2)), 1);
  if (shaped->type->shape[0]->kind == HD_TERM_SIZE)
    ((hd_task_value_t *)(uintptr_t)shaped->type)->rank = 2;
  a = add_node(m, left, "reshape", a, NULL, shaped, NULL);
  a = add_node(m, left, "softmax", a, NULL, value_of(m, "f"), &node);
  hd_rule_attribute_t *rank = attribute(m, node, "s");
  rank->kind = HD_RULE_RANK;
  rank->pack = m->shape;
  add_node(m, left, "mul", a, m->c, value_of(m, "z"), NULL);
}

// m: f64[1] = magnitudes(c)
// require normal_product(m, c) { N = T }
static void make_required(maker_t *m) {
  hd_task_type_t type = {HD_VOID, m->type}, f64 = {HD_F64, NULL};
  hd_rule_nodes_t *right = &m->rule->right;
  const hd_term_t **shape = HD_ARENA_ARRAY(m->g->arena, const hd_term_t *, 1);
  hd_rule_node_t *node;
  hd_rule_value_t *most = value_of(m, "most");
  shape[0] = number(m);
  most->type = declare(m, "most", HD_VALUE_OUTPUT, f64, shape, 1);
  add_node(m, right, "magnitudes", m->c, NULL, most, NULL);
  add_node(m, right, "normal_product", most, m->c, NULL, &node);
  node->required = true;
  node->num_outputs = 0;
  hd_rule_attribute_t *in = attribute(m, node, "N");
  in->kind = HD_RULE_TYPE;
  in->type = type;
  in->narrow = below(m, 2);
}

static void make_right(maker_t *m) {
  hd_task_type_t type = {HD_VOID, m->type};
  hd_rule_nodes_t *right = &m->rule->right;
  hd_rule_node_t *node;
  const hd_rule_value_t *a = m->x;
  if (below(m, 2))
    make_required(m);
  if (below(m, 2)) {
    const hd_term_t **shape = HD_ARENA_ARRAY(m->g->arena, const hd_term_t *, 2);
    shape[0] = sum(m, true, 2);
    shape[1] = sum(m, true, 2);
    hd_rule_value_t *shaped = value_of(m, "g");
    shaped->type = declare(m, "g", HD_VALUE_OUTPUT, type, shape, 2);
    a = add_node(m, right, "reshape", a, NULL, shaped, NULL);
  }
  if (below(m, 2)) {
    a = add_node(m, right, "slice", a, NULL, value_of(m, "h"), &node);
    slice_attributes(m, node);
  }
  if (below(m, 2)) {
    a = add_node(m, right, "cast", a, NULL, value_of(m, "i"), &node);
    hd_rule_attribute_t *to = attribute(m, node, "U");
    to->kind = HD_RULE_TYPE;
    to->type = below(m, 2) ? type : (hd_task_type_t){HD_F16, NULL};
  }
  hd_rule_value_t *z = m->rule->values.data[0];
  for (size_t i = 0; i < m->rule->values.size; i++)
    if (strcmp(m->rule->values.data[i]->name, "z") == 0)
      z = m->rule->values.data[i];
  bool is_name = a == m->x && below(m, 2);
  add_node(m, right, is_name ? NULL : "neg", a, NULL, z, NULL);
}

void hd_generate_rewrite(hd_generator_t *g, const char *name) {
  maker_t m = {.g = g};
  m.rule = NEW(&m, hd_rewrite_t);
  m.signature = NEW(&m, hd_task_t);
  m.type = NEW(&m, hd_type_var_t);
  m.size = NEW(&m, hd_size_t);
  m.rule->name = m.signature->name = name;
  m.rule->signature = m.signature;
  *m.type = (hd_type_var_t){.name = "T", .restricted = true};
  m.type->scalars = hd_scalar_set("float");
  if (below(&m, 2))
    m.type->scalars = UINT32_C(1) << HD_F16 | UINT32_C(1) << HD_F32;
  hd_vec_push(g->arena, &m.signature->types, m.type);
  m.size->name = "n";
  hd_vec_push(g->arena, &m.signature->sizes, (const hd_size_t *)m.size);
  make_signature(&m);
  make_left(&m);
  for (unsigned i = below(&m, 3); i-- > 0;)
    hd_vec_push(g->arena, &m.signature->conditions, condition(&m, 2));
  m.rule->freedoms = below(&m, 1u << HD_FREEDOM_COUNT);
  make_right(&m);
  g->counts->rewrites++;
  hd_item_t item = {.kind = HD_ITEM_REWRITE, .u.rewrite = m.rule};
  hd_vec_push(g->arena, &g->module->items, item);
}
