// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests of tasks share: tasks from text, tensor types from text,
// attributes in one line.
#ifndef HIDET_UNITTESTS_GRAPH_TASKHELP_H
#define HIDET_UNITTESTS_GRAPH_TASKHELP_H

#include "Graph/Bind/Binding.h"
#include "UnitTest.h"

// The first task of a text; the test fails where it does not parse.
const hd_task_t *hd_test_task(hd_context_t *context, const char *text);
// "f32[2, 3]"
hd_tensor_type_t hd_test_type(const char *text);

// Each lives until the program ends.
const hd_attribute_t *hd_test_int(const char *name, int64_t value);
const hd_attribute_t *hd_test_float(const char *name, double value);
const hd_attribute_t *hd_test_type_of(const char *name, hd_scalar_t type);
const hd_attribute_t *hd_test_ints(const char *name, size_t count,
                                   const int64_t *values);
const hd_attribute_t *hd_test_floats(const char *name, size_t count,
                                     const double *values);

// What is bound: types are separated by spaces; attributes end with a NULL.
typedef struct hd_test_case {
  const char *task;
  const char *inputs; // "f32[2, 3] i64[]"
  const hd_attribute_t *attributes[8];
} hd_test_case_t;

// NULL where the binder refuses. The arena is of the module.
const hd_task_binding_t *hd_test_bind(hd_context_t *context,
                                      const hd_test_case_t *test);

#endif
