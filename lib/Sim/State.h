// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the simulator's files share: a launch, its workers, the blocks that are
// resident, their threads.
//
// A worker (one CPU thread) owns a few resident blocks and runs them one at a
// time; all state of a block belongs to its worker. What workers share is the
// counter of blocks to start, the stop flag and the diagnostics.
#ifndef HIDET_SIM_STATE_H
#define HIDET_SIM_STATE_H

#include "CodeGen/SimAbi.h"
#include "Sim/Sim.h"

#include <stdatomic.h>

typedef struct hd_sim_run hd_sim_run_t;
typedef struct hd_sim_worker hd_sim_worker_t;
typedef struct hd_sim_resident hd_sim_resident_t;
typedef struct hd_sim_sanitizer hd_sim_sanitizer_t;
typedef struct hd_sim_clocks hd_sim_clocks_t;

typedef enum hd_sim_state {
  HD_SIM_UNBORN, // The coroutine was not called yet.
  HD_SIM_READY,
  HD_SIM_AT_WARP,  // Waits for the other threads of its warp.
  HD_SIM_AT_BLOCK, // Its BLOCK function is asked again.
  HD_SIM_YIELDED,
  HD_SIM_ENDED,
} hd_sim_state_t;

// A copy that has not taken effect.
typedef struct hd_sim_copy {
  char *to;
  const char *from;
  uint32_t bytes, read; // The bytes past read are zeros.
  uint32_t group;       // Counted from 1 by the thread.
} hd_sim_copy_t;

// Where a place (an intrinsic's operand) is, by its indices.
enum { HD_SIM_MAX_RANK = 8, HD_SIM_PLACES = 4 };
typedef struct hd_sim_place {
  const hd_sim_site_t *site;
  int64_t indices[HD_SIM_MAX_RANK];
  int64_t bound; // Of the bad axis.
  int bad_axis;  // Whose index is out of bounds; -1: none.
} hd_sim_place_t;

// A thread of the kernel as it is run here: all that is known of it.
typedef struct hd_sim_fiber {
  hd_sim_thread_t head; // What host code sees.
  void *frame;          // Of the coroutine.
  hd_sim_state_t state;
  // Barrier: that it has arrived at, and when that one was last completed.
  int32_t barrier; // -1: none.
  uint32_t barrier_round;
  // Asynchronous copies, oldest first; first .. count are under way.
  hd_sim_copy_t *copies;
  uint32_t first_copy, num_copies, cap_copies;
  uint32_t open_group; // The number that the next commit closes.
  // Bulk stores (Bulk.h), oldest first, and their groups.
  struct hd_sim_bulk *stores;
  uint32_t open_bulk;             // As open_group.
  uint32_t bulk_read, bulk_wrote; // Groups that were waited for.
  uint32_t cluster_round;         // Of the cluster barrier it has arrived at.
  uint32_t cluster_waited;        // Rounds of it that it knows to be over.
  bool at_cluster;                // It has arrived and not waited.
  // The sanitizer's (SimClocks.h).
  hd_sim_clocks_t *clocks;        // What it knows of other threads.
  hd_sim_clocks_t *released;      // At its last releasing fence.
  hd_sim_clocks_t *acquiring;     // Read by relaxed loads; for a fence.
  uint32_t clock;                 // Its own time.
  uint32_t waited_group;          // Its copies up to this group have landed.
  uint32_t release_scope;         // Of the fence.
  uint32_t fenced, fenced_global; // Its time at its last proxy fences.
  // When it has waited for groups of its copies, in order.
  struct hd_sim_waited {
    uint32_t group, clock;
  } *waited;
  uint32_t num_waited, cap_waited;
  hd_sim_place_t places[HD_SIM_PLACES]; // The last operands of intrinsics.
} hd_sim_fiber_t;

enum { HD_SIM_BARRIERS = 16, HD_SIM_WARP_SIZE = 32, HD_SIM_WARPGROUPS = 8 };
typedef struct hd_sim_warpgroup hd_sim_warpgroup_t; // Wgmma.c

