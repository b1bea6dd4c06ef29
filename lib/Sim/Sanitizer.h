// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sanitizer's own data. It runs on one thread, so nothing here is locked.
//
// Order is happens-before, kept as vector clocks. A thread's time goes on at
// each point where others may learn of it. What it knows of the threads of its
// block lies in an hd_sim_clocks_t that it shares with all who know the same:
// after a barrier the whole block has one. What goes on beside the threads is
// done by agents of their own: a thread's asynchronous copies and bulk stores,
// whose time is the number of their group; bulk loads to an mbarrier, whose
// time is its phase; a warpgroup's products, whose time is their group.
// Accesses leave stamps (who, when) in shadow cells, as FastTrack does
// (Flanagan and Freund, PLDI 2009), with the set of readers where one does not
// stand for all. Clocks also say how far each thread's writes were made visible
// to the asynchronous proxy by fences.
#ifndef HIDET_SIM_SANITIZER_H
#define HIDET_SIM_SANITIZER_H

#include "Sim/Check.h"
#include "Support/Map.h"

// --- Clocks ---

typedef struct hd_sim_foreign hd_sim_foreign_t;

// The entries of clocks, in this order: six for each thread, then the block's
// mbarriers, then its warpgroups, then the launches before.
typedef enum hd_sim_entry_kind {
  HD_SIM_ENTRY_THREADS,
  HD_SIM_ENTRY_COPIES,
  HD_SIM_ENTRY_FENCED,        // Writes to shared memory that were fenced.
  HD_SIM_ENTRY_FENCED_GLOBAL, // To global memory.
  HD_SIM_ENTRY_BULK_READS,
  HD_SIM_ENTRY_BULK_WRITES,
  HD_SIM_ENTRY_MBARRIERS,
  HD_SIM_ENTRY_WARPGROUPS,
  HD_SIM_ENTRY_BEFORE, // 1: a thread of this block has waited for them.
} hd_sim_entry_kind_t;

enum { HD_SIM_MBARRIERS = 64 };

static inline uint32_t hd_sim_entry(const hd_sim_run_t *run, uint32_t kind,
                                    uint32_t i) {
  uint32_t mbarriers = run->num_threads * HD_SIM_ENTRY_MBARRIERS;
  if (kind >= HD_SIM_ENTRY_BEFORE)
    return mbarriers + HD_SIM_MBARRIERS + HD_SIM_WARPGROUPS + kind -
           HD_SIM_ENTRY_BEFORE;
  if (kind == HD_SIM_ENTRY_WARPGROUPS)
    return mbarriers + HD_SIM_MBARRIERS + i;
  return kind * run->num_threads + i; // Of mbarriers too.
}
static inline uint32_t hd_sim_entries(const hd_sim_run_t *run) {
  return hd_sim_entry(run, HD_SIM_ENTRY_BEFORE + 1, 0);
}

// Never changed once two share it.
struct hd_sim_clocks {
  hd_sim_run_t *run; // Whose account it is on.
  uint32_t refs;
  uint32_t block;            // The number of the block whose threads it counts.
  uint32_t count;            // Of entries.
  hd_sim_clocks_t *merged;   // While it is being joined: what was joined last.
  hd_sim_clocks_t *bare;     // The same without foreign; made when asked for.
  hd_sim_foreign_t *foreign; // Of other blocks; may be NULL.
  uint32_t at[];
};

// Who did an access, and when.
enum {
  HD_SIM_VALID = 1,
  HD_SIM_STAMP_ATOMIC = 2,
  HD_SIM_STAMP_WRITE = 4,
  HD_SIM_STAMP_PROXY = 8, // By the asynchronous proxy.
};
typedef struct hd_sim_stamp {
  uint32_t block, clock, site;
  uint16_t agent; // An entry of clocks.
  uint8_t flags, scope;
} hd_sim_stamp_t;

