// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Faults planted in the steps of a compilation are found and named.
#include "Runtime/Bisect.h"
#include "IR/Rewrite.h"
#include "IR/Text/Library.h"
#include "IR/Text/Parser.h"
#include "UnitTest.h"

#include <stdlib.h>
#include <string.h>

static const char text[] =
    "graph main(x: f32[4, 8], image: f32[1, 2, 6, 6]) -> y, z {\n"
    "  const w: f32[8, 8] = [\n"
    "-0.625, 0.000, 0.625, -0.125, 0.500, -0.250, 0.375, -0.375,\n"
    "    0.250, -0.500, 0.125, -0.625, 0.000, 0.625, -0.125, 0.500,\n"
    "    -0.250, 0.375, -0.375, 0.250, -0.500, 0.125, -0.625, 0.000,\n"
    "    0.625, -0.125, 0.500, -0.250, 0.375, -0.375, 0.250, -0.500,\n"
    "    0.125, -0.625, 0.000, 0.625, -0.125, 0.500, -0.250, 0.375,\n"
    "    -0.375, 0.250, -0.500, 0.125, -0.625, 0.000, 0.625, -0.125,\n"
    "    0.500, -0.250, 0.375, -0.375, 0.250, -0.500, 0.125, -0.625,\n"
    "    0.000, 0.625, -0.125, 0.500, -0.250, 0.375, -0.375, 0.250]\n"
    "  const bias: f32[8] = [0.5, -0.5, 1.0, 0.25, -0.75, 0.0, 2.0, -1.0]\n"
    "  const k: f32[3, 2, 3, 3] = 0.1\n"
    "  const scale: f32[3, 1, 1] = [1.5, 0.5, -1.0]\n"
    "  n: f32[4, 8] = neg(x) as \"minus\"\n"
    "  m: f32[4, 8] = neg(n) as \"plus\"\n"
    "  t: f32[4, 8] = matmul(m, w) as \"dense\"\n"
    "  u: f32[4, 8] = add(t, bias) as \"bias\"\n"
    "  v: f32[4, 8] = relu(u) as \"act\"\n"
    "  s: f32[4, 8] = softmax(v) { s = 1 } as \"soft\"\n"
    "  e: f32[4, 8] = exp(s) as \"exp\"\n"
    "  y: f32[4, 4] = matmul(e, v) { tb = true } as \"mix\"\n"
    "  c: f32[1, 3, 4, 4] = conv(image, k) { strides = [1, 1], pads = [0, 0], "
    "dilations = [1, 1], sizes = [4, 4] } as \"conv\"\n"
    "  d: f32[1, 3, 4, 4] = mul(c, scale) as \"scale\"\n"
    "  z: f32[1, 3, 4, 4] = relu(d) as \"act2\"\n"
    "}\n";

typedef struct fault {
  hd_step_kind_t kind;
  const char *name; // Of the step, from its beginning.
  const char *op;   // What a node is made to compute; NULL: sums of floats in
                    // a function become differences.
  const char *node; // Of a graph: which node is.
} fault_t;

static const fault_t faults[] = {
    {HD_STEP_REWRITE, "neg_of_neg at 'plus'", "neg", "act"},
    {HD_STEP_REWRITE, "factor_of_conv_each_times at 'scale'", "abs", "act2"},
    {HD_STEP_PRECISION, "f16 for matmul 'dense'", "turned", NULL},
    {HD_STEP_PRECISION, "f16 for matmul 'mix'", "swapped", NULL},
    {HD_STEP_FUSION, "of add 'bias' into matmul 'dense'", "sub", NULL},
    {HD_STEP_FUSION, "of relu 'act' into matmul 'dense'", "neg", NULL},
    {HD_STEP_FUSION, "of mul 'scale' into conv 'conv'", "add", NULL},
    {HD_STEP_FUSION, "of relu 'act2' into conv 'conv'", "abs", NULL},
    {HD_STEP_KERNEL, "of softmax 'soft'", "log_softmax", NULL},
    {HD_STEP_KERNEL, "of matmul 'mix'", "swapped", NULL},
    {HD_STEP_KERNEL, "of conv 'conv'", "moved", NULL},
    {HD_STEP_PASS, "simplify on 'matmul", NULL, NULL},
    {HD_STEP_PASS, "cse on 'matmul", NULL, NULL},
    {HD_STEP_PASS, "dce on 'conv", NULL, NULL},
    {HD_STEP_PASS, "unroll on 'conv", NULL, NULL},
};

