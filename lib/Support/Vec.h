// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A growing array in an arena: HD_VEC(int) v = {0}; hd_vec_push(arena, &v, 1).
#ifndef HIDET_SUPPORT_VEC_H
#define HIDET_SUPPORT_VEC_H

#include "Support/Arena.h"

#include <string.h>

#define HD_VEC(type)                                                           \
  struct {                                                                     \
    type *data;                                                                \
    size_t size, capacity;                                                     \
  }

#define hd_vec_push(arena, vec, ...)                                           \
  do {                                                                         \
    if ((vec)->size == (vec)->capacity) {                                      \
      size_t hd_capacity_ = (vec)->capacity ? (vec)->capacity * 2 : 8;         \
      void *hd_data_ =                                                         \
          hd_arena_alloc((arena), hd_capacity_ * sizeof(*(vec)->data));        \
      if ((vec)->size)                                                         \
        memcpy(hd_data_, (vec)->data, (vec)->size * sizeof(*(vec)->data));     \
      (vec)->data = hd_data_;                                                  \
      (vec)->capacity = hd_capacity_;                                          \
    }                                                                          \
    (vec)->data[(vec)->size++] = (__VA_ARGS__);                                \
  } while (0)

#endif
