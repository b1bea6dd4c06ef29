// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What code in a file was made for, and whether that is here: the place, which
// inputs and outputs are one, and sizes.
#include "CodeGen/CodeGen.h"
#include "Runtime/Saved.h"
#include "Schedule/Schedule.h"
#include "Support/BuildId.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

void hd_saved_describe(const hd_model_t *m, hd_buffer_t *out) {
  const hd_device_info_t *info = &m->device->info;
  char build[128];
  hd_buffer_printf(out, "build %s, %s; %s, %s, %s, %d multiprocessors, ",
                   hd_build_id(build, sizeof(build)) ? build : "unknown",
                   hd_codegen_version(), m->device->ops->kind, info->name,
                   info->target->name, info->sms);
  m->device->ops->describe(m->device, out);
  hd_buffer_printf(out, "; precision %s",
                   hd_precision_name(m->options.precision));
}

static void say_other(hd_model_t *m, const char *made_for, size_t size,
                      const char *here) {
  hd_remark(&hd_model_context(m)->diags, (hd_loc_t){0},
            "'%s' has code for these sizes, made for another place; it is "
            "made anew (there: %.*s; here: %s)",
            m->module->artifact->path, (int)(size < 400 ? size : 400), made_for,
            here);
}

bool hd_saved_is_here(hd_model_t *m, int64_t number, bool *ok) {
  const char *text;
  const hd_section_t *s = hd_artifact_section(m->module->artifact, number,
                                              HD_SECTION_MADE_FOR, &text);
  *ok = s != NULL;
  if (!s)
    return false;
  hd_buffer_t here = {0};
  hd_cleanup_t cleanup;
  hd_budget_t *budget = &hd_model_context(m)->budget;
  hd_budget_defer(budget, &cleanup, hd_buffer_end, &here);
  hd_saved_describe(m, &here);
  bool same = !here.failed && here.size == s->size &&
              memcmp(here.data, text, s->size) == 0 &&
              !strstr(here.data, "build unknown");
  if (!same)
    say_other(m, text, s->size, hd_buffer_text(&here));
  hd_budget_clean(budget, &cleanup);
  return same;
}

int64_t hd_saved_inouts_key(const hd_model_t *m) {
  const hd_inouts_t *inouts = &m->options.inouts;
  XXH64_hash_t key =
      XXH3_64bits(inouts->pairs, inouts->count * sizeof(*inouts->pairs));
  return inouts->count ? (int64_t)(key ? key : 1) : 0;
}

bool hd_saved_is_asked(hd_model_t *m, bool bounds, int64_t inouts) {
  hd_diagnostics_t *diags = &hd_model_context(m)->diags;
  const char *path = m->module->artifact->path;
  if (bounds && !m->options.num_buckets)
    hd_remark(diags, (hd_loc_t){0},
              "code of '%s' for all sizes up to a bound is left out: no bounds "
              "are given",
              path);
  else if (inouts != hd_saved_inouts_key(m))
    hd_remark(diags, (hd_loc_t){0},
              "code of '%s' is left out: other inputs and outputs are one",
              path);
  else
    return true;
  return false;
}

// --- Outputs that are stored in inputs ---

bool hd_saved_may_store(const hd_model_t *m, const hd_var_t *param,
                        size_t input) {
  return param->direction == HD_DIR_INOUT &&
         hd_inouts_find(&m->options.inouts, input);
}

bool hd_saved_is_stored(const hd_model_t *m, const hd_turn_t *turn,
                        size_t output, int64_t number,
                        const hd_tensor_type_t *type) {
  const hd_model_segment_t *segment = &turn->segment;
  int64_t own, there;
  if (number < 0 || number >= segment->first_constant)
    return false;
  const hd_value_t *value = segment->graph->inputs.data[number];
  hd_tensor_type_t input = hd_scheduled_type(value);
  bool pair = false;
  for (size_t i = 0; i < m->options.inouts.count; i++)
    pair |= m->options.inouts.pairs[i].output == output &&
            hd_turn_input(turn, m->options.inouts.pairs[i].input) == value;
  return pair && input.type == type->type &&
         segment->program.entry->params[number]->direction == HD_DIR_INOUT &&
         hd_shape_count(input.shape, input.rank, &there) &&
         hd_shape_count(type->shape, type->rank, &own) && own == there;
}

size_t hd_saved_count_stores(const hd_turn_t *turn) {
  size_t count = 0;
  for (uint32_t n = 0; n < turn->segment.first_constant; n++)
    count += turn->segment.program.entry->params[n]->direction == HD_DIR_INOUT;
  return count;
}

// --- Sizes ---

bool hd_saved_find_types(hd_arena_t *arena, hd_artifact_t *file,
                         const hd_graph_t *graph, hd_tensor_type_t *types,
                         bool *found) {
  size_t count = graph->inputs.size;
  hd_tensor_type_t *more = HD_ARENA_ARRAY(arena, hd_tensor_type_t, count + 1);
  int64_t head[HD_SAVED_WORDS];
  bool several = false;
  *found = false;
  for (uint32_t i = 0; i < file->num_sections; i++) {
    if (file->sections[i].kind != HD_SECTION_TABLE)
      continue;
    if (!hd_saved_read_head(file, graph, i, head, *found ? more : types))
      return false;
    several |= head[HD_SAVED_BUCKET] != 0 ||
               (*found && !hd_types_equal(types, more, count));
    *found = true;
  }
  *found &= !several;
  return true;
}

bool hd_saved_take_all(hd_model_t *m) {
  hd_artifact_t *file = m->module->artifact;
  hd_context_t *context = hd_model_context(m);
  int64_t head[HD_SAVED_WORDS];
  hd_tensor_type_t *types = HD_ARENA_ARRAY(
      &m->constants.arena, hd_tensor_type_t, m->graph->inputs.size + 1);
  for (uint32_t i = 0; file && i < file->num_sections; i++) {
    if (file->sections[i].kind != HD_SECTION_TABLE)
      continue;
    if (!hd_saved_read_head(file, m->graph, i, head, types))
      return false;
    bool bounds = head[HD_SAVED_BUCKET] != 0;
    if (!hd_saved_is_asked(m, bounds, head[HD_SAVED_INOUTS]))
      continue;
    hd_turn_t *turn = hd_model_find(m, types, bounds);
    if (!turn && !hd_model_walk(m, context, types, NULL, NULL, &turn))
      return false;
    if (turn)
      hd_model_release(m, turn);
  }
  return true;
}
