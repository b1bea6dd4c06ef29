// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts against a direct computation, element by element: the right offset,
// no two elements at one place, none past the storage.
#include "IR/Mapping.h"
#include "IR/Module.h"
#include "UnitTest.h"

#include <stdlib.h>
#include <string.h>

typedef struct fixture {
  hd_context_t context;
  hd_arena_t *arena;
} fixture_t;

static int set_up(void **state) {
  fixture_t *f = calloc(1, sizeof *f);
  hd_context_init(&f->context);
  f->arena = &hd_module_create(&f->context)->arena;
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *f = *state;
  hd_context_fini(&f->context);
  free(f);
  return 0;
}

static const hd_expr_t *const *ints(hd_arena_t *arena, const int64_t *values,
                                    unsigned count) {
  const hd_expr_t **e = HD_ARENA_ARRAY(arena, const hd_expr_t *, count);
  for (unsigned i = 0; i < count; i++)
    e[i] = hd_expr_i32(arena, values[i]);
  return e;
}

static hd_tensor_t tensor_of(hd_arena_t *arena, hd_scalar_t element,
                             unsigned rank, const int64_t *shape) {
  return (hd_tensor_t){.scope = HD_SCOPE_SHARED,
                       .element = hd_type(element),
                       .rank = rank,
                       .shape = ints(arena, shape, rank)};
}

static void add_item(hd_arena_t *arena, hd_tensor_t *tensor,
                     hd_layout_kind_t kind, const int64_t *values,
                     unsigned count) {
  uint32_t old = tensor->layout ? tensor->layout->num_items : 0;
  hd_layout_t *layout = hd_arena_alloc(
      arena, sizeof *layout + (old + 1) * sizeof layout->items[0]);
  if (old)
    memcpy(layout, tensor->layout,
           sizeof *layout + old * sizeof layout->items[0]);
  layout->items[old] =
      (hd_layout_item_t){kind, count, ints(arena, values, count), NULL};
  layout->num_items = old + 1;
  tensor->layout = layout;
}

// What the test says the offset is; shape is that of the tensor.
typedef int64_t (*expected_t)(const int64_t *index, const int64_t *shape);

static int64_t offset_at(hd_arena_t *arena, const hd_tensor_t *tensor,
                         const int64_t *index) {
  int64_t value;
  const hd_expr_t *e =
      hd_tensor_offset(arena, tensor, ints(arena, index, tensor->rank));
  assert_true(hd_expr_fold_int(e, &value));
  return value;
}

static void check(hd_arena_t *arena, const hd_tensor_t *tensor,
                  const int64_t *shape, expected_t expected) {
  int64_t storage, count = 1, symbolic;
  assert_true(hd_tensor_storage_const(tensor, &storage));
  assert_true(hd_expr_fold_int(hd_tensor_storage(arena, tensor), &symbolic));
  assert_int_equal(symbolic, storage);
  bool *taken = calloc((size_t)storage, sizeof *taken);
  for (unsigned i = 0; i < tensor->rank; i++)
    count *= shape[i];
  for (int64_t n = 0; n < count; n++) {
    int64_t index[4], rest = n;
    for (unsigned i = tensor->rank; i-- > 0; rest /= shape[i])
      index[i] = rest % shape[i];
    int64_t offset = offset_at(arena, tensor, index);
    assert_in_range(offset, 0, storage - 1);
    assert_false(taken[offset]);
    taken[offset] = true;
    if (expected)
      assert_int_equal(offset, expected(index, shape));
  }
  free(taken);
}

static int64_t row(const int64_t *i, const int64_t *d) {
  return (i[0] * d[1] + i[1]) * d[2] + i[2];
}
static int64_t column(const int64_t *i, const int64_t *d) {
  return i[0] + d[0] * (i[1] + d[1] * i[2]);
}
// permute(2, 0, 1): axis 2 outermost, axis 1 contiguous; its inverse is
// permute(1, 2, 0).
static int64_t permuted(const int64_t *i, const int64_t *d) {
  return (i[2] * d[0] + i[0]) * d[1] + i[1];
}
static int64_t strided(const int64_t *i, const int64_t *d) {
  (void)d;
  return 50 * i[0] + 9 * i[1] + 2 * i[2];
}
// tile(2, 3, 1) of 5 x 4 x 3: 3 x 2 x 3 tiles of 6.
static int64_t tiled(const int64_t *i, const int64_t *d) {
  (void)d;
  int64_t tile = (i[0] / 2 * 2 + i[1] / 3) * 3 + i[2];
  return tile * 6 + i[0] % 2 * 3 + i[1] % 3;
}

