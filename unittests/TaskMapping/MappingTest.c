// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The laws of task mappings, over random ones: worker counts, associativity,
// coverage; and that lowering to loops is the enumeration, in order.

#include "Interpret.h"
#include "Random.h"
#include "TaskMapping/Passes.h"
#include "UnitTest.h"

#include "IR/Passes/Passes.h"
#include "IR/Rewrite.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"

enum { RANK = 2, MAX_FACTOR = 3, ROUNDS = 150 };

static const hd_mapping_t *random_custom(random_t *r, hd_arena_t *arena) {
  // Worker w does every count-th task from w on: exact by construction.
  int64_t rows = random_in(r, 1, MAX_FACTOR), count = random_in(r, 1, 3);
  int64_t workers = random_in(r, 1, 3);
  int64_t dims[RANK] = {rows, workers * count};
  hd_var_t *w = hd_var_make(arena, "w", HD_VAR_MAPPING, hd_type(HD_I32),
                            (hd_loc_t){0, 0});
  hd_var_t *t = hd_var_make(arena, "r", HD_VAR_MAPPING, hd_type(HD_I32),
                            (hd_loc_t){0, 0});
  const hd_expr_t *turn = hd_expr_var(arena, t);
  const hd_expr_t *column =
      hd_expr_binary(arena, HD_EXPR_ADD,
                     hd_expr_binary(arena, HD_EXPR_MUL,
                                    hd_expr_binary(arena, HD_EXPR_MOD, turn,
                                                   hd_expr_i32(arena, count)),
                                    hd_expr_i32(arena, workers)),
                     hd_expr_var(arena, w));
  const hd_expr_t *exprs[RANK] = {
      hd_expr_binary(arena, HD_EXPR_DIV, turn, hd_expr_i32(arena, count)),
      column};
  return hd_mapping_custom(arena, workers, dims, RANK, w, t, rows * count,
                           exprs);
}

static const hd_mapping_t *random_leaf(random_t *r, hd_arena_t *arena) {
  int64_t dims[RANK];
  for (unsigned a = 0; a < RANK; ++a)
    dims[a] = random_in(r, 1, MAX_FACTOR);
  const uint32_t swapped[RANK] = {1, 0};
  const uint32_t *order = random_in(r, 0, 1) ? swapped : NULL;
  switch (random_in(r, 0, 5)) {
  case 0:
  case 1:
    return hd_mapping_spatial(arena, dims, order, RANK);
  case 2:
  case 3:
    return hd_mapping_repeat(arena, dims, order, RANK);
  case 4:
    return hd_mapping_auto(arena, dims, RANK, dims[0] * dims[1]);
  default:
    return random_custom(r, arena);
  }
}

static const hd_mapping_t *random_mapping(random_t *r, hd_arena_t *arena,
                                          unsigned depth) {
  if (depth == 0 || random_in(r, 0, 3) == 0)
    return random_leaf(r, arena);
  return hd_mapping_compose(arena, random_mapping(r, arena, depth - 1),
                            random_mapping(r, arena, depth - 1));
}

static hd_tasks_t tasks_of(hd_arena_t *arena, const hd_mapping_t *m,
                           int64_t worker) {
  hd_tasks_t tasks;
  assert_true(hd_mapping_tasks(arena, m, worker, NULL, &tasks));
  return tasks;
}

static void assert_same_tasks(hd_arena_t *arena, const hd_mapping_t *a,
                              const hd_mapping_t *b) {
  assert_int_equal(a->workers, b->workers);
  for (unsigned axis = 0; axis < RANK; ++axis)
    assert_int_equal(a->dims[axis], b->dims[axis]);
  for (int64_t w = 0; w < a->workers; ++w) {
    hd_tasks_t x = tasks_of(arena, a, w), y = tasks_of(arena, b, w);
    assert_int_equal(x.count, y.count);
    for (int64_t i = 0; i < x.count * RANK; ++i)
      assert_int_equal(x.indices[i], y.indices[i]);
  }
}

static void composition_is_associative(void **state) {
  (void)state;
  random_t r = random_begin("composition_is_associative");
  for (int round = 0; round < ROUNDS; ++round) {
    hd_arena_t arena;
    hd_arena_init(&arena, NULL);
    const hd_mapping_t *a = random_leaf(&r, &arena);
    const hd_mapping_t *b = random_leaf(&r, &arena);
    const hd_mapping_t *c = random_leaf(&r, &arena);
    const hd_mapping_t *left =
        hd_mapping_compose(&arena, hd_mapping_compose(&arena, a, b), c);
    const hd_mapping_t *right =
        hd_mapping_compose(&arena, a, hd_mapping_compose(&arena, b, c));
    assert_int_equal(left->workers, a->workers * b->workers * c->workers);
    assert_same_tasks(&arena, left, right);
    hd_arena_fini(&arena);
  }
}

