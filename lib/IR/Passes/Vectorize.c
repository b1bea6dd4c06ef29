// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass vectorize: scalar accesses next to each other become accesses of
// vectors, up to 16 bytes.
//
//   for e in 0..4 unroll {
//     s[i, v * 4 + e] = a[row, v * 4 + e] * 2
//   }
//
// becomes
//
//   let a = a[row, v * 4 +: 4]
//   let s = a[0] * 2   ...   let s_3 = a[3] * 2
//   s[i, v * 4 +: 4] = f32x4(s, s_1, s_2, s_3)
//
// Looks at loops of a few constant iterations that hold nothing but lets,
// stores, conditions that are the same in all iterations of a vector, and
// assertions that are the same in all (not at those marked unroll(1)). A store
// to memory has to run along the last axis with the loop, side by side in the
// layout, and its offset must be provably a multiple of the vector; so must
// those of loads, or they stay scalar (wide elements may be several vectors for
// one that is stored). What is loaded must not be stored by another iteration:
// a tensor that is stored is loaded at the same place only. Registers are
// accessed one by one, in their order.
//
// `a[i] else 0` is such a load where of a vector all elements are inside, or
// none is. So are those that a choice evaluates where it needs them, which give
// 0 where they are outside and then are not needed.
//
// Simplifies on the way, for it is the same walk: alignment is a fact about
// values. Comes before resolve-layouts.

#include "IR/Passes/Passes.h"
#include "IR/Passes/Vectorizer.h"
#include "IR/Rewrite.h"

enum { MAX_TRIPS = 32 };

static const hd_expr_t *name_value(hd_vectorizer_t *v, const hd_var_t *like,
                                   const hd_expr_t *value) {
  hd_var_t *var =
      hd_var_make(v->arena, like->name, HD_VAR_LET, value->type, value->loc);
  hd_stmt_t *let = hd_stmt_make(v->arena, HD_STMT_LET, v->loop->loc);
  let->u.let.var = var;
  let->u.let.value = value;
  hd_stmt_list_push(v->arena, v->out, let);
  return hd_expr_var(v->arena, var);
}

// The most lanes of a load that are one vector: wide elements are loaded by
// several for one that is stored. 0: none are.
static int64_t load_width(hd_vectorizer_t *v, const hd_expr_t *load) {
  int64_t width = v->width;
  while (width > 1 && !hd_vector_is_load(v, load, width))
    width = width % 2 == 0 ? width / 2 : 1;
  return width > 1 ? width : 0;
}

static const hd_expr_t *load_vector(hd_vectorizer_t *v, const hd_expr_t *load,
                                    unsigned width) {
  const hd_expr_t *const *at =
      hd_vector_copies(v, load->operands, load->num_operands, false);
  if (load->kind == HD_EXPR_LOADELSE) {
    unsigned rank = load->num_operands - 1;
    const hd_expr_t *operands[HD_MAX_RANK + 1];
    for (unsigned i = 0; i < rank; i++)
      operands[i] = at[i];
    operands[rank] =
        hd_expr_make(v->arena, HD_EXPR_VECTOR,
                     hd_type_vector((hd_scalar_t)load->type.scalar, width),
                     NULL, &at[rank], 1);
    return hd_expr_access(v->arena, HD_EXPR_LOADELSE, load->u.var, width,
                          operands, rank + 1);
  }
  if (hd_vector_axes(load) == load->num_operands)
    return hd_expr_access(v->arena, HD_EXPR_LOAD, load->u.var, width, at,
                          load->num_operands);
  return hd_expr_access_linear(
      v->arena, HD_EXPR_LOAD, load->u.var, width,
      hd_tensor_offset(v->arena, load->u.var->tensor, at));
}

static void load_vectors(hd_vectorizer_t *v, unsigned from) {
  for (unsigned i = from; i < v->num_loads; ++i) {
    const hd_expr_t *load = v->loads[i].access;
    int64_t width = v->loads[i].width = load_width(v, load);
    for (int64_t part = 0; width && part < v->width / width; ++part) {
      v->turn = v->first + part * width;
      v->loads[i].values[part] =
          name_value(v, load->u.var, load_vector(v, load, (unsigned)width));
    }
  }
}

// all: the lanes' values as one vector, or NULL.
static void store_register(hd_vectorizer_t *v, const hd_stmt_t *stmt,
                           const hd_expr_t *all) {
  hd_stmt_t *copy = hd_stmt_copy(v->arena, stmt);
  const hd_expr_t *value = stmt->u.store.value;
  hd_expr_t like = {.u.i = v->lane, .loc = value->loc};
  copy->u.store.indices = hd_vector_copies(v, stmt->u.store.indices,
                                           stmt->u.store.num_indices, true);
  copy->u.store.value =
      all ? hd_expr_make(v->arena, HD_EXPR_LANE, value->type, &like, &all, 1)
          : hd_vector_copy(v, value, true);
  hd_stmt_list_push(v->arena, v->out, copy);
}

