// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ldmatrix and stmatrix: matrices of 8 rows of 16 bytes between shared memory
// and a warp's registers. Lane 8 j + r gives the address of row r of matrix j;
// lane t's register j holds columns 2 (t % 4) and 2 (t % 4) + 1 of row t / 4 of
// matrix j, in 16-bit elements; transposed, rows 2 (t % 4) and + 1 of column
// t / 4 ("9.7.14.5.15: ldmatrix" of the PTX manual, version 8.5).
//   load   slots: register, address, site
//   store  slots: address, site, register
#include "Sim/Matrix.h"
#include "Sim/Check.h"
#include "Sim/Functions.h"

#include <string.h>

enum { ROWS = 8, ELEMENT = 2 };

bool hd_sim_whole_warp(const hd_sim_warp_t *warp) {
  const hd_sim_fiber_t *fiber = NULL;
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < HD_SIM_WARP_SIZE; lane++) {
    lanes += warp->threads[lane] != NULL;
    if (warp->threads[lane])
      fiber = (const hd_sim_fiber_t *)warp->threads[lane];
  }
  if (lanes == HD_SIM_WARP_SIZE)
    return true;
  char name[HD_SIM_NAME_SIZE];
  const hd_sim_site_t *site = fiber->head.site;
  hd_sim_finding(fiber, HD_E0710, site, NULL,
                 "%s is at %s with %u threads of its warp; it takes 32",
                 hd_sim_thread_name(fiber, name),
                 site && site->tensor ? site->tensor : "a matrix instruction",
                 lanes);
  hd_sim_fail(hd_sim_run_of(fiber));
  hd_sim_leave();
}

// The place of half-word e (0 or 1) that lane holds of matrix j: its row and
// the column in it.
static void element_of(unsigned lane, unsigned e, bool transposed,
                       unsigned *row, unsigned *column) {
  unsigned outer = lane / 4, inner = lane % 4 * 2 + e;
  *row = transposed ? inner : outer;
  *column = transposed ? outer : inner;
}

// Does the access of one half-word, or of two that lie side by side, in the row
// that giver's address begins.
static bool touch(hd_sim_thread_t *thread, hd_sim_thread_t *giver,
                  const uint64_t *row_slots, uint64_t address, uint32_t bytes,
                  unsigned how) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  if (!hd_sim_sanitizer_of(fiber))
    return address != 0;
  return hd_sim_touch(fiber, hd_sim_fiber(giver),
                      (const hd_sim_site_t *)(uintptr_t)row_slots[1], address,
                      bytes, how | HD_SIM_BY_ROWS, 0);
}

static void move_lane(const hd_sim_warp_t *warp, unsigned lane, unsigned j,
                      bool transposed, bool store) {
  uint64_t *slots = warp->slots[lane];
  char *reg = (char *)(uintptr_t)slots[store ? 2 : 0] + 4 * j;
  unsigned how = store ? HD_SIM_WRITES : HD_SIM_READS;
  uint32_t bytes = transposed ? ELEMENT : 2 * ELEMENT;
  for (unsigned e = 0; e < 2; e += bytes / ELEMENT, reg += bytes) {
    unsigned row, column;
    element_of(lane, e, transposed, &row, &column);
    const uint64_t *row_slots = &warp->slots[ROWS * j + row][store ? 0 : 1];
    uint64_t address = row_slots[0] ? row_slots[0] + ELEMENT * column : 0;
    char *memory = (char *)(uintptr_t)address;
    bool allowed = touch(warp->threads[lane], warp->threads[ROWS * j + row],
                         row_slots, address, bytes, how);
    if (store && allowed)
      memcpy(memory, reg, bytes);
    else if (!store && allowed)
      memcpy(reg, memory, bytes);
    else if (!store)
      memset(reg, 0, bytes);
  }
}

// Rows are aligned to 16 bytes; the banks serve the 8 of a matrix at once.
static void check_rows(const hd_sim_warp_t *warp, unsigned matrices,
                       bool store) {
  for (unsigned lane = 0; lane < ROWS * matrices; lane++) {
    uint64_t *slots = &warp->slots[lane][store ? 0 : 1];
    hd_sim_fiber_t *fiber = hd_sim_fiber(warp->threads[lane]);
    const hd_sim_site_t *site = (const hd_sim_site_t *)(uintptr_t)slots[1];
    hd_sim_banks_note(hd_sim_sanitizer_of(fiber), fiber, site, slots[0], 16);
    char name[HD_SIM_NAME_SIZE];
    if (slots[0] % 16)
      hd_sim_finding(fiber, HD_E0707, site, NULL,
                     "%s gives a row of '%s' at an address that 16 does not "
                     "divide",
                     hd_sim_thread_name(fiber, name),
                     site ? site->tensor : "shared memory");
  }
}

static void move(hd_sim_warp_t *warp, unsigned matrices, bool transposed,
                 bool store) {
  if (!hd_sim_whole_warp(warp))
    return;
  if (hd_sim_sanitizer_of(hd_sim_fiber(warp->threads[0])))
    check_rows(warp, matrices, store);
  for (unsigned j = 0; j < matrices; j++)
    for (unsigned lane = 0; lane < HD_SIM_WARP_SIZE; lane++)
      move_lane(warp, lane, j, transposed, store);
}

#define MOVES(matrices)                                                        \
  void hd_sim_ldmatrix_x##matrices(hd_sim_warp_t *warp) {                      \
    move(warp, matrices, false, false);                                        \
  }                                                                            \
  void hd_sim_ldmatrix_x##matrices##_trans(hd_sim_warp_t *warp) {              \
    move(warp, matrices, true, false);                                         \
  }                                                                            \
  void hd_sim_stmatrix_x##matrices(hd_sim_warp_t *warp) {                      \
    move(warp, matrices, false, true);                                         \
  }                                                                            \
  void hd_sim_stmatrix_x##matrices##_trans(hd_sim_warp_t *warp) {              \
    move(warp, matrices, true, true);                                          \
  }
MOVES(1)
MOVES(2)
MOVES(4)
