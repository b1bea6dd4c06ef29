// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model with its executables to a file. What is large is not copied: weights
// are written from where they are mapped.
#include "Fusion/Fuse.h"
#include "IR/Text/Printer.h"
#include "Runtime/Saved.h"
#include "Schedule/Schedule.h"

#include <string.h>

static const hd_loc_t nowhere;

// Constants of no more bytes stay in the text.
enum { MAX_IN_TEXT = 64 };

// A constant, what its text names, and what it names in the file: a section, or
// nothing, and it has the elements themselves.
typedef struct renamed {
  hd_constant_t *constant;
  const char *file;
  int64_t offset;
  const char *section;
} renamed_t;

typedef struct saver {
  hd_model_t *model;
  hd_arena_t arena;
  hd_artifact_parts_t parts;
  hd_ptr_map_t weights;   // Constants to their sections.
  hd_ptr_map_t addresses; // Of what is prepared, likewise.
  HD_VEC(renamed_t) renamed;
  HD_VEC(int64_t) words; // Of the table at work.
} saver_t;

static int64_t add_part(saver_t *s, hd_section_kind_t kind, const void *data,
                        size_t size) {
  hd_vec_push(&s->arena, &s->parts, ((hd_artifact_part_t){kind, data, size}));
  return (int64_t)s->parts.size - 1;
}

// The text is copied.
static int64_t add_text(saver_t *s, hd_section_kind_t kind,
                        const hd_buffer_t *text) {
  if (text->failed)
    hd_budget_exhausted(s->arena.budget, HD_EXHAUSTED_MEMORY);
  return add_part(s, kind,
                  hd_arena_strndup(&s->arena, hd_buffer_text(text), text->size),
                  text->size);
}

// --- The graph ---

static unsigned char *pack(hd_arena_t *arena, const hd_host_tensor_t *tensor,
                           size_t bytes) {
  unsigned char *packed = hd_arena_alloc(arena, bytes + 1);
  hd_host_tensor_pack(tensor, hd_scalar_bits(tensor->type), packed);
  return packed;
}

// The section of a constant with many bytes.
static const char *add_elements(saver_t *s, const hd_value_t *value,
                                const hd_host_tensor_t *tensor, size_t bytes) {
  const void *data = value->constant->mapped;
  if (!data)
    data = hd_scalar_bits(tensor->type) < 8 ? pack(&s->arena, tensor, bytes)
                                            : tensor->data;
  int64_t number = add_part(s, HD_SECTION_WEIGHT, data, bytes);
  hd_ptr_map_set(&s->arena, &s->weights, value, (const void *)(number + 1));
  return hd_arena_printf(&s->arena, "#%lld", (long long)number);
}

static bool add_weight(void *saver, const hd_value_t *value) {
  saver_t *s = saver;
  hd_constant_t *constant = value->constant;
  if (!constant || hd_ptr_map_get(&s->weights, value))
    return true;
  const hd_host_tensor_t *tensor = hd_constant_load(s->model->module, value);
  if (!tensor)
    return false;
  int64_t count, bytes;
  if (!hd_packed_size(tensor->type, tensor->shape, tensor->rank, &count,
                      &bytes))
    return hd_error(&hd_model_context(s->model)->diags, value->loc, HD_E0309,
                    value->name);
  renamed_t renamed = {constant, constant->file, constant->offset, NULL};
  if (bytes > MAX_IN_TEXT)
    renamed.section = add_elements(s, value, tensor, (size_t)bytes);
  hd_vec_push(&s->arena, &s->renamed, renamed);
  return true;
}

static void restore_names(void *argument) {
  saver_t *s = argument;
  for (size_t i = 0; i < s->renamed.size; i++) {
    s->renamed.data[i].constant->file = s->renamed.data[i].file;
    s->renamed.data[i].constant->offset = s->renamed.data[i].offset;
  }
}

// The first sections: the graph's name, its text, its weights.
static bool add_graph(saver_t *s) {
  hd_model_t *m = s->model;
  hd_budget_t *budget = s->arena.budget;
  hd_cleanup_t end_text, end_names;
  hd_buffer_t text = {0};
  add_part(s, HD_SECTION_ENTRY, m->graph->name, strlen(m->graph->name));
  int64_t place = add_part(s, HD_SECTION_GRAPH, NULL, 0);
  for (size_t i = 0; i < m->module->items.size; i++) {
    const hd_item_t *item = &m->module->items.data[i];
    if (item->kind == HD_ITEM_GRAPH &&
        !hd_graph_walk_constants(item->u.graph, add_weight, s))
      return false;
  }
  hd_budget_defer(budget, &end_text, hd_buffer_end, &text);
  hd_budget_defer(budget, &end_names, restore_names, s);
  for (size_t i = 0; i < s->renamed.size; i++) {
    s->renamed.data[i].constant->file = s->renamed.data[i].section;
    s->renamed.data[i].constant->offset = 0;
  }
  hd_module_print(m->module, &text);
  hd_budget_clean(budget, &end_names);
  add_text(s, HD_SECTION_GRAPH, &text);
  s->parts.data[place] = s->parts.data[--s->parts.size];
  hd_budget_clean(budget, &end_text);
  return true;
}

