// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions made for values of their integer parameters: the pass `specialize`,
// and the runtime, which knows every size before it compiles.
#ifndef HIDET_IR_PASSES_SPECIALIZE_H
#define HIDET_IR_PASSES_SPECIALIZE_H

#include "IR/Module.h"

// What a parameter is worth.
typedef struct hd_known {
  const hd_var_t *var; // A parameter of the function that is a number.
  int64_t value;       // Of its type; of a float the bits of a double.
} hd_known_t;

// func with the parameters replaced by their values everywhere but in the
// signature, so that launches are as before; device.sms by sms, where that is
// not 0. The same pointer where nothing changed. New tensors and launch clauses
// are in the arena. The result may break rules that func keeps (a dimension of
// 0): verify it.
const hd_func_t *hd_func_specialize(hd_arena_t *arena, const hd_func_t *func,
                                    const hd_known_t *known, size_t count,
                                    int64_t sms);

// Whether an assertion that every thread comes to fails, whatever the launch:
// of constants alone, before anything else is done.
bool hd_func_failed_assert(const hd_func_t *func, const hd_stmt_t **failed);

// Whether an integer parameter is a size: it stands in the shape or the layout
// of a tensor, of the signature or of the body, or in a launch clause.
bool hd_func_is_size(const hd_func_t *func, const hd_var_t *param);

#endif