typedef struct hd_sim_named_barrier {
  uint32_t expected, arrived, round;
  hd_sim_clocks_t *joined;   // Of those that have arrived.
  hd_sim_clocks_t *complete; // Of the last completed round.
} hd_sim_named_barrier_t;

// Clocks before and after somebody learned something, for the next one who
// knew the same.
typedef struct hd_sim_memo {
  hd_sim_clocks_t *from, *to;
} hd_sim_memo_t;

// The cluster's barrier, kept by each block for its own threads.
typedef struct hd_sim_cluster {
  uint32_t arrived, ended; // Threads: in this round; for good.
  uint32_t round;          // Of the first block alone.
  hd_sim_clocks_t *joined, *complete;
  hd_sim_memo_t memo;
} hd_sim_cluster_t;

// A block that has begun and not ended, or a place for one.
struct hd_sim_resident {
  hd_sim_block_t head; // What host code sees.
  hd_sim_worker_t *worker;
  hd_sim_resident_t *next;  // Of the launch's list of all.
  hd_sim_resident_t **unit; // The cluster's blocks, by rank.
  uint32_t number;          // The block's linear index in the grid.
  uint32_t num_threads, num_live;
  hd_sim_fiber_t *threads;
  char *frames;
  size_t frame_stride;
  hd_sim_named_barrier_t barriers[HD_SIM_BARRIERS];
  hd_sim_cluster_t cluster;
  struct hd_sim_mbarrier *mbarriers;
  uint32_t num_mbarriers, cap_mbarriers;
  hd_sim_warpgroup_t *warpgroups[HD_SIM_WARPGROUPS]; // NULL: no products.
  uint32_t free_registers;      // Given back by setmaxnreg_dec.
  uint16_t registers[32];       // Of each warp, a thread.
  struct hd_sim_shadow *shadow; // Of shared memory; the sanitizer's.
  struct hd_sim_visits *visits; // By other blocks; the sanitizer's.
  bool active, begun;
};

struct hd_sim_worker {
  hd_sim_run_t *run;
  uint64_t random;
  // Resident units (a cluster of blocks each), unit_size blocks a unit.
  hd_sim_resident_t ***units;
  uint32_t num_units, cap_units;
};

// One launch.
struct hd_sim_run {
  const hd_sim_kernel_t *kernel;
  const hd_sim_options_t *options;
  hd_diagnostics_t *diags;
  hd_sim_sanitizer_t *sanitizer; // NULL without.
  uint32_t num_blocks, num_units, unit_size, num_threads;
  uint32_t num_workers, max_resident; // Units a worker.
  atomic_uint next_unit;
  atomic_bool stop;
  atomic_bool failed;
  atomic_uint ended_blocks;
  atomic_size_t memory_left; // Of the budget's limit; SIZE_MAX: no limit.
  atomic_bool over_limit;    // More was asked for.
  pthread_mutex_t lock;      // Of the list.
  hd_sim_resident_t *residents;
};

static inline hd_sim_fiber_t *hd_sim_fiber(hd_sim_thread_t *thread) {
  return (hd_sim_fiber_t *)thread;
}
static inline hd_sim_resident_t *hd_sim_resident(hd_sim_block_t *block) {
  return (hd_sim_resident_t *)block;
}
static inline hd_sim_resident_t *
hd_sim_resident_of(const hd_sim_fiber_t *fiber) {
  return (hd_sim_resident_t *)fiber->head.block;
}
static inline hd_sim_run_t *hd_sim_run_of(const hd_sim_fiber_t *fiber) {
  return hd_sim_resident_of(fiber)->worker->run;
}
static inline hd_sim_sanitizer_t *
hd_sim_sanitizer_of(const hd_sim_fiber_t *fiber) {
  return hd_sim_run_of(fiber)->sanitizer;
}
static inline hd_loc_t hd_sim_site_loc(const hd_sim_site_t *site) {
  return site ? (hd_loc_t){site->source, site->offset} : (hd_loc_t){0, 0};
}

// xorshift64*; state nonzero.
static inline uint64_t hd_sim_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1dull;
}

