// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statements of random functions.
#include "IR/Generator.h"

// Few, so that they clash; some are reserved, or mean something to a call.
const char *hd_random_name(hd_generator_t *g) {
  static const char *const names[] = {
      "a",  "b",       "x",  "x_1", "i",    "for", "f32",    "exp",
      "c0", "relaxed", "ca", "f0",  "sqrt", "t",   "thread", "long_one"};
  return names[hd_random_below(g, sizeof names / sizeof names[0])];
}

static hd_block_t block(hd_generator_t *g, int depth);

hd_stmt_t *hd_generate_stmt(hd_generator_t *g, hd_stmt_kind_t kind) {
  g->counts->stmts[kind]++;
  return hd_stmt_make(g->arena, kind, (hd_loc_t){0});
}

const hd_var_t *hd_generate_var(hd_generator_t *g, hd_var_kind_t kind,
                                hd_type_t type) {
  const hd_var_t *var =
      hd_var_make(g->arena, hd_random_name(g), kind, type, (hd_loc_t){0});
  hd_vec_push(g->arena, &g->vars, var);
  return var;
}

static const hd_stmt_t *let(hd_generator_t *g) {
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_LET);
  stmt->u.let.value = hd_generate_expr(g, hd_random_type(g), 4);
  stmt->u.let.var = hd_generate_var(g, HD_VAR_LET, stmt->u.let.value->type);
  return stmt;
}

const hd_stmt_t *hd_generate_declaration(hd_generator_t *g,
                                         const hd_tensor_t *tensor) {
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_DECLARE);
  if (tensor->scope != HD_SCOPE_SHARED && hd_random_below(g, 2))
    stmt->u.declare.init = hd_generate_expr(g, tensor->element, 2);
  stmt->u.declare.var =
      hd_var_make_tensor(g->arena, hd_random_name(g), tensor, (hd_loc_t){0});
  hd_vec_push(g->arena, &g->vars, stmt->u.declare.var);
  return stmt;
}

// In a scope that may be declared here.
const hd_stmt_t *hd_generate_declared(hd_generator_t *g, hd_scope_t scope,
                                      hd_type_t element) {
  return hd_generate_declaration(g, hd_generate_tensor(g, scope, element));
}

static const hd_stmt_t *any_tensor(hd_generator_t *g) {
  hd_scope_t scope =
      hd_random_below(g, 2) && !g->in_loop && g->func->kind == HD_FUNC_KERNEL
          ? HD_SCOPE_SHARED
          : HD_SCOPE_REGISTER;
  hd_type_t element = hd_type_lane(hd_random_type(g));
  if (scope == HD_SCOPE_SHARED && hd_random_below(g, 8) == 0)
    element = hd_type(HD_MBARRIER);
  g->counts->scalars[element.scalar]++;
  return hd_generate_declared(g, scope, element);
}

static bool may_store(const hd_var_t *var) {
  return var->tensor && var->direction != HD_DIR_IN &&
         var->type.scalar != HD_MBARRIER &&
         (hd_type_bits(var->type) >= 8 ||
          var->tensor->scope == HD_SCOPE_REGISTER);
}

static const hd_stmt_t *store(hd_generator_t *g) {
  for (size_t i = g->vars.size; i-- > 0;) {
    const hd_var_t *var = g->vars.data[i];
    if (!may_store(var) || hd_random_below(g, 2))
      continue;
    hd_type_t type = var->type;
    if (hd_random_below(g, 3) == 0)
      type = hd_type_vector((hd_scalar_t)type.scalar, 2);
    const hd_expr_t *place =
        hd_generate_access(g, HD_EXPR_REF, type, var->tensor->scope, 2);
    if (!place || !may_store(place->u.var))
      continue;
    hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_STORE);
    stmt->u.store.var = place->u.var;
    stmt->u.store.linear = place->linear;
    stmt->u.store.num_indices = place->num_operands;
    stmt->u.store.indices = place->operands;
    stmt->u.store.value = hd_generate_expr(g, place->type, 4);
    return stmt;
  }
  return NULL;
}

// A yield's register for what it reads, or an expect in place of the yield.
static void expect_some(hd_generator_t *g, hd_stmt_t *stmt) {
  const hd_expr_t *early =
      hd_generate_access(g, HD_EXPR_REF, hd_type(HD_F32), HD_SCOPE_REGISTER, 2);
  if (!early || early->linear)
    return;
  stmt->u.point.early = early;
  if (hd_random_below(g, 2))
    return;
  stmt->u.point.kind = HD_POINT_EXPECT;
  stmt->u.point.value = hd_expect_value(g->arena, stmt->u.point.place->type);
}

