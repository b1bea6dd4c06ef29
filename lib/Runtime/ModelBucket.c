// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which executable of bounds serves some sizes, by the policy that the model is
// given. The graph is expanded for the sizes and held against the bucket's
// (Fusion/Bucket/Bucket.h), once for each set of them; what that gives is kept
// with the executable.
#include "Fusion/Bucket/BucketSizes.h"
#include "Graph/Prepare.h"
#include "Runtime/Artifact.h"
#include "Runtime/ModelState.h"

#include <string.h>

bool hd_types_equal(const hd_tensor_type_t *a, const hd_tensor_type_t *b,
                    size_t count) {
  for (size_t i = 0; i < count; i++)
    if (a[i].type != b[i].type || a[i].rank != b[i].rank ||
        memcmp(a[i].shape, b[i].shape, sizeof(int64_t) * a[i].rank) != 0)
      return false;
  return true;
}

bool hd_turn_is_for(const hd_model_t *m, const hd_turn_t *turn,
                    const hd_tensor_type_t *inputs) {
  return turn->bucket
             ? hd_turn_fit(m, turn, inputs) != NULL
             : hd_types_equal(turn->inputs, inputs, m->graph->inputs.size);
}

const hd_value_t *hd_turn_input(const hd_turn_t *turn, size_t i) {
  return turn->bucket ? turn->bucket->graph->inputs.data[i]
                      : hd_expander_input(turn->expander, i);
}

// Types and ranks are the graph's: there is no bucket where it says none.
static bool has_shapes(const hd_model_t *m, const int64_t *shapes,
                       const hd_tensor_type_t *inputs) {
  for (size_t i = 0; i < m->graph->inputs.size; i++) {
    const hd_value_t *value = m->graph->inputs.data[i];
    if (inputs[i].type != value->type || (int)inputs[i].rank != value->rank ||
        memcmp(shapes, inputs[i].shape, sizeof(*shapes) * inputs[i].rank) != 0)
      return false;
    shapes += inputs[i].rank;
  }
  return true;
}

static const hd_fit_t *find_fit(const hd_model_t *m, const hd_fit_t *fit,
                                const hd_tensor_type_t *inputs) {
  while (fit && !has_shapes(m, fit->shapes, inputs))
    fit = fit->next;
  return fit;
}

hd_tensor_type_t hd_fit_output(const hd_model_t *m, const hd_turn_t *turn,
                               const hd_fit_t *fit, size_t i) {
  const int64_t *shape = fit->shapes;
  hd_tensor_type_t type = turn->outputs[i];
  for (size_t k = 0; k < m->graph->inputs.size; k++)
    shape += m->graph->inputs.data[k]->rank;
  for (size_t k = 0; k < i; k++)
    shape += turn->outputs[k].rank;
  memcpy(type.shape, shape, sizeof(*shape) * type.rank);
  return type;
}

const hd_fit_t *hd_turn_fit(const hd_model_t *m, const hd_turn_t *turn,
                            const hd_tensor_type_t *inputs) {
  return find_fit(m, turn->fits, inputs);
}

bool hd_turn_has_bounds(const hd_model_t *m, const hd_turn_t *turn,
                        const hd_tensor_type_t *bounds) {
  return turn->bucket &&
         hd_types_equal(turn->inputs, bounds, m->graph->inputs.size);
}

// --- Bounds ---

static int64_t next_power(int64_t extent) {
  int64_t power = 1;
  while (power < extent && power <= INT64_MAX / 2)
    power *= 2;
  return power < extent ? extent : power;
}

// The bound of a size; 0: it has none.
static int64_t bound_of(const hd_bucket_policy_t *policy, int64_t limit,
                        int64_t extent) {
  if (extent < HD_BUCKET_LEAST_EXTENT)
    return 0;
  int64_t least = extent < HD_BUCKET_LEAST ? HD_BUCKET_LEAST : extent;
  if (!policy->count) {
    int64_t power = next_power(least);
    return least <= limit && limit < power ? limit : power;
  }
  for (size_t i = 0; i < policy->count; i++)
    if (policy->bounds[i] >= least)
      return policy->bounds[i];
  return 0;
}

