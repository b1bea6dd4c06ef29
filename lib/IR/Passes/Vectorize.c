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
// Looks at loops of a few constant iterations that hold nothing but lets and
// stores (not at those marked unroll(1)). A store to memory has to run along
// the last axis with the loop, side by side in the layout, and its offset must
// be provably a multiple of the vector; so must those of loads, or they stay
// scalar. What is loaded must not be stored by another iteration: a tensor that
// is stored is loaded at the same place only. Registers are accessed one by
// one, in their order.
//
// Simplifies on the way, for it is the same walk: alignment is a fact about
// values. Comes before resolve-layouts.

#include "IR/Passes/Passes.h"
#include "IR/Passes/Simplifier.h"
#include "IR/Rewrite.h"

enum {
  MAX_TRIPS = 32,
  MAX_WIDTH = 16,
  MAX_LOADS = 16,
  MAX_STATEMENTS = 100, // What fusion puts into a loop is a few dozen.
  VECTOR_BITS = 128
};

typedef struct vector_load {
  const hd_expr_t *load;
  const hd_expr_t *value; // The vector, in this chunk; NULL: stays scalar.
} vector_load_t;

typedef struct vectorizer {
  hd_simplifier_t *s;
  hd_arena_t *arena;
  const hd_stmt_t *loop;
  hd_stmt_list_t *out;
  int64_t first, trips, width;
  unsigned num_loads;
  vector_load_t loads[MAX_LOADS];
  hd_ptr_map_t stored; // Tensors that statements so far have stored to.
  hd_ptr_map_t lets;   // The body's, to their values: for looking at indices.
  hd_ptr_map_t copies; // The body's, to this iteration's.
  int64_t turn, lane;  // The iteration, and its lane; lane < 0: no vectors.
} vectorizer_t;

// e with the loop's variable (where turn >= 0) and the body's lets replaced by
// what they are: by this iteration's copies, or with copies off by their
// values.
static const hd_expr_t *copy_of(vectorizer_t *v, const hd_expr_t *e,
                                bool copies) {
  if (e->kind == HD_EXPR_VAR && e->u.var == v->loop->u.loop.var)
    return v->turn < 0 ? e : hd_expr_int(v->arena, e->type, v->turn);
  if (e->kind == HD_EXPR_VAR) {
    const hd_expr_t *value =
        hd_ptr_map_get(copies ? &v->copies : &v->lets, e->u.var);
    return !value ? e : copies ? value : copy_of(v, value, false);
  }
  // Where it is needed alone, too, if it is certain to be done elsewhere.
  for (unsigned i = 0; copies && i < v->num_loads; ++i)
    if (v->loads[i].value && v->lane >= 0 &&
        hd_expr_equal(v->loads[i].load, e)) {
      hd_expr_t like = {.u.i = v->lane, .loc = e->loc};
      return hd_expr_make(v->arena, HD_EXPR_LANE, e->type, &like,
                          &v->loads[i].value, 1);
    }
  if (e->num_operands == 0)
    return e;
  const hd_expr_t **operands =
      HD_ARENA_ARRAY(v->arena, const hd_expr_t *, e->num_operands);
  for (unsigned i = 0; i < e->num_operands; ++i)
    operands[i] = copy_of(v, e->operands[i], copies);
  return hd_expr_with(v->arena, e, operands);
}

static const hd_expr_t *const *copies_of(vectorizer_t *v,
                                         const hd_expr_t *const *exprs,
                                         unsigned count, bool copies) {
  const hd_expr_t **list = HD_ARENA_ARRAY(v->arena, const hd_expr_t *, count);
  for (unsigned i = 0; i < count; ++i)
    list[i] = copy_of(v, exprs[i], copies);
  return list;
}

static bool is_other_var(void *argument, const hd_expr_t *e) {
  const vectorizer_t *v = argument;
  return e->kind != HD_EXPR_VAR || e->u.var != v->loop->u.loop.var;
}

static bool depends(vectorizer_t *v, const hd_expr_t *e) {
  return !hd_walk_expr(e, is_other_var, v);
}

// An index with the body's lets replaced by their values: j % 64 may turn out
// to be a sum, and j / 64 not to change.
static const hd_expr_t *index_of(vectorizer_t *v, const hd_expr_t *index) {
  return hd_simplify_expr(v->s, copy_of(v, index, false));
}

