// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device functions that come with the compiler, written in the language
// (lib/IR/library/*.hir, embedded). The files hold fn items alone, each
// beginning its line; a function is read when it is first named, so a kernel
// pays for what it calls.
#ifndef HIDET_IR_LIBRARY_H
#define HIDET_IR_LIBRARY_H

#include "IR/Module.h"

// The module that holds every overload of the function of that name; NULL
// where the library has none, or after errors (reported).
hd_module_t *hd_library_load(hd_context_t *context, const char *name);

// The names of the functions, in order of the files; an overloaded one comes
// once for each overload. NULL past the end.
const char *hd_library_name(hd_context_t *context, size_t index);

// A task of the operator library (lib/Graph/operators/*.hir), read when it is
// first named; it lives as long as the context. NULL where there is none.
const hd_task_t *hd_library_task(hd_context_t *context, const char *name);

#endif
