// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry is a row of numbers, how many kernels, the bytes of the plan, of the
// kernels' symbols, and of each one's code, and behind it those.
#include "Runtime/PlanCache.h"
#include "IR/Graph/Task.h"
#include "IR/Text/Printer.h"
#include "Runtime/Saved.h"
#include "Schedule/Schedule.h"
#include "Support/Map.h"

#include <stdlib.h>
#include <string.h>

// --- The key ---

// Constants of no more bytes are part of the text, as single elements become
// part of kernels.
enum { MAX_IN_TEXT = 64 };

// What a constant's text names while the graph is printed.
typedef struct named {
  hd_constant_t *constant;
  const char *file;
  int64_t offset;
} named_t;

typedef struct keyer {
  hd_model_t *model;
  hd_arena_t arena;
  HD_VEC(named_t) named;
  hd_ptr_map_t tasks; // That are in the text.
  hd_buffer_t text;
} keyer_t;

static void end_keyer(void *argument) {
  keyer_t *k = argument;
  for (size_t i = 0; i < k->named.size; i++) {
    k->named.data[i].constant->file = k->named.data[i].file;
    k->named.data[i].constant->offset = k->named.data[i].offset;
  }
  hd_buffer_fini(&k->text);
  hd_arena_fini(&k->arena);
}

static bool name_constant(void *argument, const hd_value_t *value) {
  keyer_t *k = argument;
  hd_constant_t *constant = value->constant;
  hd_tensor_type_t type = hd_scheduled_type(value);
  int64_t count, bytes;
  bool small =
      hd_packed_size(type.type, type.shape, type.rank, &count, &bytes) &&
      bytes <= MAX_IN_TEXT;
  if (small && !hd_constant_load(k->model->module, value))
    return false;
  named_t named = {constant, constant->file, constant->offset};
  hd_vec_push(&k->arena, &k->named, named);
  constant->file = small ? NULL : "";
  constant->offset = 0;
  return true;
}

static bool put_task(keyer_t *k, const hd_node_t *node) {
  if (node->schedule || (!node->task && !hd_node_is_reshape(node)))
    return false;
  for (uint32_t i = 0; i < node->num_attributes; i++)
    if (node->attributes[i]->kind == HD_ATTRIBUTE_GRAPH)
      return false;
  if (node->task && !hd_ptr_map_get(&k->tasks, node->task)) {
    hd_ptr_map_set(&k->arena, &k->tasks, node->task, node->task);
    hd_task_print(node->task, &k->text);
  }
  return true;
}

// What candidates are priced by.
static void put_machine(keyer_t *k) {
  hd_buffer_puts(&k->text, ";");
  hd_machine_print(&k->model->schedules.machine, &k->text);
}

// False where there is more to it than a text says.
static bool describe(keyer_t *k, const hd_model_segment_t *segment) {
  const hd_graph_t *graph = segment->graph;
  const hd_inouts_t *inouts = &segment->inouts;
  hd_saved_describe(k->model, &k->text);
  put_machine(k);
  for (size_t i = 0; i < inouts->count; i++)
    hd_buffer_printf(&k->text, "; %u is %u", inouts->pairs[i].input,
                     inouts->pairs[i].output);
  hd_buffer_puts(&k->text, "\n");
  for (size_t i = 0; i < graph->nodes.size; i++)
    if (!put_task(k, graph->nodes.data[i]))
      return false;
  if (!hd_graph_walk_constants(graph, name_constant, k))
    return false;
  hd_graph_print(graph, &k->text);
  return !k->text.failed && !strstr(hd_buffer_text(&k->text), "build unknown");
}

// Whether the graph and the place are all that decides. Tasks are part of its
// text; passes add some to the module, too.
static bool is_plain(const hd_model_t *m) {
  const hd_model_options_t *o = &m->options;
  if (!m->device || !m->device->cache || m->module->artifact || o->anew ||
      o->keep_layouts || o->explain || o->unrewritten || o->unfused ||
      o->in_turn || o->left_out || o->watch || (o->choose && !o->choosing) ||
      hd_model_counts_steps(m) || !m->running || m->running->bucket)
    return false;
  for (size_t i = 0; i < m->module->items.size; i++) {
    hd_item_kind_t kind = m->module->items.data[i].kind;
    if (kind != HD_ITEM_GRAPH && kind != HD_ITEM_TASK)
      return false;
  }
  return true;
}

