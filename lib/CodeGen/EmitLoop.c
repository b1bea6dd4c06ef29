// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops. One marked `unroll` is emitted once for each iteration, its variable a
// constant, so that indices of register tensors fold while emitting. The host
// can index them while it runs: there a loop stays one where it would become
// thousands of copies.
#include "CodeGen/EmitAccess.h"
#include "CodeGen/SimAbi.h"
#include "IR/Rewrite.h"

#include <llvm-c/DebugInfo.h>

#define B e->builder

static bool is_true(LLVMValueRef value) {
  return LLVMIsAConstantInt(value) && !LLVMIsNull(value);
}

static bool is_false(LLVMValueRef value) {
  return LLVMIsAConstantInt(value) && LLVMIsNull(value);
}

// On the host, a loop's back edge: leaves where the launch was stopped.
static void check_stop(hd_emit_t *e) {
  LLVMValueRef index =
      LLVMConstInt(e->i64, offsetof(hd_sim_block_t, stop), false);
  LLVMValueRef at = LLVMBuildGEP2(B, e->i8, e->block, &index, 1, "");
  LLVMValueRef stop = LLVMBuildLoad2(B, e->i32, at, "stop");
  LLVMSetVolatile(stop, true);
  LLVMBasicBlockRef go_on = hd_emit_new_block(e, "go_on");
  stop = LLVMBuildICmp(B, LLVMIntNE, stop, LLVMConstNull(e->i32), "");
  LLVMBuildCondBr(B, stop, e->stopped, go_on);
  hd_emit_at(e, go_on);
}

typedef struct loop {
  const hd_stmt_t *stmt;
  LLVMTypeRef type;
  LLVMValueRef first, limit, step;
  bool is_signed;
} loop_t;

// Where `continue` leads: to what follows the body.
static void emit_body(hd_emit_t *e, hd_block_t body) {
  e->exits->next = NULL;
  hd_emit_block(e, body);
  if (!e->exits->next)
    return;
  hd_emit_go(e, e->exits->next);
  hd_emit_at(e, e->exits->next);
}

static void emit_iteration(hd_emit_t *e, const loop_t *loop,
                           LLVMValueRef value) {
  hd_emit_bind(e, loop->stmt->u.loop.var, value);
  emit_body(e, loop->stmt->u.loop.body);
}

// Goes on in a block, or stays at an end where nothing goes there.
static void come_out(hd_emit_t *e, LLVMBasicBlockRef block) {
  if (LLVMGetFirstUse(LLVMBasicBlockAsValue(block)))
    hd_emit_at(e, block);
  else
    LLVMDeleteBasicBlock(block);
}

// Around a loop: where `break` leads.
static hd_emit_exits_t *open_exits(hd_emit_t *e, hd_emit_exits_t *exits) {
  hd_emit_exits_t *outer = e->exits;
  *exits = (hd_emit_exits_t){0};
  e->exits = exits;
  return outer;
}

static void close_exits(hd_emit_t *e, hd_emit_exits_t *outer) {
  LLVMBasicBlockRef end = e->exits->end;
  e->exits = outer;
  if (!end)
    return;
  hd_emit_go(e, end);
  hd_emit_at(e, end);
}

void hd_emit_exit(hd_emit_t *e, LLVMBasicBlockRef *to) {
  if (!*to)
    *to = hd_emit_new_block(e, "exit");
  LLVMBuildBr(B, *to);
}

static bool is_known(const loop_t *loop) {
  return LLVMIsAConstantInt(loop->first) && LLVMIsAConstantInt(loop->limit) &&
         LLVMIsAConstantInt(loop->step);
}

// Of a loop that is known, whose first value is below its limit: up to that, or
// to the type's end. A step that is not positive ends it after one.
static uint64_t trips_of(const loop_t *loop) {
  LLVMValueRef step = loop->step;
  if (LLVMIsNull(step) ||
      (loop->is_signed && LLVMConstIntGetSExtValue(step) < 0))
    return 1;
  uint64_t reach = loop->is_signed
                       ? (uint64_t)LLVMConstIntGetSExtValue(loop->limit) -
                             (uint64_t)LLVMConstIntGetSExtValue(loop->first)
                       : LLVMConstIntGetZExtValue(loop->limit) -
                             LLVMConstIntGetZExtValue(loop->first);
  return (reach - 1) / LLVMConstIntGetZExtValue(step) + 1;
}

