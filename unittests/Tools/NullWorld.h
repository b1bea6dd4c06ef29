// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What NullTest.c and its calls on modules (NullModule.c) share.
#ifndef HIDET_UNITTESTS_TOOLS_NULLWORLD_H
#define HIDET_UNITTESTS_TOOLS_NULLWORLD_H

#include <hidet/Device.h>

// In each of these argument number `null` is NULL. (-1: none.)
#define ARG(number, value) (null == (number) ? NULL : (value))

extern const char null_text[];
extern hidet_context_t *null_context;
extern hidet_module_t *null_module, *null_lowered;
extern hidet_argument_t null_arguments[3];

int null_module_parse(int null);
int null_module_import(int null);
int null_module_run_pass(int null);
int null_module_print(int null);
int null_module_emit(int null);
int null_module_launch(int null);
int null_module_parameter(int null);
int null_module_map(int null);

#endif