hd_cache_key_t hd_plan_key(hd_model_t *m, const hd_model_segment_t *segment) {
  hd_cache_key_t key = {0, 0};
  hd_budget_t *budget = &hd_model_context(m)->budget;
  hd_cleanup_t cleanup;
  keyer_t k = {.model = m};
  if (!is_plain(m))
    return key;
  hd_arena_init(&k.arena, budget);
  hd_budget_defer(budget, &cleanup, end_keyer, &k);
  if (describe(&k, segment))
    key = hd_cache_key("plan", k.text.data, k.text.size);
  hd_budget_clean(budget, &cleanup);
  return key;
}

// --- The key with what is chosen ---

static bool is_chosen(const hd_model_t *m) {
  return m->options.choose && !m->prepares;
}

// Of the groups that were found in the graph.
static hd_cache_key_t groups_key(hd_cache_key_t key) {
  return hd_cache_key("groups", &key, sizeof(key));
}

// The plan's, as the groups' choices are now; zero where that cannot be said.
static hd_cache_key_t with_choices(hd_model_t *m, hd_cache_key_t key,
                                   const char *groups) {
  const hd_model_options_t *o = &m->options;
  hd_budget_t *budget = &hd_model_context(m)->budget;
  hd_cache_key_t found = {0, 0};
  hd_buffer_t text = {0};
  hd_cleanup_t cleanup;
  hd_budget_defer(budget, &cleanup, hd_buffer_end, &text);
  hd_buffer_write(&text, (const char *)&key, sizeof(key));
  if (o->choosing->foresee(o->choose_argument, groups, &text) && !text.failed)
    found = hd_cache_key("chosen", text.data, text.size);
  hd_budget_clean(budget, &cleanup);
  return found;
}

hd_cache_key_t hd_plan_foresee(hd_model_t *m, hd_cache_key_t key) {
  hd_budget_t *budget = &hd_model_context(m)->budget;
  hd_cache_key_t found = {0, 0};
  hd_buffer_t groups = {0};
  hd_cleanup_t cleanup;
  if (!is_chosen(m) || (key.low | key.high) == 0)
    return key;
  m->options.choosing->asked(m->options.choose_argument);
  hd_budget_defer(budget, &cleanup, hd_buffer_end, &groups);
  if (hd_cache_get(m->device->cache, groups_key(key), &groups) &&
      !groups.failed)
    found = with_choices(m, key, hd_buffer_text(&groups));
  hd_budget_clean(budget, &cleanup);
  return found;
}

hd_cache_key_t hd_plan_chosen(hd_model_t *m, hd_cache_key_t key) {
  hd_cache_key_t none = {0, 0};
  if (!is_chosen(m) || (key.low | key.high) == 0)
    return key;
  const char *text = m->options.choosing->asked(m->options.choose_argument);
  hd_buffer_t groups = {0};
  if (!text)
    return none;
  hd_buffer_puts(&groups, text);
  if (!groups.failed)
    hd_cache_put(m->device->cache, groups_key(key), &groups);
  hd_buffer_fini(&groups);
  return with_choices(m, key, text);
}

// --- What the cache has ---

typedef struct entry {
  hd_buffer_t bytes;
  uint64_t kernels, plan_bytes, symbols_bytes;
  const char *sizes, *plan, *symbols, *code;
  hd_buffer_t *kept; // A copy of each kernel's code.
} entry_t;

static void end_entry(void *argument) {
  entry_t *e = argument;
  for (uint64_t i = 0; e->kept && i < e->kernels; i++)
    hd_buffer_fini(&e->kept[i]);
  free(e->kept);
  hd_buffer_fini(&e->bytes);
}

static uint64_t word_at(const char *words, size_t i) {
  uint64_t word;
  memcpy(&word, words + i * sizeof(word), sizeof(word));
  return word;
}

// The cache has looked at its hash: what does not add up is of another build.
static bool read_entry(entry_t *e) {
  const size_t word = sizeof(uint64_t);
  size_t left = e->bytes.size;
  if (left < 3 * word)
    return false;
  e->kernels = word_at(e->bytes.data, 0);
  e->plan_bytes = word_at(e->bytes.data, 1);
  e->symbols_bytes = word_at(e->bytes.data, 2);
  left -= 3 * word;
  if (e->kernels > left / word)
    return false;
  left -= e->kernels * word;
  if (e->plan_bytes > left || e->symbols_bytes > left - e->plan_bytes)
    return false;
  left -= e->plan_bytes + e->symbols_bytes;
  e->sizes = e->bytes.data + 3 * word;
  e->plan = e->sizes + e->kernels * word;
  e->symbols = e->plan + e->plan_bytes;
  e->code = e->symbols + e->symbols_bytes;
  for (uint64_t i = 0; i < e->kernels; i++) {
    if (word_at(e->sizes, i) > left)
      return false;
    left -= word_at(e->sizes, i);
  }
  return left == 0;
}