// The values of stores to registers that are computed in all lanes at once.
static const hd_expr_t **
narrow_values(hd_vectorizer_t *v, const hd_stmt_t *const *stmts, size_t count) {
  const hd_expr_t **all = HD_ARENA_ARRAY(v->arena, const hd_expr_t *, count);
  for (size_t i = 0; i < count; ++i) {
    const hd_expr_t *value =
        stmts[i]->kind == HD_STMT_STORE && !hd_vector_is_store(stmts[i])
            ? hd_vector_narrow(v, hd_vector_given(stmts[i]))
            : NULL;
    if (value)
      all[i] = name_value(v, stmts[i]->u.store.var, value);
  }
  return all;
}

static void store_vector(hd_vectorizer_t *v, const hd_stmt_t *stmt,
                         const hd_expr_t *const *values) {
  hd_type_t type = hd_type_vector((hd_scalar_t)stmt->u.store.value->type.scalar,
                                  (unsigned)v->width);
  hd_stmt_t *copy = hd_stmt_copy(v->arena, stmt);
  v->turn = v->first;
  copy->u.store.indices = hd_vector_copies(v, stmt->u.store.indices,
                                           stmt->u.store.num_indices, false);
  copy->u.store.value = hd_expr_make(v->arena, HD_EXPR_VECTOR, type, NULL,
                                     values, (unsigned)v->width);
  hd_stmt_list_push(v->arena, v->out, copy);
}

// The lane's copy of a let.
static void copy_let(hd_vectorizer_t *v, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.let.var;
  if (v->lane == 0)
    hd_ptr_map_set(
        v->arena, &v->copies, var,
        HD_ARENA_ARRAY(v->arena, const hd_expr_t *, HD_VECTOR_MAX_WIDTH));
  const hd_expr_t **lanes = hd_ptr_map_find(&v->copies, var);
  lanes[v->lane] =
      name_value(v, var, hd_vector_copy(v, stmt->u.let.value, true));
}

// Statements without a condition among them: lane by lane, then the stores.
static void emit_run(hd_vectorizer_t *v, const hd_stmt_t *const *stmts,
                     size_t count) {
  const hd_expr_t **values = HD_ARENA_ARRAY(v->arena, const hd_expr_t *,
                                            count *HD_VECTOR_MAX_WIDTH + 1);
  const hd_expr_t **narrow = narrow_values(v, stmts, count);
  for (v->lane = 0; v->lane < v->width; ++v->lane) {
    v->turn = v->first + v->lane;
    for (size_t i = 0; i < count; ++i) {
      const hd_stmt_t *stmt = stmts[i];
      if (stmt->kind == HD_STMT_LET)
        copy_let(v, stmt);
      else if (stmt->kind == HD_STMT_ASSERT)
        continue;
      else if (hd_vector_is_store(stmt))
        values[i * HD_VECTOR_MAX_WIDTH + (size_t)v->lane] = name_value(
            v, stmt->u.store.var, hd_vector_copy(v, stmt->u.store.value, true));
      else
        store_register(v, stmt, narrow[i]);
    }
  }
  v->lane = -1;
  for (size_t i = 0; i < count; ++i)
    if (hd_vector_is_store(stmts[i]))
      store_vector(v, stmts[i], values + i * HD_VECTOR_MAX_WIDTH);
}

static void emit_block(hd_vectorizer_t *v, hd_block_t block);

static hd_block_t emit_branch(hd_vectorizer_t *v, const hd_stmt_t *stmt,
                              bool holds) {
  hd_stmt_list_t list = {0}, *out = v->out;
  unsigned num_loads = v->num_loads;
  hd_facts_mark_t mark = hd_vector_enter(v, stmt->u.branch.condition, holds);
  v->out = &list;
  emit_block(v, holds ? stmt->u.branch.then : stmt->u.branch.otherwise);
  v->out = out;
  hd_facts_reset(v->s->facts, mark);
  v->num_loads = num_loads; // They are loaded in the branch alone.
  return hd_block_make(v->arena, list.data, list.size);
}

static void emit_if(hd_vectorizer_t *v, const hd_stmt_t *stmt) {
  hd_stmt_t *copy = hd_stmt_copy(v->arena, stmt);
  copy->u.branch.then = emit_branch(v, stmt, true);
  copy->u.branch.otherwise = emit_branch(v, stmt, false);
  v->turn = v->first;
  copy->u.branch.condition = hd_vector_copy(v, stmt->u.branch.condition, false);
  hd_stmt_list_push(v->arena, v->out, copy);
}

// What is asserted is so before anything is loaded.
static void emit_claims(hd_vectorizer_t *v, hd_block_t block) {
  v->turn = v->first;
  for (size_t i = 0; i < block.size; ++i) {
    if (block.stmts[i]->kind != HD_STMT_ASSERT)
      continue;
    hd_stmt_t *copy = hd_stmt_copy(v->arena, block.stmts[i]);
    copy->u.assertion.condition =
        hd_vector_copy(v, copy->u.assertion.condition, false);
    hd_stmt_list_push(v->arena, v->out, copy);
  }
}

