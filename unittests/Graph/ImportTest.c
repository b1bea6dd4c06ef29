// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models are put together here by the numbers of ONNX's public schema;
// test/Graph/ONNX imports what the onnx package makes.
#include "Graph/ONNX/Import.h"
#include "Graph/OnnxWriter.h"
#include "IR/Tensor.h"
#include "UnitTest.h"

#include <stdlib.h>
#include <string.h>

enum { FLOAT = 1, UINT8 = 2, INT64 = 7, STRING = 8, BOOL = 9, INT4 = 22 };

typedef struct result {
  hd_context_t context;
  hd_buffer_t bytes;
  hd_module_t *module;
  const hd_graph_t *graph;
} result_t;

static void import(void *argument) {
  result_t *r = argument;
  r->module = hd_onnx_import_memory(&r->context, "model", r->bytes.data,
                                    r->bytes.size, NULL);
}

static result_t *run_bytes(hd_buffer_t bytes) {
  result_t *r = calloc(1, sizeof *r);
  hd_context_init(&r->context);
  r->context.budget.bytes_limit = (size_t)256 << 20;
  r->bytes = bytes;
  assert_int_equal(hd_budget_guard(&r->context.budget, import, r),
                   HD_EXHAUSTED_NOTHING);
  if (r->module)
    r->graph = hd_module_find_graph(r->module, "main");
  return r;
}

static result_t *run(hd_buffer_t *graph) {
  return run_bytes(make_model(graph, 13));
}

static void end(result_t *r) {
  hd_context_fini(&r->context);
  hd_buffer_fini(&r->bytes);
  free(r);
}

static result_t *imported(result_t *r) {
  if (!r->module)
    fail_msg("%s", r->context.diags.first->message);
  assert_non_null(r->graph);
  assert_int_equal(r->context.diags.num_errors, 0);
  return r;
}

// It failed with this error, which says so.
static void refused(result_t *r, hd_diagnostic_code_t code, const char *text) {
  assert_null(r->module);
  assert_int_not_equal(r->context.diags.num_errors, 0);
  assert_string_equal(hd_diagnostic_code_name(r->context.diags.first->code),
                      hd_diagnostic_code_name(code));
  if (!strstr(r->context.diags.first->message, text))
    fail_msg("'%s' does not say '%s'", r->context.diags.first->message, text);
  end(r);
}

static void put_value(hd_buffer_t *graph, unsigned field, const char *name,
                      int type, const int64_t *dims) {
  hd_buffer_t info = make_value_info(name, type, dims);
  put_message(graph, field, &info);
}

static void put_input(hd_buffer_t *graph, const char *name) {
  put_value(graph, 11, name, FLOAT, (const int64_t[]){2, -9});
}

static void put_output(hd_buffer_t *graph, const char *name) {
  put_value(graph, 12, name, FLOAT, (const int64_t[]){2, -9});
}

static void put_node(hd_buffer_t *graph, const char *op, const char *inputs,
                     const char *outputs) {
  hd_buffer_t node = make_node(op, inputs, outputs);
  put_message(graph, 1, &node);
}

static void imports_a_graph(void **state) {
  (void)state;
  hd_buffer_t graph = {0};
  put_node(&graph, "Add", "/x.1,w", "2");
  put_node(&graph, "Clip", "2,,w", "x_1");
  hd_buffer_t tensor = make_tensor("w", FLOAT, (const int64_t[]){2, -1});
  put_bytes(&tensor, 9, (const float[]){1, 2}, 8);
  put_message(&graph, 5, &tensor);
  put_value(&graph, 11, "/x.1", FLOAT, (const int64_t[]){-1, 2, -2, -1, -9});
  put_value(&graph, 11, "w", FLOAT, (const int64_t[]){2, -9});
  put_output(&graph, "x_1");
  result_t *r = imported(run(&graph));

  assert_int_equal(r->graph->inputs.size, 1);
  const hd_value_t *x = r->graph->inputs.data[0];
  assert_string_equal(x->label, "/x.1");
  assert_int_equal(x->type, HD_F32);
  assert_int_equal(x->rank, 4);
  assert_int_equal(r->graph->dims.size, 1);
  assert_ptr_equal(x->shape[0]->u.var, r->graph->dims.data[0]);
  assert_ptr_equal(x->shape[3]->u.var, r->graph->dims.data[0]);
  assert_true(hd_expr_is_int(x->shape[1], 2));
  assert_null(x->shape[2]);

  assert_int_equal(r->graph->nodes.size, 2);
  const hd_node_t *add = r->graph->nodes.data[0];
  const hd_node_t *clip = r->graph->nodes.data[1];
  assert_string_equal(add->domain, "onnx");
  assert_int_equal(add->version, 13);
  assert_string_equal(add->op, "Add");
  assert_ptr_equal(add->inputs[0], x);
  assert_ptr_equal(clip->inputs[0], add->outputs[0]);
  assert_null(clip->inputs[1]);
  assert_ptr_equal(r->graph->outputs.data[0], clip->outputs[0]);

  // Identifiers are letters, digits, underscores, and no two are the same.
  assert_string_equal(x->name, "x_1");
  assert_string_equal(add->outputs[0]->name, "t2");
  assert_string_equal(clip->outputs[0]->name, "x_1_2");

  const hd_value_t *w = r->graph->constants.data[0];
  const hd_host_tensor_t *data = hd_constant_load(r->module, w);
  assert_true(hd_host_tensor_get(data, 0) == 1);
  assert_true(hd_host_tensor_get(data, 1) == 2);
  end(r);
}

