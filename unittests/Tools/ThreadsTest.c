// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight threads, a context each, all at once through the public interface: each
// compiles the mma.sync product and the plan of two kernels to PTX and to host
// code and runs them on a simulator of its own. The PTX is what one thread
// alone gets, and the products are right. (Under ThreadSanitizer: preset tsan.)
#include "Support/File.h"
#include "Support/Float.h"
#include "UnitTest.h"

#include <hidet/Device.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, CASES = 2 };

// A product of small integers, so that every order of its sums is exact.
typedef struct product {
  const char *path, *type, *target;
  int m, n, k;
  bool half;        // Else f32.
  bool transposed;  // b is [n, k], not [k, n].
  hd_buffer_t text; // The file.
  char *ptx;        // What one thread alone got.
} product_t;

static product_t cases[CASES] = {
    {.path = HIDET_EXAMPLES "/matmul_mma.hir",
     .type = "f16",
     .target = "sm_90a",
     .m = 48,
     .n = 24,
     .k = 80,
     .half = true,
     .transposed = true},
    {.path = HIDET_EXAMPLES "/split_k.hir",
     .type = "f32",
     .target = "sm_75",
     .m = 40,
     .n = 33,
     .k = 70},
};

static int value(int i) { return i * 7 % 5 - 2; }

// The elements value(first), value(first + 1), ... in the product's type.
static void *make_values(const product_t *p, int count, int first) {
  void *data = malloc((size_t)count * sizeof(float));
  for (int i = 0; data && i < count; i++)
    if (p->half)
      ((uint16_t *)data)[i] = hd_f16_from_f32((float)value(first + i));
    else
      ((float *)data)[i] = (float)value(first + i);
  return data;
}

static hidet_tensor_t *make_tensor(hidet_device_t *device, const product_t *p,
                                   int rows, int columns, int first) {
  hidet_tensor_t *tensor = NULL;
  void *data = make_values(p, rows * columns, first);
  int64_t shape[] = {rows, columns};
  if (hidet_tensor_create(device, p->type, shape, 2, &tensor) == HIDET_OK)
    hidet_tensor_write(tensor, data);
  free(data);
  return tensor;
}

static int count_wrong(const product_t *p, hidet_tensor_t *tensor) {
  void *data = malloc(hidet_tensor_size(tensor));
  if (!data || hidet_tensor_read(tensor, data) != HIDET_OK)
    abort();
  int wrong = 0;
  for (int i = 0; i < p->m; i++)
    for (int j = 0; j < p->n; j++) {
      int sum = 0;
      for (int q = 0; q < p->k; q++)
        sum += value(i * p->k + q) *
               value(1 + (p->transposed ? j * p->k + q : q * p->n + j));
      int at = i * p->n + j;
      float got =
          p->half ? hd_f16_to_f32(((uint16_t *)data)[at]) : ((float *)data)[at];
      wrong += got != (float)sum;
    }
  free(data);
  return wrong;
}

static int run(hidet_context_t *context, hidet_module_t *module,
               const product_t *p) {
  hidet_device_t *device;
  hidet_program_t *program;
  if (hidet_device_open(context, "sim", &device) != HIDET_OK)
    return 1;
  hidet_argument_t arguments[] = {
      {.integer = p->m},
      {.integer = p->n},
      {.integer = p->k},
      {.tensor = make_tensor(device, p, p->m, p->k, 0)},
      {.tensor = p->transposed ? make_tensor(device, p, p->n, p->k, 1)
                               : make_tensor(device, p, p->k, p->n, 1)},
      {.tensor = make_tensor(device, p, p->m, p->n, 2)},
  };
  int wrong = 1;
  if (hidet_program_create(device, module, NULL, arguments, 6, &program) ==
      HIDET_OK) {
    if (hidet_program_run(program, arguments, 6) == HIDET_OK)
      wrong = count_wrong(p, arguments[5].tensor);
    hidet_program_destroy(program);
  }
  for (int i = 3; i < 6; i++)
    hidet_tensor_destroy(arguments[i].tensor);
  hidet_device_close(device);
  return wrong;
}

static char *make_ptx(hidet_module_t *module, const product_t *p) {
  char *text;
  hidet_module_emit(module, "ptx", p->target, NULL, &text);
  return text;
}

static hidet_module_t *parse(hidet_context_t *context, const product_t *p) {
  hidet_module_t *module;
  hidet_module_parse(context, p->path, p->text.data, p->text.size, &module);
  return module;
}

static int compile_and_run(hidet_context_t *context, const product_t *p) {
  hidet_module_t *module = parse(context, p);
  if (!module)
    return 1;
  char *ptx = make_ptx(module, p);
  int wrong = !ptx || strcmp(ptx, p->ptx) != 0;
  wrong += run(context, module, p);
  hidet_text_free(ptx);
  hidet_module_destroy(module);
  return wrong;
}

// Half of the threads begin with the other case.
static void *work(void *argument) {
  size_t first = (size_t)argument % CASES, wrong = 0;
  hidet_context_t *context = hidet_context_create();
  for (size_t i = 0; i < CASES; i++)
    wrong += (size_t)compile_and_run(context, &cases[(first + i) % CASES]);
  if (wrong)
    print_error("%s", hidet_messages());
  hidet_context_destroy(context);
  return (void *)wrong;
}

static void compile_alone(product_t *p) {
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  assert_true(hd_file_read(&diags, p->path, 1 << 20, &p->text));
  hd_diagnostics_fini(&diags);
  hidet_context_t *context = hidet_context_create();
  hidet_module_t *module = parse(context, p);
  assert_non_null(module);
  p->ptx = make_ptx(module, p);
  if (!p->ptx)
    print_error("%s", hidet_messages());
  assert_non_null(p->ptx);
  hidet_module_destroy(module);
  hidet_context_destroy(context);
}

static void threads_compile_and_run_side_by_side(void **state) {
  (void)state;
  for (size_t i = 0; i < CASES; i++)
    compile_alone(&cases[i]);
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
  for (size_t i = 0; i < THREADS; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  for (size_t i = 0; i < CASES; i++) {
    hidet_text_free(cases[i].ptx);
    hd_buffer_fini(&cases[i].text);
  }
}

HD_UNIT_TESTS(cmocka_unit_test(threads_compile_and_run_side_by_side))
