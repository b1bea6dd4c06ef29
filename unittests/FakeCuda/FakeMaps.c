// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps of the fake device.
#include "FakeCuda.h"

// What a map is here: its number, and for the rest ones, so that a bit that is
// cleared shows.
static int allocation_of(const void *address) {
  for (int i = 0; i < FAKE_MAX_ALLOCATIONS; i++)
    if (fake.addresses[i] == (uintptr_t)address)
      return i;
  return -1;
}
static void note_list(const char *name, const void *values, unsigned count,
                      unsigned bytes) {
  fake_note(" %s", name);
  for (unsigned i = 0; i < count; i++)
    fake_note("%c%lld", i ? ',' : ' ',
              bytes == 8 ? (long long)((const uint64_t *)values)[i]
                         : (long long)((const int *)values)[i]);
}
// What both ways of encoding ask.
static int encode(void *map, const char *kind, int type, uint32_t rank,
                  const void *base, const uint64_t *sizes,
                  const uint64_t *strides, const uint32_t *steps) {
  hd_cu_map_t *code = map;
  if ((uintptr_t)map % 64 || (uintptr_t)base % 16 || rank < 1 || rank > 5)
    return HD_CU_INVALID_VALUE;
  for (uint32_t i = 0; i < rank; i++)
    if (sizes[i] < 1 || sizes[i] > UINT64_C(1) << 32 || steps[i] < 1 ||
        steps[i] > 8 || (i > 0 && strides[i - 1] % 16))
      return HD_CU_INVALID_VALUE;
  memset(code, 0xff, sizeof(*code));
  code->words[0] = (uint64_t)fake.encoded;
  fake_note("map %d %s type %d base %d", fake.encoded++, kind, type,
            allocation_of(base));
  note_list("sizes", sizes, rank, 8);
  if (rank > 1)
    note_list("strides", strides, rank - 1, 8);
  return 0;
}
static int encoded(const uint32_t *steps, uint32_t rank, int interleave,
                   int swizzle, int l2, int fill) {
  note_list("steps", steps, rank, 4);
  fake_note(" interleave %d swizzle %d l2 %d fill %d\n", interleave, swizzle,
            l2, fill);
  return 0;
}
FAKE(cuTensorMapEncodeTiled, void *map, int type, uint32_t rank, void *base,
     const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
     const uint32_t *steps, int interleave, int swizzle, int l2, int fill) {
  MAY_FAIL("cuTensorMapEncodeTiled");
  int error = encode(map, "tiled", type, rank, base, sizes, strides, steps);
  if (error)
    return error;
  note_list("box", box, rank, 4);
  return encoded(steps, rank, interleave, swizzle, l2, fill);
}
FAKE(cuTensorMapEncodeIm2col, void *map, int type, uint32_t rank, void *base,
     const uint64_t *sizes, const uint64_t *strides, const int *lower,
     const int *upper, uint32_t channels, uint32_t pixels,
     const uint32_t *steps, int interleave, int swizzle, int l2, int fill) {
  MAY_FAIL("cuTensorMapEncodeIm2col");
  int error =
      rank < 3 ? HD_CU_INVALID_VALUE
               : encode(map, "im2col", type, rank, base, sizes, strides, steps);
  if (error)
    return error;
  note_list("lower", lower, rank - 2, 4);
  note_list("upper", upper, rank - 2, 4);
  fake_note(" channels %u pixels %u", channels, pixels);
  return encoded(steps, rank, interleave, swizzle, l2, fill);
}