static void bases_are_what_the_language_says(void **state) {
  fixture_t *f = *state;
  static const int64_t shape[] = {5, 4, 3};
  static const int64_t axes[] = {2, 0, 1}, strides[] = {50, 9, 2},
                       tile[] = {2, 3, 1};
  static const struct {
    hd_layout_kind_t kind;
    const int64_t *values;
    unsigned count;
    expected_t expected;
  } rows[] = {{HD_LAYOUT_ROW, NULL, 0, row},
              {HD_LAYOUT_COLUMN, NULL, 0, column},
              {HD_LAYOUT_PERMUTE, axes, 3, permuted},
              {HD_LAYOUT_STRIDES, strides, 3, strided},
              {HD_LAYOUT_TILE, tile, 3, tiled}};
  hd_tensor_t plain = tensor_of(f->arena, HD_F32, 3, shape);
  check(f->arena, &plain, shape, row);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    hd_tensor_t tensor = tensor_of(f->arena, HD_F32, 3, shape);
    add_item(f->arena, &tensor, rows[i].kind, rows[i].values, rows[i].count);
    check(f->arena, &tensor, shape, rows[i].expected);
  }
}

// The hardware's pattern, on bytes: a row is as wide as the swizzle, and the
// 16-byte chunk in it is combined with bits of the row's number.
static int64_t hardware(int64_t width, int64_t byte) {
  int64_t line = byte / width, chunk = byte % width / 16;
  chunk ^= width == 128  ? line & 7
           : width == 64 ? line >> 1 & 3
                         : line >> 2 & 1;
  return line * width + chunk * 16 + byte % 16;
}

static void hardware_swizzles_are_those_of_the_hardware(void **state) {
  fixture_t *f = *state;
  static const hd_scalar_t elements[] = {HD_F16, HD_F32, HD_I8, HD_F64};
  static const int64_t widths[] = {32, 64, 128};
  for (int w = 0; w < 3; w++)
    for (int e = 0; e < 4; e++) {
      int64_t bytes = hd_scalar_bits(elements[e]) / 8;
      int64_t shape[] = {32, widths[w] / bytes};
      hd_tensor_t tensor = tensor_of(f->arena, elements[e], 2, shape);
      add_item(f->arena, &tensor, HD_LAYOUT_SWIZZLE, &widths[w], 1);
      check(f->arena, &tensor, shape, NULL);
      for (int64_t i = 0; i < shape[0]; i++)
        for (int64_t j = 0; j < shape[1]; j++) {
          int64_t index[] = {i, j};
          int64_t linear = (i * shape[1] + j) * bytes;
          assert_int_equal(offset_at(f->arena, &tensor, index) * bytes,
                           hardware(widths[w], linear));
        }
    }
}

// A swizzle may move the last elements past the last one of the base.
static void swizzled_storage_holds_whole_groups(void **state) {
  fixture_t *f = *state;
  static const int64_t shape[] = {3, 40}, width[] = {128}, bits[] = {3, 2, 2},
                       column_bits[] = {1, 0, 4};
  hd_tensor_t tensor = tensor_of(f->arena, HD_F16, 2, shape);
  add_item(f->arena, &tensor, HD_LAYOUT_SWIZZLE, width, 1);
  check(f->arena, &tensor, shape, NULL);
  hd_tensor_t twice = tensor_of(f->arena, HD_F32, 2, shape);
  add_item(f->arena, &twice, HD_LAYOUT_COLUMN, NULL, 0);
  add_item(f->arena, &twice, HD_LAYOUT_SWIZZLE, bits, 3);
  add_item(f->arena, &twice, HD_LAYOUT_SWIZZLE, column_bits, 3);
  check(f->arena, &twice, shape, NULL);
}

// The tasks of one worker in order, by the definition of each mapping.
enum { MAX_TASKS = 256 };
typedef struct tasks {
  unsigned count;
  int64_t task[MAX_TASKS][3];
} tasks_t;

static void unflatten(const hd_mapping_t *m, int64_t n, int64_t *task) {
  for (unsigned i = m->rank; i-- > 0;) {
    unsigned axis = m->order ? m->order[i] : i;
    task[axis] = n % m->dims[axis];
    n /= m->dims[axis];
  }
}

static void enumerate(const hd_mapping_t *m, int64_t worker, tasks_t *out) {
  out->count = 0;
  if (m->kind == HD_MAPPING_SPATIAL) {
    unflatten(m, worker, out->task[out->count++]);
    return;
  }
  if (m->kind == HD_MAPPING_REPEAT) {
    int64_t size = 1;
    for (unsigned i = 0; i < m->rank; i++)
      size *= m->dims[i];
    for (int64_t n = 0; n < size; n++)
      unflatten(m, n, out->task[out->count++]);
    return;
  }
  assert_int_equal(m->kind, HD_MAPPING_COMPOSE);
  tasks_t left, right;
  enumerate(m->left, worker / m->right->workers, &left);
  enumerate(m->right, worker % m->right->workers, &right);
  for (unsigned l = 0; l < left.count; l++)
    for (unsigned r = 0; r < right.count; r++) {
      for (unsigned i = 0; i < m->rank; i++)
        out->task[out->count][i] =
            left.task[l][i] * m->right->dims[i] + right.task[r][i];
      assert_true(++out->count < MAX_TASKS);
    }
}

