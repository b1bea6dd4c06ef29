// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a kernel on the simulator as it is, and with the accesses to some of its
// parameters replaced, and compares what they leave in memory.
//
// What is replaced is undone by the data: where x is loaded, an element of
// another tensor is, whose axes are in another order and whose numbers are
// coded; what is stored to y goes likewise to another tensor. So the tensors'
// elements, decoded, must be those of the kernel as it was, bit by bit.
#ifndef HIDET_UNITTESTS_FUSION_ACCESSHELP_H
#define HIDET_UNITTESTS_FUSION_ACCESSHELP_H

#include "Runtime/Program.h"
#include "Schedule/Access/Access.h"
#include "UnitTest.h"

#define HD_MIRRORED "_mirrored" // Ends the name of what stands for a tensor,
#define HD_STRAIGHT "_straight" // of one whose axes keep their order, this.

// What a hook makes.
typedef enum hd_hook_style {
  HD_HOOK_EXPRESSION, // Nothing but an expression.
  HD_HOOK_NAMES,      // Names for what is loaded.
  HD_HOOK_STATEMENTS, // A register, in branches.
  HD_HOOK_STRAIGHT,   // An expression, and the axes' order stays.
  HD_HOOK_FLAT,       // An expression, of a tensor of one axis, row-major.
  HD_HOOK_STYLES
} hd_hook_style_t;

enum { HD_MAX_PARAMS = 16 };

typedef struct hd_access_run {
  hd_context_t context;
  hd_module_t *module;
  const hd_func_t *kernel; // Its functions inlined.
  hd_func_t *changed;      // Of the last hd_access_change().
  hd_buffer_t printed;     // That.
  int64_t sizes[HD_MAX_PARAMS];
  struct hd_access_launch *before; // What the kernel as it was left.
} hd_access_run_t;

// text: a module; kernel: the name of one, NULL: the last. sizes: values of its
// scalar parameters, in order. The test fails on every error.
void hd_access_begin(hd_access_run_t *run, const char *text, const char *kernel,
                     const int64_t *sizes);
void hd_access_end(hd_access_run_t *run);
const hd_var_t *hd_access_param(const hd_access_run_t *run, const char *name);

// Replaces the loads of `in` tensors and the stores to others that are named
// ("x y"). What is made is verified, printed and parsed.
void hd_access_change(hd_access_run_t *run, const char *names,
                      hd_hook_style_t style);
// Runs both and compares; sanitized, so that what is out of bounds is found.
void hd_access_compare(hd_access_run_t *run);

// Every parameter without an obstacle by itself, then all of them, in each
// style. Returns how many parameters there were.
unsigned hd_access_compare_all(hd_access_run_t *run);

// The same for a kernel of a text (which as above), whose scalars are 37, 21, 5
// and 3: the test fails unless it has so many parameters without an obstacle.
void hd_access_expect_same(const char *text, unsigned params);

// A text's module; its kernel of that name (NULL: the last).
hd_module_t *hd_access_parse(hd_access_run_t *run, const char *text);
const hd_func_t *hd_access_kernel(const hd_module_t *module, const char *name);

// What stands in another tensor for a number of an element of that type.
double hd_access_coded(hd_scalar_t type, double x);
void hd_access_fail(hd_access_run_t *run, const char *what);

// What of a parameter hooks replace: loads of `in` tensors, else stores.
hd_access_kind_t hd_access_kind(const hd_var_t *param);

// Whether the changed kernel's text has this.
bool hd_access_has(const hd_access_run_t *run, const char *part);

#endif
