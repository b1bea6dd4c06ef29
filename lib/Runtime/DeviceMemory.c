// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The account of a device's memory, whatever the device: which blocks there
// are, and how many bytes were in use at most.
#include "Runtime/Device.h"

#include <stdlib.h>

static const hd_loc_t nowhere;

hd_memory_t *hd_device_remember(hd_device_t *device, hd_address_t address,
                                size_t bytes) {
  hd_memory_t *memory = calloc(1, sizeof(*memory));
  if (!memory) {
    hd_error(&device->context->diags, nowhere, HD_E0904, "out of memory");
    return NULL;
  }
  *memory =
      (hd_memory_t){.address = address, .bytes = bytes, .next = device->memory};
  device->memory = memory;
  device->bytes += bytes;
  if (device->bytes > device->peak_bytes)
    device->peak_bytes = device->bytes;
  return memory;
}

hd_memory_t *hd_device_find(const hd_device_t *device, hd_address_t address) {
  hd_memory_t *memory = device->memory;
  while (
      memory && memory->address != address &&
      (address < memory->address || address - memory->address >= memory->bytes))
    memory = memory->next;
  return memory;
}

bool hd_device_forget(hd_device_t *device, hd_address_t address,
                      hd_memory_t *memory) {
  hd_memory_t **at = &device->memory;
  while (*at && (*at)->address != address)
    at = &(*at)->next;
  if (!*at)
    return false;
  hd_memory_t *found = *at;
  *memory = *found;
  *at = found->next;
  device->bytes -= found->bytes;
  free(found);
  return true;
}
