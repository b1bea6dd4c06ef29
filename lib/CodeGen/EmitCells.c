// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Register tensors of the GPU as values: what a variable holds is found while
// the code is emitted, and phis are made where paths meet, so that neither
// loads, stores nor addresses of registers come to be (Braun et al., Simple and
// Efficient Construction of Static Single Assignment Form, CC 2013).
//
// A cell is an element. What was written as a vector stays one until a part of
// it is asked for; elements of 8 and 16 bits meet in phis by words of 32 bits,
// as the instructions that take them want them.
//
// A loop's head is open until its body is emitted: a cell that the body may
// write gets a phi there whose last operand comes when the loop is closed; any
// other is what it was before the loop.
#include "CodeGen/Emit.h"
#include "IR/Rewrite.h"

#define B e->builder

enum { DEEP = 200, PART = HD_EXPR_COUNT, CAST };

// What a cell holds at the end of a block: a part of a value. While its paths
// are being looked through: no value.
typedef struct held {
  LLVMValueRef value;
  uint8_t part, parts;
} held_t;

// A phi whose operands are still to come.
struct hd_open_phi {
  hd_open_phi_t *next;
  LLVMValueRef phi;
  const hd_cells_t *cells;
  LLVMBasicBlockRef block;
  uint32_t cell;
  unsigned n;
};

// A block's number and a cell's: none is 0, for blocks are counted from 1.
static const void *key_of(const hd_flow_t *flow, uint32_t cell) {
  return (const void *)(uintptr_t)((uint64_t)flow->order << 32 | cell);
}

// NULL: nothing that is known.
static held_t *held_in(const hd_emit_t *e, const hd_flow_t *flow,
                       uint32_t cell) {
  return hd_ptr_map_find(&e->held, key_of(flow, cell));
}

static held_t *held_at(const hd_emit_t *e, LLVMBasicBlockRef block,
                       uint32_t cell) {
  return held_in(e, hd_emit_flow(e, block), cell);
}

static void hold(hd_emit_t *e, LLVMBasicBlockRef block, uint32_t cell,
                 unsigned n, LLVMValueRef value) {
  const hd_flow_t *flow = hd_emit_flow(e, block);
  for (unsigned i = 0; i < n; i++) {
    held_t *held = held_in(e, flow, cell + i);
    if (!held) {
      held = HD_ARENA_NEW(&e->arena, held_t);
      hd_ptr_map_set(&e->arena, &e->held, key_of(flow, cell + i), held);
    }
    held->value = value;
    held->part = (uint8_t)i;
    held->parts = (uint8_t)n;
  }
}

LLVMValueRef hd_emit_cast(hd_emit_t *e, LLVMValueRef value, LLVMTypeRef type) {
  if (LLVMTypeOf(value) == type)
    return value;
  if (LLVMIsABitCastInst(value)) {
    LLVMValueRef from = LLVMGetOperand(value, 0);
    if (LLVMTypeOf(from) == type)
      return from;
  }
  return LLVMBuildBitCast(B, value, type, "");
}

// Element i of a value's, taken as a vector of elements of that type.
static LLVMValueRef part_of(hd_emit_t *e, LLVMValueRef value, LLVMTypeRef type,
                            unsigned i, unsigned parts) {
  if (parts == 1)
    return hd_emit_cast(e, value, type);
  LLVMTypeRef vector = LLVMVectorType(type, parts);
  LLVMValueRef *whole = hd_emit_number(e, CAST, 0, value, vector);
  if (!*whole)
    *whole = hd_emit_cast(e, value, vector);
  LLVMValueRef from = *whole, index = LLVMConstInt(e->i32, i, false);
  LLVMValueRef *part = hd_emit_number(e, PART, 0, from, index);
  if (!*part)
    *part = LLVMBuildExtractElement(B, from, index, "");
  return *part;
}

static LLVMValueRef make_phi(hd_emit_t *e, const hd_cells_t *cells, unsigned n,
                             LLVMBasicBlockRef block) {
  LLVMTypeRef type =
      n == 1 ? cells->type : LLVMIntTypeInContext(e->context, n * cells->bits);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
  LLVMValueRef first = LLVMGetFirstInstruction(block);
  if (first)
    LLVMPositionBuilderBefore(B, first);
  else
    LLVMPositionBuilderAtEnd(B, block);
  LLVMValueRef phi = LLVMBuildPhi(B, type, "");
  hd_emit_before_end(e, here);
  return phi;
}

// A cell that is being looked for further up is needed here after all.
static void settle(hd_emit_t *e, const hd_cells_t *cells, uint32_t cell,
                   LLVMBasicBlockRef block) {
  const held_t *entry = held_at(e, block, cell);
  if (entry->value)
    return;
  unsigned n = entry->parts;
  hold(e, block, cell - entry->part, n, make_phi(e, cells, n, block));
}

