// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draws what the names of a rewrite's signature stand for. Sizes come from a
// few numbers that are drawn first, so that often some are equal; what a
// condition says by an equation is set, the rest is left to chance.
#include "Graph/Bind/BindingState.h"
#include "Graph/Rewrite/RewriteInstance.h"

#include <math.h>

uint64_t hd_random_next(hd_random_t *random) {
  // SplitMix64 (Steele, Lea, Flood 2014).
  uint64_t z = random->state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

int64_t hd_random_pick(hd_random_t *random, int64_t below) {
  return (int64_t)(hd_random_next(random) % (uint64_t)below);
}

static int64_t pick(hd_instance_t *n, int64_t below) {
  return hd_random_pick(n->random, below);
}

static bool is_float(hd_scalar_t type) {
  return hd_scalar_class(type) == HD_CLASS_FLOAT;
}

// --- Types ---

static hd_scalar_t draw_type(hd_instance_t *n, uint32_t scalars) {
  hd_scalar_t list[HD_SCALAR_COUNT];
  int64_t count = 0;
  if (n->draw.kind != HD_DRAW_ORDINARY) {
    for (int i = HD_SCALAR_COUNT; i-- > 0;) // f64 first, bool last.
      if (scalars >> i & 1)
        list[count++] = (hd_scalar_t)i;
    return count ? list[n->draw.type % count] : HD_F64;
  }
  if (scalars >> HD_F64 & 1 && pick(n, 3))
    return HD_F64;
  for (int i = 0; i < HD_SCALAR_COUNT; i++)
    // Other floats only where f64 is none of them: they round.
    if (scalars >> i & 1 &&
        (!is_float((hd_scalar_t)i) || !(scalars >> HD_F64 & 1)))
      list[count++] = (hd_scalar_t)i;
  return count ? list[pick(n, count)] : HD_F64;
}

static void draw_types(hd_instance_t *n, const hd_task_t *s) {
  for (int pass = 0; pass < 3; pass++)
    for (size_t i = 0; i < s->types.size; i++) {
      const hd_type_var_t *var = s->types.data[i];
      bool is_free = hd_task_type_is_free((hd_task_type_t){HD_VOID, var});
      const hd_type_var_t *choice =
          pass == 2 && var->either[0] ? var->either[pick(n, 2)] : NULL;
      if (!pass && is_free)
        n->types[i] = draw_type(n, var->scalars);
      for (size_t of = 0; pass && of < s->types.size; of++)
        if (pass == 1 && var->accumulates == s->types.data[of])
          n->types[i] = hd_scalar_accumulator(n->types[of]);
        else if (choice == s->types.data[of])
          n->types[i] = n->types[of];
    }
}

// --- Sizes ---

static int64_t draw_size(hd_instance_t *n) {
  int64_t at = pick(n, 4);
  return at < 3 ? n->palette[at] : 1;
}

// Whether a name is bound by an operand, or by what a node on the left gives.
static bool is_of_operands(const hd_instance_t *n, const hd_size_t *size,
                           const hd_pack_t *pack) {
  const hd_rewrite_t *r = n->rule;
  for (size_t i = 0; i < r->values.size; i++) {
    const hd_rule_value_t *value = r->values.data[i];
    for (uint32_t a = 0; value->operand && a < value->type->rank; a++) {
      const hd_term_t *axis = value->type->shape[a];
      if ((size && axis->kind == HD_TERM_SIZE && axis->u.size == size) ||
          (pack && axis->kind == HD_TERM_PACK && axis->u.pack == pack))
        return true;
    }
  }
  return false;
}

// Whether an order of axes is an attribute of a node: only from three on does
// it matter which of two comes first.
static bool has_order(const hd_rewrite_t *rule) {
  for (size_t i = 0; i < rule->left.size; i++) {
    const hd_task_t *task = rule->left.data[i]->task;
    for (size_t k = 0; task && k < task->inputs.size; k++)
      if (task->inputs.data[k]->by && task->inputs.data[k]->by->pack)
        return true;
  }
  return false;
}

static void draw_packs(hd_instance_t *n, const hd_task_t *s) {
  int64_t most = has_order(n->rule) ? 8 : 5; // 3 axes; 2.
  for (size_t i = 0; i < s->packs.size; i++) {
    const hd_pack_t *pack = s->packs.data[i];
    if (pack->name && !pack->like)
      n->packs[i].rank = (unsigned)(pick(n, most) + 2) / 3;
  }
  for (size_t i = 0; i < s->packs.size; i++) {
    const hd_pack_t *pack = s->packs.data[i];
    if (!pack->name)
      continue;
    if (pack->like)
      n->packs[i].rank = n->packs[hd_task_pack_at(s, pack->like)].rank;
    if (!is_of_operands(n, NULL, pack) && !pack->attribute)
      continue; // Drawn when the number of elements is known.
    int64_t *values = HD_ARENA_ARRAY(n->arena, int64_t, n->packs[i].rank + 1);
    for (unsigned a = 0; a < n->packs[i].rank; a++)
      values[a] = draw_size(n);
    n->packs[i].values = values;
  }
}

static void draw_sizes(hd_instance_t *n, const hd_task_t *s) {
  for (int i = 0; i < 3; i++)
    n->palette[i] = pick(n, 40) ? 1 + pick(n, 5) : 0;
  for (size_t i = 0; i < s->sizes.size; i++)
    n->sizes[i] = is_of_operands(n, s->sizes.data[i], NULL) ? draw_size(n)
                                                            : HD_UNBOUND_SIZE;
  draw_packs(n, s);
}

// --- Attributes ---

static int64_t draw_int(hd_instance_t *n, bool is_bool) {
  if (is_bool)
    return pick(n, 2);
  switch (pick(n, 4)) {
  case 0:
    return 1;
  case 1:
    return n->palette[pick(n, 3)];
  default:
    return pick(n, 4);
  }
}

// 0 .. count - 1 in some order.
static void draw_order(hd_instance_t *n, int64_t *ints, unsigned count) {
  for (unsigned a = 0; a < count; a++) {
    int64_t at = pick(n, a + 1);
    ints[a] = ints[at];
    ints[at] = a;
  }
}

static void draw_attribute(hd_instance_t *n, const hd_task_binding_t *b,
                           size_t i) {
  const hd_task_value_t *value = b->task->inputs.data[i];
  hd_scalar_t type = hd_binding_type(b, value->type);
  unsigned rank = value->pack ? hd_binding_rank(b, value->pack) : 1;
  int64_t *ints = HD_ARENA_ARRAY(n->arena, int64_t, rank + 1);
  double *floats = HD_ARENA_ARRAY(n->arena, double, rank + 1);
  for (unsigned a = 0; a < rank; a++) {
    ints[a] = draw_int(n, type == HD_BOOL);
    floats[a] = (double)(1 + pick(n, 63)) / 32;
    if (is_float(type))
      floats[a] = hd_float_round(type, floats[a]);
  }
  if (value->pack && has_order(n->rule) && pick(n, 4))
    draw_order(n, ints, rank);
  n->attributes[i] = (hd_bound_attribute_t){rank, is_float(type) ? NULL : ints,
                                            is_float(type) ? floats : NULL};
}

// --- Conditions ---

static void set_leaf(hd_instance_t *n, const hd_task_binding_t *b,
                     const hd_term_t *leaf, const hd_term_t *value) {
  const hd_task_t *s = b->task;
  unsigned rank = leaf->pack ? hd_binding_rank(b, leaf->pack) : 1;
  hd_number_t number = {0};
  for (unsigned a = 0; a < rank; a++) {
    if (!hd_binding_number(b, value, a, &number))
      return;
    if (leaf->kind == HD_TERM_SIZE) {
      n->sizes[hd_task_size_at(s, leaf->u.size)] = number.i;
    } else if (leaf->kind == HD_TERM_PACK) {
      const hd_extents_t *pack = &n->packs[hd_task_pack_at(s, leaf->u.pack)];
      if (pack->values)
        ((int64_t *)(uintptr_t)pack->values)[a] = number.i;
    } else if (leaf->kind == HD_TERM_ATTRIBUTE) {
      const hd_bound_attribute_t *of =
          &n->attributes[hd_task_input_at(s, leaf->u.value)];
      if (of->ints)
        ((int64_t *)(uintptr_t)of->ints)[a] = number.i;
      else
        ((double *)(uintptr_t)of->floats)[a] = number.f;
    }
  }
  if (leaf->kind != HD_TERM_LOAD)
    return;
  hd_scalar_t type = hd_binding_type(b, leaf->type);
  hd_host_tensor_t *known = hd_host_tensor_make(n->arena, type, NULL, 0);
  if (is_float(type))
    hd_host_tensor_set(known, 0, number.f);
  else
    hd_host_tensor_set_int(known, 0, number.i);
  n->known[hd_task_input_at(s, leaf->u.value)] = known;
}

static bool is_leaf(const hd_term_t *term) {
  return term->kind == HD_TERM_SIZE || term->kind == HD_TERM_PACK ||
         term->kind == HD_TERM_ATTRIBUTE || term->kind == HD_TERM_LOAD;
}

// Of what is joined by ||, one is made true.
static void satisfy(hd_instance_t *n, const hd_task_binding_t *b,
                    const hd_term_t *term) {
  if (term->kind != HD_TERM_OPERATOR)
    return;
  if (term->u.op == HD_EXPR_OR) {
    satisfy(n, b, term->operands[pick(n, 2)]);
  } else if (term->u.op == HD_EXPR_AND) {
    satisfy(n, b, term->operands[0]);
    satisfy(n, b, term->operands[1]);
  } else if (term->u.op == HD_EXPR_EQ && is_leaf(term->operands[0])) {
    set_leaf(n, b, term->operands[0], term->operands[1]);
  } else if (term->u.op == HD_EXPR_EQ && is_leaf(term->operands[1])) {
    set_leaf(n, b, term->operands[1], term->operands[0]);
  }
}

void hd_draw_names(hd_instance_t *n, hd_task_binding_t *b) {
  const hd_task_t *s = n->rule->signature;
  n->types = HD_ARENA_ARRAY(n->arena, hd_scalar_t, s->types.size + 1);
  n->sizes = HD_ARENA_ARRAY(n->arena, int64_t, s->sizes.size + 1);
  n->packs = HD_ARENA_ARRAY(n->arena, hd_extents_t, s->packs.size + 1);
  n->attributes =
      HD_ARENA_ARRAY(n->arena, hd_bound_attribute_t, s->inputs.size + 1);
  n->known =
      HD_ARENA_ARRAY(n->arena, const hd_host_tensor_t *, s->inputs.size + 1);
  *b = (hd_task_binding_t){.task = s,
                           .types = n->types,
                           .sizes = n->sizes,
                           .packs = n->packs,
                           .attributes = n->attributes,
                           .known = n->known};
  draw_types(n, s);
  draw_sizes(n, s);
  for (size_t i = 0; i < s->inputs.size; i++)
    if (s->inputs.data[i]->kind == HD_VALUE_ATTRIBUTE)
      draw_attribute(n, b, i);
  for (size_t i = 0; i < s->conditions.size; i++)
    satisfy(n, b, s->conditions.data[i]);
}

// --- Axes of what a reshape gives ---

static int64_t take_factor(hd_instance_t *n, int64_t *left, bool last) {
  int64_t size = 1;
  for (int64_t prime = 2; prime <= *left;) {
    if (*left % prime) {
      prime++;
    } else if (last || pick(n, 2)) {
      size *= prime;
      *left /= prime;
    } else {
      prime++;
    }
  }
  return size;
}

bool hd_draw_axes(hd_instance_t *n, const hd_task_binding_t *b,
                  const hd_task_value_t *value, int64_t count) {
  const hd_task_t *s = b->task;
  int64_t left = count;
  unsigned open = 0;
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_term_t *axis = value->shape[i];
    unsigned rank = axis->pack ? hd_binding_rank(b, axis->pack) : 1;
    bool is_open =
        (axis->kind == HD_TERM_SIZE &&
         n->sizes[hd_task_size_at(s, axis->u.size)] == HD_UNBOUND_SIZE) ||
        (axis->kind == HD_TERM_PACK &&
         !n->packs[hd_task_pack_at(s, axis->u.pack)].values);
    open += is_open ? rank : 0;
    for (unsigned a = 0; !is_open && a < rank; a++) {
      int64_t size;
      if (!hd_binding_extent(b, axis, a, &size) || size == 0 || left % size)
        return false;
      left /= size;
    }
  }
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_term_t *axis = value->shape[i];
    if (axis->kind == HD_TERM_SIZE) {
      int64_t *size = &n->sizes[hd_task_size_at(s, axis->u.size)];
      if (*size == HD_UNBOUND_SIZE)
        *size = take_factor(n, &left, --open == 0);
    } else if (axis->kind == HD_TERM_PACK) {
      hd_extents_t *pack = &n->packs[hd_task_pack_at(s, axis->u.pack)];
      int64_t *values = HD_ARENA_ARRAY(n->arena, int64_t, pack->rank + 1);
      for (unsigned a = 0; !pack->values && a < pack->rank; a++)
        values[a] = take_factor(n, &left, --open == 0);
      if (!pack->values)
        pack->values = values;
    }
  }
  return left == 1;
}