// Whether what the stamp stands for comes before what the fiber does now.
bool hd_sim_knows(const hd_sim_fiber_t *fiber, const hd_sim_stamp_t *stamp);
bool hd_sim_clocks_cover(const hd_sim_clocks_t *clocks,
                         const hd_sim_stamp_t *stamp);
// Whether it knows of anything that another block has done.
bool hd_sim_knows_block(const hd_sim_fiber_t *fiber, uint32_t block);
// Whether it knows that some block's entry of that number has come so far.
bool hd_sim_knows_of_any(const hd_sim_fiber_t *fiber, uint32_t entry,
                         uint32_t clock);
// Whether a proxy fence stands between a thread's write and now.
bool hd_sim_fenced(const hd_sim_fiber_t *fiber, const hd_sim_stamp_t *stamp,
                   bool global);

// New clocks that know nothing; a copy; what the fiber knows, its own doings
// left out (it may be shared) or in (it is not). All end the launch where there
// is no memory.
hd_sim_clocks_t *hd_sim_clocks_create(hd_sim_run_t *run, uint32_t block);
hd_sim_clocks_t *hd_sim_clocks_copy(hd_sim_run_t *run,
                                    const hd_sim_clocks_t *from);
hd_sim_clocks_t *hd_sim_clocks_of(hd_sim_fiber_t *fiber);
hd_sim_clocks_t *hd_sim_clocks_snapshot(hd_sim_fiber_t *fiber);
// into, which nobody shares, learns all that from knows; of its own block
// alone.
void hd_sim_clocks_raise(hd_sim_clocks_t *into, const hd_sim_clocks_t *from);
void hd_sim_clocks_learn(hd_sim_run_t *run, hd_sim_clocks_t *into,
                         hd_sim_clocks_t *from);

// Whether an atomic or fence of that scope by a thread of block a is one to
// those of block b.
bool hd_sim_scope_reaches(const hd_sim_run_t *run, uint32_t a, uint32_t b,
                          unsigned scope);
void hd_sim_locations_fini(hd_sim_sanitizer_t *s);

// What an atomic's place has to give to those who acquire.
typedef struct hd_sim_release {
  struct hd_sim_release *next;
  hd_sim_clocks_t *clocks;
  uint32_t scope;
} hd_sim_release_t;

typedef struct hd_sim_location {
  struct hd_sim_location *next;
  hd_sim_release_t *releases;
} hd_sim_location_t;

// --- Shadow memory ---

enum { HD_SIM_READERS = 64 };
typedef struct hd_sim_readers {
  uint32_t count, next_free;
  hd_sim_stamp_t of[HD_SIM_READERS];
} hd_sim_readers_t;

typedef struct hd_sim_cell {
  hd_sim_stamp_t write, read;
  uint32_t more; // 1 + index of further readers and atomics; 0: none.
} hd_sim_cell_t;

// A piece of memory with a cell for each 2^shift bytes.
typedef struct hd_sim_shadow {
  uintptr_t base;
  size_t size;
  unsigned shift;
  hd_sim_cell_t *cells;          // NULL: nobody writes it.
  uint8_t *written;              // A bit a byte; NULL: all are.
  const hd_sim_buffer_t *buffer; // NULL: shared memory.
  hd_sim_readers_t *readers;
  uint32_t num_readers, cap_readers, free_readers;
} hd_sim_shadow_t;

// One access, as it is looked at.
typedef struct hd_sim_access_info {
  hd_sim_fiber_t *fiber;
  const hd_sim_site_t *site;
  const int64_t *indices; // NULL: not known.
  uintptr_t address;
  uint32_t bytes;
  unsigned touch, sync_scope;
  const hd_sim_agent_t *agent; // NULL: the fiber, or its copies.
  bool in_global;              // Not in shared memory.
} hd_sim_access_info_t;

bool hd_sim_shadow_init(hd_sim_run_t *run, hd_sim_shadow_t *shadow,
                        uintptr_t base, size_t size, unsigned shift,
                        const hd_sim_buffer_t *buffer);