// Kernels keep the copies that were made for them.
static bool load_code(entry_t *e, hd_program_t *program, hd_arena_t *arena) {
  const char *code = e->code, *symbol = e->symbols, *end = e->code;
  hd_code_t *codes = HD_ARENA_ARRAY(arena, hd_code_t, e->kernels + 1);
  e->kept = calloc(e->kernels + 1, sizeof(*e->kept));
  if (!e->kept || program->variants.size != e->kernels)
    return false;
  for (uint64_t i = 0; i < e->kernels; i++) {
    size_t size = word_at(e->sizes, i);
    size_t length = strnlen(symbol, (size_t)(end - symbol));
    hd_buffer_write(&e->kept[i], code, size);
    if (e->kept[i].failed || length == (size_t)(end - symbol))
      return false;
    codes[i] = (hd_code_t){e->kept[i].data, size,
                           hd_arena_strndup(arena, symbol, length)};
    code += size;
    symbol += length + 1;
  }
  if (!hd_program_load_kernels(program, codes, NULL))
    return false;
  for (uint64_t i = 0; i < e->kernels; i++)
    if (!program->kernels[i]->kept.size) {
      program->kernels[i]->kept = e->kept[i];
      e->kept[i] = (hd_buffer_t){0};
    }
  return true;
}

static bool make_program(hd_model_t *m, hd_model_segment_t *segment,
                         entry_t *e) {
  const hd_env_t none = {0};
  const hd_program_options_t how = {0};
  return hd_saved_parse_plan(hd_model_context(m), "a plan of the cache",
                             e->plan, e->plan_bytes, &segment->made) &&
         hd_program_init(&segment->program, m->device, segment->made,
                         hd_module_entry(segment->made), &none, &how) &&
         load_code(e, &segment->program, &segment->made->arena);
}

bool hd_plan_find(hd_model_t *m, hd_model_segment_t *segment,
                  hd_cache_key_t key) {
  hd_context_t *context = hd_model_context(m);
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(&context->diags);
  hd_cleanup_t cleanup;
  entry_t e = {0};
  hd_budget_defer(&context->budget, &cleanup, end_entry, &e);
  bool found = hd_cache_get(m->device->cache, key, &e.bytes) &&
               !e.bytes.failed && read_entry(&e);
  bool ok = found && make_program(m, segment, &e);
  if (found && !ok) {
    hd_program_fini(&segment->program);
    hd_module_destroy(segment->made);
    segment->made = NULL;
    hd_diagnostics_rewind(&context->diags, mark);
  }
  hd_budget_clean(&context->budget, &cleanup);
  return ok;
}

static void put_word(hd_buffer_t *out, uint64_t word) {
  hd_buffer_write(out, (const char *)&word, sizeof(word));
}

void hd_plan_keep(hd_model_t *m, const hd_model_segment_t *segment,
                  hd_cache_key_t key) {
  const hd_program_t *program = &segment->program;
  hd_context_t *context = hd_model_context(m);
  hd_buffer_t text = {0}, symbols = {0}, out = {0};
  hd_cleanup_t end_text, end_symbols, end_out;
  hd_budget_defer(&context->budget, &end_text, hd_buffer_end, &text);
  hd_budget_defer(&context->budget, &end_symbols, hd_buffer_end, &symbols);
  hd_budget_defer(&context->budget, &end_out, hd_buffer_end, &out);
  hd_saved_print_plan(context, program, &text, &symbols);
  put_word(&out, program->variants.size);
  put_word(&out, text.size);
  put_word(&out, symbols.size);
  for (size_t i = 0; i < program->variants.size; i++)
    put_word(&out, program->kernels[i]->code.size);
  hd_buffer_write(&out, hd_buffer_text(&text), text.size);
  hd_buffer_write(&out, hd_buffer_text(&symbols), symbols.size);
  for (size_t i = 0; i < program->variants.size; i++)
    hd_buffer_write(&out, program->kernels[i]->code.data,
                    program->kernels[i]->code.size);
  if (!text.failed && !symbols.failed && !out.failed)
    hd_cache_put(m->device->cache, key, &out);
  hd_budget_clean(&context->budget, &end_out);
  hd_budget_clean(&context->budget, &end_symbols);
  hd_budget_clean(&context->budget, &end_text);
}
