// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Graph/HostTensor.h"
#include "IR/Scalar.h"
#include "Support/Float.h"
#include "Support/HostMemory.h"
#include "Support/ThreadPool.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const hd_loc_t nowhere;

unsigned hd_host_element_bytes(hd_scalar_t type) {
  return (hd_scalar_bits(type) + 7) / 8;
}

bool hd_shape_count(const int64_t *shape, unsigned rank, int64_t *count) {
  int64_t product = 1;
  bool empty = false;
  for (unsigned i = 0; i < rank; i++) {
    if (shape[i] < 0 ||
        (shape[i] > 0 && __builtin_mul_overflow(product, shape[i], &product)))
      return false;
    empty |= shape[i] == 0;
  }
  *count = empty ? 0 : product;
  return product <= INT64_C(1) << 62;
}

void hd_shape_room(const int64_t *shape, unsigned rank, int64_t *room) {
  bool empty = false;
  for (unsigned i = 0; i < rank; i++)
    empty |= shape[i] == 0;
  for (unsigned i = 0; i < rank; i++)
    room[i] = empty ? 1 : shape[i];
}

static bool count_bytes(hd_scalar_t type, const int64_t *shape, unsigned rank,
                        int64_t *count, int64_t *bytes) {
  return hd_shape_count(shape, rank, count) &&
         !__builtin_mul_overflow(*count, (int64_t)hd_host_element_bytes(type),
                                 bytes) &&
         *bytes <= INT64_C(1) << 62;
}

bool hd_host_tensor_describe(hd_host_tensor_t *tensor, hd_diagnostics_t *diags,
                             const char *name, hd_scalar_t type,
                             const int64_t *shape, unsigned rank) {
  int64_t bytes;
  assert(rank <= HD_TENSOR_MAX_RANK);
  *tensor = (hd_host_tensor_t){.type = type, .rank = rank};
  if (!count_bytes(type, shape, rank, &tensor->count, &bytes)) {
    tensor->count = 0;
    return hd_error(diags, nowhere, HD_E0309, name);
  }
  memcpy(tensor->shape, shape, rank * sizeof(*shape));
  return true;
}

bool hd_host_tensor_init(hd_host_tensor_t *tensor, hd_diagnostics_t *diags,
                         hd_budget_t *budget, const char *name,
                         hd_scalar_t type, const int64_t *shape,
                         unsigned rank) {
  if (!hd_host_tensor_describe(tensor, diags, name, type, shape, rank))
    return false;
  tensor->budget = budget;
  size_t bytes = (size_t)tensor->count * hd_host_element_bytes(type);
  tensor->data = hd_host_memory_alloc(diags, budget, name, bytes);
  if (!tensor->data) {
    tensor->count = 0;
    return false;
  }
  tensor->bytes = bytes;
  return true;
}

hd_host_tensor_t *hd_host_tensor_make(hd_arena_t *arena, hd_scalar_t type,
                                      const int64_t *shape, unsigned rank) {
  int64_t count, bytes;
  assert(rank <= HD_TENSOR_MAX_RANK);
  if (!count_bytes(type, shape, rank, &count, &bytes))
    return NULL;
  hd_host_tensor_t *tensor = HD_ARENA_NEW(arena, hd_host_tensor_t);
  tensor->type = type;
  tensor->rank = rank;
  if (rank)
    memcpy(tensor->shape, shape, rank * sizeof *shape);
  tensor->count = count;
  tensor->bytes = (size_t)bytes;
  tensor->data = hd_arena_alloc(arena, (size_t)bytes);
  return tensor;
}

void hd_host_tensor_fini(hd_host_tensor_t *tensor) {
  hd_host_memory_free(tensor->budget, tensor->data, tensor->bytes);
  *tensor = (hd_host_tensor_t){0};
}

static uint64_t get_bits(const hd_host_tensor_t *tensor, int64_t i) {
  unsigned size = hd_host_element_bytes(tensor->type);
  uint64_t bits = 0;
  memcpy(&bits, tensor->data + (size_t)i * size, size);
  return bits;
}

