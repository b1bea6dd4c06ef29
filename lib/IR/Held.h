// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers in elements that have room for them, as where several results go
// through one tensor in shared memory.
#ifndef HIDET_IR_HELD_H
#define HIDET_IR_HELD_H

#include "IR/Expr.h"

// Whether an element has room for one of another type: of as many bits, or an
// integer of fewer.
static inline bool hd_type_holds(hd_type_t room, hd_type_t type) {
  return hd_type_same_bits(room, type) ||
         (hd_type_is_integer(type) && hd_type_bits(type) == 8 &&
          hd_type_bits(room) == 16 && room.lanes == 1 && type.lanes == 1);
}

#endif
