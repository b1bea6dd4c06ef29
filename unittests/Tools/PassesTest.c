// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No pass changes what a kernel does: random kernels with stores, atomics,
// barriers, loops, calls and lazy operands run on the simulator as they are,
// and after each pass, after a few passes in random order, and after --lower;
// every byte of their memory is the same, and all that each thread prints. What
// vectorize leaves runs under the sanitizer, which alone sees a vector that is
// not aligned. Likewise where accesses to parameters are replaced, as fusion
// does.
//
// HIDET_TEST_KERNELS=20000 runs that many, through every pass each; without it
// a kernel goes through a third of them. HIDET_TEST_SEED names the first; of a
// kernel alone that fails, both writings are printed.
#include "KernelAccess.h"
#include "KernelGenerator.h"
#include "UnitTest.h"

#include "CodeGen/CodeGen.h"
#include "IR/Effects.h"
#include "IR/Format.h"
#include "IR/Rewrite.h"
#include "IR/SharedPlan.h"
#include "IR/Text/Parser.h"
#include "IR/Verify/Verifier.h"
#include "Sim/Sim.h"
#include "Support/ThreadPool.h"
#include "Tools/Passes.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KERNELS = 200, SHARE = 3, MAX_SIZE = 40, MAX_STEPS = 8 };

typedef struct memory {
  _Alignas(16) int32_t x[MAX_SIZE * 16];
  float f[64];
  int32_t y[HD_RANDOM_BLOCKS * HD_RANDOM_THREADS * 16];
  float g[HD_RANDOM_BLOCKS * HD_RANDOM_THREADS * 8];
  int32_t z[HD_RANDOM_BLOCKS * 16 * 16];
  int32_t h[8];
  // Of each thread: a hash of what it has printed, in its order.
  uint64_t printed[HD_RANDOM_BLOCKS][HD_RANDOM_THREADS];
} memory_t;

static _Thread_local memory_t *printing; // Of the launch that runs here.

// Kernels print their block and thread first.
static void keep_print(const char *format, const uint64_t *values) {
  uint64_t *hash = &printing->printed[values[0]][values[1]];
  const char *at = format;
  hd_conversion_t conversion;
  for (; hd_format_next(&at, &conversion); values++)
    *hash = (*hash ^ *values) * UINT64_C(0x100000001b3) + 1;
  for (; *format; format++)
    *hash = (*hash ^ (unsigned char)*format) * UINT64_C(0x100000001b3);
}

static void *symbol(const char *name) {
  return strcmp(name, "hd_sim_print") ? hd_sim_symbol(name)
                                      : (void *)(uintptr_t)keep_print;
}

static memory_t fresh_memory(uint64_t seed) {
  memory_t memory = {0};
  random_t random = {~seed};
  for (size_t i = 0; i < sizeof memory.x / sizeof memory.x[0]; i++)
    memory.x[i] = (int32_t)random_in(&random, -20, 90);
  for (size_t i = 0; i < 64; i++)
    memory.f[i] = (float)random_in(&random, -40, 40) / 8;
  for (size_t i = 0; i < sizeof memory.y / sizeof memory.y[0]; i++)
    memory.y[i] = (int32_t)random_in(&random, -9, 99);
  return memory;
}

// No pass, but what fusion does with kernels.
#define REPLACE_ACCESSES "replace-accesses"

// The passes that a version of a kernel goes through, NULL after the last.
typedef struct recipe {
  const char *passes[MAX_STEPS + 1];
  bool reference, sanitize;
} recipe_t;

typedef struct version {
  hd_context_t context;
  hd_module_t *module;
  bool ok, changed; // By a pass of the recipe.
} version_t;

static bool count_vector(void *count, const hd_expr_t *e) {
  *(unsigned *)count += e->kind == HD_EXPR_LOAD && e->type.lanes > 1;
  return true;
}

static bool count_vector_store(void *count, const hd_stmt_t *stmt) {
  *(unsigned *)count +=
      stmt->kind == HD_STMT_STORE && stmt->u.store.value->type.lanes > 1;
  return true;
}

static unsigned count_vectors(const hd_module_t *module) {
  unsigned count = 0;
  hd_walk_block(hd_module_find(module, "k", HD_FUNC_KERNEL)->body,
                count_vector_store, count_vector, &count);
  return count;
}

