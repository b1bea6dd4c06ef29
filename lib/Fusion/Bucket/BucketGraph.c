// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph of a bucket. What comes in with an extent behind another axis is
// taken apart first (its elements are packed), what goes out is packed last.

#include "Fusion/Bucket/BucketState.h"
#include "Fusion/Fuse.h"
#include "Graph/Names.h"
#include "IR/Graph/Loop.h"
#include "Schedule/Schedule.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

// --- Values ---

const hd_value_t *hd_bucket_stands(hd_bucketer_t *b, const hd_value_t *value) {
  const hd_value_t *other = hd_ptr_map_get(&b->replaced, value);
  return other ? other : value;
}

hd_value_t *hd_bucket_value(hd_bucketer_t *b, const hd_value_t *like,
                            const char *suffix) {
  hd_value_t *value = HD_ARENA_COPY(b->arena, hd_value_t, like);
  value->label = NULL;
  value->constant = NULL;
  value->name =
      hd_name_unique(b->arena, &b->names,
                     hd_arena_printf(b->arena, "%s_%s", like->name, suffix));
  return value;
}

static void set_vector(hd_bucketer_t *b, hd_value_t *value, int64_t count) {
  const hd_expr_t **shape = HD_ARENA_ARRAY(b->arena, const hd_expr_t *, 1);
  shape[0] = hd_expr_int(b->arena, hd_type(HD_I64), count);
  value->rank = 1;
  value->shape = shape;
}

// --- Nodes ---

void hd_bucket_put(hd_bucketer_t *b, const char *op, hd_task_t *task,
                   const hd_node_t *like, const hd_value_t *const *inputs,
                   const hd_value_t *const *outputs) {
  task = hd_bucket_generalize(b, task);
  task->name = "task";
  const hd_task_t *known =
      hd_task_shared(b->arena, b->module, &b->tasks, task,
                     hd_arena_printf(b->arena, "%s_to", op));
  hd_node_t *node = HD_ARENA_NEW(b->arena, hd_node_t);
  uint32_t count = (uint32_t)known->inputs.size;
  const hd_value_t **all =
      HD_ARENA_ARRAY(b->arena, const hd_value_t *, count + 1);
  for (uint32_t i = 0; i + 1 < count; i++)
    all[i] = inputs[i];
  all[count - 1] = b->extents;
  *node = (hd_node_t){.op = known->name,
                      .task = known,
                      .label = like ? like->label : NULL,
                      .loc = like ? like->loc : outputs[0]->loc,
                      .num_inputs = count,
                      .inputs = all,
                      .num_outputs = (uint32_t)known->outputs.size,
                      .outputs = outputs};
  hd_vec_push(b->arena, &b->made->nodes, (const hd_node_t *)node);
}

// --- What comes in and goes out ---

// Whether the true elements are the first ones, as the bound has them.
static bool is_packed(const hd_bucket_tensor_t *t) {
  bool inner = false;
  for (unsigned i = 0; i < t->rank; i++) {
    if (t->axes[i].count > 1 || (inner && hd_digits_vary(&t->axes[i])))
      return false;
    inner |= t->sizes[i].bound > 1 || hd_digits_vary(&t->axes[i]);
  }
  return true;
}

static int64_t count_of(const hd_value_t *value) {
  int64_t count = 1;
  for (int i = 0; i < value->rank; i++)
    count *= value->shape[i]->u.i;
  return count;
}

// An input, or a constant that comes in.
static void put_input(hd_bucketer_t *b, const hd_value_t *value, bool given) {
  const hd_value_t *input = value;
  hd_bucket_append_t *append = hd_bucket_append_at(b, NULL, value, NULL);
  if (append) {
    input = hd_bucket_append_input(b, append);
  } else if (!is_packed(hd_bucket_tensor(b, value))) {
    hd_value_t *packed = HD_ARENA_NEW(b->arena, hd_value_t);
    const hd_value_t *apart = hd_bucket_value(b, value, "apart");
    *packed = *value;
    packed->constant = NULL;
    set_vector(b, packed, count_of(value));
    hd_bucket_tensor_t *t = hd_bucket_tensor(b, value);
    hd_ptr_map_set(b->arena, &b->tensors, apart, t);
    hd_ptr_map_set(b->arena, &b->replaced, value, apart);
    hd_bucket_move(b, "unpack", packed, NULL, apart, t);
    input = packed;
  } else if (given) {
    hd_value_t *own = HD_ARENA_COPY(b->arena, hd_value_t, value);
    own->constant = NULL;
    hd_ptr_map_set(b->arena, &b->replaced, value, own);
    input = own;
  }
  hd_vec_push(b->arena, &b->made->inputs, input);
}