static void set_bits(hd_host_tensor_t *tensor, int64_t i, uint64_t bits) {
  unsigned size = hd_host_element_bytes(tensor->type);
  memcpy(tensor->data + (size_t)i * size, &bits, size);
}

static hd_float_format_t format_of(hd_scalar_t type) {
  return (hd_float_format_t)(type - HD_F4E2M1);
}
static_assert(HD_F64 - HD_F4E2M1 == HD_FLOAT_F64, "formats are in order");

int64_t hd_host_tensor_get_int(const hd_host_tensor_t *tensor, int64_t i) {
  uint64_t bits = get_bits(tensor, i);
  unsigned shift = 64 - hd_scalar_bits(tensor->type);
  switch (hd_scalar_class(tensor->type)) {
  case HD_CLASS_SIGNED:
    return (int64_t)(bits << shift) >> shift;
  case HD_CLASS_BOOL:
    return (bits & 0xff) != 0;
  case HD_CLASS_UNSIGNED:
  case HD_CLASS_OPAQUE:
  case HD_CLASS_VOID:
    return (int64_t)(bits << shift >> shift);
  case HD_CLASS_FLOAT:
    return hd_int_saturate(HD_I64,
                           hd_float_decode(format_of(tensor->type), bits));
  }
  return 0;
}

double hd_host_tensor_get(const hd_host_tensor_t *tensor, int64_t i) {
  if (hd_scalar_class(tensor->type) == HD_CLASS_FLOAT)
    return hd_float_decode(format_of(tensor->type), get_bits(tensor, i));
  int64_t value = hd_host_tensor_get_int(tensor, i);
  return tensor->type == HD_U64 ? (double)(uint64_t)value : (double)value;
}

void hd_host_tensor_set_int(hd_host_tensor_t *tensor, int64_t i,
                            int64_t value) {
  if (hd_scalar_class(tensor->type) == HD_CLASS_FLOAT) {
    hd_host_tensor_set(tensor, i, (double)value);
    return;
  }
  unsigned bits = hd_scalar_bits(tensor->type);
  if (tensor->type == HD_BOOL)
    value = value != 0;
  set_bits(tensor, i, (uint64_t)value << (64 - bits) >> (64 - bits));
}

void hd_host_tensor_set(hd_host_tensor_t *tensor, int64_t i, double value) {
  if (hd_scalar_class(tensor->type) == HD_CLASS_FLOAT)
    set_bits(tensor, i, hd_float_encode(format_of(tensor->type), value));
  else if (tensor->type == HD_U64)
    set_bits(tensor, i, (uint64_t)value);
  else
    hd_host_tensor_set_int(tensor, i, (int64_t)value);
}

void hd_host_tensor_fill(hd_host_tensor_t *tensor, double value) {
  for (int64_t i = 0; i < tensor->count; i++)
    hd_host_tensor_set(tensor, i, value);
}

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators", 2014) of a counter, so each element can be drawn by itself.
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Two standard normal numbers from one draw (Box and Muller).
static void normal_pair(uint64_t bits, float pair[2]) {
  float u = ((float)(bits >> 40) + 1) * 0x1p-24f;
  float v = (float)(bits & 0xffffff) * 0x1p-24f;
  float radius = sqrtf(-2 * logf(u));
  float sine, cosine;
  sincosf(6.2831853f * v, &sine, &cosine);
  pair[0] = radius * cosine;
  pair[1] = radius * sine;
}

enum { PIECE = 1 << 16 };

typedef struct fill {
  hd_host_tensor_t *tensor;
  uint64_t key;
} fill_t;

static void set_float(hd_host_tensor_t *tensor, int64_t i, float value) {
  switch (tensor->type) { // The usual ones by their quick way.
  case HD_F32:
    ((float *)(void *)tensor->data)[i] = value;
    return;
  case HD_F16:
    ((uint16_t *)(void *)tensor->data)[i] = hd_f16_from_f32(value);
    return;
  case HD_BF16:
    ((uint16_t *)(void *)tensor->data)[i] = hd_bf16_from_f32(value);
    return;
  default:
    hd_host_tensor_set(tensor, i, (double)value);
  }
}