static bool apply(version_t *v, const char *name, const char *options) {
  if (strcmp(name, REPLACE_ACCESSES) == 0) {
    const hd_func_t *kernel = hd_module_find(v->module, "k", HD_FUNC_KERNEL);
    bool changed =
        hd_kernel_replace_accesses(v->module, (hd_func_t *)(uintptr_t)kernel);
    v->ok = hd_module_verify(v->module);
    return changed;
  }
  hd_pass_list_t list;
  hd_pass_list_init(&list);
  hd_pass_log_t log = {.arena = &v->module->arena};
  hd_pass_args_t args = {.options = options};
  hd_pass_config_t config = {.verify_each = true};
  unsigned vectors = count_vectors(v->module);
  v->ok = hd_tools_run_pass(v->module, hd_pass_list_find(&list, name), &args,
                            &config, NULL, &log);
  bool changed = false;
  for (size_t i = 0; i < log.records.size; i++)
    changed |= log.records.data[i].changed;
  // It simplifies on the way, which is not what is to be counted.
  return strcmp(name, "vectorize") ? changed
                                   : count_vectors(v->module) > vectors;
}

static void version_init(version_t *v, uint64_t seed, const recipe_t *recipe) {
  *v = (version_t){.ok = true};
  hd_context_init(&v->context);
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  const char *text = hd_random_kernel(&arena, seed, recipe->reference);
  v->module = hd_module_parse(&v->context, "kernel", text, strlen(text), 1);
  v->ok = v->module != NULL;
  const char *sizes =
      hd_arena_printf(&arena, "n=%d,m=%d", (int)hd_random_size(seed, false),
                      (int)hd_random_size(seed, true));
  for (size_t i = 0; v->ok && recipe->passes[i]; i++)
    v->changed |= apply(v, recipe->passes[i],
                        strcmp(recipe->passes[i], "specialize") ? NULL : sizes);
  hd_arena_fini(&arena);
}

// Memory that ends where a page ends, before one that may not be touched: an
// access past x ends the kernel with an error.
typedef struct fence {
  char *pages;
  size_t size, page;
} fence_t;

static fence_t fence_make(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t size = (sizeof(int32_t[MAX_SIZE * 16]) / page + 1) * page;
  char *pages = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages + size, page, PROT_NONE) != 0)
    abort();
  return (fence_t){pages, size, page};
}

static void *fence_rows(fence_t fence, const int32_t *x, int32_t n) {
  size_t bytes = (size_t)n * 16 * sizeof *x;
  return memcpy(fence.pages + fence.size - bytes, x, bytes);
}

static bool launch(version_t *v, const hd_func_t *func, uint64_t seed,
                   bool sanitize, memory_t *memory) {
  hd_codegen_options_t options = {
      .target = hd_target_find("host"), .quick = true, .sanitize = sanitize};
  hd_host_code_t *code = hd_host_code_create(v->module, func, &options);
  int64_t shared_bytes = 0;
  const hd_shared_plan_t *plan = hd_shared_plan(&v->module->arena, func);
  if (!code || !hd_expr_fold_int(plan->size, &shared_bytes)) {
    hd_host_code_destroy(code);
    return false;
  }
  int32_t n = (int32_t)hd_random_size(seed, false);
  int32_t m = (int32_t)hd_random_size(seed, true);
  fence_t rows = fence_make();
  void *pointers[] = {fence_rows(rows, memory->x, n),
                      memory->f,
                      memory->y,
                      memory->g,
                      memory->z,
                      memory->h};
  const hd_sim_buffer_t buffers[] = {
      {"x", pointers[0], (size_t)n * 16 * sizeof(int32_t), 4, true, NULL, 0},
      {"f", memory->f, sizeof memory->f, 4, true, NULL, 0},
      {"y", memory->y, sizeof memory->y, 4, false, NULL, 0},
      {"g", memory->g, sizeof memory->g, 4, false, NULL, 0},
      {"z", memory->z, sizeof memory->z, 4, false, NULL, 0},
      {"h", memory->h, sizeof memory->h, 4, false, NULL, 0}};
  void *args[8] = {&n, &m};
  for (int i = 0; i < 6; i++)
    args[i + 2] = &pointers[i];
  hd_sim_kernel_t kernel = {.name = "k",
                            .entry = hd_host_code_entry(code),
                            .coroutine = hd_host_code_is_coroutine(code),
                            .args = args,
                            .grid = {HD_RANDOM_BLOCKS, 1, 1},
                            .block = {HD_RANDOM_THREADS, 1, 1},
                            .cluster = {1, 1, 1},
                            .shared_bytes = (size_t)shared_bytes,
                            .buffers = buffers,
                            .num_buffers = 6};
  printing = memory;
  bool ok = hd_sim_launch(&kernel, &(hd_sim_options_t){.sanitize = sanitize},
                          &v->context.diags, NULL);
  hd_host_code_destroy(code);
  munmap(rows.pages, rows.size + rows.page);
  return ok;
}

