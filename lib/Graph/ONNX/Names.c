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

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LENGTH = 100 };

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

static const char *take_name(hd_onnx_import_t *im, const char *word) {
  const char *name = hd_arena_strndup(im->arena, word, strlen(word));
  unsigned *next = HD_ARENA_NEW(im->scratch, unsigned);
  *next = 2;
  hd_key_map_set_name(im->scratch, &im->names, name, next);
  return name;
}

const char *hd_import_identifier(hd_onnx_import_t *im, const char *name) {
  char word[MAX_LENGTH + 16];
  size_t size = make_word(name, word);
  if (hd_is_reserved(word) || strcmp(word, "graph") == 0)
    strcpy(word + size++, "_");
  // The number to try next where it is taken.
  unsigned *next = hd_key_map_find_name(&im->names, word);
  if (!next)
    return take_name(im, word);
  // Numbers only grow, so all the tries together are few.
  do
    snprintf(word + size, sizeof word - size, "_%u", (*next)++);
  while (hd_key_map_find_name(&im->names, word));
  return take_name(im, word);
}

bool hd_import_bind(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                    const char *name, const hd_value_t *value) {
  if (hd_key_map_find_name(&scope->values, name))
    return false;
  const hd_value_t **box = HD_ARENA_NEW(im->scratch, const hd_value_t *);
  *box = value;
  hd_key_map_set_name(im->scratch, &scope->values, name, box);
  return true;
}

bool hd_import_find(const hd_onnx_scope_t *scope, const char *name,
                    const hd_value_t **value) {
  for (; scope; scope = scope->outer) {
    const hd_value_t *const *box = hd_key_map_find_name(&scope->values, name);
    if (box) {
      *value = *box;
      return true;
    }
  }
  return false;
}

const hd_var_t *hd_import_dimension(hd_onnx_import_t *im, hd_graph_t *graph,
                                    const char *name, bool make) {
  const hd_var_t *dim = hd_key_map_find_name(&im->dims, name);
  if (dim || !make)
    return dim;
  dim = hd_var_make(im->arena, hd_import_identifier(im, name), HD_VAR_PARAM,
                    hd_type(HD_I64), (hd_loc_t){0});
  hd_key_map_set_name(im->scratch, &im->dims, name, dim);
  hd_vec_push(im->arena, &graph->dims, dim);
  return dim;
}