// --- An executable ---

// Sets the words of the plan, and of its kernels' names and code.
static void add_plan(saver_t *s, const hd_program_t *program) {
  hd_context_t *context = hd_model_context(s->model);
  size_t count = program->variants.size;
  hd_buffer_t text = {0}, names = {0};
  hd_cleanup_t end_text, end_names;
  hd_budget_defer(&context->budget, &end_text, hd_buffer_end, &text);
  hd_budget_defer(&context->budget, &end_names, hd_buffer_end, &names);
  hd_saved_print_plan(context, program, &text, &names);
  s->words.data[HD_SAVED_PLAN] = add_text(s, HD_SECTION_PLAN, &text);
  s->words.data[HD_SAVED_NAMES] = add_text(s, HD_SECTION_NAMES, &names);
  s->words.data[HD_SAVED_CODE] = (int64_t)s->parts.size;
  s->words.data[HD_SAVED_KERNELS] = (int64_t)count;
  for (size_t i = 0; i < count; i++)
    add_part(s, HD_SECTION_CODE, program->kernels[i]->code.data,
             program->kernels[i]->code.size);
  hd_budget_clean(&context->budget, &end_names);
  hd_budget_clean(&context->budget, &end_text);
}

static void put_word(saver_t *s, int64_t word) {
  hd_vec_push(&s->arena, &s->words, word);
}

static void put_type(saver_t *s, hd_scalar_t type, int64_t rank) {
  put_word(s, type);
  put_word(s, rank);
}

static void add_inputs(saver_t *s, const hd_turn_t *turn) {
  const hd_model_segment_t *segment = &turn->segment;
  size_t count = s->model->graph->inputs.size;
  const hd_bucket_t *bucket = turn->bucket;
  s->words.data[HD_SAVED_INPUTS] = (int64_t)count;
  s->words.data[HD_SAVED_INOUTS] = hd_saved_inouts_key(s->model);
  s->words.data[HD_SAVED_BUCKET] = bucket ? (int64_t)hd_bucket_key(bucket) : 0;
  for (size_t i = 0; i < (bucket ? bucket->graph->inputs.size : count); i++) {
    int64_t param = -1;
    const hd_value_t *value =
        i < count ? hd_turn_input(turn, i) : bucket->graph->inputs.data[i];
    hd_tensor_type_t type =
        i < count ? turn->inputs[i] : hd_scheduled_type(value);
    for (uint32_t k = 0; k < segment->first_constant; k++)
      if (segment->graph->inputs.data[k] == value)
        param = k;
    put_word(s, param);
    put_type(s, type.type, type.rank);
    for (unsigned k = 0; k < type.rank; k++)
      put_word(s, type.shape[k]);
  }
}

// What the plan reads beside inputs: a weight as it is in the graph, or what is
// on the device.
static bool add_constant(saver_t *s, const hd_value_t *value,
                         const hd_slot_t *slot) {
  hd_device_t *device = s->model->device;
  const void *key = (const void *)(uintptr_t)slot->address;
  const void *number = hd_ptr_map_get(&s->weights, value);
  if (!number)
    number = hd_ptr_map_get(&s->addresses, key);
  if (!number) {
    void *data = hd_arena_alloc(&s->arena, slot->bytes + 1);
    if (!device->ops->download(device, data, slot->address, slot->bytes))
      return false;
    number =
        (const void *)(add_part(s, HD_SECTION_DATA, data, slot->bytes) + 1);
    hd_ptr_map_set(&s->arena, &s->addresses, key, number);
  }
  put_word(s, (int64_t)(uintptr_t)number - 1);
  return true;
}

static bool add_constants(saver_t *s, const hd_turn_t *turn) {
  const hd_model_segment_t *segment = &turn->segment;
  const hd_graph_t *graph = segment->graph;
  hd_values_t constants = hd_planned_constants(&s->arena, graph);
  s->words.data[HD_SAVED_FIRST_CONSTANT] = segment->first_constant;
  s->words.data[HD_SAVED_END_CONSTANT] = segment->end_constant;
  for (uint32_t n = segment->first_constant; n < segment->end_constant; n++) {
    const hd_value_t *value = n < graph->inputs.size
                                  ? graph->inputs.data[n]
                                  : constants.data[n - graph->inputs.size];
    if (!add_constant(s, value, &segment->slots[n]))
      return false;
  }
  return true;
}