// A fusion point; in a loop of its own (tile) it may be staged.
static const hd_stmt_t *point(hd_generator_t *g, bool tile) {
  static const hd_point_t kinds[][2] = {
      [HD_SCOPE_GLOBAL] = {HD_POINT_YIELD, HD_POINT_YIELD},
      [HD_SCOPE_SHARED] = {HD_POINT_LOAD, HD_POINT_LOAD},
      [HD_SCOPE_REGISTER] = {HD_POINT_LOAD, HD_POINT_REGISTER}};
  for (size_t i = g->vars.size; i-- > 0;) {
    const hd_var_t *var = g->vars.data[i];
    if (!may_store(var))
      continue;
    hd_scope_t scope = var->tensor->scope;
    const hd_expr_t *place =
        hd_generate_access(g, HD_EXPR_REF, var->type, scope, 2);
    if (!place || place->linear || !may_store(place->u.var))
      continue;
    hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_POINT);
    stmt->u.point.kind = (uint8_t)kinds[scope][hd_random_below(g, 2)];
    stmt->u.point.buffers = 1;
    stmt->u.point.place = place;
    stmt->u.point.value = hd_generate_expr(g, place->type, 4);
    if (stmt->u.point.kind == HD_POINT_YIELD && hd_random_below(g, 2))
      expect_some(g, stmt);
    g->counts->points[stmt->u.point.kind]++;
    const hd_expr_t *staging =
        tile && stmt->u.point.kind == HD_POINT_YIELD
            ? hd_generate_access(g, HD_EXPR_REF, var->type, HD_SCOPE_SHARED, 2)
            : NULL;
    if (!staging || staging->linear)
      return stmt;
    g->counts->staged++;
    stmt->u.point.staging = staging;
    stmt->u.point.buffers = (uint8_t)(1 + hd_random_below(g, 3));
    stmt->u.point.barrier = hd_expr_i32(g->arena, 3);
    stmt->u.point.threads = hd_expr_i32(g->arena, 64);
    return stmt;
  }
  return NULL;
}

// A point of rows, across the workers of the loop that is all its own; across
// threads that meet in it in no other loop.
static const hd_stmt_t *rows(hd_generator_t *g, const hd_mapping_t *mapping,
                             const hd_var_t *element) {
  bool is_lane = mapping->workers == 2 || mapping->workers == 4;
  bool meets = !is_lane && mapping->workers > 1;
  const hd_expr_t *place =
      mapping->rank == 1 && mapping->workers <= 1024 && !(meets && g->in_loop)
          ? hd_generate_access(g, HD_EXPR_REF, hd_type(HD_F32), HD_SCOPE_GLOBAL,
                               1)
          : NULL;
  if (!place || place->num_operands != 2 || place->linear ||
      !may_store(place->u.var))
    return NULL;
  const hd_expr_t *at[] = {hd_expr_i32(g->arena, 3),
                           hd_expr_var(g->arena, element)};
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_POINT);
  stmt->u.point.kind = HD_POINT_ROWS;
  stmt->u.point.buffers = 1;
  stmt->u.point.place =
      hd_expr_access(g->arena, HD_EXPR_REF, place->u.var, 1, at, 2);
  stmt->u.point.value = hd_generate_expr(g, place->type, 4);
  stmt->u.point.across[is_lane ? HD_ACROSS_LANE : HD_ACROSS_THREAD] =
      (uint16_t)mapping->workers;
  g->counts->points[HD_POINT_ROWS]++;
  return stmt;
}

static int32_t unroll(hd_generator_t *g) {
  static const int32_t values[] = {0, 0, HD_UNROLL_FULL, 1, 4};
  return values[hd_random_below(g, 5)];
}

static hd_block_t loop_body(hd_generator_t *g, int depth) {
  bool outer = g->in_loop;
  g->in_loop = true;
  hd_block_t body = block(g, depth);
  g->in_loop = outer;
  return body;
}

static const hd_stmt_t *loop(hd_generator_t *g, int depth) {
  static const hd_scalar_t types[] = {HD_I32, HD_I32, HD_I64, HD_U8};
  hd_type_t type = hd_type(types[hd_random_below(g, 4)]);
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_FOR);
  size_t outer = g->vars.size;
  stmt->u.loop.first = hd_generate_expr(g, type, 2);
  stmt->u.loop.limit = hd_generate_expr(g, type, 2);
  if (hd_random_below(g, 2))
    stmt->u.loop.step = hd_expr_int(g->arena, type, 3);
  stmt->u.loop.unroll = unroll(g);
  stmt->u.loop.var = hd_generate_var(g, HD_VAR_LOOP, type);
  stmt->u.loop.body = loop_body(g, depth);
  g->vars.size = outer;
  return stmt;
}

