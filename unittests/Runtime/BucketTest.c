// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Executables of bounds give what the reference evaluator gives of the true
// sizes, whatever lies past them: before each run all that a run may write or
// is given is filled with NaN (of integers, -1).
#include "IR/Text/Parser.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/SessionState.h"
#include "UnitTest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 20, MAX_INPUTS = 4, MAX_OUTPUTS = 3 };

typedef struct model_case {
  const char *name, *text;
  unsigned most[2];     // Executables that 1 .. MOST need, of n and (n, b).
  bool has_b;           // It has a size b, too.
  int64_t odd_multiple; // Sizes are multiples of it; 0: any.
} model_case_t;

// n up to 16 in one executable beside that of 1; 17 .. 20 exact.
static const model_case_t cases[] = {
    {"pointwise",
     "graph main(x: f32[n, 8]) -> y { y = onnx13.Exp(x) }",
     {6},
     false,
     0},
    {"softmax",
     "graph main(x: f32[n, 8]) -> y, z {\n"
     "  y = onnx13.Softmax(x) { axis = 0 }\n"
     "  z = onnx13.LogSoftmax(x) { axis = 0 }\n"
     "}",
     {6},
     false,
     0},
    {"attention",
     "graph main(ids: i64[b, n], table: f32[10, 32], w: f32[32, 96],\n"
     "           mask: f32[b, n]) -> y {\n"
     "  const split: i64[4] = [0, 0, 2, 16]\n"
     "  const whole: i64[3] = [0, 0, 32]\n"
     "  const axes: i64[2] = [1, 2]\n"
     "  x = onnx13.Gather(table, ids)\n"
     "  qkv = onnx13.MatMul(x, w)\n"
     "  q0, k0, v0 = onnx13.Split(qkv) { axis = 2 }\n"
     "  q1 = onnx13.Reshape(q0, split)\n"
     "  k1 = onnx13.Reshape(k0, split)\n"
     "  v1 = onnx13.Reshape(v0, split)\n"
     "  q = onnx13.Transpose(q1) { perm = [0, 2, 1, 3] }\n"
     "  k = onnx13.Transpose(k1) { perm = [0, 2, 3, 1] }\n"
     "  v = onnx13.Transpose(v1) { perm = [0, 2, 1, 3] }\n"
     "  s = onnx13.MatMul(q, k)\n"
     "  m4 = onnx13.Unsqueeze(mask, axes)\n"
     "  m = onnx13.Add(s, m4)\n"
     "  p = onnx13.Softmax(m) { axis = 3 }\n"
     "  o = onnx13.MatMul(p, v)\n"
     "  o1 = onnx13.Transpose(o) { perm = [0, 2, 1, 3] }\n"
     "  o2 = onnx13.Reshape(o1, whole)\n"
     "  y = onnx13.Add(x, o2)\n"
     "}",
     {6},
     true,
     0},
    {"causal", // Positions and a mask that the size makes.
     "graph main(x: f32[n, 16], p: f32[32, 16]) -> y {\n"
     "  const zero: i64[1] = [0]\n"
     "  const none: i64[] = 0\n"
     "  const one: i64[] = 1\n"
     "  const low: f32[] = -inf\n"
     "  const ax: i64[1] = [1]\n"
     "  s = onnx13.Shape(x)\n"
     "  n1 = onnx13.Gather(s, none)\n"
     "  i = onnx13.Range(none, n1, one)\n"
     "  e = onnx13.Gather(p, i)\n"
     "  h = onnx13.Add(x, e)\n"
     "  t = onnx13.Transpose(h) { perm = [1, 0] }\n"
     "  c = onnx13.MatMul(h, t)\n"
     "  r = onnx13.Unsqueeze(i, zero)\n"
     "  q = onnx13.Unsqueeze(i, ax)\n"
     "  g = onnx13.Greater(r, q)\n"
     "  m = onnx13.Where(g, low, c)\n"
     "  w = onnx13.Softmax(m) { axis = 1 }\n"
     "  y = onnx13.MatMul(w, h)\n"
     "}",
     {6},
     false,
     0},
    {"pooled",
     "graph main(x: f32[n, 8]) -> y, z, a {\n"
     "  const axis: i64[1] = [0]\n"
     "  const from: i64[1] = [-1]\n"
     "  const to: i64[1] = [100]\n"
     "  y = onnx18.ReduceMean(x, axis) { keepdims = 0 }\n"
     "  z = onnx13.Slice(x, from, to, axis)\n"
     "  a = onnx13.ArgMax(x) { axis = 0, keepdims = 0 }\n"
     "}",
     {6},
     false,
     0},
    {"halves", // Alike at the bound, not at what is odd.
     "graph main(x: f32[n, 8]) -> u, v {\n"
     "  const from: i64[1] = [0]\n"
     "  const one: i64[1] = [1]\n"
     "  const two: i64[1] = [2]\n"
     "  size = onnx15.Shape(x) { end = 1 }\n"
     "  more = onnx13.Add(size, one)\n"
     "  half = onnx13.Div(size, two)\n"
     "  most = onnx13.Div(more, two)\n"
     "  a = onnx13.Add(half, one)\n"
     "  b = onnx13.Add(most, one)\n"
     "  u = onnx13.Slice(x, from, a, from)\n"
     "  e = onnx13.Exp(x)\n"
     "  v = onnx13.Slice(e, from, b, from)\n"
     "}",
     {8}, // Of 3 the second is all.
     false,
     0},
    {"grown", // past + new, and what is behind it.
     "graph main(past: f32[b, 2, n, 4], x: f32[b, 2, 1, 4]) -> y, z {\n"
     "  const axis: i64[1] = [2]\n"
     "  y = onnx13.Concat(past, x) { axis = 2 }\n"
     "  z = onnx13.ReduceMax(y) { axes = [2], keepdims = 0 }\n"
     "}",
     {6},
     true,
     0},
    {"images",
     "graph main(x: f32[n, 3, 5, 5], w: f32[4, 3, 3, 3]) -> y {\n"
     "  c = onnx13.Conv(x, w) { pads = [1, 1, 1, 1] }\n"
     "  r = onnx13.Relu(c)\n"
     "  y = onnx13.GlobalAveragePool(r)\n"
     "}",
     {6},
     false,
     0},
    {"signal",
     "graph main(x: f32[2, 3, n], w: f32[4, 3, 3]) -> y, z {\n"
     "  y = onnx13.Conv(x, w) { pads = [1, 1] }\n"
     "  z = onnx13.MaxPool(y) { kernel_shape = [3], pads = [1, 1] }\n"
     "}",
     {6},
     false,
     0},
    {"sums", // Over both: an axis with holes.
     "graph main(x: f32[b, n, 4]) -> y, z {\n"
     "  const rows: i64[2] = [-1, 4]\n"
     "  const axis: i64[1] = [0]\n"
     "  t = onnx13.Reshape(x, rows)\n"
     "  y = onnx13.ReduceSum(t, axis) { keepdims = 0 }\n"
     "  z = onnx13.Reshape(x, rows)\n"
     "}",
     {6},
     true,
     0},
    {"holes", // Places on an axis with holes, and elements that move.
     "graph main(x: f32[b, n, 2]) -> y, z {\n"
     "  const s: i64[2] = [-1, 2]\n"
     "  const axis: i64[] = 0\n"
     "  const first: i64[1] = [0]\n"
     "  const second: i64[1] = [1]\n"
     "  t = onnx13.Reshape(x, s)\n"
     "  y = onnx14.CumSum(t, axis)\n"
     "  d = onnx13.Shape(x)\n"
     "  b1 = onnx13.Gather(d, first)\n"
     "  n1 = onnx13.Gather(d, second)\n"
     "  to = onnx13.Concat(n1, b1, second) { axis = 0 }\n"
     "  e = onnx13.ReduceMax(x) { axes = [2] }\n"
     "  z = onnx13.Reshape(e, to)\n"
     "}",
     {6},
     true,
     0},
    {"prefixes",
     "graph main(x: f32[4, n]) -> y, z {\n"
     "  const axis: i64[] = 1\n"
     "  y = onnx14.CumSum(x, axis)\n"
     "  z = onnx14.CumSum(x, axis) { reverse = 1 }\n"
     "}",
     {6},
     false,
     0},
    {"norms",
     "graph main(x: f32[n, 16], g: f32[16], h: f32[16]) -> y, z {\n"
     "  y = onnx17.LayerNormalization(x, g, h)\n"
     "  t = onnx13.Transpose(y) { perm = [1, 0] }\n"
     "  z = onnx13.MatMul(t, y)\n"
     "}",
     {6},
     false,
     0},
    {"pairs",
     "graph main(x: f32[n, 8]) -> y {\n"
     "  const s: i64[3] = [-1, 2, 8]\n"
     "  t = onnx13.Reshape(x, s)\n"
     "  y = onnx13.ReduceSum(t)\n"
     "}",
     {3},
     false,
     2},
    {"scan", // No bucket: each size its own.
     "graph main(x: f32[n, 4]) -> y {\n"
     "  const none: f32[4] = [0.0, 0.0, 0.0, 0.0]\n"
     "  _, y = onnx13.Scan(none, x) { num_scan_inputs = 1,\n"
     "    body = graph(h: f32[4], e: f32[4]) -> g, o {\n"
     "    g = onnx13.Add(h, e)\n"
     "    o = onnx13.Add(g, g)\n"
     "  } }\n"
     "}",
     {20},
     false,
     0},
};

