// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the values of a graph are while it runs: in the host's memory, on the
// device, or both.
#ifndef HIDET_RUNTIME_STORE_H
#define HIDET_RUNTIME_STORE_H

#include "Graph/Bind/Binding.h"
#include "Runtime/Program.h"
#include "Support/Map.h"

typedef struct hd_stored {
  const hd_value_t *value;
  hd_host_tensor_t own;         // Memory that ends with the store, or empty.
  const hd_host_tensor_t *data; // In the host's memory; NULL: not there.
  hd_slot_t slot;               // On the device; no address: not there.
  bool borrowed;                // Whose memory another store owns.
  bool pinned;                  // It stays there.
  size_t index;                 // In the store's list.
} hd_stored_t;

typedef struct hd_store {
  hd_module_t *module;   // Whose constants they may be.
  hd_context_t *context; // Diagnostics and budget: those of whom uses it.
  hd_device_t *device;   // NULL: none.
  hd_arena_t arena;
  hd_ptr_map_t values;
  HD_VEC(hd_stored_t *) stored;
} hd_store_t;

void hd_store_init(hd_store_t *store, hd_module_t *module,
                   hd_context_t *context, hd_device_t *device);
void hd_store_fini(hd_store_t *store);

// Never NULL: a new entry, empty, where there is none.
hd_stored_t *hd_store_find(hd_store_t *store, const hd_value_t *value);

// The value's elements in the host's memory, fetched where they are not there;
// NULL after an error. They live as long as the store.
const hd_host_tensor_t *hd_store_fetch(hd_store_t *store,
                                       const hd_value_t *value);

// Makes room on the device for a value, for a parameter that is row-major, and
// brings the elements there where fill is set.
bool hd_store_place(hd_store_t *store, const hd_value_t *value,
                    const hd_var_t *param, bool fill);

// Has a value, for a parameter that is row-major, lie in memory that somebody
// else has (address 0: it is not there yet). Nothing is brought there.
bool hd_store_lay(hd_store_t *store, const hd_value_t *value,
                  const hd_var_t *param, hd_address_t address);

// Has the memory be that of `to`, which outlives the store and frees it: *slot
// is what it is there.
void hd_store_give(hd_store_t *store, const hd_value_t *value, hd_store_t *to,
                   hd_slot_t *slot);
// The value lies in memory of another store.
void hd_store_borrow(hd_store_t *store, const hd_value_t *value,
                     const hd_slot_t *slot);
// Frees the value's memory on the device, if it has some and is not pinned: it
// is brought there again where it is placed.
void hd_store_drop(hd_store_t *store, const hd_value_t *value);

// Brings other elements, of the same type and shape, to where the value is.
bool hd_store_update(hd_store_t *store, const hd_value_t *value,
                     const hd_host_tensor_t *data);

#endif
