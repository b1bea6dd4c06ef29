// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An executable from a model's file: no more is done than to read it, to load
// its code, and to bring to the device what it reads there.
#include "Fusion/Fuse.h"
#include "Runtime/Saved.h"
#include "Runtime/Storage.h"
#include "Schedule/Schedule.h"

#include <string.h>

typedef struct reader {
  hd_model_t *model;
  const hd_graph_t *graph;
  hd_artifact_t *file;
  hd_turn_t *turn;
  const char *table; // What is left of it.
  size_t words;
  bool failed; // It ended too soon.
  int64_t head[HD_SAVED_WORDS];
} reader_t;

static bool damaged(const reader_t *r, const char *why) {
  return hd_artifact_damaged(r->file, why);
}

static int64_t get_word(reader_t *r) {
  int64_t word = -1;
  if (r->words == 0) {
    r->failed = true;
    return word;
  }
  memcpy(&word, r->table, sizeof(word));
  r->table += sizeof(word);
  r->words--;
  return word;
}

static bool get_type(reader_t *r, hd_tensor_type_t *type) {
  int64_t scalar = get_word(r), rank = get_word(r), count;
  if (r->failed || scalar <= HD_VOID || scalar >= HD_MBARRIER || rank < 0 ||
      rank > HD_TENSOR_MAX_RANK)
    return false;
  *type =
      (hd_tensor_type_t){.type = (hd_scalar_t)scalar, .rank = (unsigned)rank};
  for (int64_t i = 0; i < rank; i++)
    type->shape[i] = get_word(r);
  return !r->failed && hd_shape_count(type->shape, type->rank, &count);
}

// Whether a plan has a row-major tensor of that type, or the room of one.
static bool is_param(const hd_var_t *param, const hd_tensor_type_t *type,
                     bool written) {
  int64_t size, room[HD_TENSOR_MAX_RANK];
  hd_shape_room(type->shape, type->rank, room);
  if (!param->tensor || (hd_scalar_t)param->type.scalar != type->type ||
      param->type.lanes > 1 || param->tensor->layout ||
      param->tensor->rank != type->rank ||
      (param->direction == HD_DIR_IN) == written)
    return false;
  for (unsigned i = 0; i < type->rank; i++)
    if (!hd_expr_fold_int(param->tensor->shape[i], &size) || size != room[i])
      return false;
  return true;
}

// --- Which one ---

// The first words of a table, and the types of the inputs that it is for; what
// is left of it begins at its inputs.
static bool begin(reader_t *r, uint32_t number, hd_tensor_type_t *types) {
  const hd_section_t *s =
      hd_artifact_section(r->file, number, HD_SECTION_TABLE, &r->table);
  if (!s)
    return false;
  r->words = s->size / sizeof(int64_t);
  for (int i = 0; i < HD_SAVED_WORDS; i++)
    r->head[i] = get_word(r);
  size_t inputs = r->graph->inputs.size;
  if (r->failed || r->head[HD_SAVED_INPUTS] != (int64_t)inputs ||
      r->head[HD_SAVED_OUTPUTS] != (int64_t)r->graph->outputs.size)
    return damaged(r, "an executable is of another graph");
  const reader_t start = *r;
  for (size_t i = 0; i < inputs; i++) {
    get_word(r);
    if (!get_type(r, &types[i]))
      return damaged(r, "a table is wrong");
  }
  *r = start;
  return true;
}

bool hd_saved_read_head(hd_artifact_t *file, const hd_graph_t *graph,
                        uint32_t number, int64_t *head,
                        hd_tensor_type_t *types) {
  reader_t r = {.graph = graph, .file = file};
  bool ok = begin(&r, number, types);
  memcpy(head, r.head, sizeof(r.head));
  return ok;
}

// --- Code ---

static bool parse_plan(reader_t *r) {
  const char *text;
  const hd_section_t *s = hd_artifact_section(r->file, r->head[HD_SAVED_PLAN],
                                              HD_SECTION_PLAN, &text);
  return s && (hd_saved_parse_plan(hd_model_context(r->model), r->file->path,
                                   text, s->size, &r->turn->segment.made) ||
               damaged(r, "a plan cannot be read"));
}

