// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A group's operands are there once for all of its candidates, in so many sets
// that together they pass the L2 cache twice: each run takes the next set, so
// that weights come from memory, as in a model.
#include "Runtime/Storage.h"
#include "Support/HostMemory.h"
#include "Tune/WorkerState.h"

#include <math.h>
#include <string.h>

enum {
  MAX_SETS = 64,
  PATTERN = 1 << 20, // Random elements; longer tensors repeat them.
  RUN = 8,           // Elements that are compared at once.
};

static const hd_env_t no_sizes;

static bool is_written(const hd_var_t *param) {
  return param->direction == HD_DIR_OUT;
}

static const hd_tune_entry_t *reference_of(const hd_tune_worker_t *w) {
  return w->entries.data[0];
}

static const hd_var_t *param_of(const hd_tune_worker_t *w, uint32_t i) {
  return reference_of(w)->p.program.entry->params[i];
}

// Floats are random, integers 0: that is inside of whatever they are an index
// of. What is written is all ones before, in floats no number.
static void fill_bytes(hd_tune_worker_t *w, const hd_var_t *param,
                       unsigned char *data, size_t bytes, uint32_t stream) {
  hd_type_t type = param->type;
  hd_scalar_t scalar = (hd_scalar_t)type.scalar;
  bool drawn = hd_storage_is_plain(param->tensor) &&
               (hd_type_is_float(type) || hd_type_is_bool(type));
  memset(data, is_written(param) ? 0xff : 0, bytes);
  if (is_written(param) || !drawn)
    return;
  size_t width = hd_host_element_bytes(scalar);
  int64_t count = (int64_t)(bytes / width);
  int64_t size = count < PATTERN ? count : PATTERN;
  hd_host_tensor_t *pattern = hd_host_tensor_make(&w->arena, scalar, &size, 1);
  hd_host_tensor_fill_random(pattern, 1, stream);
  for (size_t at = 0; at < bytes; at += pattern->bytes) {
    size_t left = bytes - at;
    memcpy(data + at, pattern->data,
           left < pattern->bytes ? left : pattern->bytes);
  }
}

static bool put_constant(hd_tune_worker_t *w, const hd_value_t *value,
                         const hd_var_t *param, unsigned char *data,
                         size_t bytes) {
  const hd_host_tensor_t *tensor =
      hd_constant_load(reference_of(w)->p.text, value);
  return tensor && hd_storage_pack(&no_sizes, &w->arena, param->tensor, tensor,
                                   data, bytes);
}

// The graph's constants stand behind its inputs.
static const hd_value_t *constant_of(const hd_tune_worker_t *w, uint32_t i) {
  const hd_graph_t *graph = reference_of(w)->p.graph;
  return i >= graph->inputs.size &&
                 i - graph->inputs.size < graph->constants.size
             ? graph->constants.data[i - graph->inputs.size]
             : NULL;
}

typedef struct block {
  hd_budget_t *budget;
  unsigned char *data;
  size_t bytes;
} block_t;

static void free_block(void *argument) {
  const block_t *b = argument;
  hd_host_memory_free(b->budget, b->data, b->bytes);
}

// Parameter i of each set.
static bool make_operand(hd_tune_worker_t *w, uint32_t i) {
  const hd_var_t *param = param_of(w, i);
  int64_t size;
  if (!hd_storage_bytes(&no_sizes, &w->arena, param->tensor, &size))
    return false;
  block_t b = {&w->context->budget, NULL, (size_t)size};
  b.data =
      hd_host_memory_alloc(&w->context->diags, b.budget, param->name, b.bytes);
  if (!b.data)
    return false;
  hd_cleanup_t cleanup;
  hd_budget_defer(b.budget, &cleanup, free_block, &b);
  fill_bytes(w, param, b.data, b.bytes, i);
  const hd_value_t *constant = constant_of(w, i);
  bool ok = !constant || put_constant(w, constant, param, b.data, b.bytes);
  for (unsigned k = 0; ok && k < w->num_sets; k++) {
    hd_slot_t *slot = &w->slots[k * w->num_params + i];
    *slot = (hd_slot_t){.var = param, .bytes = b.bytes};
    ok = w->device->ops->alloc(w->device, param->name, b.bytes,
                               &slot->address) &&
         w->device->ops->upload(w->device, slot->address, b.data, b.bytes);
  }
  hd_budget_clean(b.budget, &cleanup);
  return ok;
}

static unsigned count_sets(hd_tune_worker_t *w) {
  int64_t bytes = 1, size;
  for (uint32_t i = 0; i < w->num_params; i++)
    if (hd_storage_bytes(&no_sizes, &w->arena, param_of(w, i)->tensor, &size))
      bytes += size;
  int64_t sets = w->device->ops->replay
                     ? (2 * w->device->info.l2_bytes + bytes - 1) / bytes
                     : 1;
  return sets < 1 ? 1 : sets > MAX_SETS ? MAX_SETS : (unsigned)sets;
}

