// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a loop may become one of vectors, and how wide (Vectorize.c).
#include "IR/Passes/Vectorizer.h"
#include "IR/Rewrite.h"

enum {
  MAX_STATEMENTS = 100, // What fusion puts into a loop is a few dozen.
  MAX_NESTED = 8,       // Conditions in conditions.
};

static bool is_noted(const hd_vectorizer_t *v, const hd_expr_t *load) {
  for (unsigned i = 0; i < v->num_loads; ++i)
    if (hd_expr_equal(v->loads[i].load, load))
      return true;
  return false;
}

static bool divides_safely(void *argument, const hd_expr_t *e) {
  (void)argument;
  bool divides = e->kind == HD_EXPR_DIV || e->kind == HD_EXPR_MOD;
  return !divides || hd_expr_is_const(e->operands[1]);
}

// A load that is evaluated where it is needed alone, as one that does no harm
// elsewhere: 0 for what is outside. NULL: its place cannot be found elsewhere.
static const hd_expr_t *load_anywhere(const hd_vectorizer_t *v,
                                      const hd_expr_t *load) {
  const hd_expr_t *operands[HD_MAX_RANK + 1];
  if (load->kind != HD_EXPR_LOAD || load->num_operands == 0 ||
      load->u.var->tensor->scope != HD_SCOPE_GLOBAL ||
      hd_type_is_bool(load->type))
    return NULL;
  for (unsigned i = 0; i < load->num_operands; ++i) {
    operands[i] = load->operands[i];
    if (!hd_expr_is_stable(operands[i]) ||
        !hd_walk_expr(operands[i], divides_safely, NULL))
      return NULL;
  }
  operands[load->num_operands] = hd_type_is_float(load->type)
                                     ? hd_expr_float(v->arena, load->type, 0)
                                     : hd_expr_int(v->arena, load->type, 0);
  return hd_expr_access(v->arena, HD_EXPR_LOADELSE, load->u.var, 1, operands,
                        load->num_operands + 1);
}

// Loads that are certain to be done; of the others those that may be done
// where they are not needed: lanes that choose alike mostly need them all.
static void note_loads(hd_vectorizer_t *v, const hd_expr_t *e, bool is_lazy) {
  bool loads = e->kind == HD_EXPR_LOAD || e->kind == HD_EXPR_LOADELSE;
  if (loads && !e->linear && e->type.lanes == 1 &&
      v->num_loads < HD_VECTOR_MAX_LOADS && !is_noted(v, e)) {
    const hd_expr_t *access = is_lazy ? load_anywhere(v, e) : e;
    if (access)
      v->loads[v->num_loads++] =
          (hd_vector_load_t){.load = e, .access = access};
  }
  for (unsigned i = 0; i < e->num_operands; ++i)
    note_loads(v, e->operands[i], is_lazy || hd_expr_is_lazy(e, i));
}

bool hd_vector_is_store(const hd_stmt_t *stmt) {
  return stmt->kind == HD_STMT_STORE &&
         stmt->u.store.var->tensor->scope != HD_SCOPE_REGISTER;
}

const hd_expr_t *hd_vector_given(const hd_stmt_t *stmt) {
  return stmt->kind == HD_STMT_LET      ? stmt->u.let.value
         : stmt->kind == HD_STMT_ASSERT ? stmt->u.assertion.condition
                                        : stmt->u.store.value;
}

// --- Whether it may be done ---

// What stands in a body.
typedef struct contents {
  hd_vectorizer_t *v;
  unsigned statements;
  bool ok, has_registers, has_branches;
} contents_t;

// Whether both store to the same element; true where there is none before.
static bool is_same_place(const hd_stmt_t *before, const hd_stmt_t *stmt) {
  unsigned rank = stmt->u.store.num_indices;
  bool same = !before || before->u.store.num_indices == rank;
  for (unsigned a = 0; before && same && a < rank; ++a)
    same = hd_expr_equal(before->u.store.indices[a], stmt->u.store.indices[a]);
  return same;
}

