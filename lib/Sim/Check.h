// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sanitizer, as the rest of the simulator sees it. A fiber without a
// sanitizer passes every check.
#ifndef HIDET_SIM_CHECK_H
#define HIDET_SIM_CHECK_H

#include "Sim/State.h"

// NULL: no memory.
hd_sim_sanitizer_t *hd_sim_sanitizer_create(hd_sim_run_t *run);
void hd_sim_sanitizer_destroy(hd_sim_sanitizer_t *sanitizer);
// Fills in stats (may be NULL). False where there were findings.
bool hd_sim_sanitizer_conclude(hd_sim_sanitizer_t *sanitizer,
                               hd_sim_stats_t *stats);

void hd_sim_check_begin_block(hd_sim_sanitizer_t *sanitizer,
                              hd_sim_resident_t *block);
void hd_sim_check_end_block(hd_sim_sanitizer_t *sanitizer,
                            hd_sim_resident_t *block);
// Frees what the sanitizer keeps with the place of a block.
void hd_sim_check_drop_block(hd_sim_sanitizer_t *sanitizer,
                             hd_sim_resident_t *block);

// Called while all that is resident spins. True: it will for ever (reported).
bool hd_sim_check_spinning(hd_sim_sanitizer_t *sanitizer,
                           hd_sim_worker_t *worker);
// Notes that something changed that a spinning thread may wait for.
void hd_sim_check_event(const hd_sim_fiber_t *fiber);

// Notes that the thread's lane touches shared memory.
void hd_sim_banks_note(hd_sim_sanitizer_t *s, const hd_sim_fiber_t *fiber,
                       const hd_sim_site_t *site, uintptr_t address,
                       uint32_t bytes);
// Counts bank conflicts of what one warp has noted.
void hd_sim_banks_settle(hd_sim_sanitizer_t *sanitizer);

// --- Accesses ---

typedef enum hd_sim_touch {
  HD_SIM_READS = 1,
  HD_SIM_WRITES = 2,
  HD_SIM_ATOMIC = 4,
  HD_SIM_COPIES = 8,   // Done by the thread's asynchronous copies.
  HD_SIM_BY_ROWS = 16, // A part of a row that was noted for the banks as one.
  HD_SIM_PROXY = 32,   // Done by the asynchronous proxy.
  HD_SIM_ENGINE = HD_SIM_PROXY | HD_SIM_BY_ROWS, // By hardware, much at once.
} hd_sim_touch_t;

// An intrinsic's access of bytes at address: bounds, alignment, initialization,
// order. giver: the thread that gave the address, which may be another one of
// the warp. touch: hd_sim_touch_t; sync_scope: of atomics (hd_sync_scope_t).
// False where it must not be done; address 0 stands for a place that was out of
// bounds.
bool hd_sim_touch(hd_sim_fiber_t *fiber, const hd_sim_fiber_t *giver,
                  const hd_sim_site_t *site, uintptr_t address, uint32_t bytes,
                  unsigned touch, unsigned sync_scope);

// Who does an access in the fiber's place: an entry of the block's clocks, and
// its time.
typedef struct hd_sim_agent {
  uint32_t block, entry, clock;
} hd_sim_agent_t;

// Likewise, in the place of the agent. The memory may be another block's of the
// cluster.
bool hd_sim_touch_as(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                     uintptr_t address, uint32_t bytes, unsigned touch,
                     const hd_sim_agent_t *agent);

// An access to an element of a register tensor: accumulators under way are not
// to be touched.
void hd_sim_check_registers(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                            int64_t element);

// --- Order ---

// A thread gives what it knows to *joined (made where NULL) and goes on to its
// next time; a thread that had given takes all that was joined.
void hd_sim_sync_give(hd_sim_fiber_t *fiber, hd_sim_clocks_t **joined);
// The same of what orders no memory: that the block has begun, and which phases
// of mbarriers the thread knows to be over, with the copies that they count.
void hd_sim_sync_give_phases(hd_sim_fiber_t *fiber, hd_sim_clocks_t **joined);
void hd_sim_sync_take(hd_sim_fiber_t *fiber, hd_sim_clocks_t *joined);
// Drops the reference and sets it to NULL.
void hd_sim_sync_drop(hd_sim_clocks_t **clocks);
// The threads of a warp that take part learn all from each other.
void hd_sim_sync_warp(const hd_sim_warp_t *warp);
// order: hd_order_t, scope: hd_sync_scope_t, of an atomic or a fence.
void hd_sim_sync_acquire(hd_sim_fiber_t *fiber, uintptr_t address,
                         unsigned order, unsigned scope);
// read_modify_write: earlier releases at the place go on.
void hd_sim_sync_release(hd_sim_fiber_t *fiber, uintptr_t address,
                         unsigned order, unsigned scope,
                         bool read_modify_write);
void hd_sim_sync_fence(hd_sim_fiber_t *fiber, unsigned order, unsigned scope);
// The thread's copies up to group have landed and it knows.
void hd_sim_sync_copies(hd_sim_fiber_t *fiber, uint32_t group);

void hd_sim_memo_drop(hd_sim_memo_t *memo);
// The fiber gives what it knows to the block's *joined (made where NULL) and
// goes on to its next time; it learns what clocks (may be NULL) know; it learns
// that an entry of its block has come so far.
void hd_sim_sync_arrive(hd_sim_fiber_t *fiber, const hd_sim_resident_t *block,
                        hd_sim_clocks_t **joined);
void hd_sim_sync_learn(hd_sim_fiber_t *fiber, hd_sim_clocks_t *clocks,
                       hd_sim_memo_t *memo);
void hd_sim_sync_mark(hd_sim_fiber_t *fiber, uint32_t entry, uint32_t clock,
                      hd_sim_memo_t *memo);
// All that the fiber knows to be written is seen by the asynchronous proxy.
void hd_sim_sync_proxy_fence(hd_sim_fiber_t *fiber, bool global);
// The threads of all blocks of a cluster learn what was joined.
void hd_sim_sync_cluster(hd_sim_resident_t *const *unit, uint32_t num_blocks);

// A thread of another block (agent NULL), or an agent in its place, touches
// this one's shared memory; its last thread has ended.
void hd_sim_check_visit(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                        hd_sim_resident_t *block, const hd_sim_agent_t *agent);
void hd_sim_check_visits(hd_sim_fiber_t *last);

// --- Findings ---

// Reports a finding once for each pair of places in the text. True where it is
// the first, so that notes may follow. text: a printf format. Under sanitize or
// not.
bool hd_sim_finding(const hd_sim_fiber_t *fiber, hd_diagnostic_code_t code,
                    const hd_sim_site_t *site, const hd_sim_site_t *other,
                    const char *text, ...)
    __attribute__((format(printf, 5, 6)));

// Explain.c: whether two lanes that wait at a warp's collective wait for the
// same one; reports and fails the launch where not.
bool hd_sim_collective_agrees(const hd_sim_fiber_t *a, const hd_sim_fiber_t *b);

#endif
