// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any pass, in any order, on any module: it does its work, or says what is
// missing. Every pass and every pair of them on each example and on generated
// modules; what a pass leaves is verified, and is read back as it
// was printed.
//
// HIDET_TEST_MODULES=5000 takes that many generated modules.
#include "IR/Generator.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "Random.h"
#include "Support/File.h"
#include "Tools/Passes.h"
#include "UnitTest.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MODULES = 25 };

// A text, and the passes to be run over it; NULL: none.
typedef struct trial {
  const char *name, *text;
  const hd_pass_t *first, *second;
} trial_t;

static void complain(const trial_t *trial, hd_context_t *context,
                     const char *what) {
  hd_buffer_t out = {0};
  hd_diagnostics_print(&context->diags, false, &out);
  fprintf(stderr, "%s --%s --%s: %s\n%s", trial->name, trial->first->name,
          trial->second ? trial->second->name : "", what, hd_buffer_text(&out));
  hd_buffer_fini(&out);
}

// Whether an error, if there is one, is the input's, or that of the option that
// is given here.
static bool is_told(const hd_context_t *context, bool ok) {
  const hd_diagnostics_t *diags = &context->diags;
  return ok ? diags->num_errors == 0
            : diags->exit_class == HD_EXIT_INVALID ||
                  diags->exit_class == HD_EXIT_UNSUPPORTED ||
                  diags->first->code == HD_E1002;
}

static bool reads_back(const hd_module_t *module) {
  hd_buffer_t once = {0}, twice = {0};
  hd_context_t context;
  hd_context_init(&context);
  hd_module_print(module, &once);
  const hd_module_t *again =
      hd_module_parse(&context, "again", hd_buffer_text(&once), once.size, 1);
  if (again)
    hd_module_print(again, &twice);
  bool same =
      again && strcmp(hd_buffer_text(&once), hd_buffer_text(&twice)) == 0;
  hd_context_fini(&context);
  hd_buffer_fini(&once);
  hd_buffer_fini(&twice);
  return same;
}

// An integer parameter of the module that may be 64, for specialize.
static const char *sizes_of(hd_module_t *module) {
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_func_t *func = module->items.data[i].u.func;
    if (module->items.data[i].kind != HD_ITEM_FUNC)
      continue;
    for (uint32_t k = 0; k < func->num_params; k++)
      if (hd_type_equal(func->params[k]->type, hd_type(HD_I32)) &&
          !func->params[k]->tensor)
        return hd_arena_printf(&module->arena, "%s=64", func->params[k]->name);
  }
  return NULL;
}

static unsigned try(const trial_t *trial) {
  hd_context_t context;
  hd_context_init(&context);
  hd_module_t *module = hd_module_parse(&context, trial->name, trial->text,
                                        strlen(trial->text), 1);
  assert_non_null(module);
  hd_pass_log_t log = {.arena = &module->arena};
  hd_pass_config_t config = {.verify_each = true};
  const hd_pass_t *passes[] = {trial->first, trial->second};
  bool ok = true;
  for (int i = 0; ok && i < 2 && passes[i]; i++) {
    hd_pass_args_t args = {0};
    if (strcmp(passes[i]->name, "specialize") == 0)
      args.options = sizes_of(module);
    else if (strcmp(passes[i]->name, "lower-precision") == 0)
      args.options = "to=f16";
    ok = hd_tools_run_pass(module, passes[i], &args, &config, NULL, &log);
  }
  const char *fault = !is_told(&context, ok) ? "its fault is not told"
                      : ok && !trial->second && !reads_back(module)
                          ? "what it leaves is not read back"
                          : NULL;
  if (fault)
    complain(trial, &context, fault);
  hd_context_fini(&context);
  return fault != NULL;
}

static unsigned try_all(const char *name, const char *text) {
  hd_pass_list_t list;
  hd_pass_list_init(&list);
  unsigned faults = 0;
  for (size_t i = 0; i < list.size; i++) {
    trial_t trial = {name, text, list.passes[i], NULL};
    faults += try(&trial);
    for (size_t k = 0; k < list.size; k++) {
      trial.second = list.passes[k];
      faults += try(&trial);
    }
  }
  return faults;
}

static unsigned try_file(const char *name) {
  hd_diagnostics_t diags;
  hd_buffer_t path = {0}, text = {0};
  hd_diagnostics_init(&diags);
  hd_buffer_printf(&path, "%s/%s", HIDET_EXAMPLES, name);
  assert_true(hd_file_read(&diags, hd_buffer_text(&path), 0, &text));
  unsigned faults = try_all(name, hd_buffer_text(&text));
  hd_buffer_fini(&path);
  hd_buffer_fini(&text);
  hd_diagnostics_fini(&diags);
  return faults;
}

static void on_every_example(void **state) {
  (void)state;
  unsigned faults = 0, examples = 0;
  DIR *folder = opendir(HIDET_EXAMPLES);
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));) {
    size_t size = strlen(entry->d_name);
    if (size < 4 || strcmp(entry->d_name + size - 4, ".hir") != 0)
      continue;
    faults += try_file(entry->d_name);
    examples++;
  }
  closedir(folder);
  assert_true(examples > 10);
  assert_int_equal(faults, 0);
}

// What hidet-opt looks at before it runs a pass: what is generated holds
// mappings that miss tasks.
static bool is_valid(const char *text) {
  hd_context_t context;
  hd_pass_list_t list;
  hd_context_init(&context);
  hd_pass_list_init(&list);
  hd_module_t *module =
      hd_module_parse(&context, "generated", text, strlen(text), 1);
  const hd_pass_t *verify = hd_pass_list_find(&list, "verify");
  bool valid = module && hd_pass_run(module, verify, NULL, NULL).ok;
  hd_context_fini(&context);
  return valid;
}

static void on_generated_modules(void **state) {
  (void)state;
  static hd_generated_t counts;
  const char *wanted = getenv("HIDET_TEST_MODULES");
  uint64_t modules = wanted ? strtoull(wanted, NULL, 10) : MODULES;
  random_t random = random_begin("on_generated_modules");
  unsigned faults = 0;
  for (uint64_t tried = 0, seed = random.state; tried < modules; seed++) {
    hd_context_t context;
    hd_buffer_t text = {0};
    char name[64];
    hd_context_init(&context);
    snprintf(name, sizeof name, "HIDET_TEST_SEED=%llu",
             (unsigned long long)seed);
    hd_module_print(hd_generate_module(&context, seed, &counts), &text);
    if (is_valid(hd_buffer_text(&text))) {
      faults += try_all(name, hd_buffer_text(&text));
      tried++;
    }
    hd_buffer_fini(&text);
    hd_context_fini(&context);
  }
  assert_int_equal(faults, 0);
}

HD_UNIT_TESTS(cmocka_unit_test(on_every_example),
              cmocka_unit_test(on_generated_modules))
