// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What computing an element again costs, and what storing it does. Both are
// estimated as time on a large GPU, which is all the precision that a yes or no
// needs: 12 operations in the time of a byte of memory, and a launch of a
// microsecond saved.
#include "Fusion/FormState.h"

enum { FUNCTION_COST = 16, TILE = 64 };

static const double OPS_PER_NS = 20000, BYTES_PER_NS = 4000, LAUNCH_NS = 1000;

static double term_cost(const hd_term_t *term) {
  double cost = term->kind == HD_TERM_FUNCTION ? FUNCTION_COST
                : term->kind == HD_TERM_CONST || term->kind == HD_TERM_INDEX
                    ? 0
                    : 1;
  for (unsigned i = 0; i < term->num_operands; i++)
    cost += term_cost(term->operands[i]);
  return cost;
}

double hd_fusion_cost(const hd_pointwise_t *p) {
  return p->definition ? term_cost(p->definition->term) : 1;
}

bool hd_former_is_cheap(const hd_former_t *f, uint32_t node) {
  return f->nodes[node].cost <= 8;
}

static double count_of(const hd_value_t *value) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  double count = 1;
  for (unsigned i = 0; i < type.rank; i++)
    count *= (double)type.shape[i];
  return count;
}

// Elements of a tensor that a term reads, for every point of its domain.
typedef struct reads {
  const hd_task_value_t *value;
  double scope, times;
} reads_t;

static void count_reads(reads_t *r, const hd_term_t *term) {
  double outer = r->scope;
  if (hd_flat_is_reduction(term))
    for (uint32_t i = 0; i < term->u.reduction->num_indices; i++)
      r->scope *= (double)hd_flat_range(term->u.reduction->indices[i]);
  for (unsigned i = 0; i < term->num_operands; i++)
    count_reads(r, term->operands[i]);
  r->scope = outer;
  if ((term->kind == HD_TERM_LOAD || term->kind == HD_TERM_LOADELSE) &&
      term->u.value == r->value)
    r->times += r->scope;
}

// How often a node reads elements of a value. A product reads each once for a
// tile of the result.
static double reads_of(hd_former_t *f, uint32_t reader,
                       const hd_value_t *value) {
  const hd_node_t *node = f->nodes[reader].node;
  if (!node->task)
    return count_of(value);
  const hd_prepared_t *prepared = hd_fusion_prepare(f->fusion, node);
  double times = 0, count = count_of(value);
  for (uint32_t i = 0; prepared && i < node->num_inputs; i++) {
    if (node->inputs[i] != value)
      continue;
    reads_t r = {.value = prepared->flat->inputs.data[i]};
    for (size_t k = 0; k < prepared->flat->definitions.size; k++) {
      const hd_definition_t *d = prepared->flat->definitions.data[k];
      r.scope = (double)hd_flat_points(d->indices, d->num_indices);
      count_reads(&r, d->term);
      for (uint32_t n = 0; d->at && n < d->targets[0]->rank; n++)
        count_reads(&r, d->at[n]);
    }
    times += r.times;
  }
  if (f->nodes[reader].why && times > 4 * count)
    times = times / TILE > count ? times / TILE : count;
  return times;
}

// How often the members of a group compute elements of a value.
static double times_in(hd_former_t *f, uint32_t group, const hd_value_t *value,
                       unsigned depth) {
  const hd_forming_t *g = &f->groups.data[group];
  double times = 0;
  for (size_t i = 0; i < g->members.size; i++) {
    uint32_t member = g->members.data[i];
    const hd_node_t *node = f->nodes[member].node;
    bool reads = false;
    for (uint32_t k = 0; k < node->num_inputs; k++)
      reads |= node->inputs[k] == value;
    if (!reads)
      continue;
    double each = reads_of(f, member, value);
    if (hd_ptr_map_get(&g->group->inlined, node->outputs[0]) && depth < 16) {
      double own = count_of(node->outputs[0]);
      double more = times_in(f, group, node->outputs[0], depth + 1);
      each *= own > 0 && more > own ? more / own : 1;
    }
    times += each;
  }
  return times;
}