// Of three kinds: ids below 10, a mask, and numbers.
static void fill(hd_host_tensor_t *t, int64_t seed) {
  uint64_t state = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < t->count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double part = (double)(state >> 40) / (1 << 24);
    if (t->type == HD_I64)
      hd_host_tensor_set_int(t, i, (int64_t)(part * 10));
    else
      hd_host_tensor_set(t, i, part - 0.5);
  }
}

typedef struct bucket_world {
  hd_context_t context;
  hd_module_t *module;
  const hd_graph_t *graph;
  hd_device_t *device;
  hd_session_t *session, *reference;
  hd_bucket_policy_t policies[2];
  int64_t bounds[2];
} bucket_world_t;

static void begin_world(bucket_world_t *w, const model_case_t *c) {
  *w = (bucket_world_t){.bounds = {16, 4}};
  hd_context_init(&w->context);
  w->module = hd_module_parse(&w->context, "test", c->text, strlen(c->text), 1);
  assert_true(w->module && hd_module_verify(w->module));
  w->graph = hd_module_find_graph(w->module, "main");
  w->device =
      hd_device_open_sim(&w->context, &(hd_device_options_t){.threads = 2});
  assert_non_null(w->device);
  w->policies[0] = (hd_bucket_policy_t){"n", &w->bounds[0], 1};
  w->policies[1] = (hd_bucket_policy_t){"b", &w->bounds[1], 1};
  w->session = hd_session_create(
      w->module, w->graph, w->device,
      &(hd_model_options_t){.buckets = w->policies, .num_buckets = 2});
  w->reference =
      hd_session_create(w->module, w->graph, NULL, &(hd_model_options_t){0});
}

