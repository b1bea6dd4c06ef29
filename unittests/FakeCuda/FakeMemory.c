// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the fake device, which is the host's.
#include "FakeCuda.h"

FAKE(cuMemGetInfo_v2, size_t *free_bytes, size_t *total) {
  *free_bytes = 123456;
  *total = 1 << 30;
  return 0;
}
// That an address lies in; NULL: it begins no allocation that is known.
static hd_cu_context_t owner_of(uint64_t address) {
  for (int i = 0; i < FAKE_MAX_ALLOCATIONS; i++)
    if (fake.addresses[i] == address)
      return fake.owners[i];
  return fake_context();
}
FAKE(cuMemAlloc_v2, uint64_t *address, size_t bytes) {
  MAY_FAIL("cuMemAlloc_v2");
  NEEDS(fake_context());
  ENDS_CAPTURES();
  if (fake.capture) // What is no work of a stream's is not allowed then.
    return FAKE_CAPTURING;
  if (bytes == 0)
    return HD_CU_INVALID_VALUE;
  // Aligned as the driver's: calloc() promises 16 bytes alone.
  void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  *address = (uintptr_t)memory;
  if (memory) {
    memset(memory, 0, bytes);
    if (fake.allocated < FAKE_MAX_ALLOCATIONS)
      fake.addresses[fake.allocated] = *address,
      fake.owners[fake.allocated] = fake_context();
    fake.allocated++;
  }
  fake.allocations += memory != NULL;
  return memory ? 0 : HD_CU_OUT_OF_MEMORY;
}
FAKE(cuMemFree_v2, uint64_t address) {
  NEEDS(owner_of(address));
  ENDS_CAPTURES();
  free((void *)(uintptr_t)address);
  fake.allocations--;
  for (int i = 0; i < FAKE_MAX_ALLOCATIONS; i++)
    if (fake.addresses[i] == address)
      fake.addresses[i] = 0;
  return 0;
}
FAKE(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes) {
  MAY_FAIL("cuMemcpyHtoD_v2");
  NEEDS(owner_of(to));
  ENDS_CAPTURES();
  if (fake.capture)
    return FAKE_CAPTURING;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return 0;
}
FAKE(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes) {
  MAY_FAIL("cuMemcpyDtoH_v2");
  NEEDS(owner_of(from));
  ENDS_CAPTURES();
  memcpy(to, (void *)(uintptr_t)from, bytes);
  return 0;
}

FAKE(cuMemcpyAsync, uint64_t to, uint64_t from, size_t bytes,
     hd_cu_stream_t stream) {
  (void)stream;
  MAY_FAIL("cuMemcpyAsync");
  NEEDS(owner_of(to));
  fake_note("copy of %zu bytes\n", bytes);
  memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
  return 0;
}

static int set(uint64_t address, const void *value, size_t size, size_t pitch,
               size_t count, hd_cu_stream_t stream) {
  NEEDS(stream->context);
  if (!stream->capturing)
    fake_note("set %zu times %zu bytes\n", count, size);
  for (size_t i = 0; i < count && !stream->capturing; i++)
    memcpy((char *)(uintptr_t)address + i * pitch, value, size);
  return 0;
}
FAKE(cuMemsetD8Async, uint64_t address, unsigned char value, size_t count,
     hd_cu_stream_t stream) {
  MAY_FAIL("cuMemsetD8Async");
  return set(address, &value, 1, 1, count, stream);
}
FAKE(cuMemsetD16Async, uint64_t address, unsigned short value, size_t count,
     hd_cu_stream_t stream) {
  MAY_FAIL("cuMemsetD16Async");
  return set(address, &value, 2, 2, count, stream);
}
FAKE(cuMemsetD32Async, uint64_t address, unsigned value, size_t count,
     hd_cu_stream_t stream) {
  MAY_FAIL("cuMemsetD32Async");
  return set(address, &value, 4, 4, count, stream);
}
FAKE(cuMemsetD2D32Async, uint64_t address, size_t pitch, unsigned value,
     size_t width, size_t height, hd_cu_stream_t stream) {
  MAY_FAIL("cuMemsetD2D32Async");
  return width == 1 ? set(address, &value, 4, pitch, height, stream)
                    : HD_CU_INVALID_VALUE;
}