static const hd_stmt_t *mapfor(hd_generator_t *g, int depth) {
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_MAPFOR);
  unsigned rank = 1 + hd_random_below(g, 3);
  size_t outer = g->vars.size;
  const hd_mapping_t *mapping = hd_generate_mapping(g, rank, 3, false);
  stmt->u.mapfor.mapping = mapping;
  if (mapping->workers > 1 || hd_random_below(g, 2))
    stmt->u.mapfor.worker = hd_generate_expr(g, hd_type(HD_I32), 2);
  stmt->u.mapfor.unroll = unroll(g);
  const hd_var_t **vars = HD_ARENA_ARRAY(g->arena, const hd_var_t *, rank);
  for (unsigned i = 0; i < rank; i++)
    vars[i] = hd_generate_var(g, HD_VAR_LOOP, hd_type(HD_I32));
  stmt->u.mapfor.vars = vars;
  const hd_stmt_t *own =
      hd_random_below(g, 2) ? rows(g, mapping, vars[0]) : NULL;
  if (!own && hd_random_below(g, 2))
    own = point(g, true);
  stmt->u.mapfor.body =
      own ? hd_block_make(g->arena, &own, 1) : loop_body(g, depth);
  g->vars.size = outer;
  return stmt;
}

static const hd_stmt_t *branch(hd_generator_t *g, hd_stmt_kind_t kind,
                               int depth) {
  hd_stmt_t *stmt = hd_generate_stmt(g, kind);
  stmt->u.branch.condition = hd_generate_expr(g, hd_type(HD_BOOL), 3);
  stmt->u.branch.then =
      kind == HD_STMT_WHILE ? loop_body(g, depth) : block(g, depth);
  if (kind == HD_STMT_IF && hd_random_below(g, 2))
    stmt->u.branch.otherwise = block(g, depth);
  return stmt;
}

// break and continue where there is a loop, return in a kernel.
static const hd_stmt_t *leave(hd_generator_t *g) {
  static const hd_stmt_kind_t kinds[] = {HD_STMT_RETURN, HD_STMT_BREAK,
                                         HD_STMT_CONTINUE};
  unsigned first = g->func->kind == HD_FUNC_KERNEL ? 0 : 1;
  unsigned count = g->in_loop ? 3 : 1;
  return first < count
             ? hd_generate_stmt(
                   g, kinds[first + hd_random_below(g, count - first)])
             : NULL;
}

static const hd_stmt_t *print(hd_generator_t *g) {
  static const struct {
    const char *format;
    hd_scalar_t types[2];
    uint32_t count;
  } prints[] = {{"100%% \n", {HD_VOID}, 0},
                {"%d", {HD_I4}, 1},
                {"%-+5.3e|%#x\t", {HD_BF16, HD_U64}, 2},
                {"%g %i", {HD_F64, HD_BOOL}, 2}};
  unsigned which = hd_random_below(g, 4);
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_PRINT);
  const hd_expr_t **args = HD_ARENA_ARRAY(g->arena, const hd_expr_t *, 2);
  stmt->u.print.format = prints[which].format;
  stmt->u.print.num_args = prints[which].count;
  stmt->u.print.args = args;
  for (uint32_t i = 0; i < prints[which].count; i++)
    args[i] = hd_generate_expr(g, hd_type(prints[which].types[i]), 3);
  return stmt;
}

static const hd_stmt_t *assertion(hd_generator_t *g) {
  static const char *const messages[] = {NULL, "", "i < n",
                                         "a\"b\\c\n\td\u20ac"};
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_ASSERT);
  stmt->u.assertion.condition = hd_generate_expr(g, hd_type(HD_BOOL), 3);
  stmt->u.assertion.message = messages[hd_random_below(g, 4)];
  return stmt;
}

static const hd_stmt_t *eval(hd_generator_t *g) {
  hd_intrinsic_t row = (hd_intrinsic_t)hd_random_below(g, HD_INTRINSIC_COUNT);
  const hd_expr_t *e = hd_generate_intrinsic(g, row, 2);
  if (!e)
    return NULL;
  hd_stmt_t *stmt = hd_generate_stmt(g, HD_STMT_EVAL);
  stmt->u.eval.value = e;
  return stmt;
}

const hd_stmt_t *hd_generate_statement(hd_generator_t *g, int depth) {
  if (depth == 0)
    return hd_random_below(g, 2) ? let(g) : store(g);
  switch (hd_random_below(g, 13)) {
  case 0:
  case 1:
    return let(g);
  case 2:
  case 3:
    return any_tensor(g);
  case 4:
    return store(g);
  case 5:
    return loop(g, depth - 1);
  case 6:
    return mapfor(g, depth - 1);
  case 7:
    return branch(g, HD_STMT_IF, depth - 1);
  case 8:
    return branch(g, HD_STMT_WHILE, depth - 1);
  case 9:
    return hd_random_below(g, 2)   ? assertion(g)
           : hd_random_below(g, 3) ? leave(g)
                                   : print(g);
  case 10:
    return point(g, false);
  default:
    return eval(g);
  }
}

static hd_block_t block(hd_generator_t *g, int depth) {
  const hd_stmt_t *stmts[8];
  size_t outer = g->vars.size, size = 0;
  unsigned wanted = hd_random_below(g, 7);
  for (unsigned i = 0; i < wanted; i++) {
    const hd_stmt_t *stmt = hd_generate_statement(g, depth);
    if (stmt)
      stmts[size++] = stmt;
  }
  g->vars.size = outer;
  return hd_block_make(g->arena, stmts, size);
}
