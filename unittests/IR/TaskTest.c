// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks: every row of their tables prints as it parses, and an evaluator that
// knows nothing but IR/Task.h computes what they say.
#include "IR/Graph/Task.h"

#include "IR/Text/Parser.h"
#include "UnitTest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const hd_task_t *parse(hd_context_t *context, const char *text) {
  hd_module_t *module = hd_module_parse(context, "task", text, strlen(text), 1);
  if (!module) {
    hd_buffer_t said = {0};
    hd_diagnostics_print(&context->diags, false, &said);
    fail_msg("%s\n%s", text, hd_buffer_text(&said));
  }
  return module->items.data[0].u.task;
}

static unsigned kinds[HD_TERM_COUNT];

static void count_kinds(const hd_term_t *term) {
  kinds[term->kind]++;
  for (unsigned i = 0; i < term->num_operands; i++)
    count_kinds(term->operands[i]);
  if (term->kind == HD_TERM_SCAN)
    count_kinds(term->u.reduction->at);
}

static void check_body(const char *signature, const char *body) {
  hd_context_t context;
  hd_buffer_t text = {0}, once = {0}, twice = {0};
  hd_context_init(&context);
  hd_buffer_printf(&text, "task t%s {\n  %s\n}\n", signature, body);
  const hd_task_t *task = parse(&context, hd_buffer_text(&text));
  hd_task_print(task, &once);
  hd_task_print(parse(&context, hd_buffer_text(&once)), &twice);
  assert_string_equal(hd_buffer_text(&once), hd_buffer_text(&twice));
  for (size_t i = 0; i < task->definitions.size; i++)
    count_kinds(task->definitions.data[i]->term);
  for (size_t i = 0; i < task->monoids.size; i++)
    count_kinds(task->monoids.data[i]->result[0]);
  for (size_t i = 0; i < task->outputs.size; i++)
    for (uint32_t n = 0; n < task->outputs.data[i]->rank; n++)
      count_kinds(task->outputs.data[i]->shape[n]);
  hd_buffer_fini(&text);
  hd_buffer_fini(&once);
  hd_buffer_fini(&twice);
  hd_context_fini(&context);
}

static void every_row_reads_back(void **state) {
  (void)state;
  static const char signature[] = "(x: f32[n], a: f32) -> y: f32[n]";
  char body[200];
  for (int i = 0; i < HD_TASK_FUNCTION_COUNT; i++) {
    const hd_task_function_info_t *info =
        hd_task_function_info((hd_task_function_t)i);
    static const char *const args[] = {"", "x[i]", "x[i], a", "x[i], 0.5, a"};
    snprintf(body, sizeof body, "y[i] = %s(%s)", info->name, args[info->arity]);
    check_body(signature, body);
  }
  for (int i = 0; i < HD_MONOID_COUNT; i++) {
    const char *name = hd_monoid_name((hd_builtin_monoid_t)i);
    bool is_bool = hd_monoid_operator((hd_builtin_monoid_t)i) == HD_EXPR_OR ||
                   hd_monoid_operator((hd_builtin_monoid_t)i) == HD_EXPR_AND;
    const char *what = is_bool ? "(x[p] > a) ? 1.0 : 0.0" : "x[p] * a";
    snprintf(body, sizeof body, "y[i] = %s(p: n) %s", name, what);
    check_body(signature, body);
    for (int part = 0; part < HD_SCAN_PARTS; part++) {
      snprintf(body, sizeof body, "y[i] = scan %s(p: n %s i) %s", name,
               hd_scan_part_name((hd_scan_part_t)part), what);
      check_body(signature, body);
    }
  }
  for (int op = HD_EXPR_NEG; op <= HD_EXPR_MAX; op++) {
    const hd_expr_info_t *info = hd_expr_info((hd_expr_kind_t)op);
    static const char ints[] = "(x: i64[n], b: bool[n]) -> y: i64[n]";
    bool is_bool = op == HD_EXPR_NOT || op == HD_EXPR_AND || op == HD_EXPR_OR;
    const char *operand = is_bool ? "b[i]" : "x[i]";
    const char *close =
        is_bool || info->form == HD_FORM_COMPARE ? ") ? 3 : -4" : ")";
    if (info->form == HD_FORM_OTHER)
      continue;
    if (info->form == HD_FORM_UNARY)
      snprintf(body, sizeof body, "y[i] = (%s%s%s", info->spelling, operand,
               close);
    else if (info->form == HD_FORM_CALL)
      snprintf(body, sizeof body, "y[i] = (%s(%s, n)%s", info->spelling,
               operand, close);
    else
      snprintf(body, sizeof body, "y[i] = (%s %s %s%s", operand, info->spelling,
               is_bool ? "true" : "2 - i", close);
    check_body(ints, body);
  }
  check_body("(x: T[..s], z: T[..r], k: i64 over s) -> "
             "y: T[..broadcast(s, r)], w: T[..(s * k + 1)]",
             "monoid m(v: T)(u) from (1) = (v * u)\n"
             "  y[..i] = x[..i] + z[..i]\n"
             "  w[..i] = T(m(p: 3) T(p)) + x[..(i / k)] else 0");
  check_body("(x: T[..s] by o, o: i64 over s) -> y: T[..permute(s, o)]",
             "y[..i] = x[..min(permute(i, o), s - 1)]");
  check_body("(x: f32[n]) -> y: i32[n]", "y[i] = bitcast(i32, x[i]) + 1");
  check_body("(x: T[n]) -> y: T[n]", "y[i] = min(x[i], largest(T))");
  check_body("(x: T[n]) -> y: T[n]", "y[i] = max(x[i], smallest(T))");
  for (int i = 0; i < HD_TERM_COUNT; i++)
    if (!kinds[i])
      fail_msg("%s was never there", hd_term_kind_text((hd_term_kind_t)i));
}