// Makes code of what the recipe left: no mapping, registers' places constant.
static bool version_run(version_t *v, uint64_t seed, const recipe_t *recipe,
                        memory_t *memory) {
  *memory = fresh_memory(seed);
  if (v->ok && !recipe->reference)
    apply(v, "lower-task-mapping", NULL);
  if (v->ok && !recipe->reference)
    apply(v, "unroll", "max=0");
  return v->ok && launch(v, hd_module_find(v->module, "k", HD_FUNC_KERNEL),
                         seed, recipe->sanitize, memory);
}

static const char *const passes[] = {
    "inline", "simplify", "specialize", "vectorize",          "resolve-layouts",
    "unroll", "cse",      "dce",        "lower-task-mapping", REPLACE_ACCESSES,
    "lower"};
enum { NUM_PASSES = sizeof passes / sizeof passes[0] };

typedef struct run {
  pthread_mutex_t lock;
  uint64_t first;
  unsigned kernels;
  bool all;                         // Passes for each kernel.
  unsigned changed[NUM_PASSES + 1]; // The last: passes in random order.
  unsigned failures;
} run_t;

static const char *array_of(const memory_t *a, const memory_t *b) {
  return memcmp(a->y, b->y, sizeof a->y)   ? "y differs"
         : memcmp(a->g, b->g, sizeof a->g) ? "g differs"
         : memcmp(a->z, b->z, sizeof a->z) ? "z differs"
         : memcmp(a->h, b->h, sizeof a->h) ? "h differs"
         : memcmp(a->printed, b->printed, sizeof a->printed)
             ? "what is printed differs"
             : "an input was written";
}

static void print_kernel(uint64_t seed) {
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  print_error("// n = %d, m = %d\n%s// The reference:\n%s",
              (int)hd_random_size(seed, false), (int)hd_random_size(seed, true),
              hd_random_kernel(&arena, seed, false),
              hd_random_kernel(&arena, seed, true));
  hd_arena_fini(&arena);
}

static void report(run_t *run, uint64_t seed, const recipe_t *recipe,
                   version_t *v, const char *why) {
  pthread_mutex_lock(&run->lock);
  if (run->failures++ < 10) {
    hd_buffer_t text = {0};
    hd_diagnostics_print(&v->context.diags, false, &text);
    print_error("HIDET_TEST_SEED=%llu HIDET_TEST_KERNELS=1:",
                (unsigned long long)seed);
    for (size_t i = 0; recipe->passes[i]; i++)
      print_error(" --%s", recipe->passes[i]);
    print_error(": %s\n%s", why, hd_buffer_text(&text));
    if (run->kernels == 1 && run->failures == 1)
      print_kernel(seed);
    hd_buffer_fini(&text);
  }
  pthread_mutex_unlock(&run->lock);
}

// False where the kernel cannot be compared with itself.
static bool run_reference(run_t *run, uint64_t seed, memory_t *memory) {
  recipe_t recipe = {.reference = true};
  version_t v;
  version_init(&v, seed, &recipe);
  bool ok = version_run(&v, seed, &recipe, memory);
  if (!ok)
    report(run, seed, &recipe, &v, "the generated kernel does not run");
  hd_context_fini(&v.context);
  return ok;
}

// Whether a pass changed something.
static bool compare(run_t *run, uint64_t seed, const recipe_t *recipe,
                    const memory_t *expected) {
  memory_t memory;
  version_t v;
  version_init(&v, seed, recipe);
  bool changed = v.changed;
  if (!v.ok)
    report(run, seed, recipe, &v, "it ends with an error");
  else if (changed && !version_run(&v, seed, recipe, &memory))
    report(run, seed, recipe, &v, "what it leaves does not run");
  else if (changed && memcmp(&memory, expected, sizeof memory) != 0)
    report(run, seed, recipe, &v, array_of(&memory, expected));
  hd_context_fini(&v.context);
  return changed;
}

static recipe_t random_recipe(uint64_t seed) {
  random_t random = {seed ^ 0x5eed};
  recipe_t recipe = {0};
  size_t steps = (size_t)random_in(&random, 2, MAX_STEPS);
  for (size_t i = 0; i < steps; i++)
    recipe.passes[i] = passes[random_in(&random, 0, NUM_PASSES - 2)];
  return recipe;
}