// A graph with one initializer of so many elements, with what put() adds.
static result_t *run_tensor(int type, int64_t size,
                            void (*put)(hd_buffer_t *tensor)) {
  hd_buffer_t graph = {0};
  hd_buffer_t tensor = make_tensor("w", type, (const int64_t[]){size, -1});
  put(&tensor);
  put_message(&graph, 5, &tensor);
  put_output(&graph, "w");
  return run(&graph);
}

static void put_four_bits(hd_buffer_t *tensor) {
  put_bytes(tensor, 9, "\x21\xf3\x07", 3);
}

static void put_packed_ints(hd_buffer_t *tensor) {
  put_bytes(tensor, 7, "\x01\x80\x01", 3); // 1, 128
  put_int(tensor, 7, -1);
  put_int(tensor, 7, 3);
}

static void put_raw_8(hd_buffer_t *tensor) {
  put_bytes(tensor, 9, "12345678", 8);
}

static void put_huge_byte(hd_buffer_t *tensor) { put_int(tensor, 5, 256); }

static void put_strings(hd_buffer_t *tensor) { put_text(tensor, 6, "text"); }

static void decodes_elements(void **state) {
  (void)state;
  result_t *r = imported(run_tensor(INT4, 5, put_four_bits));
  const int64_t four_bits[] = {1, 2, 3, -1, 7};
  const hd_host_tensor_t *data =
      hd_constant_load(r->module, r->graph->constants.data[0]);
  for (int i = 0; i < 5; i++)
    assert_int_equal(hd_host_tensor_get_int(data, i), four_bits[i]);
  end(r);

  r = imported(run_tensor(INT64, 4, put_packed_ints));
  const int64_t ints[] = {1, 128, -1, 3};
  data = hd_constant_load(r->module, r->graph->constants.data[0]);
  for (int i = 0; i < 4; i++)
    assert_int_equal(hd_host_tensor_get_int(data, i), ints[i]);
  end(r);
}

static void refuses_wrong_tensors(void **state) {
  (void)state;
  refused(run_tensor(FLOAT, 3, put_raw_8), HD_E1103, "needs 12");
  refused(run_tensor(FLOAT, -2, put_raw_8), HD_E1103, "size -2");
  refused(run_tensor(FLOAT, (int64_t)1 << 62, put_raw_8), HD_E0309, "'w'");
  refused(run_tensor(FLOAT, 4, put_packed_ints), HD_E1103, "in that field");
  refused(run_tensor(INT64, 5, put_packed_ints), HD_E1103, "shape needs 40");
  refused(run_tensor(INT64, 3, put_packed_ints), HD_E1103, "more elements");
  refused(run_tensor(UINT8, 1, put_huge_byte), HD_E1103, "256");
  refused(run_tensor(BOOL, 8, put_raw_8), HD_E1103, "bool");
  refused(run_tensor(STRING, 1, put_strings), HD_E1104, "string");
  refused(run_tensor(99, 1, put_raw_8), HD_E1104, "99");
}

static void refuses_wrong_graphs(void **state) {
  (void)state;
  hd_buffer_t graph = {0};
  put_input(&graph, "x");
  put_node(&graph, "Relu", "y", "z");
  put_node(&graph, "Relu", "x", "y");
  put_output(&graph, "z");
  refused(run(&graph), HD_E1103, "before it gives this value");

  put_input(&graph, "x");
  put_node(&graph, "Relu", "x", "y");
  put_node(&graph, "Relu", "x", "y");
  refused(run(&graph), HD_E1103, "another value has this name");

  put_input(&graph, "x");
  put_output(&graph, "y");
  refused(run(&graph), HD_E1103, "no node gives this value");

  put_value(&graph, 11, "x", STRING, (const int64_t[]){2, -9});
  refused(run(&graph), HD_E1104, "input 'x'");

  put_value(&graph, 11, "x", FLOAT, (const int64_t[]){-7, -9});
  refused(run(&graph), HD_E1103, "size -7");

  put_input(&graph, "x");
  refused(run_bytes(make_model(&graph, 999)), HD_E1104, "999");

  put_text(&graph, 2, "not \xff UTF-8");
  refused(run(&graph), HD_E1101, "UTF-8");
}

// What is cut off anywhere is an error, or is right without the rest.
static void survives_truncation(void **state) {
  (void)state;
  hd_buffer_t graph = {0};
  put_input(&graph, "x");
  put_node(&graph, "Add", "x,w", "y");
  hd_buffer_t tensor = make_tensor("w", FLOAT, (const int64_t[]){2, -1});
  put_bytes(&tensor, 4, (const float[]){1, 2}, 8);
  put_message(&graph, 5, &tensor);
  put_output(&graph, "y");
  hd_buffer_t model = make_model(&graph, 13);
  for (size_t size = 0; size < model.size; size++) {
    hd_buffer_t part = {0};
    hd_buffer_write(&part, model.data, size);
    result_t *r = run_bytes(part);
    assert_true(r->module || r->context.diags.num_errors > 0);
    end(r);
  }
  end(imported(run_bytes(model)));
}

HD_UNIT_TESTS(cmocka_unit_test(imports_a_graph),
              cmocka_unit_test(decodes_elements),
              cmocka_unit_test(refuses_wrong_tensors),
              cmocka_unit_test(refuses_wrong_graphs),
              cmocka_unit_test(survives_truncation))