void hd_sim_shadow_fini(hd_sim_shadow_t *shadow);
void hd_sim_shadow_clear(hd_sim_shadow_t *shadow);
// Checks and notes an access that lies within. Findings are reported.
void hd_sim_shadow_access(hd_sim_shadow_t *shadow,
                          const hd_sim_access_info_t *access);

// --- Launches before (Dependent.c) ---

// An access to global memory of a launch that may have begun early.
void hd_sim_dependent_access(const hd_sim_access_info_t *access,
                             const hd_sim_buffer_t *buffer);
// The launch is over: somebody must have waited.
void hd_sim_dependent_conclude(hd_sim_sanitizer_t *s);

// --- Banks ---

typedef struct hd_sim_bank_turn hd_sim_bank_turn_t;

void hd_sim_banks_conclude(const hd_sim_sanitizer_t *s, hd_sim_stats_t *stats);

// --- All of it ---

enum { HD_SIM_MAX_FINDINGS = 32 };

// A finding that was reported: what, and the places in the text.
typedef struct hd_sim_known {
  hd_diagnostic_code_t code;
  hd_loc_t here, there;
} hd_sim_known_t;

// A place in the text; unrolled copies of it are one.
typedef struct hd_sim_text_site {
  const hd_sim_site_t *site;
  uint64_t accesses, passes, least; // As in hd_sim_bank_site_t.
  // Since a warp was settled last: how often each lane came by, and where it
  // went each time.
  uint32_t seen[HD_SIM_WARP_SIZE];
  hd_sim_bank_turn_t *turns;
  uint32_t num_turns, cap_turns;
  uint32_t next_touched; // A list of sites; 0 ends it.
} hd_sim_text_site_t;

// What an intrinsic at the site `of` does to the tensor behind a map.
typedef struct hd_sim_map_site {
  struct hd_sim_map_site *next;
  const hd_sim_site_t *of;
  hd_sim_site_t site;
} hd_sim_map_site_t;

struct hd_sim_sanitizer {
  hd_sim_run_t *run;
  uint32_t num_findings, total_findings;
  hd_sim_known_t findings[HD_SIM_MAX_FINDINGS];

  hd_sim_shadow_t *buffers; // One for each of the kernel's.
  uint32_t last_buffer;

  hd_sim_text_site_t *sites; // From 1 on.
  uint32_t num_sites, cap_sites;
  hd_ptr_map_t numbers; // Of sites; on the heap.

  hd_ptr_map_t locations; // By address; on the heap.
  hd_sim_location_t *all_locations;

  hd_sim_map_site_t *map_sites;
  uint32_t first_touched; // The sites that a warp has noted.

  bool waited;                  // For the launches before, by anyone.
  uint64_t events, last_events; // What may wake who spins.
  unsigned idle;
};

// The number of a site. 0: none (NULL, or no memory).
uint32_t hd_sim_site_number(hd_sim_sanitizer_t *s, const hd_sim_site_t *site);

// The site of what an intrinsic at `site` does to the tensor behind a map. It
// lives as long as the sanitizer.
const hd_sim_site_t *hd_sim_map_site(hd_sim_sanitizer_t *s,
                                     const hd_sim_site_t *site,
                                     const char *tensor);

// Fails the launch for lack of memory and leaves.
_Noreturn void hd_sim_no_memory(hd_sim_run_t *run);

// "'a'[3, 4]", "'a'" without indices. Text is HD_SIM_PLACE_SIZE long.
enum { HD_SIM_PLACE_SIZE = 160 };
const char *hd_sim_place_name(const hd_sim_site_t *site, const int64_t *indices,
                              char *text);
// "thread 5 of block 2" of a stamp.
const char *hd_sim_stamp_name(const hd_sim_run_t *run,
                              const hd_sim_stamp_t *stamp, char *text);

#endif