// Whether the last index is the loop's variable plus something that does not
// change with it, and the others do not change.
static bool runs_along(vectorizer_t *v, const hd_expr_t *const *indices,
                       unsigned rank) {
  v->turn = -1;
  for (unsigned a = 0; a + 1 < rank; ++a)
    if (depends(v, index_of(v, indices[a])))
      return false;
  hd_linear_t sum;
  if (rank == 0 || !hd_linear_of(v->s->facts, index_of(v, indices[rank - 1]),
                                 HD_LINEAR_DEEP, &sum))
    return false;
  bool found = false;
  for (unsigned i = 0; i < sum.size; ++i) {
    const hd_expr_t *atom = sum.terms[i].atom;
    bool self = atom->kind == HD_EXPR_VAR && atom->u.var == v->loop->u.loop.var;
    if (self && sum.terms[i].factor == 1)
      found = true;
    else if (depends(v, atom))
      return false;
  }
  return found;
}

static bool stays_together(const hd_tensor_t *tensor, int64_t width) {
  const hd_layout_t *layout = tensor->layout;
  for (unsigned i = 0; layout && i < layout->num_items; ++i) {
    const hd_layout_item_t *item = &layout->items[i];
    int64_t unit = 0;
    if (item->kind == HD_LAYOUT_SWIZZLE && item->num_values == 1)
      unit = VECTOR_BITS / hd_type_bits(tensor->element);
    else if (item->kind == HD_LAYOUT_SWIZZLE &&
             hd_expr_fold_int(item->values[1], &unit))
      unit = unit < 6 ? INT64_C(1) << unit : MAX_WIDTH;
    else if (item->kind == HD_LAYOUT_ROW ||
             (item->kind == HD_LAYOUT_STRIDES &&
              hd_expr_is_int(item->values[item->num_values - 1], 1)))
      unit = MAX_WIDTH;
    if (unit < width)
      return false;
  }
  return true;
}

static const hd_stmt_t *find_store(const vectorizer_t *v, const hd_var_t *var,
                                   const hd_stmt_t *other) {
  hd_block_t body = v->loop->u.loop.body;
  for (size_t i = 0; i < body.size; ++i)
    if (body.stmts[i] != other && body.stmts[i]->kind == HD_STMT_STORE &&
        body.stmts[i]->u.store.var == var)
      return body.stmts[i];
  return NULL;
}

static bool is_not_stored(void *argument, const hd_expr_t *e) {
  return !hd_expr_is_access(e) || !find_store(argument, e->u.var, NULL);
}

// Whether the place is the same wherever in its iteration it is found: vectors
// are loaded ahead of what the loop stores, registers too, and stored after.
static bool has_fixed_place(vectorizer_t *v, const hd_expr_t *const *indices,
                            unsigned rank) {
  v->turn = -1;
  for (unsigned a = 0; a < rank; ++a)
    if (!hd_walk_expr(copy_of(v, indices[a], false), is_not_stored, v))
      return false;
  return true;
}

// Whether the accesses of every `width` iterations are one of a vector.
static bool is_vector(vectorizer_t *v, const hd_var_t *var,
                      const hd_expr_t *const *indices, unsigned rank,
                      int64_t width) {
  const hd_tensor_t *tensor = var->tensor;
  int64_t bits = hd_type_bits(tensor->element);
  if (tensor->scope == HD_SCOPE_REGISTER || bits < 8 ||
      hd_type_is_bool(tensor->element) || bits * width > VECTOR_BITS ||
      !stays_together(tensor, width) || !has_fixed_place(v, indices, rank) ||
      !runs_along(v, indices, rank))
    return false;
  // The vectors start `width` apart: so the first one's place decides.
  v->turn = v->first;
  const hd_expr_t *offset =
      hd_tensor_offset(v->arena, tensor, copies_of(v, indices, rank, false));
  return hd_facts_divisor(v->s->facts, offset) % width == 0;
}

static bool is_noted(const vectorizer_t *v, const hd_expr_t *load) {
  for (unsigned i = 0; i < v->num_loads; ++i)
    if (hd_expr_equal(v->loads[i].load, load))
      return true;
  return false;
}