static LLVMValueRef is_below(hd_emit_t *e, const loop_t *loop, LLVMValueRef a,
                             LLVMValueRef b) {
  return LLVMBuildICmp(B, loop->is_signed ? LLVMIntSLT : LLVMIntULT, a, b, "");
}

// An iteration for each value, the first of which is below the limit.
static void emit_unrolled(hd_emit_t *e, const loop_t *loop) {
  if (!is_known(loop)) {
    hd_emit_error(e, loop->stmt->loc, HD_E0210,
                  ": the bounds of an unrolled loop");
    return;
  }
  uint64_t trips = trips_of(loop), outer = e->copies;
  uint64_t value = LLVMConstIntGetZExtValue(loop->first);
  uint64_t step = LLVMConstIntGetZExtValue(loop->step);
  e->copies *= trips;
  for (uint64_t i = 0; i < trips; i++, value += step) {
    if (!hd_emit_count(e) || hd_emit_terminated(e))
      break;
    emit_iteration(e, loop, LLVMConstInt(loop->type, value, false));
  }
  e->copies = outer;
}

// Whether value + step stays below the type's end wherever value < limit.
static bool never_wraps(const loop_t *loop) {
  if (!LLVMIsAConstantInt(loop->step))
    return false;
  unsigned long long step = LLVMConstIntGetZExtValue(loop->step);
  if (step == 1)
    return true;
  if (!LLVMIsAConstantInt(loop->limit))
    return false;
  unsigned bits = LLVMGetIntTypeWidth(loop->type);
  uint64_t end = loop->is_signed ? (UINT64_C(1) << (bits - 1)) - 1
                                 : ~UINT64_C(0) >> (64 - bits);
  if (loop->is_signed) {
    long long limit = LLVMConstIntGetSExtValue(loop->limit);
    return limit < 0 || step <= end - (uint64_t)limit;
  }
  return step <= end - LLVMConstIntGetZExtValue(loop->limit);
}

// value + step < limit, without passing the type's end.
static LLVMValueRef goes_on(hd_emit_t *e, const loop_t *loop,
                            LLVMValueRef value, LLVMValueRef next) {
  if (never_wraps(loop))
    return is_below(e, loop, next, loop->limit);
  LLVMValueRef left = LLVMBuildSub(B, loop->limit, value, "");
  return LLVMBuildICmp(B, LLVMIntUGT, left, loop->step, "");
}

static bool is_no_loop(void *argument, const hd_stmt_t *stmt) {
  (void)argument;
  return stmt->kind != HD_STMT_FOR && stmt->kind != HD_STMT_WHILE;
}

// Loops that may run for long without another loop inside that looks.
static bool needs_stop(const hd_emit_t *e, const loop_t *loop) {
  if (!e->host)
    return false;
  if (LLVMIsAConstantInt(loop->first) && LLVMIsAConstantInt(loop->limit)) {
    uint64_t trips = (uint64_t)LLVMConstIntGetSExtValue(loop->limit) -
                     (uint64_t)LLVMConstIntGetSExtValue(loop->first);
    if (trips <= 65536)
      return false;
  }
  return LLVMGetIntTypeWidth(loop->type) > 32 ||
         !hd_walk_block(loop->stmt->u.loop.body, is_no_loop, NULL, NULL);
}

// Says at a loop's back edge that it is not to be unrolled: ptxas would do it.
static void keep_rolled(hd_emit_t *e, LLVMValueRef branch) {
  static const char name[] = "llvm.loop.unroll.disable";
  LLVMMetadataRef text =
      LLVMMDStringInContext2(e->context, name, sizeof name - 1);
  LLVMMetadataRef property = LLVMMDNodeInContext2(e->context, &text, 1);
  // The name of a loop is a node whose first operand is itself.
  LLVMMetadataRef self = LLVMTemporaryMDNode(e->context, NULL, 0);
  LLVMMetadataRef parts[] = {self, property};
  LLVMMetadataRef id = LLVMMDNodeInContext2(e->context, parts, 2);
  LLVMMetadataReplaceAllUsesWith(self, id);
  LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(e->context, "llvm.loop", 9),
                  LLVMMetadataAsValue(e->context, id));
}

