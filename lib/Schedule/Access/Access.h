// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replacing what a scheduled kernel does with its tensor parameters: where it
// loads an element, a value is computed instead; where it stores one, something
// else is done with it. This is all that fusion does to a kernel, whoever wrote
// it.
#ifndef HIDET_SCHEDULE_ACCESS_ACCESS_H
#define HIDET_SCHEDULE_ACCESS_ACCESS_H

#include "Schedule/Translate/Build.h"

// What takes the place of the accesses to a parameter. A hook is called for
// each access that the kernel's text has, at least once; what it pushes to the
// builder's open block stands before the statement (for an access of several
// lanes, in a loop over them), and is evaluated only where the access was. It
// may use what is visible there: parameters, and the values that it is given.
// It may read what nobody writes during the launch, write registers that it
// declares, and, storing, write to tensors of its own; nothing else, for
// statements move past the kernel's own.
//
// A tensor that the kernel does not have is pushed to b->params
// (hd_b_param()), once: it becomes a parameter of the new kernel.
typedef struct hd_access_hook {
  const hd_var_t *param;
  void *argument;
  // The value of the element at `at`, of the parameter's element type: one
  // expression for each axis, constants or names of type i32 or i64, inside the
  // tensor. NULL: loads stay. What is pushed may turn an expression into
  // statements, so an expression alone is better; names for integer arithmetic
  // do no harm.
  const hd_expr_t *(*load)(void *argument, hd_builder_t *b,
                           const hd_expr_t *const *at);
  // The same, where this is the element of the tensor that most of it is
  // computed from: of points `load .. through ..`. kept is NULL: of any, a name
  // that stands for it. NULL: as load.
  const hd_expr_t *(*load_kept)(void *argument, hd_builder_t *b,
                                const hd_expr_t *const *at,
                                const hd_expr_t *kept);
  // Pushes what is done with the value (a constant or a name) instead of
  // storing it at `at`. NULL: stores stay.
  void (*store)(void *argument, hd_builder_t *b, const hd_expr_t *const *at,
                const hd_expr_t *value);
  // What is stored are pairs, vectors of two elements, at the pair's place: the
  // kernel is one of Schedule/Product/Pairs.h.
  bool pairs;
  // Pushes what a ROWS point of the parameter, in its loop, becomes. Such a
  // point is called for once, and may be given what it likes: it is the
  // kernel's author who asks for it. NULL: it is a yield.
  void (*rows)(void *argument, hd_builder_t *b, const hd_stmt_t *loop);
  // A tensor like the parameter that `store` stores to, too, each element once,
  // and nobody has: what goes there stays in registers. Behind a yield of
  // neighbours that the kernel's text tells of (across), stayed pushes what is
  // made of them: kept[e] is what task e of the point's loop left there. kept
  // is NULL: the text tells of none, and nothing may be pushed. stays is NULL:
  // there is no such tensor.
  const hd_var_t *stays;
  void (*stayed)(void *argument, hd_builder_t *b, const hd_stmt_t *loop,
                 const hd_var_t *kept);
} hd_access_hook_t;

typedef enum hd_access_kind {
  HD_ACCESS_LOADS,
  HD_ACCESS_STORES
} hd_access_kind_t;

// Why accesses of that kind to a kernel's parameter cannot be replaced, as the
// end of a sentence that begins with the tensor: "is accessed by atomics".
// NULL: they can. Functions stand in the way that pass inline could put in
// place.
const char *hd_access_obstacle(const hd_func_t *kernel, const hd_var_t *param,
                               hd_access_kind_t kind);

// A kernel that does as the hooks say; none of them may meet an obstacle. It is
// not an item of the module yet, which gives the arena alone. Its parameters
// are those of the kernel, in order, but for those of hooks which nothing
// accesses any more; then what hooks pushed to b->params. Tensor maps of what
// is left out are left out, too. Statements that did not change are shared with
// the kernel, which stays as it is.
hd_func_t *hd_access_rewrite(hd_module_t *module, const hd_func_t *kernel,
                             const hd_access_hook_t *hooks, size_t num_hooks,
                             const char *name);

#endif
