// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass early-launches: a plan's launches become programmatic, so that each may
// begin while the one before it still runs.
//
//   plan p(in x: f32[64], in w: f32[64], out y: f32[64]) {
//     h: f32[64]
//     first(x, h)
//     second(h, w, y)
//   }
//
// where second begins with a load of w, which no launch of the plan writes:
//
//   kernel second(in h: f32[64], in w: f32[64], out y: f32[64]) block(64) {
//     griddepcontrol_launch()
//     let a = w[thread]
//     griddepcontrol_wait()
//     let b = h[thread]
//     ...
//
// and its launch is `second(h, w, y) programmatic`. The next launch may begin
// at once; a kernel itself waits before the first statement of its body that
// names anything that a launch may write; a branch before that which ends the
// kernel waits for itself. A kernel that waits somewhere by itself stays as it
// is. Whether a launch may be programmatic is then proven
// (IR/EarlyLaunch.h): where it cannot be, it is not.
//
// Blocks of a launch that begins early come while the one before it has its
// multiprocessors still, and the hardware would put them where there is room:
// several on a few of them, with all others idle soon. (Measured: BERT-base is
// a tenth faster where they are kept apart, MobileNet-V2 a fifth.) So no more
// of them may be together than there are where all multiprocessors are idle.
//
// Small tensors that no launch writes, biases and scales, and tensor maps are
// prefetched at the kernel's beginning.
//
// For GPUs from sm_90 on, which have the instructions.

#include "Fusion/Passes.h"
#include "IR/EarlyLaunch.h"
#include "IR/Exits.h"
#include "IR/Intrinsic.h"
#include "IR/Rewrite.h"
#include "Schedule/Template/Machine.h"
#include "Schedule/Translate/Build.h"

enum {
  LEAST_SM = 90,
  MOST_TOGETHER = 3,  // Of more, an uneven share costs little.
  MOST_VECTOR = 8192, // Elements of what is brought to the L2 cache,
  LINE = 128          // so many bytes at a time.
};

typedef struct overlapper {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_func_t *plan;
  hd_early_launches_t *launches;
  hd_ptr_map_t launched; // Kernels,
  hd_ptr_map_t changing; // parameters of theirs,
  hd_ptr_map_t waiting;  // and those that were made to wait.
  const hd_machine_t *machine;
  bool explain;
} overlapper_t;

// --- Where a kernel waits ---

// The kernels that are launched, and of their parameters those that some launch
// gives something that changes.
static bool note_launch(void *argument, const hd_stmt_t *stmt) {
  overlapper_t *o = argument;
  if (stmt->kind != HD_STMT_LAUNCH)
    return true;
  const hd_func_t *kernel = stmt->u.launch.kernel;
  hd_ptr_map_set(o->arena, &o->launched, kernel, stmt);
  for (uint32_t i = 0; i < stmt->u.launch.num_args; i++)
    if (!hd_early_launch_is_constant(o->launches, stmt->u.launch.args[i]))
      hd_ptr_map_set(o->arena, &o->changing, kernel->params[i], stmt);
  return true;
}

static bool is_fixed(const overlapper_t *o, const hd_var_t *var) {
  var = var->map ? var->map->tensor : var;
  return !hd_ptr_map_get(&o->changing, var);
}

static bool is_quiet_expr(void *argument, const hd_expr_t *e) {
  bool names = hd_expr_is_access(e) || e->kind == HD_EXPR_TENSOR ||
               e->kind == HD_EXPR_VAR;
  return !names || is_fixed(argument, e->u.var);
}

static bool is_quiet_stmt(void *argument, const hd_stmt_t *stmt) {
  return stmt->kind != HD_STMT_RETURN &&
         (stmt->kind != HD_STMT_STORE ||
          is_fixed(argument, stmt->u.store.var)) &&
         (stmt->kind != HD_STMT_POINT ||
          is_fixed(argument, stmt->u.point.place->u.var));
}

// if quiet { ...; return }: what is behind it need not wait for it.
static bool is_way_out(overlapper_t *o, const hd_stmt_t *stmt) {
  return stmt->kind == HD_STMT_IF && !stmt->u.branch.otherwise.size &&
         !hd_block_falls_through(stmt->u.branch.then) &&
         hd_walk_expr(stmt->u.branch.condition, is_quiet_expr, o);
}

// How many statements of the body come before the wait.
static uint32_t find_place(overlapper_t *o, const hd_func_t *kernel) {
  uint32_t i = 0;
  while (i < kernel->body.size &&
         (is_way_out(o, kernel->body.stmts[i]) ||
          hd_walk_block((hd_block_t){1, kernel->body.stmts + i}, is_quiet_stmt,
                        is_quiet_expr, o)))
    i++;
  return i;
}

