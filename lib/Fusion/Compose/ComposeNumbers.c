// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants of one element in a composed task: numbers, and no inputs.
#include "Fusion/Compose/ComposeState.h"
#include "Fusion/Group/GroupState.h"
#include "Schedule/Terms/Prepare.h"

typedef struct literal {
  hd_arena_t *arena;
  const hd_task_value_t *input;
  const hd_term_t *number;
} literal_t;

static const hd_term_t *put_literal(void *argument, const hd_term_t *term) {
  const literal_t *l = argument;
  bool reads = term->kind == HD_TERM_LOAD && term->u.value == l->input;
  return reads ? l->number : term;
}

static bool loads_else(void *argument, const hd_term_t *term) {
  literal_t *l = argument;
  if (term->kind == HD_TERM_LOADELSE && term->u.value == l->input)
    l->number = NULL;
  return l->number;
}

static void put_number(hd_task_t *flat, literal_t *l) {
  for (size_t i = 0; i < flat->definitions.size; i++)
    hd_flat_walk(flat->definitions.data[i]->term, loads_else, l);
  for (size_t i = 0; l->number && i < flat->definitions.size; i++) {
    hd_definition_t *copy =
        HD_ARENA_COPY(l->arena, hd_definition_t, flat->definitions.data[i]);
    copy->term = hd_flat_rewrite(l->arena, copy->term, put_literal, l);
    flat->definitions.data[i] = copy;
  }
}

static const hd_term_t *number_of(hd_arena_t *arena, hd_scalar_t type,
                                  const hd_host_tensor_t *data) {
  return hd_type_is_float(hd_type(type))
             ? hd_flat_float(arena, type, hd_host_tensor_get(data, 0))
             : hd_flat_int(arena, type, hd_host_tensor_get_int(data, 0));
}

void hd_composer_put_numbers(hd_arena_t *arena, hd_merged_t *merged) {
  hd_task_t *flat = merged->flat;
  size_t kept = 0;
  for (size_t i = 0; i < flat->inputs.size; i++) {
    const hd_value_t *value = merged->inputs.data[i];
    const hd_host_tensor_t *data =
        hd_group_is_literal(value) ? hd_constant_elements(arena, value) : NULL;
    literal_t l = {arena, flat->inputs.data[i], NULL};
    if (data && !hd_type_is_bool(hd_type(value->type)))
      l.number = number_of(arena, value->type, data);
    if (l.number)
      put_number(flat, &l);
    if (l.number)
      continue;
    flat->inputs.data[kept] = flat->inputs.data[i];
    merged->inputs.data[kept++] = value;
  }
  flat->inputs.size = merged->inputs.size = kept;
}

bool hd_composer_merge_one(hd_composer_t *composer, hd_arena_t *arena,
                           const char *name, hd_composite_t *out) {
  if (!hd_composer_merge(composer, arena, name, out) || out->outputs.size != 1)
    return false;
  hd_composer_put_numbers(arena, &out->merged);
  hd_task_inline_all(arena, out->merged.flat);
  return true;
}
