// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What computing an element again costs, and what storing it does. Both are
// estimated as time on the GPU that is meant, or on a large one, as if it did
// nothing else: operations, bytes of device memory, a launch that is saved.
// That is all the precision that a yes or no needs.
#include "Fusion/Form/FormState.h"
#include "Schedule/Template/Fits.h"
#include "Schedule/Template/Machine.h"
#include "Schedule/Terms/Prepare.h"

enum { TILE = 64, WARP = 32 };

static hd_machine_t machine_of(const hd_former_t *f) {
  const hd_schedule_options_t *options = f->module->context->schedules;
  hd_machine_t machine;
  if (options && options->machine.count)
    return options->machine;
  hd_machine_find_largest(&machine);
  return machine;
}

static double ops_per_ns(const hd_machine_t *m) {
  return hd_fits.fusion_reached * m->count * m->schedulers * WARP * m->mhz *
         1e-3;
}

static double term_cost(const hd_term_t *term) {
  double cost = term->kind == HD_TERM_FUNCTION
                    ? hd_task_function_info(term->u.function)->instructions
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

// How often a node reads elements of a value. A product reads each once for a
// tile of the result.
static double reads_of(hd_former_t *f, const hd_node_t *node,
                       const hd_value_t *value) {
  if (!node->task)
    return hd_scheduled_count(value);
  const hd_flattened_t *flattened = hd_fusion_flatten(f->fusion, node);
  double times = 0, count = hd_scheduled_count(value);
  for (uint32_t i = 0; flattened && i < node->num_inputs; i++) {
    if (node->inputs[i] != value)
      continue;
    hd_flat_reads_t r = {.value = flattened->flat->inputs.data[i]};
    for (size_t k = 0; k < flattened->flat->definitions.size; k++)
      hd_flat_count_reads(flattened->flat->definitions.data[k], &r);
    times += r.times;
  }
  hd_pointwise_t p;
  if (times > 4 * count && hd_fusion_pointwise(f->fusion, node, &p))
    times = times / TILE > count ? times / TILE : count;
  return times;
}

// How often the members of a group compute elements of a value, whose readers
// are all in groups by now: those that are prologues compute theirs as often as
// was found when they joined.
static double times_in(hd_former_t *f, uint32_t group,
                       const hd_value_t *value) {
  hd_forming_t *g = &f->groups.data[group];
  const hd_node_t *reader;
  double times = 0;
  for (size_t i = 0; (reader = hd_group_reader(g->group, value, i)); i++) {
    const double *own = hd_ptr_map_get(&g->times, reader->outputs[0]);
    double count = own ? hd_scheduled_count(reader->outputs[0]) : 0;
    double each = reads_of(f, reader, value);
    times += own && *own > count && count > 0 ? each * *own / count : each;
  }
  return times;
}

// What an element costs. Rows that are moved as they are go by pieces of 16
// bytes, and their places are found once for each.
static double cost_of(hd_former_t *f, uint32_t node) {
  const hd_node_t *n = f->nodes[node].node;
  hd_pointwise_t p;
  if (!n->task || hd_fusion_pointwise(f->fusion, n, &p) || !p.definition ||
      p.definition->term->kind != HD_TERM_LOAD)
    return f->nodes[node].cost;
  const hd_definition_t *d = p.definition;
  const hd_term_t *load = d->term;
  unsigned last = load->num_operands - 1;
  if (load->num_operands == 0 || d->num_indices == 0 ||
      load->operands[last]->kind != HD_TERM_INDEX ||
      load->operands[last]->u.index != d->indices[d->num_indices - 1])
    return f->nodes[node].cost;
  for (unsigned i = 0; i < last; i++)
    if (hd_flat_uses(load->operands[i], d->indices[d->num_indices - 1]))
      return f->nodes[node].cost;
  double piece = 128.0 / hd_scalar_bits(n->outputs[0]->type);
  double row = (double)hd_flat_range(d->indices[d->num_indices - 1]);
  return f->nodes[node].cost / (row < piece ? row : piece);
}

const char *hd_former_dear(hd_former_t *f, uint32_t node,
                           const uint32_t *groups, size_t num_groups) {
  const hd_value_t *value = f->nodes[node].node->outputs[0];
  double count = hd_scheduled_count(value), times = 0;
  for (size_t i = 0; i < num_groups; i++) {
    double *in = HD_ARENA_NEW(f->arena, double);
    *in = times_in(f, groups[i], value);
    hd_ptr_map_set(f->arena, &f->groups.data[groups[i]].times, value, in);
    times += *in;
  }
  double bytes = (double)hd_scalar_bits(value->type) / 8;
  hd_machine_t machine = machine_of(f);
  double again = times * cost_of(f, node) / ops_per_ns(&machine);
  double kept = count * bytes * (double)(1 + num_groups) / machine.gbs +
                machine.launch * 1e3;
  if (again <= kept)
    return NULL;
  return hd_arena_printf(f->arena,
                         "computing it %.1f times for each of %.0f elements "
                         "would take %.0f ns, storing it %.0f ns",
                         times / count, count, again, kept);
}

unsigned hd_former_most_terms(const hd_former_t *f, uint32_t group) {
  enum { MOST_HEAVY = 120, MOST_LIGHT = 2000 };
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