static void end_world(bucket_world_t *w) {
  hd_session_destroy(w->session);
  hd_session_destroy(w->reference);
  hd_device_close(w->device);
  hd_context_fini(&w->context);
}

static void make_inputs(bucket_world_t *w, int64_t n, int64_t b,
                        hd_host_tensor_t *inputs) {
  for (size_t i = 0; i < w->graph->inputs.size; i++) {
    const hd_value_t *value = w->graph->inputs.data[i];
    int64_t shape[HD_MAX_RANK];
    for (int k = 0; k < value->rank; k++) {
      const hd_expr_t *size = value->shape[k];
      shape[k] = size->kind == HD_EXPR_CONST       ? size->u.i
                 : !strcmp(size->u.var->name, "n") ? n
                                                   : b;
    }
    assert_true(hd_host_tensor_init(&inputs[i], &w->context.diags, NULL,
                                    value->name, value->type, shape,
                                    (unsigned)value->rank));
    fill(&inputs[i], n * 64 + b * 8 + (int64_t)i);
  }
}

static void poison_slot(const hd_ready_t *r, int param) {
  if (param >= 0)
    memset((void *)(uintptr_t)r->slots[param].address, 0xff,
           r->slots[param].bytes);
}

// All that runs of the session have room for.
static void poison(bucket_world_t *w) {
  if (w->session->block)
    memset((void *)(uintptr_t)w->session->block, 0xff, w->session->block_bytes);
  for (hd_ready_t *r = w->session->ready; r; r = r->next) {
    if (!r->slots || !r->turn->bucket)
      continue;
    size_t inputs = w->graph->inputs.size;
    for (size_t i = 0; i < inputs; i++)
      poison_slot(r, r->inputs[i]);
    for (size_t i = inputs; i < r->turn->bucket->graph->inputs.size; i++)
      poison_slot(r, r->extras[i - inputs]);
    for (size_t i = 0; i < w->graph->outputs.size; i++)
      poison_slot(r, r->outputs[i]);
    r->staged = NULL;
  }
}

