// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// .npy files, NumPy's format for one array (versions 1, 2 and 3).
//
// Types that NumPy lacks travel as raw bits: bf16 as <u2 (<V2 is read as well),
// the f8 types as |u1 (|V1, <f1), and i4 i2 u4 u2 f4 as one byte an element.
// tf32 is <f4.
#ifndef HIDET_RUNTIME_NPY_H
#define HIDET_RUNTIME_NPY_H

#include "IR/Graph/HostTensor.h"

// Reads a file's content. wanted: the element type that the array is for, or
// HD_VOID: then it is that of the file (raw bits are u16 or u8). Column-major
// (fortran_order) and big-endian arrays are converted. False after an error:
// E0803 (malformed), E0804 (truncated), E0805 (another type), E0810 (a type
// that we do not have), or those of hd_host_tensor_init(). name is for
// messages.
bool hd_npy_decode(hd_diagnostics_t *diags, hd_budget_t *budget,
                   const char *name, const void *bytes, size_t size,
                   hd_scalar_t wanted, hd_host_tensor_t *tensor);
bool hd_npy_read(hd_diagnostics_t *diags, hd_budget_t *budget, const char *path,
                 hd_scalar_t wanted, hd_host_tensor_t *tensor);

// The file's content up to the data, version 1.
void hd_npy_header(const hd_host_tensor_t *tensor, hd_buffer_t *out);
// Written as hd_file_write() does.
bool hd_npy_write(hd_diagnostics_t *diags, const char *path,
                  const hd_host_tensor_t *tensor);

#endif