static LLVMValueRef get_cells(hd_emit_t *e, const hd_cells_t *cells,
                              uint32_t cell, unsigned n,
                              LLVMBasicBlockRef block);

static LLVMValueRef pack(hd_emit_t *e, const hd_cells_t *cells, uint32_t cell,
                         unsigned n, LLVMBasicBlockRef block) {
  LLVMValueRef vector = LLVMGetUndef(LLVMVectorType(cells->type, n));
  LLVMValueRef all[HD_MAX_LANES];
  for (unsigned i = 0; i < n; i++)
    all[i] =
        hd_emit_cast(e, get_cells(e, cells, cell + i, 1, block), cells->type);
  LLVMValueRef word =
      cells->bits == 8 && n == 4 ? hd_emit_word_of(e, all) : NULL;
  if (word)
    return word;
  for (unsigned i = 0; i < n; i++) {
    vector = LLVMBuildInsertElement(B, vector, all[i],
                                    LLVMConstInt(e->i32, i, false), "");
  }
  return vector;
}

// All n cells have entries in the block: one value where they are its parts.
static LLVMValueRef combine(hd_emit_t *e, const hd_cells_t *cells,
                            uint32_t cell, unsigned n,
                            LLVMBasicBlockRef block) {
  settle(e, cells, cell, block);
  held_t first = *held_at(e, block, cell);
  bool together = first.parts % n == 0 && first.part % n == 0;
  for (unsigned i = 1; i < n && together; i++) {
    const held_t *other = held_at(e, block, cell + i);
    together = other->value == first.value && other->part == first.part + i &&
               other->parts == first.parts;
  }
  if (!together)
    return pack(e, cells, cell, n, block);
  if (n == first.parts)
    return first.value;
  LLVMTypeRef type =
      n == 1 ? cells->type : LLVMIntTypeInContext(e->context, n * cells->bits);
  return part_of(e, first.value, type, first.part / n, first.parts / n);
}

static void open_phi(hd_emit_t *e, hd_open_phi_t **list, LLVMValueRef phi,
                     const hd_cells_t *cells, LLVMBasicBlockRef block,
                     uint32_t cell, unsigned n) {
  hd_open_phi_t *open = HD_ARENA_NEW(&e->arena, hd_open_phi_t);
  *open = (hd_open_phi_t){*list, phi, cells, block, cell, n};
  *list = open;
}

// The operands of a phi, one for each way in.
static void add_operands(hd_emit_t *e, LLVMValueRef phi,
                         const hd_cells_t *cells, uint32_t cell, unsigned n,
                         LLVMBasicBlockRef block) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
  LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block));
  while (use) {
    LLVMBasicBlockRef from = hd_emit_way_in(&use);
    hd_emit_before_end(e, from);
    LLVMValueRef value = get_cells(e, cells, cell, n, from);
    value = hd_emit_cast(e, value, LLVMTypeOf(phi));
    LLVMAddIncoming(phi, &value, &from, 1);
  }
  hd_emit_before_end(e, here);
}

// Several ways in. Where all bring the same there is no phi.
static LLVMValueRef join(hd_emit_t *e, const hd_cells_t *cells, uint32_t cell,
                         unsigned n, LLVMBasicBlockRef block) {
  if (e->depth > DEEP) { // Later: the stack has an end.
    LLVMValueRef phi = make_phi(e, cells, n, block);
    hold(e, block, cell, n, phi);
    open_phi(e, &e->postponed, phi, cells, block, cell, n);
    return phi;
  }
  e->depth++;
  hold(e, block, cell, n, NULL);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
  LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block));
  LLVMValueRef same = NULL;
  bool differ = false;
  while (use) {
    LLVMBasicBlockRef from = hd_emit_way_in(&use);
    hd_emit_before_end(e, from);
    LLVMValueRef value = get_cells(e, cells, cell, n, from);
    differ |= same && value != same;
    same = value;
  }
  hd_emit_before_end(e, here);
  e->depth--;
  LLVMValueRef phi = held_at(e, block, cell)->value;
  if (!phi && !differ) {
    hold(e, block, cell, n, same);
    return same;
  }
  if (!phi)
    phi = make_phi(e, cells, n, block);
  hold(e, block, cell, n, phi);
  add_operands(e, phi, cells, cell, n, block);
  return phi;
}

static bool may_write(const hd_flow_t *head, const hd_cells_t *cells) {
  for (uint32_t i = 0; i < head->num_written; i++)
    if (head->written[i] == cells)
      return true;
  return false;
}

