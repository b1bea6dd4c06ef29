// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What prices were fitted by, beside the machine's properties.
#ifndef HIDET_SCHEDULE_TEMPLATE_FITS_H
#define HIDET_SCHEDULE_TEMPLATE_FITS_H

// Fits.def says what each field is.
typedef struct hd_fits {
#define HD_FIT(field, value, results, meaning) double field;
#include "Schedule/Template/Fits.def"
#undef HD_FIT
} hd_fits_t;

static const hd_fits_t hd_fits = {
#define HD_FIT(field, value, results, meaning) .field = (value),
#include "Schedule/Template/Fits.def"
#undef HD_FIT
};

#endif