static const hd_value_t *pack(hd_bucketer_t *b, const hd_value_t *value) {
  const hd_value_t *from = hd_bucket_stands(b, value);
  hd_value_t *to = hd_bucket_value(b, value, "packed");
  set_vector(b, to, count_of(value));
  hd_bucket_move(b, "pack", from, hd_bucket_tensor(b, value), to, NULL);
  return to;
}

// What goes out as the bound has it is 0 past its extents, so that what nobody
// needs is seen from there back (Need.h).
static const hd_value_t *sealed(hd_bucketer_t *b, const hd_value_t *value) {
  const hd_bucket_tensor_t *t = hd_bucket_tensor(b, value);
  hd_bucket_seal_t seal = {.wanted = true};
  for (unsigned i = 0; i < t->rank; i++) {
    seal.axes[i] = hd_digits_vary(&t->axes[i]);
    seal.any |= seal.axes[i];
  }
  return seal.any ? hd_bucket_sealed(b, value, &seal)
                  : hd_bucket_stands(b, value);
}

static bool put_output(hd_bucketer_t *b, const hd_value_t *value) {
  bool varies = !is_packed(hd_bucket_tensor(b, value));
  for (int i = 0; i < value->rank; i++)
    varies |= hd_digits_vary(&hd_bucket_tensor(b, value)->axes[i]);
  if (varies && !hd_ptr_map_get(&b->givers, value))
    return hd_bucket_refuse(b, NULL, "what comes in goes out");
  if (value->constant && hd_bucket_stands(b, value) != value)
    return hd_bucket_refuse(b, NULL, "a constant that differs goes out");
  hd_vec_push(b->arena, &b->made->outputs,
              hd_bucket_append_at(b, NULL, NULL, value)
                  ? hd_bucket_stands(b, value)
              : is_packed(hd_bucket_tensor(b, value)) ? sealed(b, value)
                                                      : pack(b, value));
  return true;
}

// --- The graph ---

static bool put_node(hd_bucketer_t *b, const hd_node_t *node) {
  if (hd_bucket_is_left_out(b, node))
    return true;
  if (hd_node_is_reshape(node) && !hd_bucket_reshape(b, node)) {
    hd_bucket_put_moved(b, node);
    return true;
  }
  return hd_bucket_put_task(b, node);
}

static void put_constants(hd_bucketer_t *b) {
  const hd_graph_t *graph = b->graphs[0];
  for (size_t i = 0; i < graph->constants.size; i++)
    if (hd_bucket_stands(b, graph->constants.data[i]) ==
        graph->constants.data[i])
      hd_vec_push(b->arena, &b->made->constants, graph->constants.data[i]);
}

static bool takes_extents(const hd_bucketer_t *b) {
  for (size_t i = 0; i < b->made->nodes.size; i++) {
    const hd_node_t *node = b->made->nodes.data[i];
    if (node->num_inputs && node->inputs[node->num_inputs - 1] == b->extents)
      return true;
  }
  return false;
}

bool hd_bucket_build(hd_bucketer_t *b) {
  const hd_graph_t *graph = b->graphs[0];
  b->made = HD_ARENA_NEW(b->arena, hd_graph_t);
  *b->made = (hd_graph_t){
      .name = graph->name, .loc = graph->loc, .outer = graph->outer};
  hd_names_take(b->arena, &b->names, graph);
  b->extents = HD_ARENA_NEW(b->arena, hd_value_t);
  *b->extents =
      (hd_value_t){.name = hd_name_unique(b->arena, &b->names, "extents"),
                   .loc = graph->loc,
                   .type = HD_I64};
  b->num_extents =
      hd_term_make(b->arena, HD_TERM_CONST, hd_flat_type(HD_I64), NULL, 0);
  hd_bucket_find_appends(b);
  for (size_t i = 0; i < graph->inputs.size; i++)
    put_input(b, graph->inputs.data[i], false);
  size_t inputs = b->made->inputs.size;
  for (size_t i = 0; i < b->given.size; i++)
    put_input(b, b->given.data[i], true);
  for (size_t i = 0; i < graph->nodes.size; i++)
    if (!put_node(b, graph->nodes.data[i]))
      return false;
  for (size_t i = 0; i < graph->outputs.size; i++)
    if (!put_output(b, graph->outputs.data[i]))
      return false;
  put_constants(b);
  // A task that moves nothing at all takes them and reads none.
  if (!b->record->read.size && takes_extents(b)) {
    if (!b->slots.size)
      return hd_bucket_refuse(b, NULL, "nothing depends on a size");
    hd_vec_push(b->arena, &b->record->read, 0);
  }
  int64_t count = (int64_t)b->record->read.size;
  b->num_extents->u.i = count;
  if (count) { // Behind the graph's own inputs.
    set_vector(b, b->extents, count);
    hd_vec_push(b->arena, &b->made->inputs, (const hd_value_t *)b->extents);
    for (size_t i = b->made->inputs.size; --i > inputs;)
      b->made->inputs.data[i] = b->made->inputs.data[i - 1];
    b->made->inputs.data[inputs] = b->extents;
  }
  return true;
}

