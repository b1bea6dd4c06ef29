// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What whoever launches a kernel's code must know: its dimensions, its dynamic
// shared memory, its parameters. In terms of the kernel's sizes, which are
// parameters themselves.
#ifndef HIDET_TOOLS_INTERFACE_H
#define HIDET_TOOLS_INTERFACE_H

#include "IR/Module.h"
#include "Tools/Json.h"

// Number i of what the code takes: the kernel's parameters, then its tensor
// maps.
typedef struct hd_interface_param {
  const hd_var_t *var;
  size_t bytes, align; // Of the parameter: 8 of a tensor, for it is an address.
} hd_interface_param_t;
uint32_t hd_interface_num_params(const hd_func_t *kernel);
hd_interface_param_t hd_interface_param(const hd_func_t *kernel, uint32_t i);

// As comment lines of PTX. arena: for scratch.
void hd_interface_comment(hd_arena_t *arena, const hd_func_t *kernel,
                          hd_buffer_t *out);
// A new object: `name`; `grid`, `block`, `cluster`, lists of three;
// `shared_bytes`; `parameters`, of each `name`, `kind` (`scalar`, `tensor`,
// `tensor_map`), `bytes`, `align`; `type` of a scalar; of a tensor also
// `shape`, `direction`, and `strides` where it is not row-major; of a map
// `tensor`, `swizzle`, `l2`, and `box`, or `im2col` (pixels, channels),
// `lower`, `upper`, `step`. What is no number is an expression over the
// scalars, as text.
json_t *hd_interface_json(hd_arena_t *arena, const hd_func_t *kernel);

#endif
