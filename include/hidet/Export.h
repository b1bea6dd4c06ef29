// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Marks what libhidet exports. Every public header uses these three.

#ifndef HIDET_EXPORT_H
#define HIDET_EXPORT_H

#define HIDET_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define HIDET_C_BEGIN extern "C" {
#define HIDET_C_END }
#else
#define HIDET_C_BEGIN
#define HIDET_C_END
#endif

#endif