// Counts how often each task is done, by brute force.
static void assert_each_once(hd_arena_t *arena, const hd_mapping_t *m) {
  int64_t total = m->dims[0] * m->dims[1];
  unsigned *done = HD_ARENA_ARRAY(arena, unsigned, total);
  for (int64_t w = 0; w < m->workers; ++w) {
    hd_tasks_t tasks = tasks_of(arena, m, w);
    assert_int_equal(tasks.count, hd_mapping_tasks_per_worker(m));
    for (int64_t t = 0; t < tasks.count; ++t) {
      const int64_t *task = tasks.indices + t * RANK;
      assert_in_range(task[0], 0, m->dims[0] - 1);
      assert_in_range(task[1], 0, m->dims[1] - 1);
      ++done[task[0] * m->dims[1] + task[1]];
    }
  }
  for (int64_t t = 0; t < total; ++t)
    assert_int_equal(done[t], 1);
}

static void compositions_do_each_task_once(void **state) {
  (void)state;
  random_t r = random_begin("compositions_do_each_task_once");
  for (int round = 0; round < ROUNDS; ++round) {
    hd_arena_t arena;
    hd_arena_init(&arena, NULL);
    const hd_mapping_t *m = random_mapping(&r, &arena, 2);
    assert_int_equal(hd_mapping_analyze(m).fault, HD_MAPPING_EXACT);
    assert_each_once(&arena, m);
    hd_arena_fini(&arena);
  }
}

static void auto_map_is_gcd_from_the_last_axis(void **state) {
  (void)state;
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  // 12 workers on 6 x 8: gcd(12, 8) = 4, then gcd(3, 6) = 3.
  const int64_t dims[RANK] = {6, 8};
  const int64_t repeat[RANK] = {2, 2}, spatial[RANK] = {3, 4};
  const hd_mapping_t *m = hd_mapping_auto(&arena, dims, RANK, 12);
  int64_t left_over;
  const hd_mapping_t *expanded = hd_mapping_expand_auto(&arena, m, &left_over);
  assert_int_equal(left_over, 1);
  assert_true(hd_mapping_equal(
      expanded,
      hd_mapping_compose(&arena, hd_mapping_repeat(&arena, repeat, NULL, RANK),
                         hd_mapping_spatial(&arena, spatial, NULL, RANK))));
  assert_int_equal(hd_mapping_tasks_per_worker(m), 4);
  // 5 workers find nothing to share in 6 x 8.
  hd_mapping_facts_t facts =
      hd_mapping_analyze(hd_mapping_auto(&arena, dims, RANK, 5));
  assert_int_equal(facts.fault, HD_MAPPING_LEFT_OVER);
  hd_arena_fini(&arena);
}

static void constructors_refuse_what_does_not_fit(void **state) {
  (void)state;
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  const int64_t good[] = {4, 4}, zero[] = {4, 0}, huge[] = {65536, 65536};
  const uint32_t twice[] = {0, 0};
  const hd_mapping_t *m = hd_mapping_spatial(&arena, good, NULL, 2);
  assert_non_null(m);
  assert_null(hd_mapping_spatial(&arena, zero, NULL, 2));
  assert_null(hd_mapping_repeat(&arena, huge, NULL, 2));
  assert_null(hd_mapping_repeat(&arena, good, twice, 2));
  assert_null(hd_mapping_repeat(&arena, good, NULL, 0));
  assert_null(
      hd_mapping_compose(&arena, m, hd_mapping_spatial(&arena, good, NULL, 1)));
  assert_null(hd_mapping_idle(&arena, m, 15));
  hd_arena_fini(&arena);
}

// custom(workers, [size], (w) -> [expr])
static hd_mapping_fault_t fault_of(hd_arena_t *arena, int64_t workers,
                                   int64_t size, const hd_var_t *w,
                                   const hd_expr_t *expr) {
  const hd_mapping_t *m =
      hd_mapping_custom(arena, workers, &size, 1, w, NULL, 1, &expr);
  return hd_mapping_analyze(m).fault;
}