// What gives an output that the plan does not: an input, an output before, or a
// constant.
static bool add_given(saver_t *s, hd_turn_t *turn, size_t i) {
  const hd_graph_t *last = turn->last;
  const hd_value_t *value = last->outputs.data[i];
  for (size_t k = 0; k < s->model->graph->inputs.size; k++)
    if (hd_turn_input(turn, k) == value) {
      put_word(s, HD_SAVED_INPUT);
      put_word(s, (int64_t)k);
      return true;
    }
  for (size_t k = 0; k < i; k++)
    if (last->outputs.data[k] == value) {
      put_word(s, HD_SAVED_AGAIN);
      put_word(s, (int64_t)k);
      return true;
    }
  const hd_host_tensor_t *data = hd_model_fetch(s->model, turn, value);
  if (!data)
    return false;
  put_word(s, HD_SAVED_DATA);
  put_word(s, add_part(s, HD_SECTION_DATA, data->data, data->bytes));
  return true;
}

static bool add_outputs(saver_t *s, hd_turn_t *turn) {
  const hd_graph_t *last = turn->last;
  int64_t param = turn->segment.end_constant;
  s->words.data[HD_SAVED_OUTPUTS] = (int64_t)last->outputs.size;
  for (size_t i = 0; i < last->outputs.size; i++) {
    const hd_value_t *value = last->outputs.data[i];
    if (turn->planned[i]) {
      put_word(s, HD_SAVED_PARAM);
      put_word(s, param++);
    } else if (turn->stored_in[i] >= 0) {
      put_word(s, HD_SAVED_STORED);
      put_word(s, turn->stored_in[i]);
    } else if (!add_given(s, turn, i)) {
      return false;
    }
    put_type(s, value->type, value->rank);
    for (int k = 0; k < value->rank; k++)
      put_word(s, value->shape[k]->u.i);
  }
  return true;
}

static bool add_turn(saver_t *s, hd_turn_t *turn) {
  hd_buffer_t text = {0};
  hd_cleanup_t cleanup;
  s->words.size = 0;
  for (int i = 0; i < HD_SAVED_WORDS; i++)
    put_word(s, 0);
  hd_budget_defer(s->arena.budget, &cleanup, hd_buffer_end, &text);
  hd_saved_describe(s->model, &text);
  s->words.data[HD_SAVED_MADE_FOR] = add_text(s, HD_SECTION_MADE_FOR, &text);
  hd_budget_clean(s->arena.budget, &cleanup);
  add_plan(s, &turn->segment.program);
  add_inputs(s, turn);
  if (!add_constants(s, turn) || !add_outputs(s, turn))
    return false;
  size_t bytes = s->words.size * sizeof(int64_t);
  int64_t *table = hd_arena_alloc(&s->arena, bytes);
  memcpy(table, s->words.data, bytes);
  add_part(s, HD_SECTION_TABLE, table, bytes);
  return true;
}

// --- The model ---

static bool refuse(const hd_model_t *m, const char *why) {
  return hd_error(&hd_model_context(m)->diags, nowhere, HD_E0815,
                  m->graph->name, why);
}

// What the model's own file has stays in the new one; none is ended for want of
// room meanwhile.
static bool take_all(hd_model_t *m) {
  size_t kept_bytes = m->options.kept_bytes;
  if (m->options.anew)
    return true;
  m->options.kept_bytes = SIZE_MAX;
  bool ok = hd_saved_take_all(m);
  m->options.kept_bytes = kept_bytes;
  return ok;
}

bool hd_model_save(hd_model_t *m, const char *path) {
  saver_t s = {.model = m};
  if (!m->device)
    return refuse(m, "on ref nothing is compiled");
  if (m->options.keep_layouts)
    return refuse(m, "what is compiled for --sanitize is for one run");
  if (!m->kept)
    return refuse(m, "no code of it is kept: nothing was compiled so far, or "
                     "shapes and branches depend on what is in the inputs");
  if (!take_all(m))
    return false;
  hd_arena_init_local(&s.arena, &hd_model_context(m)->budget);
  bool ok = add_graph(&s);
  for (hd_turn_t *turn = m->kept; ok && turn; turn = turn->next)
    ok = add_turn(&s, turn);
  ok = ok && hd_artifact_write(hd_model_context(m), path,
                               (uint32_t)m->options.precision, &s.parts);
  hd_arena_fini(&s.arena);
  return ok;
}
