// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the row of Operators.def for a node, and of Attributes.def.
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

static const hd_operator_row_t rows[] = {
#define HD_ONNX(domain, op, since, function, argument, min_inputs, max_inputs) \
  {domain, op, since, hd_onnx_##function, argument, min_inputs, max_inputs},
#include "Graph/ONNX/Operators.def"
#undef HD_ONNX
};

bool hd_operator_takes_lists(const hd_operator_row_t *row) {
  static const hd_lower_fn_t functions[] = {
      hd_onnx_concat_from_sequence,
      hd_onnx_identity,
      hd_onnx_loop,
      hd_onnx_optional,
      hd_onnx_optional_get,
      hd_onnx_optional_has,
      hd_onnx_sequence_at,
      hd_onnx_sequence_erase,
      hd_onnx_sequence_insert,
      hd_onnx_sequence_length,
      hd_onnx_sequence_map,
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (row->lower == functions[i])
      return true;
  return false;
}

bool hd_operator_is_refused(const hd_operator_row_t *row) {
  return !row || row->lower == hd_onnx_random;
}

const hd_operator_row_t *hd_operator_row(size_t index) {
  return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

const hd_operator_row_t *hd_operator_find(const char *domain, const char *op,
                                          int version) {
  const hd_operator_row_t *found = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const hd_operator_row_t *row = &rows[i];
    if (row->since <= version && (!found || row->since > found->since) &&
        row->op[0] == op[0] && strcmp(row->op, op) == 0 &&
        strcmp(row->domain, domain) == 0)
      found = row;
  }
  return found;
}

typedef struct {
  const char *domain, *op;
  int since;
  const char *names;
} attributes_t;

static const attributes_t attributes[] = {
#define HD_ONNX_ATTRIBUTES(domain, op, since, names) {domain, op, since, names},
#include "Graph/ONNX/Attributes.def"
#undef HD_ONNX_ATTRIBUTES
};

const char *hd_operator_attributes(const char *domain, const char *op,
                                   int version) {
  const attributes_t *found = NULL;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    const attributes_t *row = &attributes[i];
    if (row->since <= version && (!found || row->since > found->since) &&
        strcmp(row->op, op) == 0 && strcmp(row->domain, domain) == 0)
      found = row;
  }
  return found ? found->names : "";
}