typedef struct fixture {
  hd_context_t context;
  hd_module_t *module;
  hd_device_t *device;
  hd_host_tensor_t inputs[2];
  const fault_t *fault;
  char planted[200]; // The step's name; empty: it did not come up.
} fixture_t;

static const hd_expr_t *subtract(hd_rewriter_t *rewriter, const hd_expr_t *e) {
  if (e->kind != HD_EXPR_ADD || !hd_type_is_float(e->type))
    return e;
  return hd_expr_binary(rewriter->arena, HD_EXPR_SUB, e->operands[0],
                        e->operands[1]);
}

static const hd_func_t *spoil_func(hd_module_t *module, const hd_func_t *func) {
  hd_rewriter_t rewriter = {.arena = &module->arena, .expr = subtract};
  const hd_func_t *spoilt = hd_rewrite_func(&rewriter, func);
  assert_ptr_not_equal(spoilt, func);
  return spoilt;
}

static const hd_attribute_t *padded(hd_arena_t *arena,
                                    const hd_attribute_t *a) {
  hd_attribute_t *copy = HD_ARENA_NEW(arena, hd_attribute_t);
  int64_t *ints = HD_ARENA_ARRAY(arena, int64_t, a->count);
  if (strcmp(a->name, "pads") != 0)
    return a;
  for (size_t i = 0; i < a->count; i++)
    ints[i] = 1;
  *copy = *a;
  copy->u.ints = ints;
  return copy;
}

// Another task on the same operands; the second one transposed; the operands
// the other way round; windows that begin elsewhere.
static const hd_node_t *spoil_node(fixture_t *f, const hd_node_t *node,
                                   const char *op) {
  hd_arena_t *arena = &f->module->arena;
  hd_node_t *copy = HD_ARENA_NEW(arena, hd_node_t);
  *copy = *node;
  if (strcmp(op, "turned") == 0) {
    const hd_attribute_t **attributes =
        HD_ARENA_ARRAY(arena, const hd_attribute_t *, node->num_attributes + 1);
    hd_attribute_t *turned = HD_ARENA_NEW(arena, hd_attribute_t);
    *turned = (hd_attribute_t){
        .name = "tb", .kind = HD_ATTRIBUTE_INT, .loc = node->loc, .u.i = 1};
    for (uint32_t i = 0; i < node->num_attributes; i++)
      attributes[i] = node->attributes[i];
    attributes[copy->num_attributes++] = turned;
    copy->attributes = attributes;
  } else if (strcmp(op, "swapped") == 0) {
    const hd_value_t **inputs = HD_ARENA_ARRAY(arena, const hd_value_t *, 2);
    inputs[0] = node->inputs[1];
    inputs[1] = node->inputs[0];
    copy->inputs = inputs;
  } else if (strcmp(op, "moved") == 0) {
    const hd_attribute_t **attributes =
        HD_ARENA_ARRAY(arena, const hd_attribute_t *, node->num_attributes);
    for (uint32_t i = 0; i < node->num_attributes; i++)
      attributes[i] = padded(arena, node->attributes[i]);
    copy->attributes = attributes;
  } else {
    copy->op = op;
    copy->task = hd_library_task(&f->context, op);
    assert_non_null(copy->task);
  }
  return copy;
}

static const hd_graph_t *spoil_graph(fixture_t *f, const hd_graph_t *graph) {
  hd_arena_t *arena = &f->module->arena;
  hd_graph_t *copy = HD_ARENA_NEW(arena, hd_graph_t);
  bool found = false;
  *copy = *graph;
  memset(&copy->nodes, 0, sizeof(copy->nodes));
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    bool here = node->label && strcmp(node->label, f->fault->node) == 0;
    found |= here;
    hd_vec_push(arena, &copy->nodes,
                here ? spoil_node(f, node, f->fault->op) : node);
  }
  assert_true(found);
  return copy;
}

static const void *plant(void *argument, const hd_step_info_t *step,
                         void *module, const void *made) {
  fixture_t *f = argument;
  const fault_t *fault = f->fault;
  bool here = f->planted[0] ? strcmp(step->name, f->planted) == 0
                            : step->kind == fault->kind &&
                                  strncmp(step->name, fault->name,
                                          strlen(fault->name)) == 0;
  if (!here)
    return made;
  strcpy(f->planted, step->name);
  if (fault->node)
    return spoil_graph(f, made);
  return fault->op ? (const void *)spoil_node(f, made, fault->op)
                   : spoil_func(module, made);
}