// --- Buckets ---

const hd_bucket_t *hd_bucket_make(hd_module_t *module,
                                  const hd_graph_t *const *graphs, size_t count,
                                  const hd_inouts_t *inouts,
                                  hd_bucket_refusal_t *refusal) {
  hd_bucketer_t b = {.module = module,
                     .arena = &module->arena,
                     .count = count,
                     .inouts = *inouts};
  hd_bucket_t *bucket = HD_ARENA_NEW(b.arena, hd_bucket_t);
  size_t items = module->items.size;
  memcpy(b.graphs, graphs, count * sizeof(*graphs));
  b.record = bucket->record = HD_ARENA_NEW(b.arena, hd_bucket_record_t);
  b.record->graph = graphs[0];
  if (!hd_bucket_match(&b) || !hd_bucket_build(&b)) {
    *refusal = b.refusal;
    module->items.size = items;
    return NULL;
  }
  if (!hd_graph_verify(module->context, b.made)) {
    refusal->why = "its graph does not verify";
    module->items.size = items;
    return NULL;
  }
  b.record->num_slots = b.slots.size;
  bucket->graph = b.made;
  bucket->num_extents = b.record->read.size;
  bucket->extents = bucket->num_extents ? b.extents : NULL;
  for (size_t i = 0; i < b.given.size; i++)
    hd_vec_push(b.arena, &bucket->given, b.given.data[i]);
  return bucket;
}

uint64_t hd_bucket_key(const hd_bucket_t *bucket) {
  const hd_bucket_record_t *record = bucket->record;
  uint64_t key =
      XXH3_64bits(record->numbers.data, record->numbers.size * sizeof(int));
  key = XXH3_64bits_withSeed(record->read.data, record->read.size * sizeof(int),
                             key);
  for (size_t i = 0; i < bucket->graph->inputs.size; i++) {
    const hd_value_t *value = bucket->graph->inputs.data[i];
    for (int k = 0; k < value->rank; k++)
      key = XXH3_64bits_withSeed(&value->shape[k]->u.i, sizeof(int64_t), key);
  }
  return key ? key : 1;
}

bool hd_bucket_fit(hd_module_t *module, hd_arena_t *arena,
                   const hd_bucket_t *bucket, const hd_graph_t *graph,
                   int64_t *extents, const hd_value_t **given) {
  hd_bucket_record_t *record = bucket->record;
  hd_bucketer_t b = {.module = module,
                     .arena = arena,
                     .count = 2,
                     .graphs = {record->graph, graph},
                     .record = record,
                     .holds = true};
  for (size_t i = 0; i < bucket->given.size; i++)
    hd_vec_push(b.arena, &b.given, bucket->given.data[i]);
  for (size_t i = 0; i < record->num_slots; i++)
    hd_vec_push(b.arena, &b.slots, ((hd_slot_values_t){{INT64_MIN}}));
  if (!hd_bucket_match(&b) || b.number != record->numbers.size)
    return false;
  int64_t *slots = HD_ARENA_ARRAY(b.arena, int64_t, record->num_slots + 1);
  bool *known = HD_ARENA_ARRAY(b.arena, bool, record->num_slots + 1);
  for (size_t i = 0; i < record->num_slots; i++) {
    slots[i] = b.slots.data[i].values[0];
    known[i] = slots[i] != INT64_MIN;
  }
  if (!hd_bucket_settle(record, slots, known))
    return false;
  for (size_t i = 0; i < record->read.size; i++)
    extents[i] = slots[record->read.data[i]];
  for (size_t i = 0; i < b.given.size; i++) {
    const hd_value_t *const *row = hd_ptr_map_get(&b.matched, b.given.data[i]);
    given[i] = row[1];
  }
  return true;
}