static unsigned count_differing(const hd_host_tensor_t *a,
                                const hd_host_tensor_t *b) {
  unsigned wrong = a->rank != b->rank || a->count != b->count ||
                   memcmp(a->shape, b->shape, sizeof(int64_t) * a->rank) != 0;
  for (int64_t i = 0; !wrong && i < a->count; i++) {
    double x = hd_host_tensor_get(a, i), y = hd_host_tensor_get(b, i);
    wrong += !(x == y || fabs(x - y) <= 1e-5 * (1 + fabs(y)));
  }
  return wrong;
}

enum { BEHIND = 64 }; // Bytes that a run has no business with.

// The same on tensors of the device's, exactly as long as their shapes say:
// what is behind outputs is not written.
static unsigned run_enqueued(bucket_world_t *w, const hd_host_tensor_t *inputs,
                             const hd_host_tensor_t *expected) {
  hd_tensor_type_t types[MAX_INPUTS], results[MAX_OUTPUTS];
  hd_device_tensor_t in[MAX_INPUTS], out[MAX_OUTPUTS];
  hd_host_tensor_t found[MAX_OUTPUTS];
  unsigned wrong = 0;
  for (size_t i = 0; i < w->graph->inputs.size; i++) {
    types[i] = hd_tensor_type_of(&inputs[i]);
    in[i].bytes = inputs[i].bytes;
    in[i].address = (uintptr_t)test_malloc(inputs[i].bytes);
    memcpy((void *)in[i].address, inputs[i].data, in[i].bytes);
  }
  assert_true(hd_session_describe(w->session, types, results, NULL));
  for (size_t i = 0; i < w->graph->outputs.size; i++) {
    found[i] = expected[i];
    assert_int_equal(results[i].rank, expected[i].rank);
    assert_memory_equal(results[i].shape, expected[i].shape,
                        sizeof(int64_t) * results[i].rank);
    out[i].bytes = expected[i].bytes;
    found[i].data = test_malloc(out[i].bytes + BEHIND);
    memset(found[i].data, 0x5a, out[i].bytes + BEHIND);
    out[i].address = (uintptr_t)found[i].data;
  }
  assert_true(hd_session_enqueue(w->session, types, in, out, NULL));
  assert_true(hd_session_wait(w->session));
  for (size_t i = 0; i < w->graph->outputs.size; i++) {
    const unsigned char *bytes = (const unsigned char *)found[i].data;
    wrong += count_differing(&found[i], &expected[i]);
    for (size_t k = 0; k < BEHIND; k++)
      wrong += bytes[out[i].bytes + k] != 0x5a;
    test_free(found[i].data);
  }
  for (size_t i = 0; i < w->graph->inputs.size; i++)
    test_free((void *)in[i].address);
  return wrong;
}