static bool load_code(reader_t *r) {
  hd_program_t *program = &r->turn->segment.program;
  size_t count = program->variants.size;
  const char *name;
  const hd_section_t *names = hd_artifact_section(
      r->file, r->head[HD_SAVED_NAMES], HD_SECTION_NAMES, &name);
  if (!names)
    return false;
  if ((uint64_t)r->head[HD_SAVED_KERNELS] != count)
    return damaged(r, "a plan has other kernels than there is code for");
  hd_code_t *codes =
      HD_ARENA_ARRAY(&r->turn->values.arena, hd_code_t, count + 1);
  const char *end = name + names->size;
  for (size_t i = 0; i < count; i++) {
    const hd_section_t *s =
        hd_artifact_section(r->file, r->head[HD_SAVED_CODE] + (int64_t)i,
                            HD_SECTION_CODE, &codes[i].data);
    size_t length = strnlen(name, (size_t)(end - name));
    if (!s)
      return false;
    if (length == (size_t)(end - name))
      return damaged(r, "a kernel has no name");
    codes[i].size = s->size;
    codes[i].symbol = name;
    name += length + 1;
  }
  return hd_program_load_kernels(program, codes, NULL);
}

static bool make_program(reader_t *r) {
  hd_model_segment_t *segment = &r->turn->segment;
  const hd_env_t none = {0};
  const hd_program_options_t how = {0};
  if (!parse_plan(r))
    return false;
  const hd_func_t *plan = hd_module_entry(segment->made);
  for (uint32_t i = 0; i < plan->num_params; i++)
    if (!plan->params[i]->tensor)
      return damaged(r, "a plan has a parameter that is no tensor");
  if (r->head[HD_SAVED_FIRST_CONSTANT] < 0 ||
      r->head[HD_SAVED_FIRST_CONSTANT] > r->head[HD_SAVED_END_CONSTANT] ||
      r->head[HD_SAVED_END_CONSTANT] > plan->num_params)
    return damaged(r, "a table does not fit its plan");
  segment->first_constant = (uint32_t)r->head[HD_SAVED_FIRST_CONSTANT];
  segment->end_constant = (uint32_t)r->head[HD_SAVED_END_CONSTANT];
  return hd_program_init(&segment->program, r->model->device, segment->made,
                         plan, &none, &how) &&
         load_code(r);
}

// --- What it reads and gives ---

// The plan's first parameters are inputs, each of one. Those of a bucket have
// its shapes.
static bool take_inputs(reader_t *r, hd_graph_t *graph) {
  hd_turn_t *turn = r->turn;
  const hd_bucket_t *bucket = turn->bucket;
  const hd_func_t *plan = turn->segment.program.entry;
  uint32_t first = turn->segment.first_constant;
  size_t inputs = r->model->graph->inputs.size;
  const hd_value_t **values =
      HD_ARENA_ARRAY(&turn->values.arena, const hd_value_t *, first + 1);
  for (size_t i = 0; i < (bucket ? bucket->graph->inputs.size : inputs); i++) {
    hd_tensor_type_t type;
    int64_t param = get_word(r);
    if (!get_type(r, &type))
      return damaged(r, "a table is wrong");
    if (param == -1)
      continue;
    const hd_value_t *value =
        i < inputs ? hd_turn_input(turn, i) : bucket->graph->inputs.data[i];
    if (bucket)
      type = hd_scheduled_type(value);
    if (param < 0 || param >= first || values[param] ||
        !is_param(plan->params[param], &type,
                  hd_saved_may_store(r->model, plan->params[param], i)))
      return damaged(r, "an input does not fit its plan");
    values[param] = value;
  }
  for (uint32_t n = 0; n < first; n++) {
    if (!values[n])
      return damaged(r, "a plan reads what is no input");
    hd_vec_push(&turn->values.arena, &graph->inputs, values[n]);
  }
  return true;
}

static bool take_weight(reader_t *r, int64_t number, uint32_t n) {
  hd_model_t *m = r->model;
  const hd_value_t *value = r->file->values[number];
  const hd_var_t *param = r->turn->segment.program.entry->params[n];
  if (!hd_artifact_section(r->file, number, HD_SECTION_WEIGHT, NULL))
    return false;
  hd_tensor_type_t type = {0};
  if (value) {
    type.type = value->type;
    type.rank = (unsigned)value->rank;
    for (int i = 0; i < value->rank; i++)
      hd_expr_fold_int(value->shape[i], &type.shape[i]);
  }
  if (!value || !hd_ptr_map_get(&m->shared, value) ||
      !is_param(param, &type, false))
    return damaged(r, "a weight does not fit its plan");
  if (!hd_store_place(&m->constants, value, param, true))
    return false;
  hd_stored_t *stored = hd_store_find(&m->constants, value);
  stored->pinned = true;
  r->turn->segment.slots[n] = stored->slot;
  return true;
}

