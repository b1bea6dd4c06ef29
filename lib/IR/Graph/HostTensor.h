// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors in the host's memory: what goes into a run and comes out of it.
// Elements lie row-major, each in whole bytes (an i4 takes one byte here; the
// device's packing is Launch.c's business).
#ifndef HIDET_IR_GRAPH_HOSTTENSOR_H
#define HIDET_IR_GRAPH_HOSTTENSOR_H

#include "IR/Type.h"
#include "Support/Diagnostic.h"

enum { HD_TENSOR_MAX_RANK = 16 };

typedef struct hd_host_tensor {
  hd_scalar_t type;
  unsigned rank;
  int64_t shape[HD_TENSOR_MAX_RANK];
  int64_t count; // Elements.
  unsigned char *data;
  size_t bytes;
  hd_budget_t *budget;
} hd_host_tensor_t;

// Bytes of one element on the host.
unsigned hd_host_element_bytes(hd_scalar_t type);

// The number of elements. False where a size is negative, and where the product
// of those that are not 0 passes 2^62: so that no product of some of them
// overflows, of an empty tensor either.
bool hd_shape_count(const int64_t *shape, unsigned rank, int64_t *count);
// The shape that a tensor has on a device, where sizes of 0 may not be written
// down: its own, or where it has no elements, that of one element, which nobody
// reads. room: as many sizes; may be shape.
void hd_shape_room(const int64_t *shape, unsigned rank, int64_t *room);

// Makes a zeroed tensor. False, with an error, where the shape has no count or
// takes more than 2^62 bytes (E0309), or memory or the budget (may be NULL)
// does not hold it (E0901). name is for messages. The budget must outlive the
// tensor.
bool hd_host_tensor_init(hd_host_tensor_t *tensor, hd_diagnostics_t *diags,
                         hd_budget_t *budget, const char *name,
                         hd_scalar_t type, const int64_t *shape, unsigned rank);
// The same without memory: type, shape and count alone. E0309.
bool hd_host_tensor_describe(hd_host_tensor_t *tensor, hd_diagnostics_t *diags,
                             const char *name, hd_scalar_t type,
                             const int64_t *shape, unsigned rank);
// The first in an arena, which ends it: not to be given to
// hd_host_tensor_fini(). NULL where the shape has no count or takes more than
// 2^62 bytes.
hd_host_tensor_t *hd_host_tensor_make(hd_arena_t *arena, hd_scalar_t type,
                                      const int64_t *shape, unsigned rank);
void hd_host_tensor_fini(hd_host_tensor_t *tensor);

// Element number i. Integers of 64 bits do not fit a double; ask for them by
// the second pair: of a float it gives the nearest integer towards zero, 0 of
// NaN. To set NaN, or what does not fit an integer type, is the caller's to
// avoid.
double hd_host_tensor_get(const hd_host_tensor_t *tensor, int64_t i);
// Elements of less than a byte, behind each other: ored into storage, zeros.
void hd_host_tensor_pack(const hd_host_tensor_t *tensor, unsigned bits,
                         unsigned char *storage);
int64_t hd_host_tensor_get_int(const hd_host_tensor_t *tensor, int64_t i);
void hd_host_tensor_set(hd_host_tensor_t *tensor, int64_t i, double value);
void hd_host_tensor_set_int(hd_host_tensor_t *tensor, int64_t i, int64_t value);

// Every element drawn from a fixed sequence: floats are standard normal,
// integers uniform over -8 .. 7 (unsigned 0 .. 15, narrower ones over their
// range), bools fair coins. The same seed gives the same tensor, whatever the
// number of threads. stream keeps the inputs of one run apart.
void hd_host_tensor_fill_random(hd_host_tensor_t *tensor, uint64_t seed,
                                uint64_t stream);
void hd_host_tensor_fill(hd_host_tensor_t *tensor, double value);

// "[2, 3]"; at most size bytes with the final zero; returns text.
const char *hd_shape_text(const int64_t *shape, unsigned rank, char *text,
                          size_t size);
// "[1, 0]" for the element number i of a tensor of that shape.
const char *hd_index_text(const int64_t *shape, unsigned rank, int64_t i,
                          char *text, size_t size);
// An element as text, floats with digits enough to tell neighbours apart.
void hd_host_tensor_print_element(const hd_host_tensor_t *tensor, int64_t i,
                                  hd_buffer_t *out);

#endif