// How many of the kernel's blocks a multiprocessor has where all are idle; 0:
// many, or not known.
static int32_t blocks_together(const overlapper_t *o, const hd_func_t *kernel) {
  int64_t blocks = 1, cluster = 1, extent;
  for (int i = 0; i < 3; i++) {
    const hd_expr_t *grid = kernel->launch.grid[i];
    if (grid && (!hd_expr_fold_int(grid, &extent) || extent < 1 ||
                 __builtin_mul_overflow(blocks, extent, &blocks)))
      return 0;
    if (kernel->launch.cluster[i] &&
        hd_expr_fold_int(kernel->launch.cluster[i], &extent))
      cluster *= extent;
  }
  int64_t together = (blocks - 1) / hd_machine_reach(o->machine, cluster) + 1;
  // Larger clusters may not find room as it is.
  bool finds_room = cluster <= o->machine->portable_cluster;
  return together <= MOST_TOGETHER && finds_room ? (int32_t)together : 0;
}

// Bytes of a small tensor whose elements nobody changes; 0: it is none.
static int64_t vector_bytes(const overlapper_t *o, const hd_var_t *param) {
  int64_t bytes = 1, extent;
  if (!param->tensor || param->direction != HD_DIR_IN || !is_fixed(o, param) ||
      param->tensor->layout || hd_type_bits(param->type) < 8)
    return 0;
  for (uint32_t i = 0; i < param->tensor->rank; i++)
    if (!hd_expr_fold_int(param->tensor->shape[i], &extent) ||
        __builtin_mul_overflow(bytes, extent, &bytes))
      return 0;
  return bytes < MOST_VECTOR ? bytes * hd_type_bits(param->type) / 8 : 0;
}

// if block == 0 && thread < lines { prefetch_l2(bias@[thread * 32]) }
static void push_prefetch(hd_builder_t *b, const hd_var_t *param,
                          int64_t lines) {
  const hd_expr_t *offset = hd_b_op_int(b, HD_EXPR_MUL, hd_b_thread(b),
                                        LINE * 8 / hd_type_bits(param->type));
  const hd_expr_t *place =
      hd_expr_access_linear(b->arena, HD_EXPR_REF, param, 1, offset);
  hd_open_block_t then;
  hd_b_open(b, &then);
  hd_b_call(b, hd_b_intrinsic(b, HD_INTRINSIC_PREFETCH_L2, hd_type(HD_VOID),
                              &place, 1));
  hd_block_t body = hd_b_close(b);
  const hd_expr_t *first = hd_b_op_int(
      b, HD_EXPR_EQ, hd_expr_builtin(b->arena, HD_BUILTIN_BLOCK), 0);
  hd_b_if(b,
          hd_b_and(b, first, hd_b_op_int(b, HD_EXPR_LT, hd_b_thread(b), lines)),
          body, (hd_block_t){0});
}

// if thread == 0 { prefetch_map(map_a) }: the copy engine needs to know a
// tensor before it copies, and no launch writes the map itself.
static void push_map_prefetches(hd_builder_t *b, const hd_func_t *kernel) {
  hd_open_block_t then;
  if (!kernel->num_maps)
    return;
  hd_b_open(b, &then);
  for (uint32_t i = 0; i < kernel->num_maps; i++) {
    const hd_expr_t *map = hd_expr_var(b->arena, kernel->maps[i]);
    hd_b_call(b, hd_b_intrinsic(b, HD_INTRINSIC_PREFETCH_MAP, hd_type(HD_VOID),
                                &map, 1));
  }
  hd_block_t body = hd_b_close(b);
  hd_b_if(b, hd_b_op_int(b, HD_EXPR_EQ, hd_b_thread(b), 0), body,
          (hd_block_t){0});
}

// Biases and scales come from device memory, and are asked for at the end of a
// kernel, one load after the other: one block has them brought to the L2 cache
// while the launch before still runs.
static void push_prefetches(overlapper_t *o, hd_builder_t *b,
                            const hd_func_t *kernel) {
  int64_t threads = hd_func_block_threads(kernel);
  push_map_prefetches(b, kernel);
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    int64_t lines = (vector_bytes(o, kernel->params[i]) + LINE - 1) / LINE;
    if (lines > 0)
      push_prefetch(b, kernel->params[i], lines < threads ? lines : threads);
  }
}

// A statement that comes before the wait.
static void push_early(overlapper_t *o, hd_builder_t *b,
                       const hd_stmt_t *stmt) {
  hd_open_block_t then;
  if (!is_way_out(o, stmt)) {
    hd_b_push(b, stmt);
    return;
  }
  hd_b_open(b, &then);
  hd_b_command(b, HD_INTRINSIC_GRIDDEPCONTROL_WAIT);
  for (uint32_t i = 0; i < stmt->u.branch.then.size; i++)
    hd_b_push(b, stmt->u.branch.then.stmts[i]);
  hd_b_if(b, stmt->u.branch.condition, hd_b_close(b), (hd_block_t){0});
}

