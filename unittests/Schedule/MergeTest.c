// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes of a graph as one flat task: it computes what the nodes compute one
// after the other, and is one kernel over rows where it should be.
#include "ScheduleHelp.h"

#include "Graph/Reference/Reference.h"
#include "IR/Text/Library.h"
#include "IR/Text/Parser.h"
#include "IR/Verify/Verifier.h"
#include "Schedule/Terms/Flatten.h"
#include "Schedule/Terms/Merge.h"
#include "Schedule/Terms/Prepare.h"

#include <math.h>
#include <string.h>

enum { MAX_NODES = 32 };

typedef struct graph_run {
  hd_task_run_t run;
  const hd_graph_t *graph;
  const hd_task_binding_t *bindings[MAX_NODES]; // NULL: a reshape.
  hd_merge_part_t parts[MAX_NODES];
  hd_merged_t merged;
} graph_run_t;

static hd_tensor_type_t type_of(const hd_value_t *value) {
  hd_tensor_type_t type = {value->type, (unsigned)value->rank, {0}};
  for (unsigned i = 0; i < type.rank; i++)
    assert_true(hd_expr_fold_int(value->shape[i], &type.shape[i]));
  return type;
}

static void prepare_node(graph_run_t *g, size_t i) {
  hd_context_t *context = &g->run.context;
  hd_arena_t *arena = &g->run.tasks->arena;
  const hd_node_t *node = g->graph->nodes.data[i];
  g->parts[i].node = node;
  if (hd_node_is_reshape(node))
    return;
  const hd_task_t *task =
      node->task ? node->task : hd_library_task(context, node->op);
  assert_non_null(task);
  hd_tensor_type_t inputs[MAX_TENSORS];
  for (uint32_t k = 0; k < node->num_inputs; k++)
    inputs[k] = type_of(node->inputs[k]);
  g->bindings[i] =
      hd_task_bind(context, arena, task, inputs, node->num_inputs,
                   node->attributes, node->num_attributes, node->loc, "test");
  assert_non_null(g->bindings[i]);
  hd_task_t *flat = hd_task_flatten(context, arena, g->bindings[i], node->loc);
  hd_task_hoist(arena, flat);
  hd_task_inline(arena, flat);
  hd_task_widen(arena, flat);
  g->parts[i].flat = flat;
}

static void make_tensor(hd_host_tensor_t *tensor, graph_run_t *g,
                        const hd_tensor_type_t *type) {
  assert_true(hd_host_tensor_init(tensor, &g->run.context.diags, NULL, "tensor",
                                  type->type, type->shape, type->rank));
}

static bool prepare(graph_run_t *g, const char *text) {
  *g = (graph_run_t){0};
  hd_task_run_t *run = &g->run;
  hd_context_init(&run->context);
  run->tasks = hd_module_parse(&run->context, "test", text, strlen(text), 1);
  assert_non_null(run->tasks);
  assert_true(hd_module_verify(run->tasks));
  g->graph = hd_module_find_graph(run->tasks, "main");
  size_t count = g->graph->nodes.size;
  for (size_t i = 0; i < count; i++)
    prepare_node(g, i);
  hd_arena_t *arena = &run->tasks->arena;
  return hd_flat_merge(arena, "merged", g->parts, count, g->graph->outputs.data,
                       g->graph->outputs.size, &g->merged);
}

static void bind(graph_run_t *g) {
  hd_task_run_t *run = &g->run;
  const hd_task_t *flat = g->merged.flat;
  hd_tensor_type_t types[MAX_TENSORS];
  for (size_t i = 0; i < flat->inputs.size; i++) {
    const hd_task_value_t *value = flat->inputs.data[i];
    hd_tensor_type_t *type = &types[run->num_inputs];
    *type = (hd_tensor_type_t){value->type.scalar, value->rank, {0}};
    for (uint32_t k = 0; k < value->rank; k++)
      type->shape[k] = hd_flat_size(value, k);
    make_tensor(&run->inputs[run->num_inputs], g, type);
    hd_host_tensor_fill_random(&run->inputs[run->num_inputs++], 1, (unsigned)i);
  }
  assert_true(hd_task_verify(&run->context, flat));
  run->binding =
      hd_task_bind(&run->context, &run->tasks->arena, flat, types,
                   run->num_inputs, NULL, 0, (hd_loc_t){0, 0}, "test");
  assert_non_null(run->binding);
  run->num_outputs = (unsigned)flat->outputs.size;
  for (unsigned i = 0; i < run->num_outputs; i++)
    make_tensor(&run->outputs[i], g, &run->binding->outputs[i]);
}