const char *hd_former_dear(hd_former_t *f, uint32_t node,
                           const uint32_t *groups, size_t num_groups) {
  const hd_value_t *value = f->nodes[node].node->outputs[0];
  double count = count_of(value), times = 0;
  for (size_t i = 0; i < num_groups; i++)
    times += times_in(f, groups[i], value, 0);
  double bytes = (double)hd_scalar_bits(value->type) / 8;
  double again = times * f->nodes[node].cost / OPS_PER_NS;
  double kept =
      count * bytes * (double)(1 + num_groups) / BYTES_PER_NS + LAUNCH_NS;
  if (again <= kept)
    return NULL;
  return hd_arena_printf(f->arena,
                         "computing it %.1f times for each of %.0f elements "
                         "would take %.0f ns, storing it %.0f ns",
                         times / count, count, again, kept);
}

// --- Terms ---

enum { MOST_HEAVY = 80, MOST_LIGHT = 150 };

static bool count_all(void *argument, const hd_term_t *term) {
  (void)term;
  ++*(unsigned *)argument;
  return true;
}

typedef struct loads {
  const hd_task_value_t *value;
  unsigned count;
} loads_t;

static bool count_loads(void *argument, const hd_term_t *term) {
  loads_t *l = argument;
  l->count += (term->kind == HD_TERM_LOAD || term->kind == HD_TERM_LOADELSE) &&
              term->u.value == l->value;
  return true;
}

static unsigned terms_of(hd_former_t *f, uint32_t group, const hd_node_t *node);

// Of what stands for a value.
static unsigned terms_for(hd_former_t *f, uint32_t group,
                          const hd_value_t *value) {
  const hd_node_t *giver =
      hd_ptr_map_get(&f->groups.data[group].group->inlined, value);
  return giver ? terms_of(f, group, giver) : 1;
}

static unsigned terms_of(hd_former_t *f, uint32_t group,
                         const hd_node_t *node) {
  hd_pointwise_t p;
  unsigned count = 0;
  if (hd_fusion_pointwise(f->fusion, node, &p))
    return 1;
  if (!p.definition)
    return 1 + terms_for(f, group, node->inputs[0]);
  hd_flat_walk(p.definition->term, count_all, &count);
  for (uint32_t i = 0; i < node->num_inputs && count <= MOST_LIGHT; i++) {
    loads_t l = {.value = p.flat->inputs.data[i]};
    hd_flat_walk(p.definition->term, count_loads, &l);
    if (l.count)
      count += l.count * terms_for(f, group, node->inputs[i]);
  }
  return count;
}

unsigned hd_former_terms(hd_former_t *f, uint32_t group) {
  const hd_forming_t *g = &f->groups.data[group];
  const hd_node_t *anchor = f->nodes[g->anchor].node;
  unsigned most = 0;
  for (uint32_t i = 0; i < anchor->num_inputs; i++) {
    unsigned count = terms_for(f, group, anchor->inputs[i]);
    most = count > most ? count : most;
  }
  for (size_t i = 0; i < g->members.size; i++) {
    const hd_node_t *node = f->nodes[g->members.data[i]].node;
    if (node == anchor || hd_ptr_map_get(&g->group->inlined, node->outputs[0]))
      continue;
    unsigned count = terms_of(f, group, node);
    most = count > most ? count : most;
  }
  return most;
}

unsigned hd_former_most_terms(const hd_former_t *f, uint32_t group) {
  return f->groups.data[group].is_heavy ? MOST_HEAVY : MOST_LIGHT;
}

bool hd_former_reads_live(hd_former_t *f, uint32_t node, uint32_t group) {
  const hd_node_t *n = f->nodes[node].node;
  for (uint32_t k = 0; k < n->num_inputs; k++)
    if (n->inputs[k] &&
        hd_ptr_map_get(&f->groups.data[group].group->live, n->inputs[k]))
      return true;
  return false;
}