// One place of a tensor of memory is stored to.
static void note_contents(contents_t *c, hd_block_t block, unsigned depth) {
  c->ok &= depth < MAX_NESTED;
  c->statements += block.size;
  for (size_t i = 0; c->ok && i < block.size; ++i) {
    const hd_stmt_t *stmt = block.stmts[i];
    if (stmt->kind == HD_STMT_IF) {
      c->has_branches = true;
      note_contents(c, stmt->u.branch.then, depth + 1);
      note_contents(c, stmt->u.branch.otherwise, depth + 1);
    } else if (stmt->kind == HD_STMT_STORE) {
      hd_ptr_map_t *stores = &c->v->stores;
      const hd_var_t *var = stmt->u.store.var;
      c->has_registers |= !hd_vector_is_store(stmt);
      c->ok = !hd_vector_is_store(stmt) ||
              is_same_place(hd_ptr_map_get(stores, var), stmt);
      hd_ptr_map_set(c->v->arena, stores, var, stmt);
    } else if (stmt->kind != HD_STMT_LET && stmt->kind != HD_STMT_ASSERT) {
      c->ok = false;
    }
  }
}

// No load of a tensor that the loop stores, but at the place that it stores,
// and before: vectors are loaded ahead of all lanes and stored after them.
static bool is_harmless(void *argument, const hd_expr_t *e) {
  hd_vectorizer_t *v = argument;
  if (!hd_expr_is_access(e) || e->u.var->tensor->scope == HD_SCOPE_REGISTER)
    return true;
  const hd_stmt_t *store = hd_ptr_map_get(&v->stores, e->u.var);
  if (!store)
    return true;
  if (e->kind != HD_EXPR_LOAD || e->linear ||
      hd_ptr_map_get(&v->stored, e->u.var) ||
      e->num_operands != store->u.store.num_indices)
    return false;
  v->turn = -1;
  for (unsigned a = 0; a < e->num_operands; ++a)
    if (!hd_expr_equal(hd_vector_copy(v, e->operands[a], false),
                       hd_vector_copy(v, store->u.store.indices[a], false)))
      return false;
  return true;
}

static bool is_not_changed(void *argument, const hd_expr_t *e) {
  const hd_vectorizer_t *v = argument;
  return !hd_expr_is_access(e) || !hd_ptr_map_get(&v->stores, e->u.var);
}

// Whether it says the same wherever in the loop it is evaluated: a place that a
// table has, but not what the loop stores.
static bool is_settled(hd_vectorizer_t *v, const hd_expr_t *e) {
  return hd_expr_is_pure(e) && hd_walk_expr(e, is_not_changed, v);
}

static bool look_at_block(hd_vectorizer_t *v, hd_block_t block);

// Whether the statement may be done for all lanes side by side.
static bool look_at(hd_vectorizer_t *v, const hd_stmt_t *stmt) {
  if (stmt->kind == HD_STMT_IF)
    return is_settled(v, stmt->u.branch.condition) &&
           look_at_block(v, stmt->u.branch.then) &&
           look_at_block(v, stmt->u.branch.otherwise);
  const hd_expr_t *value = hd_vector_given(stmt);
  if (stmt->kind == HD_STMT_ASSERT) // Once for all lanes, ahead of them.
    return is_settled(v, hd_vector_copy(v, value, false)) &&
           hd_vector_is_fixed(v, &value, 1);
  if (!hd_expr_is_pure(value) || !hd_walk_expr(value, is_harmless, v))
    return false;
  if (stmt->kind == HD_STMT_LET) {
    hd_ptr_map_set(v->arena, &v->lets, stmt->u.let.var, value);
    return true;
  }
  for (unsigned a = 0; a < stmt->u.store.num_indices; ++a)
    if (!is_settled(v, stmt->u.store.indices[a]))
      return false;
  hd_ptr_map_set(v->arena, &v->stored, stmt->u.store.var, stmt);
  return !stmt->u.store.linear &&
         (!hd_vector_is_store(stmt) || value->type.lanes == 1);
}

