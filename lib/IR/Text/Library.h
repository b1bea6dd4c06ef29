// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What comes with the compiler, written in the language and embedded: device
// functions (lib/IR/library/*.hir, fn items alone), the tasks of operators
// (lib/Graph/operators/*.hir, task items alone) and rewrites of graphs
// (lib/Graph/rewrites/*.hir). Each item begins its line. It is read when it is
// first named, so that work pays for what it uses.
#ifndef HIDET_IR_TEXT_LIBRARY_H
#define HIDET_IR_TEXT_LIBRARY_H

#include "IR/Module.h"

// The module that holds every overload of the function of that name; NULL
// where the library has none, or after errors (reported).
hd_module_t *hd_library_load(hd_context_t *context, const char *name);

// The function of that name that has compile-time parameters; NULL where the
// library has none, or after errors (reported). Its instances belong to the
// module that asks for them, as if the function stood in it.
hd_generic_t *hd_library_generic(hd_context_t *context, const char *name);

// Whether a function is one of the library's: it belongs to the context, and is
// never changed. All others are the users', whatever module they lie in.
bool hd_library_owns(const hd_context_t *context, const hd_func_t *func);

// The names of the functions, in order of the files; an overloaded one comes
// once for each overload. NULL past the end.
const char *hd_library_name(size_t index);

// A task of the operator library; it lives as long as the context. NULL where
// there is none, or after errors (reported).
const hd_task_t *hd_library_task(hd_context_t *context, const char *name);
// The module of all rewrites of graphs, in order of the files; NULL after
// errors (reported).
const hd_module_t *hd_library_rewrites(hd_context_t *context);
// The module of all schedule templates and their kernels
// (lib/Schedule/templates/*.hir), in order of the files; instances are added to
// it. NULL after errors (reported).
hd_module_t *hd_library_templates(hd_context_t *context);
// As hd_library_name(), of the tasks.
const char *hd_library_task_name(size_t index);

#endif