// --- What the nodes say ---

typedef struct known {
  const hd_value_t *value;
  hd_host_tensor_t tensor;
} known_t;

static const hd_host_tensor_t *find(const known_t *known, size_t count,
                                    const hd_value_t *value) {
  for (size_t i = 0; i < count; i++)
    if (known[i].value == value)
      return &known[i].tensor;
  fail_msg("%s is not known", value->name);
  return NULL;
}

static void copy_elements(hd_host_tensor_t *to, const hd_host_tensor_t *from) {
  assert_int_equal(to->count, from->count);
  memcpy(to->data, from->data,
         (size_t)from->count * hd_scalar_bits(from->type) / 8);
}

static void evaluate_node(graph_run_t *g, size_t i, known_t *known,
                          size_t *count) {
  const hd_node_t *node = g->graph->nodes.data[i];
  const hd_host_tensor_t *inputs[MAX_TENSORS];
  hd_host_tensor_t outputs[MAX_TENSORS];
  for (uint32_t k = 0; k < node->num_inputs; k++)
    inputs[k] = find(known, *count, node->inputs[k]);
  if (g->bindings[i]) { // Makes its outputs.
    assert_true(hd_task_evaluate(&g->run.context, g->bindings[i], inputs,
                                 outputs, node->loc));
  } else {
    hd_tensor_type_t type = type_of(node->outputs[0]);
    make_tensor(&outputs[0], g, &type);
    copy_elements(&outputs[0], inputs[0]);
  }
  for (uint32_t k = 0; k < node->num_outputs; k++)
    known[(*count)++] = (known_t){node->outputs[k], outputs[k]};
}

static void expect_close(const hd_host_tensor_t *got,
                         const hd_host_tensor_t *expected, const char *text) {
  double most = 0;
  for (int64_t i = 0; i < expected->count; i++)
    most = fmax(most, fabs(hd_host_tensor_get(expected, i)));
  assert_int_equal(got->count, expected->count);
  for (int64_t i = 0; i < expected->count; i++) {
    double x = hd_host_tensor_get(got, i), y = hd_host_tensor_get(expected, i);
    if (!(fabs(x - y) <= 2e-5 * most) && !(isnan(x) && isnan(y)))
      fail_msg("element %lld is %.9g and not %.9g of\n%s", (long long)i, x, y,
               text);
  }
}

static void check(const char *text, unsigned kernels) {
  static graph_run_t g;
  static known_t known[MAX_NODES + MAX_TENSORS];
  size_t count = 0;
  assert_true(prepare(&g, text));
  hd_task_t *flat = g.merged.flat;
  bool fits = hd_rows_fit(&g.run.tasks->arena, flat);
  if (fits != (kernels == 1)) {
    hd_buffer_t printed = {0};
    hd_task_print(flat, &printed);
    fail_msg("%s is %sone kernel", hd_buffer_text(&printed),
             fits ? "" : "not ");
  }
  bind(&g);
  for (size_t i = 0; i < g.merged.inputs.size; i++) {
    known[count].value = g.merged.inputs.data[i];
    hd_tensor_type_t type = type_of(known[count].value);
    make_tensor(&known[count].tensor, &g, &type);
    copy_elements(&known[count++].tensor, &g.run.inputs[i]);
  }
  for (size_t i = 0; i < g.graph->nodes.size; i++)
    evaluate_node(&g, i, known, &count);
  hd_run_task(&g.run);
  assert_int_equal(hd_run_kernels(&g.run), kernels);
  for (unsigned i = 0; i < g.run.num_outputs; i++)
    expect_close(&g.run.outputs[i],
                 find(known, count, g.graph->outputs.data[i]), text);
  hd_run_task_checked(&g.run);
  for (unsigned i = 0; i < g.run.num_outputs; i++)
    expect_close(&g.run.outputs[i],
                 find(known, count, g.graph->outputs.data[i]), text);
  for (size_t i = 0; i < count; i++)
    hd_host_tensor_fini(&known[i].tensor);
  hd_run_end(&g.run);
}

