// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TaskHelp.h"
#include "TensorText.h"

#include "IR/Text/Parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hd_module_t *parse(hd_context_t *context, const char *text) {
  hd_module_t *module = hd_module_parse(context, "task", text, strlen(text), 1);
  if (!module) {
    hd_buffer_t said = {0};
    hd_diagnostics_print(&context->diags, false, &said);
    fail_msg("%s\n%s", text, hd_buffer_text(&said));
  }
  return module;
}

const hd_task_t *hd_test_task(hd_context_t *context, const char *text) {
  return parse(context, text)->items.data[0].u.task;
}

hd_tensor_type_t hd_test_type(const char *text) {
  return hd_test_read_type(&text);
}

static hd_attribute_t *make(const char *name, hd_attribute_kind_t kind) {
  static hd_attribute_t made[256];
  static unsigned count;
  assert_true(count < 256);
  hd_attribute_t *a = &made[count++];
  a->name = name;
  a->kind = kind;
  return a;
}

const hd_attribute_t *hd_test_int(const char *name, int64_t value) {
  hd_attribute_t *a = make(name, HD_ATTRIBUTE_INT);
  a->u.i = value;
  return a;
}

const hd_attribute_t *hd_test_float(const char *name, double value) {
  hd_attribute_t *a = make(name, HD_ATTRIBUTE_FLOAT);
  a->u.f = value;
  return a;
}

const hd_attribute_t *hd_test_type_of(const char *name, hd_scalar_t type) {
  hd_attribute_t *a = make(name, HD_ATTRIBUTE_TYPE);
  a->u.type = type;
  return a;
}

const hd_attribute_t *hd_test_ints(const char *name, size_t count,
                                   const int64_t *values) {
  hd_attribute_t *a = make(name, HD_ATTRIBUTE_INTS);
  a->count = count;
  a->u.ints = values;
  return a;
}

const hd_attribute_t *hd_test_floats(const char *name, size_t count,
                                     const double *values) {
  hd_attribute_t *a = make(name, HD_ATTRIBUTE_FLOATS);
  a->count = count;
  a->u.floats = values;
  return a;
}

const hd_task_binding_t *hd_test_bind(hd_context_t *context,
                                      const hd_test_case_t *test) {
  hd_module_t *module = parse(context, test->task);
  hd_tensor_type_t inputs[16];
  uint32_t num_inputs = 0, num_attributes = 0;
  for (const char *at = test->inputs; *at;)
    inputs[num_inputs++] = hd_test_read_type(&at);
  while (num_attributes < 8 && test->attributes[num_attributes])
    num_attributes++;
  return hd_task_bind(context, &module->arena, module->items.data[0].u.task,
                      inputs, num_inputs, test->attributes, num_attributes,
                      (hd_loc_t){0}, "node");
}
