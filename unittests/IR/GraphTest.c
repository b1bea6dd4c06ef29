// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs as the compiler makes them: printed and verified.
#include "IR/Graph/Graph.h"

#include "IR/Passes/Pass.h"
#include "IR/Text/Library.h"
#include "UnitTest.h"

#include <string.h>

typedef struct made {
  hd_context_t context;
  hd_module_t *module;
  hd_arena_t *arena;
  hd_graph_t *graph;
} made_t;

static void setup(made_t *m) {
  hd_context_init(&m->context);
  m->module = hd_module_create(&m->context);
  m->arena = &m->module->arena;
  m->graph = HD_ARENA_NEW(m->arena, hd_graph_t);
  m->graph->name = "main";
  hd_item_t item = {.kind = HD_ITEM_GRAPH, .u.graph = m->graph};
  hd_vec_push(m->arena, &m->module->items, item);
}

static hd_value_t *make_value(made_t *m, const char *name, hd_scalar_t type,
                              const hd_expr_t *size, int64_t last) {
  hd_value_t *value = HD_ARENA_NEW(m->arena, hd_value_t);
  const hd_expr_t **shape = HD_ARENA_ARRAY(m->arena, const hd_expr_t *, 2);
  shape[0] = size;
  shape[1] = hd_expr_int(m->arena, hd_type(HD_I64), last);
  *value = (hd_value_t){.name = name, .type = type, .rank = 2, .shape = shape};
  return value;
}

static hd_node_t *add_node(made_t *m, const char *op, const hd_value_t *in,
                           const hd_value_t *out) {
  hd_node_t *node = HD_ARENA_NEW(m->arena, hd_node_t);
  const hd_value_t **values = HD_ARENA_ARRAY(m->arena, const hd_value_t *, 2);
  values[0] = in;
  values[1] = out;
  *node = (hd_node_t){.op = op,
                      .num_inputs = 1,
                      .inputs = &values[0],
                      .num_outputs = 1,
                      .outputs = &values[1]};
  hd_vec_push(m->arena, &m->graph->nodes, node);
  return node;
}

static void a_made_graph_prints_and_verifies(void **state) {
  (void)state;
  made_t m;
  setup(&m);
  hd_var_t *n =
      hd_var_make(m.arena, "n", HD_VAR_PARAM, hd_type(HD_I64), (hd_loc_t){0});
  const hd_expr_t *size = hd_expr_var(m.arena, n);
  hd_vec_push(m.arena, &m.graph->dims, n);
  hd_value_t *x = make_value(&m, "x", HD_F32, size, 8);
  x->label = "input.1";
  const hd_expr_t *half = hd_expr_binary(
      m.arena, HD_EXPR_DIV, size, hd_expr_int(m.arena, hd_type(HD_I64), 2));
  hd_value_t *t = make_value(&m, "t", HD_F32, half, 16);
  hd_value_t *y = make_value(&m, "y", HD_F32, NULL, 16);
  y->label = "out\"1\"";
  hd_vec_push(m.arena, &m.graph->inputs, x);
  add_node(&m, "reshape", x, t);
  hd_node_t *copy = add_node(&m, "copy", t, y);
  copy->task = hd_library_task(&m.context, "copy");
  copy->label = "/last";
  hd_vec_push(m.arena, &m.graph->outputs, y);
  assert_true(hd_graph_verify(&m.context, m.graph));
  hd_buffer_t text = {0};
  hd_graph_print(m.graph, &text);
  assert_string_equal(
      hd_buffer_text(&text),
      "graph main(x as \"input.1\": f32[n, 8]) -> y as \"out\\\"1\\\"\" {\n"
      "  t: f32[n / 2, 16] = reshape(x)\n"
      "  y: f32[?, 16] = copy(t) as \"/last\"\n"
      "}\n");
  hd_buffer_fini(&text);
  assert_false(hd_value_is_concrete(x));
  assert_ptr_equal(hd_module_find_graph(m.module, NULL), m.graph);
  assert_ptr_equal(hd_module_find_graph(m.module, "main"), m.graph);
  assert_null(hd_module_find_graph(m.module, "copy"));
  hd_context_fini(&m.context);
}

