// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A value's number is found by a text that says what computes it, and names its
// operands by their numbers: texts are compared, so that two values are taken
// for the same only where they are.
#include "Runtime/Prepared.h"

#include <string.h>

// Constants of more bytes than that are taken to be their own.
enum { MAX_CONSTANT = 1 << 16 };

typedef struct numberer {
  hd_numbering_t *numbering;
  hd_arena_t *arena;
  hd_ptr_map_t *map;
  hd_buffer_t text;
} numberer_t;

static hd_prepared_t *add_number(hd_numbering_t *n) {
  hd_prepared_t *made = HD_ARENA_NEW(n->arena, hd_prepared_t);
  made->number = ++n->count;
  return made;
}

// By the text, which is taken.
static hd_prepared_t *find_number(numberer_t *w) {
  hd_numbering_t *n = w->numbering;
  hd_prepared_t *found =
      w->text.failed ? add_number(n)
                     : hd_key_map_find(&n->known, w->text.data, w->text.size);
  if (!found) {
    char *key = hd_arena_alloc(n->arena, w->text.size);
    memcpy(key, w->text.data, w->text.size);
    found = add_number(n);
    hd_key_map_set(n->arena, &n->known, key, w->text.size, found);
  }
  w->text.size = 0;
  return found;
}

static void put_bytes(numberer_t *w, const void *data, size_t size) {
  hd_buffer_write(&w->text, data, size);
}

static void put_name(numberer_t *w, const char *name) {
  put_bytes(w, name, strlen(name) + 1);
}

static void put_int(numberer_t *w, int64_t value) {
  put_bytes(w, &value, sizeof(value));
}

static void put_type(numberer_t *w, const hd_value_t *value) {
  put_int(w, value->type);
  put_int(w, value->rank);
  for (int i = 0; i < value->rank; i++)
    put_int(w, value->shape[i]->u.i);
}

static hd_prepared_t *number_constant(numberer_t *w, const hd_value_t *value) {
  const hd_host_tensor_t *data = NULL;
  if (hd_ptr_map_get(w->numbering->shared, value)) {
    put_name(w, "shared");
    put_bytes(w, &value, sizeof(value));
    return find_number(w);
  }
  data = hd_constant_elements(w->arena, value);
  if (!data || data->bytes > MAX_CONSTANT)
    return add_number(w->numbering);
  put_name(w, "constant");
  put_type(w, value);
  put_bytes(w, data->data, data->bytes);
  return find_number(w);
}

static hd_prepared_t *number_of(numberer_t *w, const hd_value_t *value) {
  hd_prepared_t *found = hd_ptr_map_find(w->map, value);
  if (found)
    return found;
  // What no node gives is a constant.
  found = number_constant(w, value);
  hd_ptr_map_set(w->arena, w->map, value, found);
  return found;
}

// False where it is nothing that can be compared.
static bool put_attribute(numberer_t *w, const hd_attribute_t *a) {
  put_name(w, a->name);
  put_int(w, a->kind);
  put_int(w, (int64_t)a->count);
  switch (a->kind) {
  case HD_ATTRIBUTE_INT:
    put_int(w, a->u.i);
    return true;
  case HD_ATTRIBUTE_FLOAT:
    put_bytes(w, &a->u.f, sizeof(a->u.f));
    return true;
  case HD_ATTRIBUTE_INTS:
    put_bytes(w, a->u.ints, a->count * sizeof(int64_t));
    return true;
  case HD_ATTRIBUTE_FLOATS:
    put_bytes(w, a->u.floats, a->count * sizeof(double));
    return true;
  case HD_ATTRIBUTE_TYPE:
    put_int(w, a->u.type);
    return true;
  case HD_ATTRIBUTE_STRING:
    put_name(w, a->u.s);
    return true;
  case HD_ATTRIBUTE_STRINGS:
    for (size_t i = 0; i < a->count; i++)
      put_name(w, a->u.strings[i]);
    return true;
  case HD_ATTRIBUTE_TENSOR:
  case HD_ATTRIBUTE_GRAPH:
  case HD_ATTRIBUTE_SIZE:
  case HD_ATTRIBUTE_SIZES:
  case HD_ATTRIBUTE_KINDS:
    break;
  }
  return false;
}

// What a task computes, whatever it is called: those that passes make have
// another name in each expansion.
static void put_task(numberer_t *w, const hd_task_t *task) {
  hd_task_t unnamed = *task;
  unnamed.name = "";
  hd_task_print(&unnamed, &w->text);
}

// What a node is but for its operands; false as above.
static bool put_node(numberer_t *w, const hd_node_t *node) {
  if (node->task)
    put_task(w, node->task);
  else
    put_name(w, node->op);
  put_bytes(w, "", 1);
  bool ok = node->task || hd_node_is_reshape(node);
  for (uint32_t i = 0; ok && i < node->num_attributes; i++)
    ok = put_attribute(w, node->attributes[i]);
  return ok;
}

static void number_node(numberer_t *w, const hd_node_t *node) {
  bool ok = put_node(w, node);
  size_t same = ok ? find_number(w)->number : 0;
  w->text.size = 0;
  for (uint32_t k = 0; k < node->num_outputs; k++) {
    const hd_value_t *value = node->outputs[k];
    hd_prepared_t *made = NULL;
    size_t operands[64];
    if (!value)
      continue;
    if (ok && node->num_inputs <= 64) {
      for (uint32_t i = 0; i < node->num_inputs; i++)
        operands[i] =
            node->inputs[i] ? number_of(w, node->inputs[i])->number : 0;
      put_name(w, "node");
      put_int(w, (int64_t)same);
      put_int(w, k);
      put_type(w, value);
      put_bytes(w, operands, node->num_inputs * sizeof(*operands));
      made = find_number(w);
    }
    hd_ptr_map_set(w->arena, w->map, value,
                   made ? made : add_number(w->numbering));
  }
}

void hd_numbering_add(hd_numbering_t *numbering, hd_arena_t *arena,
                      const hd_graph_t *graph, hd_ptr_map_t *map) {
  numberer_t w = {.numbering = numbering, .arena = arena, .map = map};
  hd_cleanup_t cleanup;
  hd_budget_defer(arena->budget, &cleanup, hd_buffer_end, &w.text);
  for (size_t i = 0; i < graph->nodes.size; i++)
    number_node(&w, graph->nodes.data[i]);
  hd_budget_clean(arena->budget, &cleanup);
}

hd_prepared_t *hd_numbering_find(hd_numbering_t *numbering, hd_arena_t *arena,
                                 const hd_value_t *constant,
                                 hd_ptr_map_t *map) {
  numberer_t w = {.numbering = numbering, .arena = arena, .map = map};
  hd_cleanup_t cleanup;
  hd_budget_defer(arena->budget, &cleanup, hd_buffer_end, &w.text);
  hd_prepared_t *found = number_of(&w, constant);
  hd_budget_clean(arena->budget, &cleanup);
  return found;
}
