// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Graph/Prepare.h"
#include "IR/Text/Parser.h"
#include "UnitTest.h"

static const char text[] =
    "graph main(x: f32[2, 2]) -> y, v {\n"
    "  const w: f32[2, 2] = [1.0, 2.0, 3.0, 4.0]\n"
    "  const b: f32[2, 2] = 1.0\n"
    "  u: f32[2, 2] = add(w, b)\n" // Known.
    "  t: f32[2, 2] = matmul(x, w)\n"
    "  v: f32[2, 2] = add(u, u)\n" // Known, and an output.
    "  y: f32[2, 2] = add(t, u)\n"
    "}\n";

static void what_is_constant_is_prepared(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  hd_module_t *module =
      hd_module_parse(&context, "test", text, sizeof(text) - 1, 1);
  assert_non_null(module);
  const hd_graph_t *graph = hd_module_find_graph(module, "main");
  const hd_graph_t *prepare, *rest;
  hd_graph_split(&module->arena, graph, &prepare, &rest);

  assert_int_equal(prepare->inputs.size, 0);
  assert_int_equal(prepare->constants.size, 2);
  assert_int_equal(prepare->nodes.size, 2);
  assert_ptr_equal(prepare->nodes.data[0], graph->nodes.data[0]);
  assert_ptr_equal(prepare->nodes.data[1], graph->nodes.data[2]);
  assert_int_equal(prepare->outputs.size, 2);
  assert_string_equal(prepare->outputs.data[0]->name, "u");
  assert_string_equal(prepare->outputs.data[1]->name, "v");

  assert_int_equal(rest->inputs.size, 3);
  assert_string_equal(rest->inputs.data[0]->name, "x");
  assert_string_equal(rest->inputs.data[1]->name, "u");
  assert_string_equal(rest->inputs.data[2]->name, "v");
  assert_int_equal(rest->constants.size, 1); // w alone.
  assert_string_equal(rest->constants.data[0]->name, "w");
  assert_int_equal(rest->nodes.size, 2);
  assert_int_equal(rest->outputs.size, 2);
  assert_string_equal(rest->outputs.data[0]->name, "y");
  assert_string_equal(rest->outputs.data[1]->name, "v");
  hd_context_fini(&context);
}

HD_UNIT_TESTS(cmocka_unit_test(what_is_constant_is_prepared))