static void make_wait(overlapper_t *o, hd_func_t *kernel) {
  hd_builder_t b = {
      .context = o->module->context, .arena = o->arena, .loc = kernel->loc};
  hd_open_block_t block;
  uint32_t place = find_place(o, kernel);
  hd_b_open(&b, &block);
  hd_b_command(&b, HD_INTRINSIC_GRIDDEPCONTROL_LAUNCH);
  push_prefetches(o, &b, kernel);
  for (uint32_t i = 0; i <= kernel->body.size; i++) {
    if (i == place)
      hd_b_command(&b, HD_INTRINSIC_GRIDDEPCONTROL_WAIT);
    if (i < place)
      push_early(o, &b, kernel->body.stmts[i]);
    else if (i < kernel->body.size)
      hd_b_push(&b, kernel->body.stmts[i]);
  }
  hd_func_t version = *kernel;
  version.body = hd_b_close(&b);
  hd_func_replace(kernel, &version);
  hd_ptr_map_set(o->arena, &o->waiting, kernel, kernel);
}

// --- Plans ---

static void prepare_kernels(overlapper_t *o) {
  hd_module_t *module = o->module;
  hd_walk_block(o->plan->body, note_launch, NULL, o);
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    hd_budget_check(&module->context->budget);
    if (item->kind == HD_ITEM_FUNC &&
        hd_ptr_map_get(&o->launched, item->u.func) &&
        !hd_func_waits(o->arena, item->u.func))
      make_wait(o, item->u.func);
  }
}

typedef struct reads {
  unsigned depth; // Of loops around.
  bool shares, again;
} reads_t;

static bool note_read(void *argument, const hd_expr_t *e) {
  reads_t *r = argument;
  r->again |= r->depth > 1 && e->kind != HD_EXPR_REF && hd_expr_is_access(e) &&
              e->u.var->tensor->scope == HD_SCOPE_GLOBAL;
  return true;
}

static bool note_body(void *argument, const hd_stmt_t *stmt) {
  reads_t *r = argument;
  r->shares |= stmt->kind == HD_STMT_DECLARE &&
               stmt->u.declare.var->tensor->scope == HD_SCOPE_SHARED;
  if (stmt->kind != HD_STMT_FOR)
    return true;
  reads_t inner = {.depth = r->depth + 1};
  hd_walk_block(stmt->u.loop.body, note_body, note_read, &inner);
  r->shares |= inner.shares;
  r->again |= inner.again;
  return true;
}

// Whether a kernel reads memory in loops of loops, without keeping anything of
// it in shared memory: a window, a sum. It lives on the L1 cache, which is what
// shared memory leaves over.
static bool lives_on_cache(const hd_func_t *kernel) {
  reads_t reads = {0};
  hd_walk_block(kernel->body, note_body, NULL, &reads);
  return reads.again && !reads.shares;
}

// For a launch that is proven to begin early; others of the same kernel, if
// any, find multiprocessors that are idle.
static void keep_apart(overlapper_t *o, const hd_stmt_t *launch) {
  hd_func_t *kernel = hd_ptr_map_find(&o->waiting, launch->u.launch.kernel);
  if (!kernel || kernel->launch.max_blocks)
    return;
  int32_t blocks = blocks_together(o, kernel);
  if (blocks > 1 && lives_on_cache(kernel))
    return;
  hd_func_t version = *kernel;
  version.launch.max_blocks = blocks;
  hd_func_replace(kernel, &version);
}

static bool begin_early(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                        hd_stmt_list_t *out) {
  overlapper_t *o = rewriter->argument;
  if (stmt->kind != HD_STMT_LAUNCH)
    return false;
  hd_early_proof_t proof = hd_early_launch_prove(o->launches, stmt);
  hd_stmt_t *copy = hd_stmt_copy(o->arena, stmt);
  copy->u.launch.programmatic = proof.answer == HD_EARLY_YES;
  if (copy->u.launch.programmatic)
    keep_apart(o, stmt);
  if (!copy->u.launch.programmatic && o->explain)
    hd_remark(&o->module->context->diags, stmt->loc,
              "early-launches: '%s' waits for the launch before it: %s",
              stmt->u.launch.kernel->name, proof.why);
  hd_stmt_list_push(o->arena, out, copy);
  return true;
}

const hd_func_t *hd_pass_early_launches(hd_module_t *module,
                                        const hd_func_t *func,
                                        const hd_pass_args_t *args) {
  const hd_schedule_options_t *options = module->context->schedules;
  if (!options || options->machine.sm < LEAST_SM || !options->machine.count)
    return func;
  overlapper_t o = {.module = module,
                    .arena = &module->arena,
                    .plan = func,
                    .launches =
                        hd_early_launches_make(&module->arena, func->body),
                    .machine = &options->machine,
                    .explain = args->explain};
  prepare_kernels(&o);
  hd_rewriter_t rewriter = {
      .arena = o.arena, .argument = &o, .enter = begin_early};
  return hd_rewrite_func(&rewriter, func);
}
