// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// parse(print(x)) is x, and prints the same text, on generated modules that
// hold every row of every table.
#include "IR/Generator.h"
#include "IR/Rewrite.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"
#include "UnitTest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULES = 10000 };

// Everything about a function's expressions that its text might lose: kinds,
// types, payloads. Variables are numbered by first appearance.
typedef struct dump {
  hd_buffer_t out;
  const hd_var_t *vars[4096];
  unsigned num_vars;
} dump_t;

static unsigned number_of(dump_t *d, const hd_var_t *var) {
  for (unsigned i = d->num_vars; i-- > 0;)
    if (d->vars[i] == var)
      return i;
  assert_true(d->num_vars < 4096);
  d->vars[d->num_vars] = var;
  return d->num_vars++;
}

static bool dump_expr(void *argument, const hd_expr_t *e) {
  dump_t *d = argument;
  const hd_expr_info_t *info = hd_expr_info((hd_expr_kind_t)e->kind);
  hd_buffer_printf(&d->out, "%s %s %u %u ", info->name, hd_type_name(e->type),
                   e->num_operands, e->linear);
  switch (info->payload) {
  case HD_PAYLOAD_NONE:
    break;
  case HD_PAYLOAD_VALUE: {
    bool is_nan =
        e->kind == HD_EXPR_CONST && hd_type_is_float(e->type) && isnan(e->u.f);
    hd_buffer_printf(&d->out, "%llx", is_nan ? 0 : (long long)e->u.i);
    break;
  }
  case HD_PAYLOAD_VAR:
    hd_buffer_printf(&d->out, "%u", number_of(d, e->u.var));
    break;
  case HD_PAYLOAD_FUNC:
    hd_buffer_puts(&d->out, e->u.func->name);
    break;
  case HD_PAYLOAD_BUILTIN:
    hd_buffer_printf(&d->out, "%d", e->u.builtin);
    break;
  case HD_PAYLOAD_INTRINSIC:
    hd_buffer_printf(&d->out, "%d", e->u.intrinsic);
    break;
  }
  hd_buffer_puts(&d->out, "\n");
  return true;
}

static void dump_map(dump_t *d, const hd_var_t *var) {
  const hd_map_t *map = var->map;
  hd_buffer_printf(&d->out, "map %u of %u %d %u %u\n", number_of(d, var),
                   number_of(d, map->tensor), map->im2col, map->swizzle,
                   map->l2);
  for (uint32_t i = 0; i < map->num_box; i++)
    hd_walk_expr(map->box[i], dump_expr, d);
  for (int i = 0; i < HD_MAP_MAX_SPATIAL && map->lower[i]; i++) {
    hd_walk_expr(map->lower[i], dump_expr, d);
    hd_walk_expr(map->upper[i], dump_expr, d);
    hd_walk_expr(map->step[i], dump_expr, d);
  }
}

// Text has numbers, not negations of numbers.
static const hd_expr_t *fold_negation(hd_rewriter_t *rewriter,
                                      const hd_expr_t *e) {
  if (e->kind != HD_EXPR_NEG || !hd_expr_is_const(e->operands[0]) ||
      (e->type.scalar != HD_I32 && e->type.scalar != HD_F32))
    return e;
  return hd_expr_fold(rewriter->arena, e);
}

static bool dump_size(void *argument, const hd_expr_t *e) {
  return hd_walk_expr(e, dump_expr, argument);
}

static void dump_module(hd_module_t *module, dump_t *d) {
  for (size_t i = 0; i < module->items.size; i++) {
    if (module->items.data[i].kind == HD_ITEM_GRAPH)
      hd_dump_graph(module->items.data[i].u.graph, &d->out, dump_size, d);
    if (module->items.data[i].kind != HD_ITEM_FUNC)
      continue;
    hd_rewriter_t rewriter = {.arena = &module->arena, .expr = fold_negation};
    const hd_func_t *func =
        hd_rewrite_func(&rewriter, module->items.data[i].u.func);
    hd_buffer_printf(&d->out, "%s\n", func->name);
    for (int dim = 0; dim < 3; dim++)
      if (func->launch.grid[dim])
        hd_walk_expr(func->launch.grid[dim], dump_expr, d);
    for (uint32_t m = 0; m < func->num_maps; m++)
      dump_map(d, func->maps[m]);
    hd_walk_block(func->body, NULL, dump_expr, d);
  }
}

static _Noreturn void fail_with(hd_context_t *context, uint64_t seed,
                                const char *what, const char *a,
                                const char *b) {
  hd_buffer_t text = {0};
  hd_diagnostics_print(&context->diags, false, &text);
  FILE *file = fopen("roundtrip-a.txt", "w"), *other;
  if (file && (other = fopen("roundtrip-b.txt", "w"))) {
    fputs(a, file);
    fputs(b, other);
    fclose(file);
    fclose(other);
  }
  fprintf(stderr, "seed %llu: %s\n%s", (unsigned long long)seed, what,
          hd_buffer_text(&text));
  fail();
  abort();
}

