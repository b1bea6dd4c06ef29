// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments at which functions are measured: every value, or drawn ones.
#ifndef HIDET_UNITTESTS_MATH_INPUTS_H
#define HIDET_UNITTESTS_MATH_INPUTS_H

#include "Math/References.h"
#include "Math/Ulp.h"

// splitmix64, by Steele, Lea and Flood, 2014.
uint64_t draw(uint64_t *state);

// Writes the arguments first, ..., first + n - 1 of a sequence to x and z.
typedef void (*fill_t)(const reference_t *row, const format_t *format,
                       uint64_t step, uint64_t first, uint32_t n, void *x,
                       void *z);

// Every step-th bit pattern of a type of up to 32 bits; z likewise.
void fill_patterns(const reference_t *row, const format_t *format,
                   uint64_t step, uint64_t first, uint32_t n, void *x, void *z);
// Drawn, step being the seed: special numbers first, then half any pattern,
// half where functions are neither 0 nor infinite.
void fill_f64(const reference_t *row, const format_t *format, uint64_t step,
              uint64_t first, uint32_t n, void *x, void *z);
void fill_pairs(const reference_t *row, const format_t *format, uint64_t step,
                uint64_t first, uint32_t n, void *x, void *z);

#endif
