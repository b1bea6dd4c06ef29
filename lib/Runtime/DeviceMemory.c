// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The account of a device's memory, whatever the device: which blocks there
// are, and how many bytes were in use at most. A tree by address, whose shape
// is that of random insertions (a treap): priorities are hashes of addresses.
#include "Runtime/Device.h"

#include <stdlib.h>

static const hd_loc_t nowhere;

static uint64_t priority(const hd_memory_t *memory) {
  return (memory->address ^ memory->address >> 29) *
         UINT64_C(0x9e3779b97f4a7c15);
}

// Those below an address, and the rest.
static void split(hd_memory_t *tree, hd_address_t at, hd_memory_t **below,
                  hd_memory_t **above) {
  while (tree) {
    bool is_below = tree->address < at;
    hd_memory_t *rest = is_below ? tree->above : tree->below;
    if (is_below) {
      *below = tree;
      below = &tree->above;
    } else {
      *above = tree;
      above = &tree->below;
    }
    tree = rest;
  }
  *below = *above = NULL;
}

static hd_memory_t *join(hd_memory_t *below, hd_memory_t *above) {
  hd_memory_t *tree = NULL, **at = &tree;
  while (below && above) {
    bool takes = priority(below) > priority(above);
    hd_memory_t *top = takes ? below : above;
    *at = top;
    at = takes ? &top->above : &top->below;
    *(takes ? &below : &above) = *at;
  }
  *at = below ? below : above;
  return tree;
}

hd_memory_t *hd_device_remember(hd_device_t *device, hd_address_t address,
                                size_t bytes) {
  hd_memory_t *memory = calloc(1, sizeof(*memory));
  if (!memory) {
    hd_error(&device->context->diags, nowhere, HD_E0904, "out of memory");
    return NULL;
  }
  *memory = (hd_memory_t){
      .address = address, .bytes = bytes, .from = device->allocator};
  pthread_mutex_lock(&device->lock);
  hd_memory_t **at = &device->memory;
  while (*at && priority(*at) > priority(memory))
    at = (*at)->address < address ? &(*at)->above : &(*at)->below;
  split(*at, address, &memory->below, &memory->above);
  *at = memory;
  device->bytes += bytes;
  if (device->bytes > device->peak_bytes)
    device->peak_bytes = device->bytes;
  pthread_mutex_unlock(&device->lock);
  return memory;
}

static hd_memory_t *find_memory(const hd_device_t *device,
                                hd_address_t address) {
  hd_memory_t *memory = device->memory, *found = NULL;
  while (memory) {
    if (memory->address <= address)
      found = memory;
    memory = memory->address <= address ? memory->above : memory->below;
  }
  return found && (address == found->address ||
                   address - found->address < found->bytes)
             ? found
             : NULL;
}

hd_memory_t *hd_device_find(hd_device_t *device, hd_address_t address) {
  pthread_mutex_lock(&device->lock);
  hd_memory_t *found = find_memory(device, address);
  pthread_mutex_unlock(&device->lock);
  return found || !device->first ? found
                                 : hd_device_find(device->first, address);
}

static hd_memory_t *take_out(hd_device_t *device, hd_address_t address) {
  hd_memory_t **at = &device->memory;
  while (*at && (*at)->address != address)
    at = (*at)->address < address ? &(*at)->above : &(*at)->below;
  hd_memory_t *found = *at;
  if (!found)
    return NULL;
  *at = join(found->below, found->above);
  device->bytes -= found->bytes;
  return found;
}

bool hd_device_forget(hd_device_t *device, hd_address_t address,
                      hd_memory_t *memory) {
  pthread_mutex_lock(&device->lock);
  hd_memory_t *found = take_out(device, address);
  pthread_mutex_unlock(&device->lock);
  if (!found)
    return false;
  *memory = *found;
  free(found);
  return true;
}
