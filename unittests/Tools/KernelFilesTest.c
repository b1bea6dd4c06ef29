// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels as files for hidet-run: each file holds many, under names of
// their own, and a plan that launches them all, each on memory of its own. So
// test/tools/devices.py compares what a GPU makes of them with the simulator.
//
// HIDET_KERNEL_FILES=FOLDER keeps the files (else they go to a temporary
// folder and are parsed alone); HIDET_TEST_KERNELS says how many kernels,
// HIDET_TEST_SEED which first.
#include "KernelGenerator.h"
#include "UnitTest.h"

#include "IR/Text/Parser.h"
#include "Support/Buffer.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

enum { PER_FILE = 40, KERNELS = 80 };

// The generator's functions; every kernel has others of the same names.
static const char *const functions[] = {"pure",   "early", "search", "look",
                                        "peek",   "bump",  "put",    "act",
                                        "smooth", "k",     "of"};

// Its tables likewise.
static const char *const tables[] = {"primes", "bytes"};

static bool is_table(const char *word, size_t length) {
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
    if (strlen(tables[i]) == length && memcmp(tables[i], word, length) == 0)
      return true;
  return false;
}

static bool is_function(const char *word, size_t length) {
  if (length > 4 && memcmp(word, "get_", 4) == 0)
    return true;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    if (strlen(functions[i]) == length &&
        memcmp(functions[i], word, length) == 0)
      return true;
  return false;
}

// Adds the text, `_number` after each name of a function or a table.
static void add_renamed(hd_buffer_t *out, const char *text, unsigned number) {
  while (*text) {
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
      length++;
    if (length > 0 && ((text[length] == '(' && is_function(text, length)) ||
                       is_table(text, length)))
      hd_buffer_printf(out, "%.*s_%u", (int)length, text, number);
    else
      hd_buffer_printf(out, "%.*s", (int)(length ? length : 1), text);
    text += length ? length : 1;
  }
}

static void write_file(const char *path, uint64_t seed, unsigned kernels,
                       hd_buffer_t *out) {
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  hd_buffer_printf(out,
                   "// SPDX-License-Identifier: Apache-2.0 WITH "
                   "LLVM-exception\n// Random kernels, seeds %llu to %llu.\n",
                   (unsigned long long)seed,
                   (unsigned long long)(seed + kernels - 1));
  for (unsigned i = 0; i < kernels; i++)
    add_renamed(out, hd_random_kernel(&arena, seed + i, false), i);
  hd_buffer_printf(out, "plan all(in f: f32[64]");
  for (unsigned i = 0; i < kernels; i++)
    hd_buffer_printf(out,
                     ",\n  in x_%u: i32[%d, 16], inout y_%u: i32[2, 64, 16], "
                     "inout g_%u: f32[2, 64, 8],\n  inout z_%u: i32[2, 16, "
                     "16], inout h_%u: i32[8]",
                     i, (int)hd_random_size(seed + i, false), i, i, i, i);
  hd_buffer_printf(out, ")\n{\n");
  for (unsigned i = 0; i < kernels; i++)
    hd_buffer_printf(out,
                     "launch k_%u(%d, %d, x_%u, f, y_%u, g_%u, z_%u, h_%u)\n",
                     i, (int)hd_random_size(seed + i, false),
                     (int)hd_random_size(seed + i, true), i, i, i, i, i);
  hd_buffer_printf(out, "}\n");
  hd_arena_fini(&arena);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(hd_buffer_text(out), file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void check_file(const char *path, const hd_buffer_t *text,
                       unsigned kernels) {
  hd_context_t context;
  hd_context_init(&context);
  const char *bytes = hd_buffer_text(text);
  hd_module_t *module =
      hd_module_parse(&context, path, bytes, strlen(bytes), 1);
  if (!module) {
    hd_buffer_t messages = {0};
    hd_diagnostics_print(&context.diags, false, &messages);
    fail_msg("%s", hd_buffer_text(&messages));
  }
  char name[16];
  for (unsigned i = 0; i < kernels; i++) {
    snprintf(name, sizeof name, "k_%u", i);
    assert_non_null(hd_module_find(module, name, HD_FUNC_KERNEL));
  }
  assert_non_null(hd_module_find(module, "all", HD_FUNC_PLAN));
  hd_context_fini(&context);
}

static void files_hold_all_kernels(void **state) {
  (void)state;
  const char *wanted = getenv("HIDET_TEST_KERNELS");
  const char *folder = getenv("HIDET_KERNEL_FILES");
  char temporary[] = "/tmp/hidet-kernels-XXXXXX";
  bool keep = folder != NULL;
  if (!keep)
    assert_non_null(folder = mkdtemp(temporary));
  uint64_t first = random_begin("files_hold_all_kernels").state;
  unsigned left = wanted ? (unsigned)strtoul(wanted, NULL, 10) : KERNELS;
  for (uint64_t seed = first; left > 0;) {
    unsigned kernels = left < PER_FILE ? left : PER_FILE;
    char path[4096];
    snprintf(path, sizeof path, "%s/%llu.hir", folder,
             (unsigned long long)seed);
    hd_buffer_t text = {0};
    write_file(path, seed, kernels, &text);
    check_file(path, &text, kernels);
    hd_buffer_fini(&text);
    if (!keep)
      unlink(path);
    seed += kernels, left -= kernels;
  }
  if (!keep)
    rmdir(folder);
}

HD_UNIT_TESTS(cmocka_unit_test(files_hold_all_kernels))