static int policy_of(const hd_model_t *m, const char *name) {
  for (size_t k = 0; k < m->options.num_buckets; k++)
    if (!strcmp(m->options.buckets[k].name, name))
      return (int)k;
  return -1;
}

static bool find_bounds(const hd_model_t *m, hd_bucket_sizes_t *sizes) {
  bool any = false;
  for (size_t i = 0; i < sizes->count; i++) {
    int policy = policy_of(m, sizes->names[i]);
    int64_t bound = policy < 0 ? 0
                               : bound_of(&m->options.buckets[policy],
                                          m->limits[policy], sizes->values[i]);
    sizes->fixed[i] = bound == 0;
    if (bound)
      sizes->values[i] = bound;
    any |= bound != 0;
  }
  return any;
}

static bool expands(hd_model_t *m, hd_arena_t *scratch,
                    const hd_bucket_sizes_t *sizes) {
  hd_diagnostics_t *diags = &hd_model_context(m)->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  hd_expander_t *expander;
  const char *missing;
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(scratch, hd_tensor_type_t, m->graph->inputs.size + 1);
  bool ok =
      hd_bucket_types(scratch, m->graph, sizes, types, &missing) &&
      hd_bucket_expand(m->module, scratch, m->graph, types, NULL, &expander);
  hd_diagnostics_rewind(diags, mark);
  return ok;
}

// Where a power of two is one that the model does not go with, as it has fewer
// places: the largest bound before it. extents: of the sizes at hand.
static bool find_limit(hd_model_t *m, hd_arena_t *scratch,
                       const hd_bucket_sizes_t *bounds,
                       const hd_bucket_sizes_t *extents) {
  if (expands(m, scratch, bounds))
    return false;
  for (size_t i = 0; i < bounds->count; i++) {
    int policy = policy_of(m, bounds->names[i]);
    hd_bucket_sizes_t sizes = *bounds;
    int64_t fits = extents->values[i], fails = bounds->values[i];
    sizes.values[i] = fits;
    if (bounds->fixed[i] || m->options.buckets[policy].count || fits == fails ||
        !expands(m, scratch, &sizes))
      continue;
    while (fails - fits > 1) {
      sizes.values[i] = fits + (fails - fits) / 2;
      *(expands(m, scratch, &sizes) ? &fits : &fails) = sizes.values[i];
    }
    m->limits[policy] = fits;
    return true;
  }
  return false;
}

// --- Buckets ---

// Elements below a byte are not the first ones of their bytes at another size.
static bool is_packed(const hd_graph_t *graph) {
  for (size_t i = 0; i < graph->inputs.size; i++)
    if (hd_value_is_packed(graph->inputs.data[i]))
      return true;
  for (size_t i = 0; i < graph->outputs.size; i++)
    if (hd_value_is_packed(graph->outputs.data[i]))
      return true;
  return false;
}

// Besides what depends on constants alone.
static bool runs_something(const hd_model_t *m, const hd_graph_t *graph) {
  const hd_graph_t *prepare, *rest;
  hd_graph_split(&m->module->arena, graph, &prepare, &rest);
  return rest->nodes.size > 0;
}

static void explain(hd_model_t *m, const hd_bucket_sizes_t *bounds,
                    const hd_bucket_refusal_t *refusal) {
  hd_diagnostics_t *diags = &hd_model_context(m)->diags;
  if (!m->options.explain)
    return;
  const char *names = "";
  for (size_t i = 0; i < bounds->count; i++)
    if (!bounds->fixed[i])
      names = hd_arena_printf(&m->module->arena, "%s%s%s <= %lld", names,
                              *names ? ", " : "", bounds->names[i],
                              (long long)bounds->values[i]);
  const hd_node_t *node = refusal->node;
  if (node)
    hd_remark(diags, node->loc, "bucket: none for %s: node '%s' (%s): %s",
              names, hd_node_label(node), node->op, refusal->why);
  else
    hd_remark(diags, m->graph->loc, "bucket: none for %s: %s", names,
              refusal->why ? refusal->why
                           : "the model does not go with the bounds");
}

static const hd_tensor_type_t *
copy_types(hd_arena_t *arena, const hd_tensor_type_t *types, size_t count) {
  hd_tensor_type_t *copy = HD_ARENA_ARRAY(arena, hd_tensor_type_t, count + 1);
  memcpy(copy, types, count * sizeof(*types));
  return copy;
}