// As PyTorch exports a layer norm for opsets before 17.
static void a_layer_norm_spelled_out(void **state) {
  (void)state;
  check(
      "graph main(x: f32[2, 16, 96], e: f32[], w: f32[96], b: f32[96]) -> y {\n"
      "  x1: f32[32, 96, 1] = reshape(x)\n"
      "  m1: f32[32, 1] = reduce_mean(x1)\n"
      "  m: f32[2, 16, 1] = reshape(m1)\n"
      "  d: f32[2, 16, 96] = sub(x, m)\n"
      "  q: f32[2, 16, 96] = mul(d, d)\n"
      "  q1: f32[32, 96, 1] = reshape(q)\n"
      "  v1: f32[32, 1] = reduce_mean(q1)\n"
      "  v: f32[2, 16, 1] = reshape(v1)\n"
      "  a: f32[2, 16, 1] = add(v, e)\n"
      "  r: f32[2, 16, 1] = sqrt(a)\n"
      "  n: f32[2, 16, 96] = div(d, r)\n"
      "  s: f32[2, 16, 96] = mul(n, w)\n"
      "  y: f32[2, 16, 96] = add(s, b)\n"
      "}\n",
      1);
}

// The residual before it is an output too; heads are split after it.
static void what_stands_around_it(void **state) {
  (void)state;
  check("graph main(x: f32[64, 96], r: f32[4, 16, 96], w: f32[96], b: f32[96]) "
        "-> y, s {\n"
        "  x1: f32[4, 16, 96] = reshape(x)\n"
        "  s: f32[4, 16, 96] = add(x1, r)\n"
        "  n: f32[4, 16, 96] = layer_norm(s, w, b) { s = 2, epsilon = 1.0e-5, "
        "count = 96 }\n"
        "  h: f32[4, 16, 6, 16] = reshape(n)\n"
        "  y: f32[4, 16, 6, 16] = relu(h)\n"
        "}\n",
        1);
}

// Softmax over a flattened pair of axes.
static void axes_are_split(void **state) {
  (void)state;
  check("graph main(x: f32[6, 5, 8]) -> z {\n"
        "  f: f32[6, 40] = reshape(x)\n"
        "  y: f32[6, 40] = softmax(f) { s = 1 }\n"
        "  g: f32[2, 3, 5, 8] = reshape(y)\n"
        "  z: f32[2, 3, 5, 8] = mul(g, g)\n"
        "}\n",
        1);
}

// A reshape that no splitting makes plain: 6 rows of 10 as 4 of 15.
static void what_does_not_fit_is_several(void **state) {
  (void)state;
  check("graph main(x: f32[6, 10]) -> z {\n"
        "  y: f32[6, 10] = softmax(x) { s = 1 }\n"
        "  f: f32[4, 15] = reshape(y)\n"
        "  z: f32[4, 15] = softmax(f) { s = 1 }\n"
        "}\n",
        2);
}

// An output that is a reshape of another one, and one of an input.
static void outputs_that_are_reshapes(void **state) {
  (void)state;
  check("graph main(x: f32[6, 10]) -> y, f, g {\n"
        "  y: f32[6, 10] = softmax(x) { s = 1 }\n"
        "  f: f32[60] = reshape(y)\n"
        "  g: f32[2, 30] = reshape(x)\n"
        "}\n",
        1);
}

// The same task twice.
static void twice(void **state) {
  (void)state;
  check("graph main(x: f32[30, 70]) -> z {\n"
        "  y: f32[30, 70] = softmax(x) { s = 1 }\n"
        "  z: f32[30, 70] = softmax(y) { s = 1 }\n"
        "}\n",
        1);
}

HD_UNIT_TESTS(cmocka_unit_test(a_layer_norm_spelled_out),
              cmocka_unit_test(what_stands_around_it),
              cmocka_unit_test(axes_are_split),
              cmocka_unit_test(what_does_not_fit_is_several),
              cmocka_unit_test(outputs_that_are_reshapes),
              cmocka_unit_test(twice))