bool hd_tune_make_operands(hd_tune_worker_t *w) {
  w->num_params = reference_of(w)->p.program.entry->num_params;
  w->num_sets = count_sets(w);
  w->slots = HD_ARENA_ARRAY(&w->arena, hd_slot_t,
                            (size_t)w->num_sets * w->num_params + 1);
  w->expected = HD_ARENA_ARRAY(&w->arena, hd_host_tensor_t, w->num_params + 1);
  w->tolerances = HD_ARENA_ARRAY(&w->arena, hd_tolerance_t, w->num_params + 1);
  bool ok = true;
  for (uint32_t i = 0; ok && i < w->num_params; i++)
    ok = make_operand(w, i);
  return ok;
}

// --- Results ---

static bool fetch(hd_tune_worker_t *w, uint32_t i, hd_host_tensor_t *tensor) {
  const hd_slot_t *slot = &w->slots[i];
  const hd_tensor_t *type = slot->var->tensor;
  int64_t shape[HD_TENSOR_MAX_RANK];
  block_t b = {&w->context->budget, NULL, slot->bytes};
  if (!hd_storage_shape(&no_sizes, type, shape) ||
      !hd_host_tensor_init(tensor, &w->context->diags, &w->context->budget,
                           slot->var->name, (hd_scalar_t)type->element.scalar,
                           shape, type->rank))
    return false;
  b.data = hd_host_memory_alloc(&w->context->diags, b.budget, slot->var->name,
                                b.bytes);
  if (!b.data)
    return false;
  hd_cleanup_t cleanup;
  hd_budget_defer(b.budget, &cleanup, free_block, &b);
  bool ok =
      w->device->ops->download(w->device, b.data, slot->address, b.bytes) &&
      hd_storage_unpack(&no_sizes, &w->arena, type, b.data, b.bytes, tensor);
  hd_budget_clean(b.budget, &cleanup);
  return ok;
}

// A few roundings of the type are a difference of order, no fault.
static hd_tolerance_t tolerance_for(const hd_host_tensor_t *expected) {
  hd_tolerance_t t = hd_tolerance_for((hd_tolerance_t){NAN, NAN}, expected);
  if (hd_scalar_class(expected->type) != HD_CLASS_FLOAT)
    return t;
  double unit = ldexp(4, -(int)hd_scalar_digits(expected->type));
  if (unit > t.relative) {
    t.absolute *= unit / t.relative;
    t.relative = unit;
  }
  return t;
}

// Most elements are the same to the bit, and need no conversion.
static bool are_same(const hd_host_tensor_t *a, const hd_host_tensor_t *b,
                     int64_t first, int64_t count) {
  size_t width = hd_host_element_bytes(a->type);
  return !memcmp(a->data + (size_t)first * width,
                 b->data + (size_t)first * width, (size_t)count * width);
}

static bool compare(hd_tune_worker_t *w, uint32_t i,
                    const hd_host_tensor_t *found) {
  const hd_host_tensor_t *expected = &w->expected[i];
  hd_tolerance_t tolerance = w->tolerances[i];
  for (int64_t k = 0; k < expected->count; k++) {
    if (k % RUN == 0 && k + RUN <= expected->count &&
        are_same(found, expected, k, RUN)) {
      k += RUN - 1;
      continue;
    }
    if (are_same(found, expected, k, 1))
      continue;
    double x = hd_host_tensor_get(found, k);
    double y = hd_host_tensor_get(expected, k);
    if (hd_tolerance_holds(tolerance, x, y))
      continue;
    char place[100];
    hd_buffer_printf(
        &w->said, "element %s is %g, and %g by the rules",
        hd_index_text(expected->shape, expected->rank, k, place, sizeof place),
        x, y);
    return false;
  }
  return true;
}

bool hd_tune_wipe_results(hd_tune_worker_t *w) {
  for (uint32_t i = 0; i < w->num_params; i++)
    if (is_written(w->slots[i].var) &&
        !w->device->ops->fill(w->device, w->slots[i].address, UINT64_MAX, 1,
                              w->slots[i].bytes))
      return false;
  return true;
}

bool hd_tune_take_expected(hd_tune_worker_t *w) {
  for (uint32_t i = 0; i < w->num_params; i++) {
    if (!is_written(w->slots[i].var))
      continue;
    if (!fetch(w, i, &w->expected[i]))
      return false;
    w->tolerances[i] = tolerance_for(&w->expected[i]);
  }
  return true;
}

bool hd_tune_check_results(hd_tune_worker_t *w) {
  for (uint32_t i = 0; i < w->num_params; i++) {
    hd_host_tensor_t found = {0};
    if (!is_written(w->slots[i].var))
      continue;
    bool ok = fetch(w, i, &found);
    bool same = ok && compare(w, i, &found);
    hd_host_tensor_fini(&found);
    if (!same) {
      w->answer = ok ? HD_MESSAGE_WRONG : w->answer;
      return false;
    }
  }
  return true;
}

void hd_tune_end_operands(hd_tune_worker_t *w) {
  for (size_t i = 0; w->slots && i < (size_t)w->num_sets * w->num_params; i++)
    if (w->slots[i].address)
      w->device->ops->free(w->device, w->slots[i].address);
  for (uint32_t i = 0; w->expected && i < w->num_params; i++)
    hd_host_tensor_fini(&w->expected[i]);
  w->slots = NULL;
  w->expected = NULL;
}
