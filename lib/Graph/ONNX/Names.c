// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of a model become identifiers of the language:
//
//   /model/layers.0/attn/MatMul_output_0 -> model_layers_0_attn_MatMul_output_0
//   123 -> t123          in -> in_          x, of another graph -> x_2
//
// So the same model always gives the same text.
#include "Graph/ONNX/State.h"

#include "IR/Keywords.h"
#include "IR/Tensor.h"
#include "IR/Text/Parser.h"
#include "Support/Hash.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// An arena serves uthash as well as the heap.
#define uthash_malloc(size) hd_arena_alloc(arena, size)
#define uthash_free(pointer, size) ((void)(pointer), (void)(size))
#include <uthash.h>

enum { MAX_LENGTH = 100 };

typedef struct taken {
  const char *name;
  uint32_t next; // The number to try next where it is taken.
  UT_hash_handle hh;
} taken_t;

struct hd_onnx_names {
  taken_t *taken;
};

struct hd_onnx_bound {
  const char *name;
  const hd_value_t *value;
  UT_hash_handle hh;
};

struct hd_onnx_dim {
  const char *name;
  const hd_var_t *var;
  UT_hash_handle hh;
};

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Runs of other characters become one underscore, none at the beginning.
static size_t make_word(const char *name, char *word) {
  size_t size = 0;
  bool gap = false;
  for (; *name && size < MAX_LENGTH - 2; name++) {
    bool plain = is_letter(*name) || is_digit(*name) || *name == '_';
    if (!plain) {
      gap = size > 0;
      continue;
    }
    if (size == 0 && is_digit(*name))
      word[size++] = 't';
    if (gap)
      word[size++] = '_';
    gap = false;
    word[size++] = *name;
  }
  if (size == 0)
    word[size++] = 't';
  if (size == 1 && word[0] == '_') // What is left out is written so.
    word[size++] = '_';
  word[size] = '\0';
  return size;
}

const char *hd_import_word(hd_arena_t *arena, const char *name) {
  char word[MAX_LENGTH + 1];
  size_t size = make_word(name, word);
  return hd_arena_strndup(arena, word, size);
}

static taken_t *find_taken(hd_onnx_names_t *names, const char *word) {
  taken_t *taken = NULL;
  HASH_FIND_STR(names->taken, word, taken);
  return taken;
}

static const char *take(hd_onnx_import_t *im, const char *word) {
  hd_arena_t *arena = im->scratch;
  taken_t *taken = HD_ARENA_NEW(arena, taken_t);
  taken->name = hd_arena_strndup(im->arena, word, strlen(word));
  taken->next = 2;
  HASH_ADD_KEYPTR(hh, im->names->taken, taken->name, strlen(taken->name),
                  taken);
  return taken->name;
}

const char *hd_import_identifier(hd_onnx_import_t *im, const char *name) {
  if (!im->names)
    im->names = HD_ARENA_NEW(im->scratch, hd_onnx_names_t);
  char word[MAX_LENGTH + 16];
  size_t size = make_word(name, word);
  if (hd_is_reserved(word) || strcmp(word, "graph") == 0)
    strcpy(word + size++, "_");
  taken_t *taken = find_taken(im->names, word);
  if (!taken)
    return take(im, word);
  // Numbers only grow, so all the tries together are few.
  do
    snprintf(word + size, sizeof word - size, "_%u", taken->next++);
  while (find_taken(im->names, word));
  return take(im, word);
}

bool hd_import_bind(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                    const char *name, const hd_value_t *value) {
  hd_arena_t *arena = im->scratch;
  struct hd_onnx_bound *bound = NULL;
  HASH_FIND_STR(scope->values, name, bound);
  if (bound)
    return false;
  bound = HD_ARENA_NEW(arena, struct hd_onnx_bound);
  bound->name = name;
  bound->value = value;
  HASH_ADD_KEYPTR(hh, scope->values, bound->name, strlen(name), bound);
  return true;
}

bool hd_import_find(const hd_onnx_scope_t *scope, const char *name,
                    const hd_value_t **value) {
  for (; scope; scope = scope->outer) {
    struct hd_onnx_bound *bound = NULL;
    HASH_FIND_STR(scope->values, name, bound);
    if (bound) {
      *value = bound->value;
      return true;
    }
  }
  return false;
}

const hd_var_t *hd_import_dimension(hd_onnx_import_t *im, hd_graph_t *graph,
                                    const char *name, bool make) {
  hd_arena_t *arena = im->scratch;
  struct hd_onnx_dim *dim = NULL;
  HASH_FIND_STR(im->dims, name, dim);
  if (dim || !make)
    return dim ? dim->var : NULL;
  dim = HD_ARENA_NEW(arena, struct hd_onnx_dim);
  dim->name = name;
  dim->var = hd_var_make(im->arena, hd_import_identifier(im, name),
                         HD_VAR_PARAM, hd_type(HD_I64), (hd_loc_t){0});
  HASH_ADD_KEYPTR(hh, im->dims, dim->name, strlen(name), dim);
  hd_vec_push(im->arena, &graph->dims, dim->var);
  return dim->var;
}