// What was prepared is on the device once, for all executables of the file.
static bool take_data(reader_t *r, int64_t number, uint32_t n) {
  hd_model_t *m = r->model;
  hd_device_t *device = m->device;
  const hd_env_t none = {0};
  const hd_var_t *param = r->turn->segment.program.entry->params[n];
  const char *data;
  int64_t bytes;
  const hd_section_t *s =
      hd_artifact_section(r->file, number, HD_SECTION_DATA, &data);
  if (!s)
    return false;
  if (!hd_storage_bytes(&none, &r->turn->values.arena, param->tensor, &bytes) ||
      (uint64_t)bytes != s->size || param->direction != HD_DIR_IN)
    return damaged(r, "a constant does not fit its plan");
  if (!m->saved)
    m->saved = HD_ARENA_ARRAY(&m->constants.arena, hd_prepared_t,
                              r->file->num_sections);
  hd_prepared_t *prepared = &m->saved[number];
  hd_vec_push(&r->turn->values.arena, &r->turn->prepared, prepared);
  prepared->users++;
  if (!prepared->slot.address && device->ops->adopt)
    device->ops->adopt(device, data, &prepared->slot.address);
  if (!prepared->slot.address &&
      (!device->ops->alloc(device, param->name, s->size,
                           &prepared->slot.address) ||
       !device->ops->upload(device, prepared->slot.address, data, s->size)))
    return false;
  r->turn->segment.slots[n] =
      (hd_slot_t){param, prepared->slot.address, s->size};
  return true;
}

static bool take_constants(reader_t *r, hd_graph_t *graph) {
  hd_model_segment_t *segment = &r->turn->segment;
  segment->slots = HD_ARENA_ARRAY(&r->turn->values.arena, hd_slot_t,
                                  segment->program.entry->num_params + 1);
  size_t count = segment->end_constant - segment->first_constant;
  hd_artifact_look(r->file, r->table, count < r->words ? count : r->words);
  for (uint32_t n = segment->first_constant; n < segment->end_constant; n++) {
    int64_t number = get_word(r);
    bool in = number >= 0 && number < r->file->num_sections;
    bool weight = in && r->file->sections[number].kind == HD_SECTION_WEIGHT;
    if (!(weight ? take_weight(r, number, n) : take_data(r, number, n)))
      return false;
    hd_vec_push(&r->turn->values.arena, &graph->inputs,
                weight ? r->file->values[number] : NULL);
    r->model->stats.weights_bytes += (int64_t)segment->slots[n].bytes;
  }
  return true;
}

static hd_value_t *new_output(reader_t *r, size_t i,
                              const hd_tensor_type_t *type) {
  hd_arena_t *arena = &r->turn->values.arena;
  const hd_value_t *source = r->model->graph->outputs.data[i];
  hd_value_t *value = HD_ARENA_NEW(arena, hd_value_t);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(arena, const hd_expr_t *, type->rank + 1);
  for (unsigned k = 0; k < type->rank; k++)
    shape[k] = hd_expr_int(arena, hd_type(HD_I64), type->shape[k]);
  *value = (hd_value_t){.name = source->name,
                        .label = source->label,
                        .type = type->type,
                        .rank = (int)type->rank,
                        .shape = shape};
  return value;
}

// An output that is a constant.
static bool give_data(reader_t *r, int64_t number, hd_value_t *value,
                      const hd_tensor_type_t *type) {
  hd_arena_t *arena = &r->turn->values.arena;
  const char *data;
  const hd_section_t *s =
      hd_artifact_section(r->file, number, HD_SECTION_DATA, &data);
  hd_host_tensor_t *tensor =
      s ? hd_host_tensor_make(arena, type->type, type->shape, type->rank)
        : NULL;
  if (!tensor || tensor->bytes != s->size)
    return s && damaged(r, "an output does not fit its data");
  memcpy(tensor->data, data, s->size);
  value->constant = HD_ARENA_NEW(arena, hd_constant_t);
  value->constant->tensor = tensor;
  return true;
}

static bool has_type(const hd_turn_t *turn, size_t input,
                     const hd_tensor_type_t *type) {
  hd_tensor_type_t own = turn->bucket
                             ? hd_scheduled_type(hd_turn_input(turn, input))
                             : turn->inputs[input];
  return hd_types_equal(type, &own, 1);
}