static void fill_piece(void *argument, unsigned piece, unsigned worker) {
  (void)worker;
  const fill_t *fill = argument;
  hd_host_tensor_t *tensor = fill->tensor;
  int64_t first = (int64_t)piece * PIECE, limit = first + PIECE;
  if (limit > tensor->count)
    limit = tensor->count;
  bool floats = hd_scalar_class(tensor->type) == HD_CLASS_FLOAT;
  bool is_signed = hd_scalar_class(tensor->type) == HD_CLASS_SIGNED;
  for (int64_t i = first; i < limit; i += 2) {
    uint64_t bits = mix(fill->key + (uint64_t)i / 2);
    float pair[2];
    if (floats)
      normal_pair(bits, pair);
    for (int64_t k = 0; k < 2 && i + k < limit; k++) {
      if (floats)
        set_float(tensor, i + k, pair[k]);
      else if (tensor->type == HD_BOOL)
        set_bits(tensor, i + k, bits >> (20 * k) & 1);
      else // set_int wraps to the narrower types.
        hd_host_tensor_set_int(tensor, i + k,
                               (int64_t)(bits >> (20 * k) & 15) -
                                   (is_signed ? 8 : 0));
    }
  }
}

void hd_host_tensor_fill_random(hd_host_tensor_t *tensor, uint64_t seed,
                                uint64_t stream) {
  fill_t fill = {tensor, mix(mix(seed) + stream)};
  unsigned pieces = (unsigned)((tensor->count + PIECE - 1) / PIECE);
  hd_thread_pool_t *pool = pieces > 4 ? hd_thread_pool_create(0) : NULL;
  hd_thread_pool_run(pool, pieces, fill_piece, &fill);
  hd_thread_pool_destroy(pool);
}

const char *hd_shape_text(const int64_t *shape, unsigned rank, char *text,
                          size_t size) {
  size_t at = (size_t)snprintf(text, size, "[");
  for (unsigned i = 0; i < rank && at < size; i++)
    at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? ", " : "",
                           (long long)shape[i]);
  if (at < size)
    snprintf(text + at, size - at, "]");
  return text;
}

const char *hd_index_text(const int64_t *shape, unsigned rank, int64_t i,
                          char *text, size_t size) {
  int64_t index[HD_TENSOR_MAX_RANK];
  for (unsigned axis = rank; axis-- > 0;) {
    index[axis] = i % shape[axis];
    i /= shape[axis];
  }
  return hd_shape_text(index, rank, text, size);
}

void hd_host_tensor_print_element(const hd_host_tensor_t *tensor, int64_t i,
                                  hd_buffer_t *out) {
  if (hd_scalar_class(tensor->type) == HD_CLASS_FLOAT) {
    int digits = tensor->type == HD_F64
                     ? 17
                     : 2 + (int)(hd_scalar_digits(tensor->type) * 0.30103);
    double x = hd_host_tensor_get(tensor, i);
    hd_buffer_printf(out, "%.*g", digits, isnan(x) ? fabs(x) : x); // No sign.
  } else if (tensor->type == HD_U64) {
    hd_buffer_printf(out, "%llu",
                     (unsigned long long)hd_host_tensor_get_int(tensor, i));
  } else {
    hd_buffer_printf(out, "%lld", (long long)hd_host_tensor_get_int(tensor, i));
  }
}

void hd_host_tensor_pack(const hd_host_tensor_t *tensor, unsigned bits,
                         unsigned char *storage) {
  unsigned each = 8 / bits, mask = (1u << bits) - 1;
  for (int64_t i = 0; i < tensor->count; i++)
    storage[i / each] |= (unsigned char)((tensor->data[i] & mask)
                                         << (unsigned)(i % each) * bits);
}