// Loads that are certain to be done.
static void note_loads(vectorizer_t *v, const hd_expr_t *e) {
  if (e->kind == HD_EXPR_LOAD && !e->linear && e->type.lanes == 1 &&
      v->num_loads < MAX_LOADS && !is_noted(v, e))
    v->loads[v->num_loads++].load = e;
  for (unsigned i = 0; i < e->num_operands; ++i)
    if (!hd_expr_is_lazy(e, i))
      note_loads(v, e->operands[i]);
}

// No load of a tensor that the loop stores, but at the place that it stores,
// and before: vectors are loaded ahead of all lanes and stored after them.
static bool is_harmless(void *argument, const hd_expr_t *e) {
  vectorizer_t *v = argument;
  if (!hd_expr_is_access(e) || e->u.var->tensor->scope == HD_SCOPE_REGISTER)
    return true;
  const hd_stmt_t *store = find_store(v, e->u.var, NULL);
  if (!store)
    return true;
  if (e->kind != HD_EXPR_LOAD || e->linear ||
      hd_ptr_map_get(&v->stored, e->u.var) ||
      e->num_operands != store->u.store.num_indices)
    return false;
  v->turn = -1;
  for (unsigned a = 0; a < e->num_operands; ++a)
    if (!hd_expr_equal(copy_of(v, e->operands[a], false),
                       copy_of(v, store->u.store.indices[a], false)))
      return false;
  return true;
}

static bool is_memory_store(const hd_stmt_t *stmt) {
  return stmt->kind == HD_STMT_STORE &&
         stmt->u.store.var->tensor->scope != HD_SCOPE_REGISTER;
}

// Whether the statement may be done for all lanes side by side.
static bool look_at(vectorizer_t *v, const hd_stmt_t *stmt) {
  const hd_expr_t *value =
      stmt->kind == HD_STMT_LET ? stmt->u.let.value : stmt->u.store.value;
  if ((stmt->kind != HD_STMT_LET && stmt->kind != HD_STMT_STORE) ||
      !hd_expr_is_pure(value) || !hd_walk_expr(value, is_harmless, v))
    return false;
  note_loads(v, value);
  if (stmt->kind == HD_STMT_LET) {
    hd_ptr_map_set(v->arena, &v->lets, stmt->u.let.var, value);
    return true;
  }
  for (unsigned a = 0; a < stmt->u.store.num_indices; ++a)
    if (!hd_expr_is_stable(stmt->u.store.indices[a]))
      return false;
  hd_ptr_map_set(v->arena, &v->stored, stmt->u.store.var, stmt);
  return !stmt->u.store.linear &&
         (!is_memory_store(stmt) ||
          (value->type.lanes == 1 && !find_store(v, stmt->u.store.var, stmt)));
}

// The most lanes for which every store is of a vector; 1: none.
static int64_t find_width(vectorizer_t *v) {
  hd_block_t body = v->loop->u.loop.body;
  for (int64_t width = MAX_WIDTH; width > 1; width /= 2) {
    bool ok = v->trips % width == 0, any = false;
    for (size_t i = 0; ok && i < body.size; ++i) {
      const hd_stmt_t *stmt = body.stmts[i];
      if (!is_memory_store(stmt))
        continue;
      any = true;
      ok = is_vector(v, stmt->u.store.var, stmt->u.store.indices,
                     stmt->u.store.num_indices, width);
    }
    for (unsigned i = 0; ok && !any && i < v->num_loads; ++i)
      any = is_vector(v, v->loads[i].load->u.var, v->loads[i].load->operands,
                      v->loads[i].load->num_operands, width);
    if (ok && any)
      return width;
  }
  return 1;
}

static const hd_expr_t *name_value(vectorizer_t *v, const hd_var_t *like,
                                   const hd_expr_t *value) {
  hd_var_t *var =
      hd_var_make(v->arena, like->name, HD_VAR_LET, value->type, value->loc);
  hd_stmt_t *let = hd_stmt_make(v->arena, HD_STMT_LET, v->loop->loc);
  let->u.let.var = var;
  let->u.let.value = value;
  hd_stmt_list_push(v->arena, v->out, let);
  return hd_expr_var(v->arena, var);
}

static void load_vectors(vectorizer_t *v) {
  for (unsigned i = 0; i < v->num_loads; ++i) {
    const hd_expr_t *load = v->loads[i].load;
    v->loads[i].value = NULL;
    if (!is_vector(v, load->u.var, load->operands, load->num_operands,
                   v->width))
      continue;
    v->turn = v->first;
    const hd_expr_t *vector =
        hd_expr_access(v->arena, HD_EXPR_LOAD, load->u.var, (unsigned)v->width,
                       copies_of(v, load->operands, load->num_operands, false),
                       load->num_operands);
    v->loads[i].value = name_value(v, load->u.var, vector);
  }
}