static bool take_output(reader_t *r, hd_graph_t *last, bool *planned,
                        int *stored_in, size_t i) {
  const hd_func_t *plan = r->turn->segment.program.entry;
  int64_t giver = get_word(r), number = get_word(r);
  hd_tensor_type_t type;
  if (!get_type(r, &type) || giver < 0 || giver >= HD_SAVED_GIVERS)
    return damaged(r, "a table is wrong");
  hd_value_t *made = new_output(r, i, &type);
  const hd_value_t *value = made;
  bool ok = true;
  switch ((hd_saved_output_t)giver) {
  case HD_SAVED_PARAM:
    ok = number >= r->turn->segment.end_constant && number < plan->num_params &&
         is_param(plan->params[number], &type, true);
    planned[i] = true;
    break;
  case HD_SAVED_INPUT:
    ok = number >= 0 && number < (int64_t)r->model->graph->inputs.size &&
         has_type(r->turn, (size_t)number, &type);
    if (ok)
      value = hd_turn_input(r->turn, (size_t)number);
    break;
  case HD_SAVED_AGAIN:
    ok = number >= 0 && number < (int64_t)i;
    if (ok)
      value = last->outputs.data[number];
    break;
  case HD_SAVED_DATA:
    if (!give_data(r, number, made, &type))
      return false;
    break;
  case HD_SAVED_STORED:
    ok = hd_saved_is_stored(r->model, r->turn, i, number, &type);
    stored_in[i] = (int)number;
    break;
  case HD_SAVED_GIVERS:
    break;
  }
  if (!ok)
    return damaged(r, "an output does not fit its plan");
  hd_vec_push(&r->turn->values.arena, &last->outputs, value);
  return true;
}

// The plan's last parameters are outputs, in order.
static bool take_outputs(reader_t *r) {
  hd_turn_t *turn = r->turn;
  hd_arena_t *arena = &turn->values.arena;
  size_t count = r->model->graph->outputs.size, given = 0, stored = 0;
  hd_graph_t *last = HD_ARENA_NEW(arena, hd_graph_t);
  bool *planned = HD_ARENA_ARRAY(arena, bool, count + 1);
  int *stored_in = HD_ARENA_ARRAY(arena, int, count + 1);
  for (size_t i = 0; i < count; i++) {
    stored_in[i] = -1;
    if (!take_output(r, last, planned, stored_in, i))
      return false;
    given += planned[i];
    stored += stored_in[i] >= 0;
  }
  if (given + turn->segment.end_constant !=
          turn->segment.program.entry->num_params ||
      stored != hd_saved_count_stores(turn))
    return damaged(r, "a plan gives other outputs than its table");
  turn->last = last;
  turn->planned = planned;
  turn->stored_in = stored_in;
  return true;
}

static bool read_turn(reader_t *r) {
  hd_graph_t *graph = HD_ARENA_NEW(&r->turn->values.arena, hd_graph_t);
  r->turn->segment.graph = graph;
  return make_program(r) && take_inputs(r, graph) && take_constants(r, graph) &&
         take_outputs(r);
}

bool hd_saved_take(hd_model_t *m, hd_turn_t *turn, bool *found) {
  hd_artifact_t *file = m->module->artifact;
  hd_tensor_type_t *types = HD_ARENA_ARRAY(
      &turn->values.arena, hd_tensor_type_t, m->graph->inputs.size + 1);
  int64_t key = turn->bucket ? (int64_t)hd_bucket_key(turn->bucket) : 0;
  bool others = false, same = false;
  *found = false;
  for (uint32_t i = 0; i < file->num_sections; i++) {
    reader_t r = {.model = m, .graph = m->graph, .file = file, .turn = turn};
    bool ok = true;
    if (file->sections[i].kind != HD_SECTION_TABLE)
      continue;
    if (!begin(&r, i, types))
      return false;
    if (r.head[HD_SAVED_BUCKET] != key ||
        r.head[HD_SAVED_INOUTS] != hd_saved_inouts_key(m) ||
        !hd_types_equal(turn->inputs, types, m->graph->inputs.size)) {
      others |= r.head[HD_SAVED_BUCKET] == key;
      continue;
    }
    same = true;
    if (hd_saved_is_here(m, r.head[HD_SAVED_MADE_FOR], &ok)) {
      *found = true;
      return read_turn(&r);
    }
    if (!ok)
      return false;
  }
  if (others && !same)
    hd_remark(&hd_model_context(m)->diags, (hd_loc_t){0},
              "'%s' has code for other sizes; it is made anew for these",
              file->path);
  return true;
}