// --- Elements ---

// How far powers of two go: in f64, which is compared with nothing wider, not
// so far that a product of some of them could not be held.
enum { WIDE = 200 };

static double largest(const hd_instance_t *n, hd_scalar_t type) {
  return type == HD_F64 && n->rule->freedoms
             ? ldexp(1, WIDE)
             : hd_scalar_limit(HD_LIMIT_LARGEST, type).f;
}

static double smallest(const hd_instance_t *n, hd_scalar_t type) {
  return type == HD_F64 && n->rule->freedoms
             ? ldexp(1, -WIDE)
             : hd_scalar_limit(HD_LIMIT_SMALLEST, type).f;
}

// Below the smallest normal number.
static double least(const hd_instance_t *n, hd_scalar_t type) {
  return ldexp(smallest(n, type), 1 - (int)hd_scalar_digits(type));
}

static double edge(const hd_instance_t *n, hd_scalar_t type, int64_t which) {
  const double specials[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1, -1.5, 2};
  double most = largest(n, type), some = smallest(n, type),
         few = least(n, type);
  const double extremes[] = {most, -most, some, -some, few, -few,
                             0,    -0.0,  1,    -1,    2,   0.5};
  return n->draw.kind == HD_DRAW_SPECIAL ? specials[which % 8]
                                         : extremes[which % 12];
}

