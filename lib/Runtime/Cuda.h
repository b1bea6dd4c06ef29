// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA device: the driver, opened, and the primary context of one GPU. Over
// it lies DeviceCuda.c, which makes it a hd_device_t.
#ifndef HIDET_RUNTIME_CUDA_H
#define HIDET_RUNTIME_CUDA_H

#include "Runtime/CudaDriver.h"
#include "Support/Diagnostic.h"

enum { HD_CUDA_LEAST_VERSION = 12040 }; // CUDA 12.4: PTX 8.4.

typedef struct hd_cuda {
  hd_cuda_driver_t driver;
  hd_cu_context_t context;
  int device;
  int version; // Of the driver: 12030 is 12.3.
  int sm;      // 90
  int sms;
  int64_t l2_bytes, max_shared_bytes;
  double memory_gbs;
  int64_t sm_shared_bytes;       // Of a multiprocessor,
  int64_t reserved_shared_bytes; // and of that, what the system takes a block.
  char name[128];
} hd_cuda_t;

// Opens the driver and retains the primary context of GPU number ordinal. NULL
// after an error (E0601, E0602, E0603, E0604).
// At the end: hd_cuda_close().
hd_cuda_t *hd_cuda_open(hd_diagnostics_t *diags, int ordinal);
void hd_cuda_close(hd_cuda_t *cuda); // NULL is allowed.

// 90 where the first GPU has compute capability 9.0; 0 where there is none.
int hd_cuda_present_sm(void);

// The GPU that "cuda" (0) or "cuda:N" names; -1 where it is neither.
int hd_cuda_ordinal(const char *name);

// Makes the context the thread's current one, and after that what it was before
// that again: around every work with the driver, which is the host program's,
// too. *entered is for hd_cuda_leave(), which is to be called in any case; no
// work between may unwind. False after an error.
bool hd_cuda_enter(const hd_cuda_t *cuda, hd_diagnostics_t *diags,
                   bool *entered);
void hd_cuda_leave(const hd_cuda_t *cuda, bool entered);

// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
const char *hd_cuda_error_text(const hd_cuda_t *cuda, int error, char *text,
                               size_t size);
// Reports E0604 "what: text" where error is not zero; returns whether it is.
bool hd_cuda_check(const hd_cuda_t *cuda, hd_diagnostics_t *diags, int error,
                   const char *what);

// Machine code of a module of PTX for sm (90; 901 is sm_90a), by the driver's
// linker. Several threads may do so at once. name is the kernel's, for
// messages. is_slow: of code that functions may be added to it speaks of a
// "Performance Loss", or would if it had not the code from a run before, and
// hd_cuda_load_code() would know the target.
bool hd_cuda_link(hd_cuda_t *cuda, hd_diagnostics_t *diags, const char *name,
                  int sm, const char *ptx, size_t size, hd_buffer_t *cubin,
                  bool *is_slow);

// Loads machine code, or PTX with its final zero, of which the driver makes
// code as of a whole program, and keeps it in a cache of its own. Several
// threads may do so at once. name as above. The context is current; the library
// is the caller's.
bool hd_cuda_load_code(hd_cuda_t *cuda, hd_diagnostics_t *diags,
                       const char *name, const void *code,
                       hd_cu_library_t *library);

#endif