static void analysis_finds_faults_of_custom_mappings(void **state) {
  (void)state;
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  hd_var_t *w = hd_var_make(&arena, "w", HD_VAR_MAPPING, hd_type(HD_I32),
                            (hd_loc_t){0, 0});
  const hd_expr_t *self = hd_expr_var(&arena, w);
  const hd_expr_t *half =
      hd_expr_binary(&arena, HD_EXPR_DIV, self, hd_expr_i32(&arena, 2));
  assert_int_equal(fault_of(&arena, 4, 4, w, self), HD_MAPPING_EXACT);
  assert_int_equal(fault_of(&arena, 4, 3, w, self), HD_MAPPING_OUTSIDE);
  assert_int_equal(fault_of(&arena, 4, 5, w, self), HD_MAPPING_MISSED);
  assert_int_equal(fault_of(&arena, 4, 2, w, half), HD_MAPPING_TWICE);
  const hd_expr_t *bad =
      hd_expr_binary(&arena, HD_EXPR_DIV, self, hd_expr_i32(&arena, 0));
  assert_int_equal(fault_of(&arena, 4, 4, w, bad), HD_MAPPING_UNKNOWN);
  hd_arena_fini(&arena);
}

// within and idle around a random mapping: bounds from a loop's variable, so
// that they are not constant.
static const hd_mapping_t *predicated(random_t *r, hd_arena_t *arena,
                                      const hd_expr_t *n) {
  const hd_mapping_t *m = random_mapping(r, arena, 2);
  if (random_in(r, 0, 1)) {
    const hd_expr_t *bounds[RANK] = {
        n, hd_expr_i32(arena, random_in(r, 0, m->dims[1]))};
    m = hd_mapping_within(arena, m, bounds);
  }
  if (random_in(r, 0, 1))
    m = hd_mapping_idle(arena, m, m->workers + random_in(r, 0, 3));
  if (random_in(r, 0, 2) == 0)
    m = hd_mapping_compose(arena, m, random_leaf(r, arena));
  return m;
}

static hd_block_t block_of(hd_arena_t *arena, const hd_stmt_t *stmt) {
  return hd_block_make(arena, &stmt, 1);
}

static hd_stmt_t *loop_over(hd_arena_t *arena, hd_var_t *var, int64_t limit,
                            const hd_stmt_t *body) {
  hd_stmt_t *loop = hd_stmt_make(arena, HD_STMT_FOR, (hd_loc_t){0, 0});
  loop->u.loop.var = var;
  loop->u.loop.first = hd_expr_i32(arena, 0);
  loop->u.loop.limit = hd_expr_i32(arena, limit);
  loop->u.loop.body = block_of(arena, body);
  return loop;
}

static hd_var_t *new_loop_var(hd_arena_t *arena, const char *name) {
  return hd_var_make(arena, name, HD_VAR_LOOP, hd_type(HD_I32),
                     (hd_loc_t){0, 0});
}

// if i + k == number { word }; NULL: nothing is left.
static const hd_stmt_t *leave_at(random_t *r, hd_arena_t *arena,
                                 const hd_expr_t *const *task) {
  static const hd_stmt_kind_t words[] = {HD_STMT_BREAK, HD_STMT_CONTINUE};
  if (random_in(r, 0, 1))
    return NULL;
  hd_stmt_t *branch = hd_stmt_make(arena, HD_STMT_IF, (hd_loc_t){0, 0});
  branch->u.branch.condition = hd_expr_binary(
      arena, HD_EXPR_EQ, hd_expr_binary(arena, HD_EXPR_ADD, task[0], task[1]),
      hd_expr_i32(arena, random_in(r, 0, 8)));
  branch->u.branch.then = block_of(
      arena, hd_stmt_make(arena, words[random_in(r, 0, 1)], (hd_loc_t){0, 0}));
  return branch;
}