// Of inputs, then of outputs.
static const int64_t *join_shapes(hd_arena_t *arena,
                                  const hd_tensor_type_t *inputs,
                                  size_t num_inputs,
                                  const hd_tensor_type_t *outputs,
                                  size_t num_outputs) {
  size_t count = 0;
  for (size_t i = 0; i < num_inputs + num_outputs; i++)
    count += (i < num_inputs ? &inputs[i] : &outputs[i - num_inputs])->rank;
  int64_t *shapes = HD_ARENA_ARRAY(arena, int64_t, count + 1), *at = shapes;
  for (size_t i = 0; i < num_inputs + num_outputs; i++) {
    const hd_tensor_type_t *type =
        i < num_inputs ? &inputs[i] : &outputs[i - num_inputs];
    memcpy(at, type->shape, sizeof(*at) * type->rank);
    at += type->rank;
  }
  return shapes;
}

static void refuse(hd_model_t *m, const hd_tensor_type_t *bounds) {
  hd_arena_t *arena = &m->module->arena;
  hd_fit_t *fit = HD_ARENA_NEW(arena, hd_fit_t);
  *fit = (hd_fit_t){
      .shapes = join_shapes(arena, bounds, m->graph->inputs.size, NULL, 0),
      .next = m->refused};
  m->refused = fit;
}

// A new bucket; what its expansions say of bounds that a model does not go with
// is nobody's business.
static bool make_bucket(hd_model_t *m, const hd_bucket_sizes_t *sizes,
                        hd_found_bucket_t *found) {
  hd_diagnostics_t *diags = &hd_model_context(m)->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  hd_bucket_refusal_t refusal;
  found->bucket = hd_bucket_of(m->module, m->graph, sizes, &m->options.inouts,
                               &found->leader, &refusal);
  if (found->bucket && !runs_something(m, found->bucket->graph)) {
    refusal = (hd_bucket_refusal_t){"nothing depends on what comes in", NULL};
    found->bucket = NULL;
  }
  if (found->bucket && is_packed(found->bucket->graph)) {
    refusal =
        (hd_bucket_refusal_t){"elements below a byte come in or go out", NULL};
    found->bucket = NULL;
  }
  if (found->bucket)
    return true;
  hd_diagnostics_rewind(diags, mark);
  explain(m, sizes, &refusal);
  refuse(m, found->bounds);
  return false;
}

// --- Sizes ---

static hd_tensor_type_t *types_of(hd_arena_t *arena, const hd_graph_t *graph) {
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(arena, hd_tensor_type_t, graph->outputs.size + 1);
  for (size_t i = 0; i < graph->outputs.size; i++) {
    const hd_value_t *value = graph->outputs.data[i];
    types[i] =
        (hd_tensor_type_t){.type = value->type, .rank = (unsigned)value->rank};
    for (int k = 0; k < value->rank; k++)
      types[i].shape[k] = value->shape[k]->u.i;
  }
  return types;
}

// What there is of it when the expansion has ended.
static const hd_host_tensor_t *keep_given(hd_model_t *m,
                                          const hd_value_t *value) {
  const hd_host_tensor_t *data = hd_constant_load(m->module, value);
  if (!data)
    return NULL;
  hd_host_tensor_t *kept = hd_host_tensor_make(&m->module->arena, data->type,
                                               data->shape, data->rank);
  memcpy(kept->data, data->data, data->bytes);
  return kept;
}

static hd_fit_t *make_fit(hd_model_t *m, const hd_tensor_type_t *inputs,
                          const hd_tensor_type_t *outputs,
                          const hd_bucket_t *bucket, const int64_t *extents,
                          const hd_value_t *const *given) {
  hd_arena_t *arena = &m->module->arena;
  hd_fit_t *fit = HD_ARENA_NEW(arena, hd_fit_t);
  int64_t *numbers = HD_ARENA_ARRAY(arena, int64_t, bucket->num_extents + 1);
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, bucket->given.size + 1);
  memcpy(numbers, extents, bucket->num_extents * sizeof(*numbers));
  for (size_t i = 0; i < bucket->given.size; i++)
    if (!(data[i] = keep_given(m, given[i])))
      return NULL;
  *fit = (hd_fit_t){.shapes = join_shapes(arena, inputs, m->graph->inputs.size,
                                          outputs, m->graph->outputs.size),
                    .extents = numbers,
                    .given = data};
  return fit;
}

