// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between a host tensor (row-major, whole bytes) and a tensor's storage on a
// device (its layout; elements below a byte packed, the first in the low bits).
#ifndef HIDET_RUNTIME_STORAGE_H
#define HIDET_RUNTIME_STORAGE_H

#include "IR/Eval.h"
#include "IR/Graph/HostTensor.h"

// The shape of a tensor; false where a size is not known, below 0
// or past its type.
bool hd_storage_shape(const hd_env_t *env, const hd_tensor_t *tensor,
                      int64_t shape[HD_TENSOR_MAX_RANK]);

// Why hd_storage_shape() is false of a tensor, at most size bytes.
void hd_storage_shape_why(const hd_env_t *env, const hd_var_t *var, char *text,
                          size_t size);

// Bytes of a tensor's storage; false where its shape is not known or they pass
// 2^62. The arena is for a while.
bool hd_storage_bytes(const hd_env_t *env, hd_arena_t *arena,
                      const hd_tensor_t *tensor, int64_t *bytes);

// True where storage is the host tensor's data as it is.
bool hd_storage_is_plain(const hd_tensor_t *tensor);

// Copies elements. bytes is the size of the storage. What no element lies in
// (padding) is zero after pack. False where the layout sends an element outside
// the storage.
bool hd_storage_pack(const hd_env_t *env, hd_arena_t *arena,
                     const hd_tensor_t *tensor, const hd_host_tensor_t *from,
                     unsigned char *storage, size_t bytes);
bool hd_storage_unpack(const hd_env_t *env, hd_arena_t *arena,
                       const hd_tensor_t *tensor, const unsigned char *storage,
                       size_t bytes, hd_host_tensor_t *to);

#endif