static void check_kernel(void *argument, unsigned piece, unsigned worker) {
  (void)worker;
  run_t *run = argument;
  uint64_t seed = run->first + piece;
  memory_t expected;
  bool changed[NUM_PASSES + 1];
  if (!run_reference(run, seed, &expected))
    return;
  for (size_t p = 0; p < NUM_PASSES; p++)
    changed[p] =
        (run->all || (seed + p) % SHARE == 0 || p + 1 == NUM_PASSES) &&
        compare(run, seed,
                &(recipe_t){.passes = {passes[p]},
                            .sanitize = !strcmp(passes[p], "vectorize") ||
                                        !strcmp(passes[p], REPLACE_ACCESSES)},
                &expected);
  recipe_t recipe = random_recipe(seed);
  changed[NUM_PASSES] = compare(run, seed, &recipe, &expected);
  pthread_mutex_lock(&run->lock);
  for (size_t p = 0; p <= NUM_PASSES; p++)
    run->changed[p] += changed[p];
  pthread_mutex_unlock(&run->lock);
}

static void passes_keep_what_kernels_do(void **state) {
  (void)state;
  const char *wanted = getenv("HIDET_TEST_KERNELS");
  run_t run = {.first = random_begin("passes_keep_what_kernels_do").state,
               .kernels =
                   wanted ? (unsigned)strtoul(wanted, NULL, 10) : KERNELS,
               .all = wanted != NULL};
  pthread_mutex_init(&run.lock, NULL);
  hd_host_code_set_symbols(symbol);
  hd_thread_pool_t *pool = hd_thread_pool_create(0);
  hd_thread_pool_run(pool, run.kernels, check_kernel, &run);
  hd_thread_pool_destroy(pool);
  pthread_mutex_destroy(&run.lock);
  for (size_t p = 0; p <= NUM_PASSES; p++) {
    const char *name = p < NUM_PASSES ? passes[p] : "random order";
    printf("  %-18s changed %u of %u kernels\n", name, run.changed[p],
           run.kernels);
    if (run.kernels >= KERNELS && run.changed[p] < run.kernels / 20)
      fail_msg("%s has hardly changed anything", name);
  }
  if (run.failures)
    fail_msg("%u versions differ", run.failures);
}

// Every pass over kernels is among those compared, but for the one that only
// looks, and the one that gives points their meaning (TaskMapping/points.test).
static void all_passes_are_compared(void **state) {
  (void)state;
  hd_pass_list_t list;
  hd_pass_list_init(&list);
  for (size_t i = 0; i < list.size; i++) {
    bool found = list.passes[i]->level != HD_LEVEL_KERNEL ||
                 strcmp(list.names[i], "verify") == 0 ||
                 strcmp(list.names[i], "lower-points") == 0;
    for (size_t p = 0; p < NUM_PASSES; p++)
      found |= strcmp(list.names[i], passes[p]) == 0;
    if (!found)
      fail_msg("pass %s is not compared", list.names[i]);
  }
}

// Calls of the module's functions that inline has to see, for they are certain
// to be evaluated and stand among no effects. `search` returns from a loop and
// stays; so do functions that are given tensors, unless alone.
static const char *find_call(const hd_expr_t *e) {
  if (e->kind == HD_EXPR_CALL && hd_func_is_pure(e->u.func) &&
      strcmp(e->u.func->name, "search") != 0)
    return e->u.func->name;
  for (unsigned i = 0; i < e->num_operands; i++) {
    const char *name = hd_expr_is_lazy(e, i) ? NULL : find_call(e->operands[i]);
    if (name)
      return name;
  }
  return NULL;
}

static bool has_no_call(void *found, const hd_stmt_t *stmt) {
  const hd_expr_t *e = stmt->kind == HD_STMT_LET     ? stmt->u.let.value
                       : stmt->kind == HD_STMT_STORE ? stmt->u.store.value
                       : stmt->kind == HD_STMT_IF    ? stmt->u.branch.condition
                       : stmt->kind == HD_STMT_FOR   ? stmt->u.loop.first
                                                     : NULL;
  if (e && hd_expr_is_pure(e))
    *(const char **)found = find_call(e);
  return *(const char **)found == NULL;
}

static void inline_leaves_no_call_that_is_certain(void **state) {
  (void)state;
  random_t random = random_begin("inline_leaves_no_call_that_is_certain");
  for (unsigned i = 0; i < KERNELS; i++) {
    version_t v;
    const char *found = NULL;
    version_init(&v, random.state + i, &(recipe_t){.passes = {"inline"}});
    assert_true(v.ok);
    hd_walk_block(hd_module_find(v.module, "k", HD_FUNC_KERNEL)->body,
                  has_no_call, NULL, &found);
    if (found)
      fail_msg("HIDET_TEST_SEED=%llu: a call of %s stays",
               (unsigned long long)random.state + i, found);
    hd_context_fini(&v.context);
  }
}

HD_UNIT_TESTS(cmocka_unit_test(passes_keep_what_kernels_do),
              cmocka_unit_test(inline_leaves_no_call_that_is_certain),
              cmocka_unit_test(all_passes_are_compared))