// kernel: for n in 0..3 { for w in 0..workers { for i, k in M on w {
//   [if i + k == 4 { break }] out[i, k] = n } } }
static hd_func_t *make_kernel(random_t *r, hd_arena_t *arena) {
  hd_tensor_t *type = HD_ARENA_NEW(arena, hd_tensor_t);
  *type = (hd_tensor_t){
      .scope = HD_SCOPE_GLOBAL, .element = hd_type(HD_I32), .rank = RANK};
  const hd_expr_t **shape = HD_ARENA_ARRAY(arena, const hd_expr_t *, RANK);
  shape[0] = shape[1] = hd_expr_i32(arena, 4096);
  type->shape = shape;
  hd_var_t *out = hd_var_make_tensor(arena, "out", type, (hd_loc_t){0, 0});
  out->direction = HD_DIR_OUT;

  hd_var_t *n = new_loop_var(arena, "n"), *w = new_loop_var(arena, "w");
  const hd_var_t **vars = HD_ARENA_ARRAY(arena, const hd_var_t *, RANK);
  vars[0] = new_loop_var(arena, "i");
  vars[1] = new_loop_var(arena, "k");
  const hd_mapping_t *m = predicated(r, arena, hd_expr_var(arena, n));

  const hd_expr_t **indices = HD_ARENA_ARRAY(arena, const hd_expr_t *, RANK);
  for (unsigned a = 0; a < RANK; ++a)
    indices[a] = hd_expr_var(arena, vars[a]);
  hd_stmt_t *store = hd_stmt_make(arena, HD_STMT_STORE, (hd_loc_t){0, 0});
  store->u.store.var = out;
  store->u.store.num_indices = RANK;
  store->u.store.indices = indices;
  store->u.store.value = hd_expr_var(arena, n);
  hd_stmt_t *over = hd_stmt_make(arena, HD_STMT_MAPFOR, (hd_loc_t){0, 0});
  over->u.mapfor.vars = vars;
  over->u.mapfor.mapping = m;
  over->u.mapfor.worker = hd_expr_var(arena, w);
  const hd_stmt_t *body[] = {leave_at(r, arena, indices), store};
  over->u.mapfor.body =
      body[0] ? hd_block_make(arena, body, 2) : block_of(arena, store);
  hd_func_t *func = HD_ARENA_NEW(arena, hd_func_t);
  *func = (hd_func_t){.kind = HD_FUNC_KERNEL,
                      .name = "k",
                      .result = hd_type(HD_VOID),
                      .has_body = true};
  const hd_var_t **params = HD_ARENA_NEW(arena, const hd_var_t *);
  params[0] = out;
  func->num_params = 1;
  func->params = params;
  func->body = block_of(
      arena, loop_over(arena, n, 3, loop_over(arena, w, m->workers, over)));
  return func;
}

static void assert_same_trace(const hd_func_t *a, const hd_func_t *b) {
  interpreter_t x, y;
  interpreter_init(&x);
  interpreter_init(&y);
  interpret(&x, a->body);
  interpret(&y, b->body);
  assert_false(x.trapped);
  assert_false(y.trapped);
  assert_int_equal(x.trace.size, y.trace.size);
  for (size_t i = 0; i < x.trace.size; ++i)
    assert_int_equal(x.trace.data[i], y.trace.data[i]);
  interpreter_fini(&x);
  interpreter_fini(&y);
}

static bool no_mapping(void *argument, const hd_stmt_t *stmt) {
  (void)argument;
  return stmt->kind != HD_STMT_MAPFOR;
}

static void assert_valid(hd_context_t *context, const hd_func_t *func) {
  if (hd_func_verify(context, func))
    return;
  hd_buffer_t text = {0};
  hd_diagnostics_print(&context->diags, false, &text);
  hd_func_print(func, &text);
  fail_msg("%s", hd_buffer_text(&text));
}

static void lowering_is_the_enumeration(void **state) {
  (void)state;
  random_t r = random_begin("lowering_is_the_enumeration");
  hd_pass_args_t args = {0};
  size_t stores = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    hd_context_t context;
    hd_context_init(&context);
    hd_module_t *module = hd_module_create(&context);
    hd_func_t *func = make_kernel(&r, &module->arena);
    hd_item_t item = {HD_ITEM_FUNC, {.func = func}};
    hd_vec_push(&module->arena, &module->items, item);
    const hd_func_t *lowered = hd_pass_lower_task_mapping(module, func, &args);
    assert_non_null(lowered);
    assert_true(hd_walk_block(lowered->body, no_mapping, NULL, NULL));
    assert_valid(&context, lowered);
    assert_same_trace(func, lowered);
    const hd_func_t *simple = hd_pass_simplify(module, lowered, &args);
    assert_valid(&context, simple);
    assert_same_trace(func, simple);
    interpreter_t in;
    interpreter_init(&in);
    interpret(&in, simple->body);
    stores += in.trace.size;
    interpreter_fini(&in);
    hd_context_fini(&context);
  }
  assert_true(stores > 1000); // The kernels do something.
}

HD_UNIT_TESTS(cmocka_unit_test(composition_is_associative),
              cmocka_unit_test(compositions_do_each_task_once),
              cmocka_unit_test(auto_map_is_gcd_from_the_last_axis),
              cmocka_unit_test(constructors_refuse_what_does_not_fit),
              cmocka_unit_test(analysis_finds_faults_of_custom_mappings),
              cmocka_unit_test(lowering_is_the_enumeration))