static void check_module(uint64_t seed, hd_generated_t *counts) {
  hd_context_t context;
  hd_context_init(&context);
  hd_buffer_t once = {0}, twice = {0};
  static dump_t before, after;
  before.num_vars = after.num_vars = 0;
  hd_module_t *module = hd_generate_module(&context, seed, counts);
  hd_module_print(module, &once);
  const char *text = hd_buffer_text(&once);
  if (!hd_module_verify(module))
    fail_with(&context, seed, "the generated module is invalid", text, "");
  hd_module_t *parsed = hd_module_parse(&context, "print", text, once.size, 1);
  if (!parsed)
    fail_with(&context, seed, "the print does not parse", text, "");
  hd_module_print(parsed, &twice);
  if (strcmp(text, hd_buffer_text(&twice)) != 0)
    fail_with(&context, seed, "it prints differently", text,
              hd_buffer_text(&twice));
  dump_module(module, &before);
  dump_module(parsed, &after);
  if (strcmp(hd_buffer_text(&before.out), hd_buffer_text(&after.out)) != 0)
    fail_with(&context, seed, "it is not the same", hd_buffer_text(&before.out),
              hd_buffer_text(&after.out));
  hd_buffer_fini(&before.out);
  hd_buffer_fini(&after.out);
  hd_buffer_fini(&once);
  hd_buffer_fini(&twice);
  hd_context_fini(&context);
}

static void check_row(unsigned count, const char *table, const char *row) {
  if (!count)
    fail_msg("%s of %s was never generated", row, table);
}

static void check_counts(const hd_generated_t *counts) {
  for (int i = 0; i < HD_EXPR_COUNT; i++)
    check_row(counts->exprs[i], "Exprs.def",
              hd_expr_info((hd_expr_kind_t)i)->name);
  for (int i = 0; i < HD_STMT_COUNT; i++)
    check_row(counts->stmts[i], "Stmts.def",
              hd_stmt_kind_text((hd_stmt_kind_t)i));
  for (int i = 0; i < HD_BUILTIN_COUNT; i++)
    check_row(counts->builtins[i], "Builtins.def",
              hd_builtin_info((hd_builtin_t)i)->text);
  for (int i = HD_BOOL; i < HD_SCALAR_COUNT; i++)
    check_row(counts->scalars[i], "Scalars.def",
              hd_scalar_name((hd_scalar_t)i));
  for (int i = 0; i < HD_INTRINSIC_COUNT; i++)
    check_row(counts->intrinsics[i], "Intrinsics.def",
              hd_intrinsic_info((hd_intrinsic_t)i)->name);
  for (int i = 0; i < HD_GENERATED_LAYOUTS; i++)
    check_row(counts->layouts[i], "the layouts",
              hd_layout_kind_name((hd_layout_kind_t)i));
  for (int i = 0; i < HD_GENERATED_MAPPINGS; i++)
    check_row(counts->mappings[i], "the mappings",
              hd_mapping_kind_name((hd_mapping_kind_t)i));
  for (int i = 0; i <= HD_FUNC_PLAN; i++)
    check_row(counts->funcs[i], "the functions", "a kind");
  for (int i = 0; i < HD_POINT_COUNT; i++)
    check_row(counts->points[i], "the points", hd_point_name((hd_point_t)i));
  static const char *const forms[] = {"a tensor", "a sequence", "an optional"};
  static const char *const nodes[] = {"reshape", "a task", "an operator"};
  for (int i = 0; i < HD_ATTRIBUTE_KINDS; i++)
    check_row(counts->attributes[i], "the attributes",
              hd_attribute_kind_name((hd_attribute_kind_t)i));
  for (int i = 0; i < 3; i++) {
    check_row(counts->forms[i], "the values", forms[i]);
    check_row(counts->nodes[i], "the nodes", nodes[i]);
  }
  check_row(counts->graphs, "the items", "graph");
  check_row(counts->rewrites, "the items", "rewrite");
  check_row(counts->groups, "the nodes", "group");
  check_row(counts->anchors, "the nodes", "anchor");
  check_row(counts->schedules, "the nodes", "with");
  check_row(counts->views, "the statements", "view");
  check_row(counts->programmatic, "the statements", "programmatic launch");
  check_row(counts->staged, "the points", "through");
  check_row(counts->consts, "the items", "const");
  check_row(counts->tables, "the items", "const with a shape");
}

static void generated_modules_read_back(void **state) {
  (void)state;
  static hd_generated_t counts;
  // HIDET_TEST_SEED names one module, for looking at a failure.
  const char *seed = getenv("HIDET_TEST_SEED");
  if (seed) {
    check_module(strtoull(seed, NULL, 10), &counts);
    return;
  }
  for (uint64_t i = 0; i < MODULES; i++)
    check_module(i, &counts);
  check_counts(&counts);
}

HD_UNIT_TESTS(cmocka_unit_test(generated_modules_read_back))