static double draw_power(hd_instance_t *n, hd_scalar_t type, int64_t at) {
  int low = ilogb(least(n, type)), high = ilogb(largest(n, type));
  double digits = 1 + (double)pick(n, 1 << 20) / (1 << 20);
  return ldexp(digits, low + (int)(at % (high - low + 1)));
}

static double draw_ordinary(hd_instance_t *n, const hd_rule_value_t *value,
                            bool one) {
  if (value->constant && one) // Every type holds it, as attributes ask.
    return (double)(2 * pick(n, 200) + 1) / (n->positive ? 128 : -128);
  double x = (double)pick(n, 1 << 20) / (1 << 19) - 1; // -1 .. 1
  return n->positive ? 0.5 + fabs(x) : 2 * x;
}

static double draw_float(hd_instance_t *n, const hd_rule_value_t *value,
                         const hd_host_tensor_t *tensor, int64_t i,
                         int64_t power) {
  switch (n->draw.kind) {
  case HD_DRAW_ORDINARY:
    break;
  case HD_DRAW_SPECIAL:
  case HD_DRAW_EXTREME:
    if (value->index == 0 && (!value->constant || n->has_constant_edges))
      return edge(n, tensor->type, n->draw.first + i);
    if ((!value->constant || n->has_constant_edges) && pick(n, 3))
      return edge(n, tensor->type, pick(n, 24));
    break;
  case HD_DRAW_RANGE:
    return draw_power(n, tensor->type,
                      n->spread == value ? pick(n, 1 << 20) : power);
  }
  return draw_ordinary(n, value, tensor->count == 1);
}

