// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which items the embedded library has, and where: looked through once in a
// process, and never changed. Thread-safe.
#ifndef HIDET_IR_TEXT_LIBRARYINDEX_H
#define HIDET_IR_TEXT_LIBRARYINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hd_shelf {
  HD_SHELF_FUNCTIONS,
  HD_SHELF_TASKS,
  HD_SHELF_REWRITES,
  HD_NUM_SHELVES
} hd_shelf_t;

typedef struct hd_library_item {
  const char *name;
  const char *file;
  const char *text; // From its word to before the next item.
  size_t size;
  uint32_t first_line;
  bool is_generic; // A list of compile-time parameters follows the name.
} hd_library_item_t;

// The items of a kind, in order of the files.
size_t hd_library_items(hd_shelf_t shelf, const hd_library_item_t **first);

// The items that have the name: how many, and the number of each among its
// kind's, in that order; 0 where none has.
size_t hd_library_find(hd_shelf_t shelf, const char *name,
                       const uint16_t **numbers);

#endif