// "thread 5 of block (1, 0)": the coordinates of the block in as many axes as
// the grid has. Text is at least HD_SIM_NAME_SIZE long; returns it.
enum { HD_SIM_NAME_SIZE = 96 };
const char *hd_sim_thread_name(const hd_sim_fiber_t *fiber, char *text);

// Zeroed memory for free(), taken from the budget's limit for as long as the
// launch lasts: shadows, frames, blocks. align is a power of two, or 0. NULL:
// there is no more. hd_sim_charge() takes bytes that are allocated elsewhere.
void *hd_sim_alloc(hd_sim_run_t *run, size_t align, size_t size);
bool hd_sim_charge(hd_sim_run_t *run, size_t bytes);
// Gives bytes back before the launch has ended.
void hd_sim_refund(hd_sim_run_t *run, size_t bytes);
// Reports what NULL was: E0901 where the limit is reached, else E0904 with the
// text. Returns false.
bool hd_sim_report_memory(hd_sim_run_t *run, const char *text);

// Marks the launch as failed; all blocks are left as soon as may be.
void hd_sim_fail(hd_sim_run_t *run);

// Leaves the block that is being run, from whatever depth. The launch must
// have failed.
_Noreturn void hd_sim_leave(void);

// Resident.c. A place for one block, with all its memory but the frames;
// NULL: no memory. The launch's list owns it.
hd_sim_resident_t *hd_sim_resident_create(hd_sim_worker_t *worker);
void hd_sim_resident_destroy(hd_sim_resident_t *block);
// Makes the place hold block `rank` of cluster `unit`; and its end.
void hd_sim_resident_begin(hd_sim_resident_t *block, uint32_t unit,
                           uint32_t rank);
void hd_sim_resident_end(hd_sim_resident_t *block);

// Cluster.c: a thread has ended (it is counted already).
void hd_sim_thread_ended(hd_sim_fiber_t *fiber);
// Why a thread waits for ever, where it does so at this: a finding and true.
bool hd_sim_cluster_explain(const hd_sim_fiber_t *fiber);
bool hd_sim_mbarrier_explain(const hd_sim_fiber_t *fiber);
// A thread that waits for bytes alone, which nobody will send; NULL: none.
const hd_sim_fiber_t *hd_sim_mbarrier_short(const hd_sim_resident_t *block);
bool hd_sim_registers_explain(const hd_sim_fiber_t *fiber);
bool hd_sim_wgmma_explain(const hd_sim_fiber_t *fiber);
// Roles.c: registers that each thread of a block begins with, at most.
uint32_t hd_sim_launch_registers(uint32_t num_threads);

// Watch.c: fails the launch once the budget's deadline has passed or the
// work is interrupted, between begin and end.
typedef struct hd_sim_watch {
  hd_sim_run_t *run;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool over, started;
  hd_exhausted_t stopped; // Why, where it has failed the launch.
} hd_sim_watch_t;
void hd_sim_watch_begin(hd_sim_watch_t *watch, hd_sim_run_t *run);
// Why it failed the launch, though that may not hold any more.
hd_exhausted_t hd_sim_watch_end(hd_sim_watch_t *watch);

// Schedule.c. Runs one resident unit as far as it goes.
typedef enum hd_sim_progress {
  HD_SIM_DONE,  // Every thread has ended.
  HD_SIM_STUCK, // What is left waits for other blocks.
} hd_sim_progress_t;
hd_sim_progress_t hd_sim_unit_run(hd_sim_worker_t *worker,
                                  hd_sim_resident_t **unit);
// Tells why nothing in the unit can go on.
void hd_sim_unit_explain(hd_sim_resident_t *const *unit, uint32_t num_blocks);

// Guard.c: runs body(argument) and says how it came back.
typedef enum hd_sim_fault {
  HD_SIM_WHOLE,      // It returned.
  HD_SIM_LEFT,       // hd_sim_leave()
  HD_SIM_BAD_ACCESS, // hd_sim_handle_fault()
} hd_sim_fault_t;
hd_sim_fault_t hd_sim_guard(void (*body)(void *), void *argument);

#endif
