// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NullTest.c's calls on modules.
#include "NullWorld.h"

#include <hidet/Launch.h>
#include <hidet/Model.h>
#include <stdbool.h>
#include <string.h>

const char null_text[] = "kernel k(n: i32, in x: f32[n], out y: f32[n])\n"
                         "  grid(1) block(32) {\n"
                         "  for i in 0..n { y[i] = x[i] }\n"
                         "}\n"
                         "graph g(a: f32[4]) -> b {\n"
                         "  b: f32[4] = relu(a)\n"
                         "}\n";

hidet_context_t *null_context;
hidet_module_t *null_module, *null_lowered;
hidet_argument_t null_arguments[3];

int null_module_parse(int null) {
  hidet_module_t *made = null_module;
  int status =
      hidet_module_parse(ARG(0, null_context), ARG(1, "m"), ARG(2, null_text),
                         strlen(null_text), ARG(4, &made));
  if (null != 4 && status && made)
    return HIDET_INTERNAL;
  if (null != 4)
    hidet_module_destroy(made);
  return status;
}

int null_module_import(int null) {
  hidet_module_t *made = NULL;
  int status = hidet_module_import(ARG(0, null_context), ARG(1, "none.onnx"),
                                   ARG(2, &made));
  return null < 0 ? status != HIDET_USAGE : status; // There is no such file.
}

int null_module_run_pass(int null) {
  return hidet_module_run_pass(ARG(0, null_lowered), ARG(1, "lower"),
                               ARG(2, "layouts=keep"));
}

int null_module_print(int null) {
  char *made = NULL;
  int status = hidet_module_print(ARG(0, null_module), ARG(1, &made));
  hidet_text_free(made);
  return status;
}

int null_module_emit(int null) {
  char *made = NULL;
  int status = hidet_module_emit(ARG(0, null_lowered), ARG(1, "ptx"),
                                 ARG(2, "sm_80"), ARG(3, "k"), ARG(4, &made));
  hidet_text_free(made);
  return status;
}

int null_module_launch(int null) {
  hidet_launch_t launch;
  return hidet_module_launch(ARG(0, null_lowered), ARG(1, "k"),
                             ARG(2, null_arguments), 3, 132, ARG(5, &launch));
}

int null_module_parameter(int null) {
  hidet_parameter_t parameter;
  return hidet_module_parameter(ARG(0, null_lowered), ARG(1, "k"), 0,
                                ARG(3, &parameter));
}

// The kernel has no map: with all null_arguments that is what is reported.
int null_module_map(int null) {
  hidet_map_t map;
  int status = hidet_module_map(ARG(0, null_lowered), ARG(1, "k"),
                                ARG(2, null_arguments), 3, 0, ARG(5, &map));
  bool told = strstr(hidet_messages(), "fewer parameters") ||
              strstr(hidet_messages(), "no tensor map");
  return null < 0 ? !told : status;
}