static bool look_at_block(hd_vectorizer_t *v, hd_block_t block) {
  for (size_t i = 0; i < block.size; ++i)
    if (!look_at(v, block.stmts[i]))
      return false;
  return true;
}

// Registers are accessed in their order, which conditions would cut.
bool hd_vector_is_possible(hd_vectorizer_t *v) {
  contents_t contents = {.v = v, .ok = true};
  hd_block_t body = v->loop->u.loop.body;
  note_contents(&contents, body, 0);
  return contents.ok && contents.statements <= MAX_STATEMENTS &&
         !(contents.has_registers && contents.has_branches) &&
         look_at_block(v, body);
}

// --- How wide ---

// The facts of a branch: of any iteration, and of the first.
hd_facts_mark_t hd_vector_enter(hd_vectorizer_t *v, const hd_expr_t *condition,
                                bool holds) {
  hd_facts_mark_t mark = hd_facts_mark(v->s->facts);
  v->turn = -1;
  hd_facts_assume(v->s->facts, hd_vector_copy(v, condition, false), holds);
  v->turn = v->first;
  hd_facts_assume(v->s->facts, hd_vector_copy(v, condition, false), holds);
  return mark;
}

// Whether every store is of a vector, and every condition the same for it; *any
// for one store.
bool hd_vector_fits(hd_vectorizer_t *v, hd_block_t block, int64_t width,
                    bool *any) {
  bool ok = true;
  for (size_t i = 0; ok && i < block.size; ++i) {
    const hd_stmt_t *stmt = block.stmts[i];
    if (stmt->kind == HD_STMT_IF) {
      const hd_expr_t *condition = stmt->u.branch.condition;
      if (!hd_vector_is_uniform(v, condition, width))
        return false;
      hd_facts_mark_t mark = hd_vector_enter(v, condition, true);
      ok = hd_vector_fits(v, stmt->u.branch.then, width, any);
      hd_facts_reset(v->s->facts, mark);
      mark = hd_vector_enter(v, condition, false);
      ok = ok && hd_vector_fits(v, stmt->u.branch.otherwise, width, any);
      hd_facts_reset(v->s->facts, mark);
    } else if (hd_vector_is_store(stmt)) {
      *any = true;
      ok = hd_vector_is_access(v, stmt->u.store.var, stmt->u.store.indices,
                               stmt->u.store.num_indices, width);
    }
  }
  return ok;
}

static bool loads_vector(hd_vectorizer_t *v, int64_t width) {
  for (unsigned i = 0; i < v->num_loads; ++i) {
    if (hd_vector_is_load(v, v->loads[i].access, width))
      return true;
  }
  return false;
}

void hd_vector_note_loads(hd_vectorizer_t *v, hd_block_t block) {
  for (size_t i = 0; i < block.size; ++i)
    if (block.stmts[i]->kind != HD_STMT_IF)
      note_loads(v, hd_vector_given(block.stmts[i]), false);
}

// Each vector by itself: what is known in a branch is of the vector at hand.
static bool fits_loop(hd_vectorizer_t *v, int64_t width, bool *any) {
  int64_t first = v->first;
  bool ok = v->trips % width == 0;
  for (int64_t at = 0; ok && at < v->trips; at += width) {
    v->first = first + at;
    ok = hd_vector_fits(v, v->loop->u.loop.body, width, any);
  }
  v->first = first;
  return ok;
}

// The most lanes for which every store is of a vector, or where there is none,
// a load; 1: none.
int64_t hd_vector_width(hd_vectorizer_t *v) {
  hd_vector_note_loads(v, v->loop->u.loop.body);
  for (int64_t width = HD_VECTOR_MAX_WIDTH; width > 1; width /= 2) {
    bool any = false;
    if (fits_loop(v, width, &any) && (any || loads_vector(v, width)))
      return width;
  }
  return 1;
}