// An evaluator of tasks without packs, in doubles.
enum { MOST = 64, NAMES = 16 };
typedef struct tensor {
  const hd_task_value_t *value;
  double elements[MOST];
} tensor_t;
typedef struct evaluator {
  const hd_size_t *sizes[NAMES];
  int64_t extents[NAMES];
  unsigned num_sizes, num_tensors, num_indices;
  tensor_t tensors[NAMES];
  const hd_index_t *indices[NAMES];
  int64_t at[NAMES];
} evaluator_t;

static double evaluate(evaluator_t *e, const hd_term_t *term);

static tensor_t *tensor_of(evaluator_t *e, const hd_task_value_t *value) {
  for (unsigned i = 0; i < e->num_tensors; i++)
    if (e->tensors[i].value == value)
      return &e->tensors[i];
  e->tensors[e->num_tensors].value = value;
  return &e->tensors[e->num_tensors++];
}

// The place of an element; -1 where an index is outside.
static int64_t place(evaluator_t *e, const hd_task_value_t *value,
                     const hd_term_t *const *indices) {
  int64_t result = 0;
  for (uint32_t i = 0; i < value->rank; i++) {
    int64_t size = (int64_t)evaluate(e, value->shape[i]);
    int64_t index = (int64_t)evaluate(e, indices[i]);
    if (index < 0 || index >= size)
      return -1;
    result = result * size + index;
  }
  return result;
}

static double operate(hd_expr_kind_t op, double a, double b) {
  switch (op) {
  case HD_EXPR_ADD:
    return a + b;
  case HD_EXPR_SUB:
    return a - b;
  case HD_EXPR_MUL:
    return a * b;
  case HD_EXPR_DIV:
    return a / b;
  case HD_EXPR_MAX:
    return a > b ? a : b;
  default:
    fail_msg("operator %d", op);
  }
  return 0;
}

// Reductions over one index; a scan combines a part of it.
static double reduce(evaluator_t *e, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  hd_expr_kind_t op = hd_monoid_operator(r->monoid->builtin);
  int64_t first = 0, limit = (int64_t)evaluate(e, r->indices[0]->range);
  if (term->kind == HD_TERM_SCAN) {
    int64_t at = (int64_t)evaluate(e, r->at);
    if (r->part == HD_SCAN_TO || r->part == HD_SCAN_BEFORE)
      limit = at + (r->part == HD_SCAN_TO);
    else
      first = at + (r->part == HD_SCAN_AFTER);
  }
  double result = op == HD_EXPR_MAX ? -INFINITY : op == HD_EXPR_MUL;
  unsigned index = e->num_indices++;
  e->indices[index] = r->indices[0];
  for (int64_t i = first; i < limit; i++) {
    e->at[index] = i;
    result = operate(op, result, evaluate(e, term->operands[0]));
  }
  e->num_indices--;
  return result;
}

static double evaluate(evaluator_t *e, const hd_term_t *term) {
  int64_t where;
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
    return term->type.scalar == HD_I64 ? (double)term->u.i : term->u.f;
  case HD_TERM_SIZE:
    for (unsigned i = 0; i < e->num_sizes; i++)
      if (e->sizes[i] == term->u.size)
        return (double)e->extents[i];
    break;
  case HD_TERM_INDEX:
    for (unsigned i = 0; i < e->num_indices; i++)
      if (e->indices[i] == term->u.index)
        return (double)e->at[i];
    break;
  case HD_TERM_OPERATOR:
    return operate(term->u.op, evaluate(e, term->operands[0]),
                   evaluate(e, term->operands[1]));
  case HD_TERM_FUNCTION:
    assert_int_equal(term->u.function, HD_TASK_EXP);
    return exp(evaluate(e, term->operands[0]));
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    where = place(e, term->u.value, term->operands);
    if (where < 0)
      return evaluate(e, term->operands[term->num_operands - 1]);
    return tensor_of(e, term->u.value)->elements[where];
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
    return reduce(e, term);
  case HD_TERM_LIMIT:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_PERMUTE:
  case HD_TERM_ATTRIBUTE:
  case HD_TERM_BOUND:
  case HD_TERM_SELECT:
  case HD_TERM_CAST:
  case HD_TERM_BITCAST:
  case HD_TERM_COUNT:
    break;
  }
  fail_msg("%s", hd_term_kind_text((hd_term_kind_t)term->kind));
  return 0;
}

