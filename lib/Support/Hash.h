// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables keyed by names that come from a user's file: included before uthash.h,
// it gives them a hash that each process seeds anew, so that nobody can write a
// file whose names all fall together.
#ifndef HIDET_SUPPORT_HASH_H
#define HIDET_SUPPORT_HASH_H

#include <stddef.h>
#include <stdint.h>

// The same in one process.
uint32_t hd_hash_bytes(const void *bytes, size_t size);

#define HASH_FUNCTION(key, size, hash) ((hash) = hd_hash_bytes((key), (size)))

#endif
