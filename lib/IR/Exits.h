// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How control leaves blocks: by their end, or by return, break and continue. A
// break or continue is that of the innermost loop around it, over a mapping
// too.
#ifndef HIDET_IR_EXITS_H
#define HIDET_IR_EXITS_H

#include "IR/Stmt.h"

// Whether control may reach the end of a block, or what follows a statement:
// false where each way ends in return, break or continue, or in a loop that
// nothing but a return ends.
bool hd_block_falls_through(hd_block_t block);
bool hd_stmt_falls_through(const hd_stmt_t *stmt);
// Whether control may leave a statement another way: what follows it is then
// done by some threads only.
bool hd_stmt_may_leave(const hd_stmt_t *stmt);
// Whether a loop's body holds a break that is the loop's own; a break or a
// continue.
bool hd_body_breaks(hd_block_t body);
bool hd_body_exits(hd_block_t body);
bool hd_block_holds_return(hd_block_t block);

#endif