// Indices are small, others need not be.
static int64_t draw_integer(hd_instance_t *n, hd_scalar_t type, int64_t range,
                            int64_t i) {
  bool is_number = hd_scalar_class(type) != HD_CLASS_BOOL;
  int64_t most = is_number ? hd_scalar_limit(HD_LIMIT_LARGEST, type).i : 1;
  const int64_t edges[] = {0, 1, -1, most, (int64_t)((uint64_t)most + 1)};
  if (n->draw.kind != HD_DRAW_ORDINARY && range >= 2)
    return edges[(n->draw.first + i) % 5];
  return range < 2    ? pick(n, 3)
         : range == 2 ? pick(n, 16) - 8
                      : (int64_t)hd_random_next(n->random);
}

void hd_draw_elements(hd_instance_t *n, const hd_rule_value_t *value,
                      hd_host_tensor_t *tensor) {
  int64_t range = pick(n, 4);
  int64_t power = pick(n, 1 << 20);
  for (int64_t i = 0; i < tensor->count; i++)
    if (is_float(tensor->type)) {
      double x = draw_float(n, value, tensor, i, power);
      hd_host_tensor_set(tensor, i, hd_float_round(tensor->type, x));
    } else {
      int64_t x = draw_integer(n, tensor->type, range, i);
      hd_host_tensor_set_int(tensor, i, hd_int_wrap(tensor->type, x));
    }
}