// The next `width` iterations of a block.
static void emit_block(hd_vectorizer_t *v, hd_block_t block) {
  unsigned from = v->num_loads;
  emit_claims(v, block);
  hd_vector_note_loads(v, block);
  load_vectors(v, from);
  for (size_t i = 0; i < block.size;) {
    size_t end = i;
    while (end < block.size && block.stmts[end]->kind != HD_STMT_IF)
      end++;
    if (end > i)
      emit_run(v, block.stmts + i, end - i);
    else
      emit_if(v, block.stmts[end++]);
    i = end;
  }
}

// Learns of the loop. False where it is none to be looked at.
static bool begin(hd_vectorizer_t *v, hd_simplifier_t *s,
                  const hd_stmt_t *loop) {
  int64_t limit;
  *v = (hd_vectorizer_t){.s = s, .arena = s->arena, .loop = loop, .lane = -1};
  if (loop->u.loop.unroll == 1 || loop->u.loop.step ||
      !hd_expr_fold_int(loop->u.loop.first, &v->first) ||
      !hd_expr_fold_int(loop->u.loop.limit, &limit) || v->first < 0 ||
      limit < v->first || limit > INT32_MAX)
    return false;
  v->trips = limit - v->first;
  return v->trips >= 2 && v->trips <= MAX_TRIPS && hd_vector_is_possible(v);
}

static hd_facts_mark_t enter_loop(hd_vectorizer_t *v) {
  hd_facts_mark_t mark = hd_facts_mark(v->s->facts);
  hd_facts_loop(v->s->facts, v->loop->u.loop.var, v->loop->u.loop.first,
                v->loop->u.loop.limit, NULL);
  return mark;
}

bool hd_vectorize_loop(hd_simplifier_t *s, const hd_stmt_t *loop,
                       hd_stmt_list_t *out) {
  hd_vectorizer_t v;
  if (!begin(&v, s, loop))
    return false;
  v.out = out;
  hd_facts_mark_t mark = enter_loop(&v);
  v.width = hd_vector_width(&v);
  for (int64_t left = v.trips; v.width > 1 && left > 0; left -= v.width) {
    v.num_loads = 0;
    emit_block(&v, loop->u.loop.body);
    v.first += v.width;
  }
  hd_facts_reset(s->facts, mark);
  return v.width > 1;
}

// Whether loads are of vectors, or where that is allowed, of the same element
// each time. What says where a vector is is the same each time.
static bool is_covered(hd_vectorizer_t *v, const hd_expr_t *e) {
  bool is_load = e->kind == HD_EXPR_LOAD || e->kind == HD_EXPR_LOADELSE;
  if (is_load && !e->linear && e->type.lanes == 1 &&
      hd_vector_is_load(v, e, v->trips))
    return e->kind == HD_EXPR_LOAD ||
           is_covered(v, e->operands[e->num_operands - 1]);
  if (e->kind == HD_EXPR_LOADELSE ||
      (e->kind == HD_EXPR_LOAD &&
       !(v->fixed && hd_vector_is_fixed(v, e->operands, e->num_operands))))
    return false;
  for (unsigned i = 0; i < e->num_operands; ++i)
    if (!is_covered(v, e->operands[i]))
      return false;
  return true;
}

static bool covers_block(hd_vectorizer_t *v, hd_block_t block) {
  bool ok = true;
  for (size_t i = 0; ok && i < block.size; ++i) {
    const hd_stmt_t *stmt = block.stmts[i];
    if (stmt->kind != HD_STMT_IF) {
      ok = is_covered(v, hd_vector_given(stmt));
      continue;
    }
    hd_facts_mark_t mark = hd_vector_enter(v, stmt->u.branch.condition, true);
    ok = covers_block(v, stmt->u.branch.then);
    hd_facts_reset(v->s->facts, mark);
    mark = hd_vector_enter(v, stmt->u.branch.condition, false);
    ok = ok && covers_block(v, stmt->u.branch.otherwise);
    hd_facts_reset(v->s->facts, mark);
  }
  return ok;
}

bool hd_loop_is_vector(hd_simplifier_t *s, const hd_stmt_t *loop, bool fixed) {
  hd_vectorizer_t v;
  if (!begin(&v, s, loop))
    return false;
  v.fixed = fixed;
  hd_facts_mark_t mark = enter_loop(&v);
  bool any = false;
  bool ok = hd_vector_fits(&v, loop->u.loop.body, v.trips, &any) &&
            covers_block(&v, loop->u.loop.body);
  hd_facts_reset(s->facts, mark);
  return ok;
}

const hd_func_t *hd_pass_vectorize(hd_module_t *module, const hd_func_t *func,
                                   const hd_pass_args_t *args) {
  (void)args;
  return hd_simplify_func(module, func, HD_SIMPLIFY_AND_VECTORIZE);
}