static void attributes_are_found(void **state) {
  (void)state;
  hd_attribute_t axis = {.name = "axis", .kind = HD_ATTRIBUTE_INT, .u.i = -1};
  const hd_attribute_t *list[] = {&axis};
  hd_node_t node = {.op = "Softmax", .num_attributes = 1, .attributes = list};
  assert_ptr_equal(hd_node_attribute(&node, "axis"), &axis);
  assert_null(hd_node_attribute(&node, "axes"));
  assert_string_equal(hd_attribute_kind_name(HD_ATTRIBUTE_INT), "an integer");
  assert_string_equal(hd_attribute_kind_name(HD_ATTRIBUTE_TYPE), "a type");
}

// What only a graph that no parser has read can have wrong.
static void wrong_graphs_are_refused(void **state) {
  (void)state;
  made_t m;
  setup(&m);
  const hd_expr_t *two = hd_expr_int(m.arena, hd_type(HD_I64), 2);
  hd_value_t *x = make_value(&m, "x", HD_F32, two, 8);
  assert_true(hd_value_is_concrete(x));
  hd_value_t *other = make_value(&m, "x", HD_F32, two, 8);
  hd_value_t *y = make_value(&m, "y", HD_F32, two, 8);
  hd_vec_push(m.arena, &m.graph->inputs, x);
  hd_node_t *copy = add_node(&m, "copy", other, y); // Another x.
  copy->task = hd_library_task(&m.context, "copy");
  add_node(&m, "copy", x, make_value(&m, "z", HD_F32, two, 8)); // No task.
  hd_value_t *keyword = make_value(&m, "while", HD_F32, two, 8);
  add_node(&m, "copy", x, keyword)->task = copy->task;
  hd_value_t *dims = make_value(&m, "d", HD_F32, NULL, -8);
  add_node(&m, "copy", x, dims)->task = copy->task;
  hd_value_t *stranger = make_value(
      &m, "s", HD_F32,
      hd_expr_var(m.arena, hd_var_make(m.arena, "n", HD_VAR_PARAM,
                                       hd_type(HD_I64), (hd_loc_t){0})),
      8);
  add_node(&m, "copy", x, stranger)->task = copy->task;
  hd_constant_t nothing = {0};
  hd_value_t *constant = make_value(&m, "c", HD_F32, two, 8);
  constant->constant = &nothing;
  hd_vec_push(m.arena, &m.graph->constants, constant);
  assert_false(hd_graph_verify(&m.context, m.graph));
  assert_int_equal(m.context.diags.num_errors, 6);
  hd_context_fini(&m.context);
}

static void expect_group_fault(made_t *m, const char *message) {
  unsigned before = m->context.diags.num_errors;
  assert_false(hd_graph_verify(&m->context, m->graph));
  assert_int_equal(m->context.diags.num_errors, before + 1);
  const hd_diagnostic_t *last = m->context.diags.last;
  assert_string_equal(last->message, message);
}

// The text has no words for these.
static void wrong_groups_are_refused(void **state) {
  (void)state;
  made_t m;
  setup(&m);
  const hd_expr_t *two = hd_expr_int(m.arena, hd_type(HD_I64), 2);
  hd_value_t *x = make_value(&m, "x", HD_F32, two, 8);
  hd_vec_push(m.arena, &m.graph->inputs, x);
  hd_node_t *nodes[3];
  static const char *const names[] = {"a", "b", "c"};
  for (int i = 0; i < 3; i++) {
    nodes[i] =
        add_node(&m, "copy", x, make_value(&m, names[i], HD_F32, two, 8));
    nodes[i]->task = hd_library_task(&m.context, "copy");
    nodes[i]->group = (uint32_t)i + 1;
    nodes[i]->anchor = true;
  }
  assert_true(hd_graph_verify(&m.context, m.graph));
  nodes[2]->group = 1;
  expect_group_fault(&m, "group: the nodes of number 1 do not stand together, "
                         "or come after a larger one's");
  nodes[2]->group = 0;
  expect_group_fault(&m, "group: an anchor stands outside");
  nodes[2]->anchor = false;
  assert_true(hd_graph_verify(&m.context, m.graph));
  hd_func_t function = {.kind = HD_FUNC_FN, .name = "f"};
  nodes[2]->schedule = &function;
  expect_group_fault(&m, "'f' does not compute 'copy': it is neither a kernel "
                         "nor a plan");
  hd_context_fini(&m.context);
}