// Whether none of n cells was written after what is emitted of a block.
static bool is_written_by(const hd_flow_t *flow, const hd_cells_t *cells,
                          uint32_t cell, unsigned n) {
  for (unsigned i = 0; i < n; i++)
    if (cells->written[cell - cells->first + i] > flow->order)
      return false;
  return true;
}

// A block before where what cells hold is the same, as far up as is easily
// seen; NULL where paths meet on which that may change. Whatever lies between a
// block and its dominator was begun after that.
static hd_flow_t *before(const hd_emit_t *e, const hd_cells_t *cells,
                         uint32_t cell, unsigned n, hd_flow_t *flow) {
  hd_flow_t *top = flow;
  while (!top->is_loop && top->block != cells->home && top->dominator &&
         is_written_by(top->dominator, cells, cell, n))
    top = top->dominator;
  if (top != flow)
    return top;
  if (flow->is_loop)
    return may_write(flow, cells) ? NULL : hd_emit_flow(e, flow->entered_from);
  LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(flow->block));
  if (!use)
    return NULL;
  LLVMBasicBlockRef from = hd_emit_way_in(&use);
  while (use)
    if (hd_emit_way_in(&use) != from)
      return NULL;
  return hd_emit_flow(e, from);
}

static unsigned count_found(const hd_emit_t *e, const hd_flow_t *flow,
                            uint32_t cell, unsigned n) {
  unsigned found = 0;
  for (unsigned i = 0; i < n; i++)
    found += held_in(e, flow, cell + i) != NULL;
  return found;
}

static LLVMValueRef come_in(hd_emit_t *e, const hd_cells_t *cells,
                            uint32_t cell, unsigned n,
                            LLVMBasicBlockRef block) {
  hd_flow_t *flow = hd_emit_flow(e, block);
  // What was never written is 0: where one way brings nothing, ptxas 13.0 takes
  // what another way brings for the value of both, and then for written.
  if (block == cells->home || !LLVMGetFirstUse(LLVMBasicBlockAsValue(block)))
    return LLVMConstNull(
        n == 1 ? cells->type
               : LLVMIntTypeInContext(e->context, n * cells->bits));
  if (!flow->is_open)
    return join(e, cells, cell, n, block);
  LLVMValueRef phi = make_phi(e, cells, n, block);
  open_phi(e, &flow->phis, phi, cells, block, cell, n);
  return phi;
}

// What n cells hold at the end of a block, where the builder stands: one
// element, or elements that make a word.
static LLVMValueRef get_cells(hd_emit_t *e, const hd_cells_t *cells,
                              uint32_t cell, unsigned n,
                              LLVMBasicBlockRef block) {
  hd_flow_t *flow = hd_emit_flow(e, block), *next;
  unsigned found;
  while (!(found = count_found(e, flow, cell, n)) &&
         flow->block != cells->home && (next = before(e, cells, cell, n, flow)))
    flow = next;
  LLVMBasicBlockRef at = flow->block;
  LLVMValueRef value = found == n ? combine(e, cells, cell, n, at)
                       : found    ? pack(e, cells, cell, n, at)
                                  : come_in(e, cells, cell, n, at);
  if (!found || at != block || found < n)
    hold(e, block, cell, n, value);
  if (!found && at != block)
    hold(e, at, cell, n, value);
  return value;
}

static void fill_postponed(hd_emit_t *e) {
  while (e->depth == 0 && e->postponed) {
    hd_open_phi_t *open = e->postponed;
    e->postponed = open->next;
    add_operands(e, open->phi, open->cells, open->cell, open->n, open->block);
  }
}

static LLVMValueRef read_wide(hd_emit_t *e, const hd_cells_t *cells,
                              uint32_t cell, unsigned n,
                              LLVMBasicBlockRef block) {
  unsigned unit = cells->bits < 32 ? 32 / cells->bits : 1;
  if (n % unit || (cell - cells->first) % unit)
    return pack(e, cells, cell, n, block);
  LLVMTypeRef type = unit == 1 ? cells->type : e->i32;
  LLVMValueRef vector = LLVMGetUndef(LLVMVectorType(type, n / unit));
  for (unsigned i = 0; i < n / unit; i++) {
    LLVMValueRef one = get_cells(e, cells, cell + i * unit, unit, block);
    vector = LLVMBuildInsertElement(B, vector, hd_emit_cast(e, one, type),
                                    LLVMConstInt(e->i32, i, false), "");
  }
  return vector;
}

hd_cells_t *hd_cells_create(hd_emit_t *e, LLVMTypeRef type, unsigned bits,
                            uint32_t count) {
  hd_cells_t *cells = HD_ARENA_NEW(&e->arena, hd_cells_t);
  *cells = (hd_cells_t){e->num_cells,
                        count,
                        bits,
                        type,
                        LLVMGetInsertBlock(B),
                        HD_ARENA_ARRAY(&e->arena, uint32_t, count + 1)};
  e->num_cells += count;
  return cells;
}

