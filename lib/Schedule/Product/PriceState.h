// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of a product's price share.
#ifndef HIDET_SCHEDULE_PRODUCT_PRICESTATE_H
#define HIDET_SCHEDULE_PRODUCT_PRICESTATE_H

#include "Schedule/Product/Product.h"

enum { HD_LOAD_DEEP = 8 }; // Stages of a ring, for all that they are worth.

// What is done by all blocks that are on a multiprocessor at a time.
typedef struct hd_load {
  const hd_machine_t *machine;
  const hd_product_form_t *form;
  const hd_candidate_t *c;
  const hd_form_tensor_t *a; // As the kernel has it.
  double bm, bn, bk, split, share, threads;
  double bytes;    // Of an operand's element.
  double together; // Blocks, of
  double waves;    // so many one after the other,
  double at_once;  // of all so many at a time.
} hd_load_t;

// --- ProductMemory.c ---

// Whether what it reads goes to registers.
bool hd_load_is_direct(const hd_load_t *load);
// Few rows by what b is computed from: warps have more to compute than to wait
// for, and a block begins where one has ended.
bool hd_load_computes_narrow(const hd_load_t *load);
bool hd_load_reads_image(const hd_load_t *load);
// Microseconds in which device memory gives what is read, and takes the result.
double hd_load_memory_us(const hd_load_t *load);

#endif