static int setup(void **state) {
  fixture_t *f = calloc(1, sizeof(*f));
  hd_context_init(&f->context);
  f->module = hd_module_parse(&f->context, "test", text, sizeof(text) - 1, 1);
  assert_non_null(f->module);
  hd_device_options_t options = {.threads = 1};
  f->device = hd_device_open_sim(&f->context, &options);
  const hd_graph_t *graph = hd_module_find_graph(f->module, "main");
  for (size_t i = 0; i < 2; i++) {
    const hd_value_t *input = graph->inputs.data[i];
    int64_t shape[4];
    for (int k = 0; k < input->rank; k++)
      shape[k] = input->shape[k]->u.i;
    assert_true(hd_host_tensor_init(&f->inputs[i], &f->context.diags, NULL,
                                    input->name, input->type, shape,
                                    (unsigned)input->rank));
    hd_host_tensor_fill_random(&f->inputs[i], 1, i);
  }
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture_t *f = *state;
  for (size_t i = 0; i < 2; i++)
    hd_host_tensor_fini(&f->inputs[i]);
  hd_device_close(f->device);
  hd_context_fini(&f->context);
  free(f);
  return 0;
}

static void search(fixture_t *f, hd_bisection_t *bisection) {
  bool narrow = f->fault && f->fault->kind == HD_STEP_PRECISION;
  hd_model_options_t options = {.precision = narrow ? HD_PRECISION_F16
                                                    : HD_PRECISION_MODEL,
                                // Other faults are planted in nodes of
                                // the text.
                                .unrewritten = f->fault && !f->fault->node};
  f->context.steps.plant = f->fault ? plant : NULL;
  f->context.steps.plant_argument = f;
  assert_true(hd_bisect(f->module, hd_module_find_graph(f->module, "main"),
                        f->device, &options, f->inputs,
                        (hd_tolerance_t){1e-2, 1e-3}, NULL, bisection));
}

static void finds_nothing_in_a_sound_compiler(void **state) {
  hd_bisection_t bisection;
  search(*state, &bisection);
  assert_int_equal(bisection.number, 0);
  assert_int_equal(bisection.runs, 2);
  assert_true(bisection.steps > 20);
}

static void names_what_was_planted(void **state) {
  fixture_t *f = *state;
  for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
    hd_bisection_t found;
    f->fault = &faults[i];
    f->planted[0] = '\0';
    search(f, &found);
    if (!f->planted[0])
      fail_msg("%s: no such step", f->fault->name);
    if (found.kind != f->fault->kind || strcmp(found.name, f->planted) != 0)
      fail_msg("%s %s: found step %d, %s %s", hd_step_kind_name(f->fault->kind),
               f->planted, (int)found.number,
               found.number ? hd_step_kind_name(found.kind) : "none",
               found.number ? found.name : "");
    assert_in_range(found.number, 1, found.steps);
  }
}

// What a limit leaves undone is evaluated as it is written: whatever the limit,
// the results are the same.
static void every_limit_gives_the_same(void **state) {
  fixture_t *f = *state;
  const hd_graph_t *graph = hd_module_find_graph(f->module, "main");
  hd_model_options_t options = {0}, plain = {.unrewritten = true};
  hd_steps_t *steps = &f->context.steps;
  hd_host_tensor_t truth[2], out[2];
  hd_session_t *ref = hd_session_create(f->module, graph, NULL, &plain);
  assert_true(hd_session_run(ref, f->inputs, truth));
  hd_session_destroy(ref);
  uint64_t count = 1;
  for (uint64_t limit = 0; limit <= count; limit++) {
    *steps = (hd_steps_t){.limited = true, .limit = limit};
    hd_session_t *s = hd_session_create(f->module, graph, f->device, &options);
    assert_true(hd_session_run(s, f->inputs, out));
    hd_session_destroy(s);
    count = steps->count;
    for (int i = 0; i < 2; i++) {
      for (int64_t k = 0; k < out[i].count; k++)
        assert_float_equal(hd_host_tensor_get(&out[i], k),
                           hd_host_tensor_get(&truth[i], k), 1e-4);
      hd_host_tensor_fini(&out[i]);
    }
  }
  assert_true(count > 20);
  for (int i = 0; i < 2; i++)
    hd_host_tensor_fini(&truth[i]);
}

#define HD_BISECT_TEST(name)                                                   \
  cmocka_unit_test_setup_teardown(name, setup, teardown)
HD_UNIT_TESTS(HD_BISECT_TEST(finds_nothing_in_a_sound_compiler),
              HD_BISECT_TEST(names_what_was_planted),
              HD_BISECT_TEST(every_limit_gives_the_same))