static unsigned run_both(bucket_world_t *w, int64_t n, int64_t b) {
  hd_host_tensor_t inputs[MAX_INPUTS], found[MAX_OUTPUTS],
      expected[MAX_OUTPUTS];
  unsigned wrong = 0;
  make_inputs(w, n, b, inputs);
  poison(w);
  assert_true(hd_session_run(w->reference, inputs, expected));
  assert_true(hd_session_run(w->session, inputs, found));
  for (size_t i = 0; i < w->graph->outputs.size; i++) {
    wrong += count_differing(&found[i], &expected[i]);
    hd_host_tensor_fini(&found[i]);
  }
  poison(w);
  wrong += run_enqueued(w, inputs, expected);
  for (size_t i = 0; i < w->graph->outputs.size; i++)
    hd_host_tensor_fini(&expected[i]);
  for (size_t i = 0; i < w->graph->inputs.size; i++)
    hd_host_tensor_fini(&inputs[i]);
  return wrong;
}

// All sizes, twice: the second time they are known, and what is poisoned is
// what the first runs left.
static void check_case(const model_case_t *c) {
  bucket_world_t w;
  unsigned wrong = 0;
  int64_t step = c->odd_multiple ? c->odd_multiple : 1;
  begin_world(&w, c);
  for (int round = 0; round < 2; round++)
    for (int64_t n = step; n <= MOST; n += step) {
      unsigned found = run_both(&w, n, 3);
      if (found)
        print_error("%s: n = %d is wrong\n", c->name, (int)n);
      wrong += found;
    }
  assert_int_equal(wrong, 0);
  assert_int_equal(hd_model_counts(hd_session_model(w.session)).compiled,
                   c->most[0]);
  for (int64_t b = 3; c->has_b && b <= 4; b++)
    for (int64_t n = 3; n <= 16; n++)
      wrong += run_both(&w, n, b);
  assert_int_equal(wrong, 0);
  assert_int_equal(hd_model_counts(hd_session_model(w.session)).compiled,
                   c->most[0]);
  end_world(&w);
}

static void test_sizes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    check_case(&cases[i]);
}

// Sizes that are known cost the model nothing, new ones what they are.
static void known_sizes_take_no_memory(void **state) {
  (void)state;
  enum { ROUNDS = 3 };
  size_t bytes[ROUNDS];
  bucket_world_t w;
  begin_world(&w, &cases[2]);
  for (int round = 0; round < ROUNDS; round++) {
    for (int64_t n = 3; n <= 16; n++) {
      hd_host_tensor_t inputs[MAX_INPUTS], found[MAX_OUTPUTS];
      make_inputs(&w, n, 3, inputs);
      assert_true(hd_session_run(w.session, inputs, found));
      hd_host_tensor_fini(&found[0]);
      for (size_t i = 0; i < w.graph->inputs.size; i++)
        hd_host_tensor_fini(&inputs[i]);
      if (round == 0 && n == 3)
        bytes[0] = hd_arena_bytes(&w.module->arena);
    }
    if (round > 0)
      bytes[round] = hd_arena_bytes(&w.module->arena);
  }
  assert_in_range(bytes[1] - bytes[0], 0, 32 << 10);
  assert_int_equal(bytes[2], bytes[1]);
  end_world(&w);
}

HD_UNIT_TESTS(cmocka_unit_test(test_sizes),
              cmocka_unit_test(known_sizes_take_no_memory))