static bool is_inside(const hd_cells_t *cells, int64_t index, unsigned n) {
  return index >= 0 && index + n <= cells->count;
}

// A byte of the word that it stands in, which is what paths that meet bring.
static LLVMValueRef read_byte(hd_emit_t *e, const hd_cells_t *cells,
                              uint32_t index, LLVMBasicBlockRef block) {
  unsigned at = index % 4;
  LLVMValueRef word = get_cells(e, cells, cells->first + index - at, 4, block);
  fill_postponed(e);
  word = hd_emit_cast(e, word, e->i32);
  return hd_emit_note_byte(e, part_of(e, word, e->i8, at, 4), word, at);
}

LLVMValueRef hd_cells_read(hd_emit_t *e, const hd_cells_t *cells, int64_t index,
                           unsigned n, LLVMTypeRef type) {
  if (!is_inside(cells, index, n))
    return LLVMGetPoison(type);
  uint32_t cell = cells->first + (uint32_t)index;
  LLVMBasicBlockRef block = LLVMGetInsertBlock(B);
  const held_t *entry = held_at(e, block, cell);
  bool as_written = entry && entry->part == 0 && entry->parts == n;
  for (unsigned i = 1; i < n && as_written; i++) {
    const held_t *other = held_at(e, block, cell + i);
    as_written = other && other->value == entry->value && other->part == i;
  }
  if (n == 1 && cells->bits == 8 && type == e->i8 && !as_written &&
      (index | 3) < cells->count)
    return read_byte(e, cells, (uint32_t)index, block);
  bool in_words = n * cells->bits <= 32 && index % n == 0 && !(n & (n - 1));
  LLVMValueRef value = as_written ? entry->value
                       : n == 1 || in_words
                           ? get_cells(e, cells, cell, n, block)
                           : read_wide(e, cells, cell, n, block);
  fill_postponed(e);
  return hd_emit_cast(e, value, type);
}

void hd_cells_write(hd_emit_t *e, const hd_cells_t *cells, int64_t index,
                    unsigned n, LLVMValueRef value) {
  if (!is_inside(cells, index, n))
    return;
  hold(e, LLVMGetInsertBlock(B), cells->first + (uint32_t)index, n, value);
  for (unsigned i = 0; i < n; i++)
    cells->written[index + i] = e->num_flows;
}

// The register tensors that a loop's body may write.
typedef struct writes {
  hd_emit_t *e;
  hd_flow_t *head;
} writes_t;

static void note_write(writes_t *w, const hd_var_t *var) {
  const hd_binding_t *binding = hd_emit_find(w->e, var);
  if (!binding || !binding->cells || may_write(w->head, binding->cells))
    return;
  const hd_cells_t **all = HD_ARENA_ARRAY(&w->e->arena, const hd_cells_t *,
                                          w->head->num_written + 1);
  for (uint32_t i = 0; i < w->head->num_written; i++)
    all[i] = w->head->written[i];
  all[w->head->num_written++] = binding->cells;
  w->head->written = all;
}

static bool look_at_stmt(void *argument, const hd_stmt_t *stmt) {
  if (stmt->kind == HD_STMT_STORE)
    note_write(argument, stmt->u.store.var);
  return true;
}

static bool look_at_expr(void *argument, const hd_expr_t *x) {
  if (x->kind == HD_EXPR_REF || x->kind == HD_EXPR_TENSOR)
    note_write(argument, x->u.var);
  return true;
}

void hd_emit_open_loop(hd_emit_t *e, LLVMBasicBlockRef head,
                       const hd_expr_t *condition, hd_block_t body) {
  LLVMBasicBlockRef from = LLVMGetInsertBlock(B);
  hd_emit_at(e, head);
  if (e->host)
    return;
  hd_flow_t *flow = hd_emit_flow(e, head);
  flow->is_loop = flow->is_open = true;
  flow->outer = e->loop;
  flow->loop = e->loop = flow;
  flow->entered_from = from;
  writes_t w = {e, flow};
  if (condition)
    hd_walk_expr(condition, look_at_expr, &w);
  hd_walk_block(body, look_at_stmt, look_at_expr, &w);
}

void hd_emit_close_loop(hd_emit_t *e, LLVMBasicBlockRef head) {
  hd_flow_t *flow = e->host ? NULL : hd_emit_flow(e, head);
  if (!flow)
    return;
  flow->is_open = false;
  e->loop = flow->outer;
  for (hd_open_phi_t *open = flow->phis; open; open = open->next)
    add_operands(e, open->phi, open->cells, open->cell, open->n, open->block);
  fill_postponed(e);
}