// A loop whose body is emitted copies times an iteration. Returns the value
// that the variable has after it.
static LLVMValueRef emit_rolled(hd_emit_t *e, const loop_t *loop,
                                LLVMValueRef first, const loop_t *bounds,
                                int copies) {
  LLVMBasicBlockRef before = LLVMGetInsertBlock(B);
  LLVMValueRef enters = is_below(e, bounds, first, bounds->limit);
  if (is_false(enters))
    return first;
  LLVMBasicBlockRef body = hd_emit_new_block(e, "for");
  LLVMBasicBlockRef after = hd_emit_new_block(e, "end");
  hd_emit_branch(e, enters, body, after);
  hd_emit_open_loop(e, body, NULL, loop->stmt->u.loop.body);
  LLVMValueRef phi = LLVMBuildPhi(B, loop->type, loop->stmt->u.loop.var->name);
  LLVMAddIncoming(phi, &first, &before, 1);
  LLVMValueRef value = phi;
  for (int i = 0; i < copies && !hd_emit_terminated(e); i++) {
    if (i)
      value = LLVMBuildAdd(B, value, loop->step, "");
    emit_iteration(e, loop, value);
  }
  LLVMValueRef next = phi;
  LLVMBasicBlockRef latch = NULL;
  if (!hd_emit_terminated(e)) {
    if (needs_stop(e, loop))
      check_stop(e);
    next = bounds->is_signed && never_wraps(bounds)
               ? LLVMBuildNSWAdd(B, phi, bounds->step, "")
               : LLVMBuildAdd(B, phi, bounds->step, "");
    LLVMValueRef more = goes_on(e, bounds, phi, next);
    latch = LLVMGetInsertBlock(B);
    LLVMAddIncoming(phi, &next, &latch, 1);
    LLVMValueRef branch = LLVMBuildCondBr(B, more, body, after);
    if (!e->host && loop->stmt->u.loop.unroll == 1)
      keep_rolled(e, branch);
  }
  hd_emit_close_loop(e, body);
  come_out(e, after);
  if (is_true(enters))
    return next;
  LLVMValueRef end = LLVMBuildPhi(B, loop->type, "");
  LLVMAddIncoming(end, &first, &before, 1);
  if (latch)
    LLVMAddIncoming(end, &next, &latch, 1);
  return end;
}

// Whether the steps of that many copies are a positive value of the type.
static bool fits_type(const loop_t *loop, int copies) {
  int64_t most, reach;
  unsigned bits = LLVMGetIntTypeWidth(loop->type) - loop->is_signed;
  most = bits > 62 ? INT64_MAX : (INT64_C(1) << bits) - 1;
  return LLVMIsAConstantInt(loop->step) &&
         LLVMConstIntGetSExtValue(loop->step) > 0 &&
         !__builtin_mul_overflow(LLVMConstIntGetSExtValue(loop->step),
                                 (int64_t)copies, &reach) &&
         reach <= most;
}

// for with unroll(n): n copies while n iterations are left, then the rest one
// by one.
static void emit_partly_unrolled(hd_emit_t *e, const loop_t *loop, int copies) {
  LLVMValueRef count = LLVMConstInt(loop->type, (unsigned)copies - 1, false);
  loop_t whole = *loop;
  LLVMValueRef reach = LLVMBuildMul(B, loop->step, count, "");
  // limit - reach, but not below the type's least value.
  LLVMValueRef args[] = {loop->limit, reach};
  whole.limit =
      hd_emit_llvm(e, loop->is_signed ? "llvm.ssub.sat" : "llvm.usub.sat",
                   loop->type, args, 2);
  whole.step = LLVMBuildAdd(B, reach, loop->step, "");
  LLVMValueRef next = emit_rolled(e, loop, loop->first, &whole, copies);
  if (!hd_emit_terminated(e))
    emit_rolled(e, loop, next, loop, 1);
}

