// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a product's operands and its result take by device memory.
#include "Schedule/Product/PriceState.h"
#include "Schedule/Template/Fits.h"

#include <math.h>

bool hd_load_is_direct(const hd_load_t *l) {
  return l->c->figures[HD_FIGURE_PASSING] <= 0;
}

bool hd_load_reads_image(const hd_load_t *l) {
  return l->c->template->reads[HD_PRODUCT_IMAGE];
}

bool hd_load_computes_narrow(const hd_load_t *l) {
  return hd_load_is_direct(l) && l->bm <= 8 &&
         l->form->b.kept < hd_scalar_bits(l->form->type);
}

// Bytes that are in device memory, each once. Blocks one below the other ask
// for the same of b; where they are of several clusters, not quite at a time.
static double moved_bytes(const hd_load_t *l) {
  const int64_t *sizes = l->form->sizes;
  double m = (double)sizes[HD_AXIS_M], n = (double)sizes[HD_AXIS_N],
         k = (double)sizes[HD_AXIS_K];
  double again = l->split > 1 && m > l->bm ? hd_fits.product_again : 1;
  return (double)sizes[HD_AXIS_BATCH] *
         (m * k * l->a->bytes + n * k * l->form->b.bytes * again +
          m * n * l->bytes);
}

// Microseconds that b takes to come from memory through rings, of which no more
// comes than blocks have asked for at a time, in the time that a load takes
// then; blocks one below the other ask for the same. Of what is read to
// registers heads do not say how much that is; kernels that read images ask for
// all rows at once.
static double asking_us(const hd_load_t *l) {
  if (hd_load_is_direct(l) || hd_load_reads_image(l))
    return 0;
  const int64_t *sizes = l->form->sizes;
  double stages = fmin((double)l->c->figures[HD_FIGURE_STAGES], HD_LOAD_DEEP);
  double bytes = (double)sizes[HD_AXIS_BATCH] * (double)sizes[HD_AXIS_N] *
                 (double)sizes[HD_AXIS_K] * l->form->b.kept / 8;
  double below = ceil((double)sizes[HD_AXIS_M] / l->bm);
  double apart = fmax(l->at_once / below, 1);
  double asked =
      apart * fmax(stages - 1, 1) * l->bn * l->bk * l->form->b.kept / 8;
  return bytes / asked * l->machine->memory_crowd_cycles / l->machine->mhz;
}

// How much longer memory takes where rows of b go to registers in short pieces,
// one a step: of few rows 1.1 times with pieces of 1 KiB.
static double piece_factor(const hd_load_t *l) {
  bool reads =
      hd_load_is_direct(l) && l->bm <= 8 && !hd_load_computes_narrow(l);
  double pieces = reads ? l->machine->row_bytes / (l->bk * l->bytes) : 1;
  return 1 + hd_fits.product_short * (fmax(pieces, 1) - 1);
}

double hd_load_memory_us(const hd_load_t *l) {
  return fmax(moved_bytes(l) / l->machine->gbs * 1e-3 * piece_factor(l),
              asking_us(l));
}
