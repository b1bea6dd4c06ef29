// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules for any sizes, made for those of a node.
#include "Schedule/Settle.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"
#include "UnitTest.h"

#include <string.h>

static const char text[] =
    "kernel rows(m: i32, n: i32, in x: f32[m, n], out y: f32[m, 2 * n / 2])\n"
    "  grid(n) block(32) {\n"
    "  if block < n - 1 {\n"
    "    y[0, block] = x[0, block]\n"
    "  }\n"
    "}\n"
    "plan twice(n: i32, in x: f32[1, n], out y: f32[1, n]) {\n"
    "  workspace t: f32[1, n]\n"
    "  launch rows(1, n, x, t)\n"
    "  launch rows(1, n, t, y)\n"
    "}\n"
    "kernel plain(in x: f32[6], out y: f32[2, 3]) {}\n"
    "plan fixed(in x: f32[1, 6], out y: f32[1, 6]) {\n"
    "  launch rows(1, 6, x, y)\n"
    "}\n"
    "const rows_4_8 = 1\n"
    "graph main(x: f32[4, 8], z: f32[6], u: f32[1, n], v: f32[1, 6]) {\n"
    "  a: f32[4, 8] = relu(x) with rows\n"
    "  b: f32[4, 8] = relu(a) with rows\n"
    "  c: f32[1, 6] = relu(v) with rows\n"
    "  d: f32[6] = relu(z) with plain\n"
    "  e: f32[1, 6] = relu(v) with fixed\n"
    "  f = relu(u) with twice\n"
    "}\n";

typedef struct settle_run {
  hd_context_t context;
  hd_module_t *module;
  const hd_graph_t *graph;
  hd_settler_t settler;
} settle_run_t;

static void setup(settle_run_t *run) {
  hd_context_init(&run->context);
  run->module = hd_module_parse(&run->context, "text", text, strlen(text), 1);
  assert_non_null(run->module);
  run->graph = hd_module_find_graph(run->module, "main");
  run->settler = (hd_settler_t){.module = run->module};
}

static void expect_text(const hd_func_t *func, const char *expected) {
  hd_buffer_t out = {0};
  assert_non_null(func);
  hd_func_print(func, &out);
  assert_string_equal(hd_buffer_text(&out), expected);
  hd_buffer_fini(&out);
}

static void sizes_become_numbers(void **state) {
  (void)state;
  settle_run_t run;
  setup(&run);
  const hd_node_t *const *nodes = run.graph->nodes.data;
  const hd_func_t *a = hd_settler_settle(&run.settler, nodes[0]);
  // The name rows_4_8 is taken.
  expect_text(a, "kernel rows_4_8_1(in x: f32[4, 8], out y: f32[4, 2 * 8 / 2]) "
                 "grid(8) block(32) {\n"
                 "  if block < 8 - 1 {\n"
                 "    y[0, block] = x[0, block]\n"
                 "  }\n"
                 "}\n");
  assert_ptr_equal(hd_module_find(run.module, "rows_4_8_1", HD_FUNC_KERNEL), a);
  // The same sizes, the same kernel.
  assert_ptr_equal(hd_settler_settle(&run.settler, nodes[1]), a);
  const hd_func_t *c = hd_settler_settle(&run.settler, nodes[2]);
  assert_ptr_not_equal(c, a);
  // Nothing is to be made.
  assert_ptr_equal(hd_settler_settle(&run.settler, nodes[3]),
                   nodes[3]->schedule);
  // The plan's launches are of a kernel that is there.
  const hd_func_t *e = hd_settler_settle(&run.settler, nodes[4]);
  expect_text(e, "plan fixed_1(in x: f32[1, 6], out y: f32[1, 6]) {\n"
                 "  launch rows_1_6(x, y)\n"
                 "}\n");
  assert_ptr_equal(e->body.stmts[0]->u.launch.kernel, c);
  assert_true(hd_module_verify(run.module));
  hd_context_fini(&run.context);
}

static void a_plan_is_settled_to_its_launches(void **state) {
  (void)state;
  settle_run_t run;
  setup(&run);
  hd_node_t node = *run.graph->nodes.data[5];
  // Its size is not known.
  assert_null(hd_settler_settle(&run.settler, &node));
  const hd_diagnostic_t *last = run.context.diags.last;
  assert_int_equal(last->code, HD_E0316);
  assert_string_equal(last->message,
                      "'twice' does not compute 'relu': 'n' is not known");
  const hd_node_t *sized = run.graph->nodes.data[2]; // f32[1, 6].
  node.inputs = sized->inputs;
  node.outputs = sized->outputs;
  expect_text(hd_settler_settle(&run.settler, &node),
              "plan twice_6(in x: f32[1, 6], out y: f32[1, 6]) {\n"
              "  workspace t: f32[1, 6]\n"
              "  launch rows_1_6(x, t)\n"
              "  launch rows_1_6(t, y)\n"
              "}\n");
  assert_true(hd_module_verify(run.module));
  hd_context_fini(&run.context);
}

HD_UNIT_TESTS(cmocka_unit_test(sizes_become_numbers),
              cmocka_unit_test(a_plan_is_settled_to_its_launches))