// A bound; a constant where folding finds one, for passes mark loops by it.
static LLVMValueRef bound_of(hd_emit_t *e, LLVMTypeRef type,
                             const hd_expr_t *x) {
  int64_t value;
  return hd_expr_fold_int(x, &value) ? LLVMConstInt(type, (uint64_t)value, true)
                                     : hd_emit_expr(e, x);
}

// On the host, which can index register tensors while it runs. The simulator's
// checks stand at every access: copies of them would take LLVM seconds. So
// would many copies of anything, and they are not faster than a loop.
static bool stays_loop(const hd_emit_t *e, const loop_t *loop) {
  enum { MOST_COPIES = 4096 };
  if (!e->host || e->sanitize)
    return e->sanitize;
  return loop->stmt->u.loop.unroll == HD_UNROLL_FULL && is_known(loop) &&
         trips_of(loop) > MOST_COPIES / e->copies;
}

void hd_emit_for(hd_emit_t *e, const hd_stmt_t *stmt) {
  hd_type_t type = stmt->u.loop.var->type;
  loop_t loop = {.stmt = stmt,
                 .type = hd_emit_type(e, type),
                 .is_signed = hd_type_is_signed(type)};
  loop.first = bound_of(e, loop.type, stmt->u.loop.first);
  loop.limit = bound_of(e, loop.type, stmt->u.loop.limit);
  loop.step = stmt->u.loop.step ? bound_of(e, loop.type, stmt->u.loop.step)
                                : LLVMConstInt(loop.type, 1, false);
  if (e->failed || is_false(is_below(e, &loop, loop.first, loop.limit)))
    return;
  hd_emit_exits_t exits, *outer = open_exits(e, &exits);
  int copies = stmt->u.loop.unroll;
  bool is_short =
      copies > 1 && is_known(&loop) && trips_of(&loop) <= (uint64_t)copies;
  if (stays_loop(e, &loop))
    emit_rolled(e, &loop, loop.first, &loop, 1);
  else if (copies == HD_UNROLL_FULL || is_short)
    emit_unrolled(e, &loop);
  else if (copies > 1 && fits_type(&loop, copies))
    emit_partly_unrolled(e, &loop, copies);
  else
    emit_rolled(e, &loop, loop.first, &loop, 1);
  close_exits(e, outer);
}

static bool is_no_wait(void *argument, const hd_expr_t *x) {
  (void)argument;
  return !hd_expr_has_trait(x, HD_TRAIT_POLLS);
}

// Whether a loop may wait for another thread: it asks for what that one does.
static bool may_wait(hd_emit_t *e, const hd_stmt_t *stmt) {
  hd_block_t whole = {1, &stmt};
  return !hd_walk_calls(&e->arena, whole, is_no_wait, NULL);
}

void hd_emit_while(hd_emit_t *e, const hd_stmt_t *stmt) {
  LLVMBasicBlockRef head = hd_emit_new_block(e, "while");
  LLVMBasicBlockRef body = hd_emit_new_block(e, "body");
  LLVMBasicBlockRef after = hd_emit_new_block(e, "end");
  LLVMBuildBr(B, head);
  hd_emit_open_loop(e, head, stmt->u.branch.condition, stmt->u.branch.then);
  LLVMValueRef condition = hd_emit_expr(e, stmt->u.branch.condition);
  if (is_true(condition)) // Only a break ends it.
    LLVMBuildBr(B, body);
  else
    LLVMBuildCondBr(B, condition, body, after);
  hd_emit_at(e, body);
  hd_emit_exits_t exits, *outer = open_exits(e, &exits);
  emit_body(e, stmt->u.branch.then);
  if (e->host && !hd_emit_terminated(e)) {
    check_stop(e);
    if (e->coroutine && may_wait(e, stmt)) {
      LLVMValueRef site =
          hd_emit_site(e, stmt->loc, "while", HD_SIM_PLACE, NULL, 0, 0);
      hd_emit_suspend(e, HD_SIM_YIELD, NULL, site, NULL);
    }
  }
  hd_emit_go(e, head);
  hd_emit_close_loop(e, head);
  come_out(e, after);
  close_exits(e, outer);
}