static void define(evaluator_t *e, const hd_definition_t *d, unsigned axis,
                   int64_t linear) {
  if (axis == d->num_indices) {
    tensor_of(e, d->targets[0])->elements[linear] = evaluate(e, d->term);
    return;
  }
  int64_t size = (int64_t)evaluate(e, d->indices[axis]->range);
  unsigned index = e->num_indices++;
  e->indices[index] = d->indices[axis];
  for (e->at[index] = 0; e->at[index] < size; e->at[index]++)
    define(e, d, axis + 1, linear * size + e->at[index]);
  e->num_indices--;
}

static evaluator_t e;

static void run(hd_context_t *context, const char *text, const int64_t *extents,
                const double *const *inputs) {
  memset(&e, 0, sizeof e);
  const hd_task_t *task = parse(context, text);
  for (size_t i = 0; i < task->sizes.size; i++) {
    e.sizes[i] = task->sizes.data[i];
    e.extents[i] = extents[i];
  }
  e.num_sizes = (unsigned)task->sizes.size;
  for (size_t i = 0; i < task->inputs.size; i++) {
    const hd_task_value_t *value = task->inputs.data[i];
    int64_t count = 1;
    for (uint32_t n = 0; n < value->rank; n++)
      count *= (int64_t)evaluate(&e, value->shape[n]);
    memcpy(tensor_of(&e, value)->elements, inputs[i],
           (size_t)count * sizeof(double));
  }
  for (size_t i = 0; i < task->definitions.size; i++)
    define(&e, task->definitions.data[i], 0, 0);
  memmove(&e.tensors[0], tensor_of(&e, task->outputs.data[0]),
          sizeof e.tensors[0]);
}

static void a_product_is_a_product(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  static const int64_t extents[] = {2, 3, 4};
  double a[6], b[12];
  for (int i = 0; i < 6; i++)
    a[i] = i - 2.5;
  for (int i = 0; i < 12; i++)
    b[i] = 1.0 / (i + 1);
  const double *const inputs[] = {a, b};
  run(&context,
      "task matmul(a: f64[m, k], b: f64[k, n]) -> c: f64[m, n] {\n"
      "  c[i, j] = sum(p: k) a[i, p] * b[p, j]\n}\n",
      extents, inputs);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 4; j++) {
      double c = 0;
      for (int p = 0; p < 3; p++)
        c += a[i * 3 + p] * b[p * 4 + j];
      assert_true(fabs(e.tensors[0].elements[i * 4 + j] - c) < 1e-12);
    }
  hd_context_fini(&context);
}

static void softmax_windows_and_scans_compute(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  static const int64_t extents[] = {4};
  static const double x[] = {1, -2, 3, 0.5};
  const double *const inputs[] = {x};
  run(&context,
      "task softmax(x: f64[n]) -> y: f64[n] {\n"
      "  m[] = max(p: n) x[p]\n"
      "  e[i] = exp(x[i] - m[])\n"
      "  y[i] = e[i] / sum(q: n) e[q]\n}\n",
      extents, inputs);
  double sum = exp(1) + exp(-2) + exp(3) + exp(0.5);
  for (int i = 0; i < 4; i++)
    assert_true(fabs(e.tensors[0].elements[i] - exp(x[i]) / sum) < 1e-12);
  // A window that sticks out, and what stands after each element.
  run(&context,
      "task window(x: f64[n]) -> y: f64[n] {\n"
      "  l[i: n] = sum(p: 3) x[i + p - 1] else 10\n"
      "  y[i] = l[i] + scan sum(p: n after i) x[p]\n}\n",
      extents, inputs);
  static const double expected[] = {10 + 1 - 2 + 1.5, 1 - 2 + 3 + 3.5,
                                    -2 + 3 + 0.5 + 0.5, 3 + 0.5 + 10};
  for (int i = 0; i < 4; i++)
    assert_true(fabs(e.tensors[0].elements[i] - expected[i]) < 1e-12);
  hd_context_fini(&context);
}

HD_UNIT_TESTS(cmocka_unit_test(every_row_reads_back),
              cmocka_unit_test(a_product_is_a_product),
              cmocka_unit_test(softmax_windows_and_scans_compute))