static const hd_func_t *touch(hd_module_t *module, const hd_func_t *func,
                              const hd_pass_args_t *args) {
  (void)module, (void)func, (void)args;
  fail_msg("a graph is no function");
  return NULL;
}

// Takes the nodes away, and pushes another graph.
static bool cut(hd_module_t *module, const hd_graph_t *graph,
                const hd_pass_args_t *args, hd_item_t *version) {
  (void)args;
  hd_graph_t *bare = HD_ARENA_NEW(&module->arena, hd_graph_t);
  hd_graph_t *more = HD_ARENA_NEW(&module->arena, hd_graph_t);
  *bare = *graph;
  bare->nodes.size = 0;
  more->name = "more";
  version->u.graph = bare;
  hd_item_t item = {.kind = HD_ITEM_GRAPH, .u.graph = more};
  hd_vec_push(&module->arena, &module->items, item);
  return true;
}

static bool keep(hd_module_t *module, const hd_graph_t *graph,
                 const hd_pass_args_t *args, hd_item_t *version) {
  (void)module, (void)args;
  assert_ptr_equal(version->u.graph, graph);
  return true;
}

static void a_pass_is_for_graphs_or_for_functions(void **state) {
  (void)state;
  static const hd_pass_t kernels = {.name = "k",
                                    .run = touch,
                                    .level = HD_LEVEL_KERNEL,
                                    .options = "",
                                    .summary = ""};
  static const hd_pass_t cuts = {.name = "cut",
                                 .run_graph = cut,
                                 .level = HD_LEVEL_GRAPH,
                                 .options = "",
                                 .summary = ""};
  static const hd_pass_t keeps = {.name = "keep",
                                  .run_graph = keep,
                                  .level = HD_LEVEL_GRAPH,
                                  .options = "",
                                  .summary = ""};
  static const hd_pass_config_t config = {.verify_each = true};
  made_t m;
  setup(&m);
  const hd_expr_t *two = hd_expr_int(m.arena, hd_type(HD_I64), 2);
  hd_value_t *x = make_value(&m, "x", HD_F32, two, 8);
  hd_value_t *y = make_value(&m, "y", HD_F32, two, 8);
  hd_vec_push(m.arena, &m.graph->inputs, x);
  add_node(&m, "reshape", x, y);
  hd_pass_result_t result = hd_pass_run(m.module, &kernels, NULL, &config);
  assert_true(result.ok && !result.changed);
  result = hd_pass_run(m.module, &keeps, NULL, &config);
  assert_true(result.ok && !result.changed);
  result = hd_pass_run(m.module, &cuts, NULL, &config);
  assert_true(result.ok && result.changed);
  assert_int_equal(m.module->items.size, 2); // It did not run on its own.
  assert_int_equal(hd_module_find_graph(m.module, "main")->nodes.size, 0);
  assert_non_null(hd_module_find_graph(m.module, "more"));
  // What is left of this one has an output that nothing gives.
  hd_vec_push(m.arena, &m.graph->outputs, y);
  m.module->items.data[0].u.graph = m.graph;
  assert_false(hd_pass_run(m.module, &cuts, NULL, &config).ok);
  const hd_diagnostic_t *last = m.context.diags.last;
  assert_int_equal(last->code, HD_E0311);
  hd_context_fini(&m.context);
}

HD_UNIT_TESTS(cmocka_unit_test(a_made_graph_prints_and_verifies),
              cmocka_unit_test(attributes_are_found),
              cmocka_unit_test(wrong_graphs_are_refused),
              cmocka_unit_test(wrong_groups_are_refused),
              cmocka_unit_test(a_pass_is_for_graphs_or_for_functions))