static void store_register(vectorizer_t *v, const hd_stmt_t *stmt) {
  hd_stmt_t *copy = hd_stmt_copy(v->arena, stmt);
  copy->u.store.indices =
      copies_of(v, stmt->u.store.indices, stmt->u.store.num_indices, true);
  copy->u.store.value = copy_of(v, stmt->u.store.value, true);
  hd_stmt_list_push(v->arena, v->out, copy);
}

static void store_vector(vectorizer_t *v, const hd_stmt_t *stmt,
                         const hd_expr_t *const *values) {
  hd_type_t type = hd_type_vector((hd_scalar_t)stmt->u.store.value->type.scalar,
                                  (unsigned)v->width);
  hd_stmt_t *copy = hd_stmt_copy(v->arena, stmt);
  v->turn = v->first;
  copy->u.store.indices =
      copies_of(v, stmt->u.store.indices, stmt->u.store.num_indices, false);
  copy->u.store.value = hd_expr_make(v->arena, HD_EXPR_VECTOR, type, NULL,
                                     values, (unsigned)v->width);
  hd_stmt_list_push(v->arena, v->out, copy);
}

// The next `width` iterations: loads, then lane by lane, then stores.
static void emit_chunk(vectorizer_t *v) {
  hd_block_t body = v->loop->u.loop.body;
  const hd_expr_t **values =
      HD_ARENA_ARRAY(v->arena, const hd_expr_t *, body.size *MAX_WIDTH);
  load_vectors(v);
  for (v->lane = 0; v->lane < v->width; ++v->lane) {
    v->turn = v->first + v->lane;
    for (size_t i = 0; i < body.size; ++i) {
      const hd_stmt_t *stmt = body.stmts[i];
      if (stmt->kind == HD_STMT_LET)
        hd_ptr_map_set(v->arena, &v->copies, stmt->u.let.var,
                       name_value(v, stmt->u.let.var,
                                  copy_of(v, stmt->u.let.value, true)));
      else if (is_memory_store(stmt))
        values[i * MAX_WIDTH + (size_t)v->lane] = name_value(
            v, stmt->u.store.var, copy_of(v, stmt->u.store.value, true));
      else
        store_register(v, stmt);
    }
  }
  v->lane = -1;
  for (size_t i = 0; i < body.size; ++i)
    if (is_memory_store(body.stmts[i]))
      store_vector(v, body.stmts[i], values + i * MAX_WIDTH);
}

bool hd_vectorize_loop(hd_simplifier_t *s, const hd_stmt_t *loop,
                       hd_stmt_list_t *out) {
  vectorizer_t v = {
      .s = s, .arena = s->arena, .loop = loop, .out = out, .lane = -1};
  hd_block_t body = loop->u.loop.body;
  int64_t limit;
  if (loop->u.loop.unroll == 1 || loop->u.loop.step ||
      !hd_expr_fold_int(loop->u.loop.first, &v.first) ||
      !hd_expr_fold_int(loop->u.loop.limit, &limit) || v.first < 0 ||
      limit < v.first || limit > INT32_MAX)
    return false;
  v.trips = limit - v.first;
  if (v.trips < 2 || v.trips > MAX_TRIPS || body.size > MAX_STATEMENTS)
    return false;
  for (size_t i = 0; i < body.size; ++i)
    if (!look_at(&v, body.stmts[i]))
      return false;
  hd_facts_mark_t mark = hd_facts_mark(s->facts);
  hd_facts_loop(s->facts, loop->u.loop.var, loop->u.loop.first,
                loop->u.loop.limit, NULL);
  v.width = find_width(&v);
  for (; v.width > 1 && v.first < limit; v.first += v.width)
    emit_chunk(&v);
  hd_facts_reset(s->facts, mark);
  return v.width > 1;
}

const hd_func_t *hd_pass_vectorize(hd_module_t *module, const hd_func_t *func,
                                   const hd_pass_args_t *args) {
  (void)args;
  return hd_simplify_func(module, func, HD_SIMPLIFY_AND_VECTORIZE);
}