static void check_local(hd_arena_t *arena, const hd_mapping_t *m) {
  hd_tensor_t tensor = tensor_of(arena, HD_F32, m->rank, m->dims);
  tensor.scope = HD_SCOPE_REGISTER;
  hd_layout_t *layout =
      hd_arena_alloc(arena, sizeof *layout + sizeof layout->items[0]);
  layout->num_items = 1;
  layout->items[0] = (hd_layout_item_t){.kind = HD_LAYOUT_LOCAL, .mapping = m};
  tensor.layout = layout;
  for (int64_t w = 0; w < m->workers; w++) {
    tasks_t tasks;
    int64_t storage;
    enumerate(m, w, &tasks);
    assert_true(hd_tensor_storage_const(&tensor, &storage));
    assert_int_equal(storage, tasks.count);
    for (unsigned t = 0; t < tasks.count; t++)
      assert_int_equal(offset_at(arena, &tensor, tasks.task[t]), t);
  }
}

static void local_is_the_place_in_the_workers_list(void **state) {
  fixture_t *f = *state;
  static const int64_t a[] = {2, 1, 3}, b[] = {1, 4, 2}, c[] = {2, 2, 1};
  static const uint32_t turned[] = {2, 0, 1}, back[] = {1, 2, 0};
  const hd_mapping_t *leaves[] = {
      hd_mapping_repeat(f->arena, a, NULL, 3),
      hd_mapping_repeat(f->arena, a, turned, 3),
      hd_mapping_spatial(f->arena, b, NULL, 3),
      hd_mapping_spatial(f->arena, b, back, 3),
      hd_mapping_repeat(f->arena, c, back, 3),
      hd_mapping_spatial(f->arena, c, turned, 3),
  };
  enum { N = sizeof leaves / sizeof leaves[0] };
  for (int i = 0; i < N; i++) {
    check_local(f->arena, leaves[i]);
    for (int j = 0; j < N; j++) {
      const hd_mapping_t *two =
          hd_mapping_compose(f->arena, leaves[i], leaves[j]);
      check_local(f->arena, two);
      // The same tasks however it is bracketed.
      for (int k = 0; k < N; k++) {
        const hd_mapping_t *right =
            hd_mapping_compose(f->arena, leaves[j], leaves[k]);
        tasks_t size;
        enumerate(hd_mapping_compose(f->arena, leaves[i], right), 0, &size);
        if (size.count >= 100)
          continue;
        check_local(f->arena, hd_mapping_compose(f->arena, leaves[i], right));
        check_local(f->arena, hd_mapping_compose(f->arena, two, leaves[k]));
      }
    }
  }
}

// Sizes that are not constant: the expressions are over the parameter.
static bool is_five(void *argument, const hd_expr_t *leaf, hd_number_t *value) {
  (void)argument;
  value->i = 5;
  return leaf->kind == HD_EXPR_VAR;
}

static void sizes_may_be_parameters(void **state) {
  fixture_t *f = *state;
  hd_arena_t *a = f->arena;
  const hd_expr_t *n = hd_expr_var(
      a, hd_var_make(a, "n", HD_VAR_PARAM, hd_type(HD_I32), (hd_loc_t){0}));
  static const int64_t tile[] = {4, 8}, width[] = {128};
  const hd_expr_t *shape[] = {n, hd_expr_i32(a, 24)};
  hd_tensor_t tensor = {.scope = HD_SCOPE_GLOBAL,
                        .element = hd_type(HD_F16),
                        .rank = 2,
                        .shape = shape};
  add_item(a, &tensor, HD_LAYOUT_TILE, tile, 2);
  add_item(a, &tensor, HD_LAYOUT_SWIZZLE, width, 1);
  int64_t unknown;
  assert_false(hd_tensor_storage_const(&tensor, &unknown));
  const hd_expr_t *storage = hd_tensor_storage(a, &tensor);
  // It may be large.
  assert_true(hd_type_equal(storage->type, hd_type(HD_I64)));
  const hd_fold_t fold = {.leaf = is_five};
  hd_number_t elements;
  assert_true(hd_expr_value(&fold, storage, &elements));
  // Two rows of tiles of 4 x 24, in whole groups of 64 elements.
  assert_int_equal(elements.i, 192);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
HD_UNIT_TESTS(TEST(bases_are_what_the_language_says),
              TEST(hardware_swizzles_are_those_of_the_hardware),
              TEST(swizzled_storage_holds_whole_groups),
              TEST(local_is_the_place_in_the_workers_list),
              TEST(sizes_may_be_parameters))