// Whether the bucket serves the sizes. What is wrong with it, if anything is,
// the exact way says.
static bool fit_bucket(hd_model_t *m, const hd_tensor_type_t *inputs,
                       hd_found_bucket_t *found) {
  hd_context_t *context = hd_model_context(m);
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(&context->diags);
  const hd_bucket_t *bucket = found->bucket;
  hd_arena_t scratch;
  hd_arena_init_local(&scratch, &context->budget);
  int64_t *extents = HD_ARENA_ARRAY(&scratch, int64_t, bucket->num_extents + 1);
  const hd_value_t **given =
      HD_ARENA_ARRAY(&scratch, const hd_value_t *, bucket->given.size + 1);
  hd_expander_t *expander;
  const hd_graph_t *graph = hd_bucket_expand(m->module, &scratch, m->graph,
                                             inputs, found->leader, &expander);
  if (graph &&
      hd_bucket_fit(m->module, &scratch, bucket, graph, extents, given)) {
    hd_tensor_type_t *outputs =
        types_of(found->turn ? &scratch : &m->module->arena, graph);
    found->outputs = found->turn ? NULL : outputs;
    found->fit = make_fit(m, inputs, outputs, bucket, extents, given);
  }
  hd_arena_fini(&scratch);
  if (!found->fit)
    hd_diagnostics_rewind(&context->diags, mark);
  return found->fit != NULL;
}

static bool find_bucket(hd_model_t *m, hd_arena_t *scratch,
                        const hd_tensor_type_t *inputs,
                        hd_found_bucket_t *found) {
  size_t count = m->graph->inputs.size;
  hd_bucket_sizes_t sizes, extents;
  const char *missing;
  hd_tensor_type_t *bounds =
      HD_ARENA_ARRAY(scratch, hd_tensor_type_t, count + 1);
  if (!hd_bucket_sizes_find(scratch, m->graph, inputs, &sizes))
    return false;
  extents = sizes;
  if (!find_bounds(m, &sizes) ||
      !hd_bucket_types(scratch, m->graph, &sizes, bounds, &missing) ||
      find_fit(m, m->refused, bounds))
    return false;
  found->turn = hd_model_find(m, bounds, true);
  if (!found->turn && find_limit(m, scratch, &sizes, &extents)) {
    sizes = extents;
    find_bounds(m, &sizes);
    if (!hd_bucket_types(scratch, m->graph, &sizes, bounds, &missing))
      return false;
    found->turn = hd_model_find(m, bounds, true);
  }
  found->bounds = bounds;
  if (found->turn) {
    found->bucket = found->turn->bucket;
    found->leader = found->turn->expander;
  } else if (!make_bucket(m, &sizes, found)) {
    return false;
  }
  bool fits = fit_bucket(m, inputs, found);
  if (found->turn && fits) {
    found->fit->next = found->turn->fits;
    found->turn->fits = found->fit;
  } else if (found->turn) {
    hd_model_release(m, found->turn);
  }
  if (fits && !found->turn)
    found->bounds = copy_types(&m->module->arena, bounds, count);
  return fits;
}

void hd_turn_set_bucket(hd_turn_t *turn, const hd_found_bucket_t *found) {
  turn->bucket = found->bucket;
  turn->outputs = found->outputs;
  turn->fits = found->fit;
  turn->expander = found->leader;
}

// What is folded where a graph is expanded is no larger.
enum { SMALL_WEIGHT = 1 << 16 };

bool hd_model_find_bucket(hd_model_t *m, const hd_tensor_type_t *inputs,
                          hd_found_bucket_t *found) {
  hd_arena_t scratch;
  *found = (hd_found_bucket_t){0};
  if (!m->options.num_buckets || !m->device || m->options.watch ||
      hd_model_counts_steps(m) ||
      !hd_artifact_check_weights(m->module->artifact, SMALL_WEIGHT))
    return false;
  hd_arena_init_local(&scratch, &hd_model_context(m)->budget);
  bool fits = find_bucket(m, &scratch, inputs, found);
  hd_arena_fini(&scratch);
  return fits;
}
