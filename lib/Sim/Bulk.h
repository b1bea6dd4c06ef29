// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mbarriers and the copies of the copy engine, as the simulator's files share
// them. All state is a block's own.
#ifndef HIDET_SIM_BULK_H
#define HIDET_SIM_BULK_H

#include "Sim/Check.h"
#include "Sim/Map.h"
#include "Sim/Sanitizer.h"

// What one copy moves: bytes as they lie, or a box of a tensor. A load's bytes
// may come from shared memory, too (then `global` lies there), or with it.
typedef struct hd_sim_piece {
  const hd_sim_map_t *map; // NULL: bytes.
  char *shared, *global;   // global: without a map; NULL: they are held.
  char held[16];
  uint32_t bytes;
  int32_t at[HD_MAP_MAX_RANK];          // The box's first element.
  uint16_t offsets[HD_MAP_MAX_SPATIAL]; // im2col
} hd_sim_piece_t;

// A bulk load that has not landed.
typedef struct hd_sim_load {
  struct hd_sim_load *next;
  hd_sim_piece_t piece;
  uint32_t phase; // Of its mbarrier, when it was issued.
} hd_sim_load_t;

// A bulk store or reduction.
typedef struct hd_sim_bulk {
  struct hd_sim_bulk *next;
  hd_sim_piece_t piece;
  const hd_sim_site_t *site; // Of the place in shared memory.
  uint32_t group;
  bool adds;
  char *taken; // What was read, once it was; NULL before.
} hd_sim_bulk_t;

typedef struct hd_sim_mbarrier {
  uint32_t offset;           // In shared memory.
  uint32_t count, pending;   // Arrivals: of a phase, still to come.
  int64_t expected, arrived; // Bytes of this phase; carried over where unequal.
  uint32_t phase;            // Phases that are over.
  uint32_t made_by;          // The thread.
  bool fenced;               // The copy engine and the cluster may see it.
  uint32_t told_round;       // Of the cluster's barrier behind that; 0: none.
  hd_sim_load_t *first, **last; // Loads under way, oldest first.
  const hd_sim_site_t *site;    // Of its first use.
  // The sanitizer's.
  uint32_t made_at;                   // Its maker's time.
  hd_sim_clocks_t *joined, *complete; // Of this phase and the last one.
  hd_sim_memo_t memo;
} hd_sim_mbarrier_t;

// The mbarrier at the place that two slots name, in `block`'s shared memory.
// NULL: it was out of bounds (reported). The launch ends where there is none.
hd_sim_mbarrier_t *hd_sim_mbarrier_at(hd_sim_fiber_t *fiber,
                                      hd_sim_resident_t *block,
                                      const uint64_t *slots);
// The block of that rank of the fiber's cluster; the launch ends where it
// cannot be reached.
hd_sim_resident_t *hd_sim_peer(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                               int32_t rank);
// Bytes of a copy have arrived.
void hd_sim_mbarrier_arrived(hd_sim_resident_t *block, hd_sim_mbarrier_t *m,
                             uint32_t bytes);
// "mbarrier 'full'", "the mbarrier at byte 64". Text: HD_SIM_PLACE_SIZE.
const char *hd_sim_mbarrier_name(const hd_sim_mbarrier_t *m, char *text);

// The block's last thread has ended; and its place is used again.
void hd_sim_mbarriers_end(hd_sim_fiber_t *last);
// Who waits for the round of the cluster's barrier at which the thread arrives
// now may use the mbarriers that it has made and fenced.
void hd_sim_mbarriers_tell(const hd_sim_fiber_t *fiber);
void hd_sim_mbarriers_forget(hd_sim_resident_t *block);

// Likewise of products (Wgmma.c).
void hd_sim_warpgroups_end(hd_sim_fiber_t *last);
void hd_sim_warpgroups_forget(hd_sim_resident_t *block);

// A load begins; it lands now or where its phase is waited for.
void hd_sim_load_begin(hd_sim_fiber_t *fiber, hd_sim_resident_t *block,
                       hd_sim_mbarrier_t *m, const hd_sim_piece_t *piece);
void hd_sim_load_land(const hd_sim_piece_t *piece);
// Likewise into `block`, where the slots name its place and its mbarrier as if
// it were the own one; `from` is the site of what is read.
void hd_sim_load_into(hd_sim_fiber_t *fiber, hd_sim_resident_t *block,
                      const uint64_t *mbarrier, const hd_sim_site_t *to,
                      const hd_sim_site_t *from, hd_sim_piece_t piece);
// A store begins, in the thread's open group.
void hd_sim_store_begin(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                        const hd_sim_piece_t *piece, bool adds);
void hd_sim_stores_end(hd_sim_resident_t *block);
void hd_sim_stores_forget(hd_sim_fiber_t *fiber);

// Box.c. Bytes that a box has, those outside the tensor included; copies it
// to shared memory; from it, or its image, to the tensor; the image (as it lies
// in shared memory) has hd_sim_box_span() bytes.
uint32_t hd_sim_box_bytes(const hd_sim_map_t *map);
uint32_t hd_sim_box_span(const hd_sim_map_t *map);
void hd_sim_box_read(const hd_sim_piece_t *piece);
void hd_sim_box_write(const hd_sim_piece_t *piece, const char *image,
                      bool adds);
// Whether some element of the box lies in the tensor.
bool hd_sim_box_meets(const hd_sim_piece_t *piece);
// Runs of bytes of the tensor that lie in the box, for the sanitizer.
typedef void (*hd_sim_run_fn)(void *argument, char *address, uint32_t bytes);
void hd_sim_box_walk(const hd_sim_piece_t *piece, hd_sim_run_fn run,
                     void *argument);

// An error of the launch, sanitized or not: reports and leaves.
_Noreturn void hd_sim_refuse(hd_sim_fiber_t *fiber, hd_diagnostic_code_t code,
                             const hd_sim_site_t *site, const char *text, ...)
    __attribute__((format(printf, 4, 5)));
_Noreturn void hd_sim_no_room(hd_sim_run_t *run);

static inline const hd_sim_site_t *hd_sim_site_of(const uint64_t *slots) {
  return (const hd_sim_site_t *)(uintptr_t)slots[1];
}

#endif
