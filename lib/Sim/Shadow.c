// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shadow memory: who wrote and who read each element last, and what was never
// written.
#include "Sim/Sanitizer.h"

#include <stdlib.h>
#include <string.h>

// --- Regions ---

static size_t cells_of(size_t size, unsigned shift) {
  return (size + ((size_t)1 << shift) - 1) >> shift;
}

bool hd_sim_shadow_init(hd_sim_run_t *run, hd_sim_shadow_t *shadow,
                        uintptr_t base, size_t size, unsigned shift,
                        const hd_sim_buffer_t *buffer) {
  *shadow = (hd_sim_shadow_t){
      .base = base, .size = size, .shift = shift, .buffer = buffer};
  if (buffer)
    shadow->written = buffer->written;
  else
    shadow->written = hd_sim_alloc(run, 0, size / 8 + 1);
  if (!buffer && !shadow->written)
    return false;
  if (buffer && buffer->read_only)
    return true;
  shadow->cells =
      hd_sim_alloc(run, 0, (cells_of(size, shift) + 1) * sizeof *shadow->cells);
  return shadow->cells != NULL;
}

void hd_sim_shadow_fini(hd_sim_shadow_t *shadow) {
  free(shadow->cells);
  free(shadow->readers);
  if (!shadow->buffer)
    free(shadow->written);
}

void hd_sim_shadow_clear(hd_sim_shadow_t *shadow) {
  memset(shadow->cells, 0,
         cells_of(shadow->size, shadow->shift) * sizeof *shadow->cells);
  memset(shadow->written, 0, shadow->size / 8 + 1);
  shadow->num_readers = 0;
  shadow->free_readers = 0;
}

static hd_sim_readers_t *readers_of(hd_sim_shadow_t *shadow,
                                    const hd_sim_cell_t *cell) {
  return cell->more ? &shadow->readers[cell->more - 1] : NULL;
}

static void add_readers(hd_sim_run_t *run, hd_sim_shadow_t *shadow,
                        hd_sim_cell_t *cell) {
  if (shadow->free_readers) {
    cell->more = shadow->free_readers;
    shadow->free_readers = shadow->readers[cell->more - 1].next_free;
  } else {
    if (shadow->num_readers == shadow->cap_readers) {
      uint32_t capacity = shadow->cap_readers ? shadow->cap_readers * 2 : 64;
      size_t more = (capacity - shadow->cap_readers) * sizeof *shadow->readers;
      void *readers =
          hd_sim_charge(run, more)
              ? realloc(shadow->readers, capacity * sizeof *shadow->readers)
              : NULL;
      if (!readers)
        hd_sim_no_memory(run);
      shadow->readers = readers;
      shadow->cap_readers = capacity;
    }
    cell->more = ++shadow->num_readers;
  }
  shadow->readers[cell->more - 1].count = 0;
}

static void drop_readers(hd_sim_shadow_t *shadow, hd_sim_cell_t *cell) {
  if (!cell->more)
    return;
  shadow->readers[cell->more - 1].next_free = shadow->free_readers;
  shadow->free_readers = cell->more;
  cell->more = 0;
}

// Makes cells finer, for an access that is smaller than they are.
static void refine(hd_sim_run_t *run, hd_sim_shadow_t *shadow, unsigned shift) {
  size_t count = cells_of(shadow->size, shift);
  hd_sim_cell_t *cells = hd_sim_alloc(run, 0, (count + 1) * sizeof *cells);
  if (!cells)
    hd_sim_no_memory(run);
  for (size_t i = 0; i < count; i++) {
    size_t from = i >> (shadow->shift - shift);
    bool first = from << (shadow->shift - shift) == i;
    cells[i] = shadow->cells[from];
    if (first || !cells[i].more)
      continue;
    cells[i].more = 0; // The first keeps the list; the others get copies.
    add_readers(run, shadow, &cells[i]);
    *readers_of(shadow, &cells[i]) = *readers_of(shadow, &shadow->cells[from]);
  }
  hd_sim_refund(run, (cells_of(shadow->size, shadow->shift) + 1) *
                         sizeof *shadow->cells);
  free(shadow->cells);
  shadow->cells = cells;
  shadow->shift = shift;
}

// --- Findings ---

static bool is_of(const hd_sim_run_t *run, const hd_sim_stamp_t *stamp,
                  hd_sim_entry_kind_t kind) {
  return stamp->agent >= hd_sim_entry(run, kind, 0) &&
         stamp->agent < hd_sim_entry(run, kind + 1, 0);
}

static const char *verb(const hd_sim_access_info_t *access) {
  if (access->touch & HD_SIM_ATOMIC)
    return access->touch & HD_SIM_PROXY ? "reduces into" : "does an atomic on";
  bool writes = access->touch & HD_SIM_WRITES;
  if (access->touch & HD_SIM_COPIES)
    return "copies to";
  if (access->touch & HD_SIM_PROXY)
    return writes ? "lets the copy engine write" : "lets the hardware read";
  return writes ? "writes" : "reads";
}

static const char *past_verb(const hd_sim_run_t *run,
                             const hd_sim_stamp_t *stamp) {
  if (stamp->flags & HD_SIM_STAMP_ATOMIC)
    return "did an atomic on";
  if (is_of(run, stamp, HD_SIM_ENTRY_COPIES))
    return "copies to by cp_async";
  return stamp->flags & HD_SIM_STAMP_WRITE ? "wrote" : "read";
}

// A copy that its own thread has not waited for.
static bool is_under_way(const hd_sim_access_info_t *access,
                         const hd_sim_stamp_t *stamp) {
  const hd_sim_resident_t *block = hd_sim_resident_of(access->fiber);
  const hd_sim_run_t *run = hd_sim_run_of(access->fiber);
  if (stamp->block != block->number || !is_of(run, stamp, HD_SIM_ENTRY_COPIES))
    return false;
  uint32_t thread = stamp->agent - hd_sim_entry(run, HD_SIM_ENTRY_COPIES, 0);
  return block->threads[thread].waited_group < stamp->clock;
}

// What was left out, where an asynchronous agent may still be at it. NULL: it
// is a race between threads.
static const char *missing_wait(const hd_sim_run_t *run,
                                const hd_sim_stamp_t *stamp) {
  if (is_of(run, stamp, HD_SIM_ENTRY_MBARRIERS))
    return stamp->flags & HD_SIM_STAMP_WRITE
               ? "may still be writing: the phase of its mbarrier was not "
                 "waited for"
               : "may still be reading: the phase of its mbarrier is not known "
                 "to be over";
  if (is_of(run, stamp, HD_SIM_ENTRY_WARPGROUPS))
    return "may still be reading: there is no wgmma_wait for it";
  if (is_of(run, stamp, HD_SIM_ENTRY_BULK_READS))
    return "may still be copying: there is no bulk_wait_read for it";
  if (is_of(run, stamp, HD_SIM_ENTRY_BULK_WRITES))
    return "may still be writing in bulk: there is no bulk_wait for it";
  return NULL;
}

static void report_conflict(const hd_sim_access_info_t *access,
                            const hd_sim_stamp_t *stamp) {
  hd_sim_run_t *run = hd_sim_run_of(access->fiber);
  const hd_sim_site_t *other = run->sanitizer->sites[stamp->site].site;
  char me[HD_SIM_NAME_SIZE], you[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  hd_sim_thread_name(access->fiber, me);
  hd_sim_stamp_name(run, stamp, you);
  hd_sim_place_name(access->site, access->indices, place);
  const char *missing = missing_wait(run, stamp);
  bool reported;
  if (missing)
    reported =
        hd_sim_finding(access->fiber, HD_E0705, access->site, other,
                       "%s %s %s, which %s %s (as far as this thread knows)",
                       me, verb(access), place, you, missing);
  else if (is_under_way(access, stamp))
    reported = hd_sim_finding(
        access->fiber, HD_E0705, access->site, other,
        "%s %s %s, which a cp_async of %s may still be writing: it has not "
        "waited for it",
        me, verb(access), place, you);
  else if (hd_sim_knows(access->fiber, stamp))
    reported = hd_sim_finding(access->fiber, HD_E0711, access->site, other,
                              "%s %s %s, which %s wrote; no "
                              "fence_proxy_async%s stands between",
                              me, verb(access), place, you,
                              access->in_global ? "_global" : "");
  else
    reported =
        hd_sim_finding(access->fiber, HD_E0703, access->site, other,
                       "%s %s %s, which %s %s; nothing orders the two", me,
                       verb(access), place, you, past_verb(run, stamp));
  if (reported)
    hd_note(run->diags, hd_sim_site_loc(other), "the other access, by %s", you);
}

static void report_unwritten(const hd_sim_access_info_t *access) {
  char me[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  hd_sim_finding(access->fiber, HD_E0702, access->site, NULL,
                 "%s reads %s, which nobody has written",
                 hd_sim_thread_name(access->fiber, me),
                 hd_sim_place_name(access->site, access->indices, place));
}

// --- Cells ---

// Whether an earlier access and this one, one of them a write, may stand
// unordered: atomics that reach each other do.
static bool is_allowed(const hd_sim_access_info_t *access,
                       const hd_sim_stamp_t *stamp) {
  // A thread's write is not seen by the asynchronous proxy without a fence.
  bool crosses = (access->touch & HD_SIM_PROXY) &&
                 (stamp->flags & HD_SIM_STAMP_WRITE) &&
                 !(stamp->flags & HD_SIM_STAMP_PROXY);
  if (hd_sim_knows(access->fiber, stamp))
    return !crosses || hd_sim_fenced(access->fiber, stamp, access->in_global);
  if (!(access->touch & HD_SIM_ATOMIC) || !(stamp->flags & HD_SIM_STAMP_ATOMIC))
    return false;
  unsigned scope =
      access->sync_scope < stamp->scope ? access->sync_scope : stamp->scope;
  return hd_sim_scope_reaches(hd_sim_run_of(access->fiber),
                              hd_sim_resident_of(access->fiber)->number,
                              stamp->block, scope);
}

static bool check_stamp(const hd_sim_access_info_t *access,
                        const hd_sim_stamp_t *stamp) {
  if (!(stamp->flags & HD_SIM_VALID) || is_allowed(access, stamp))
    return true;
  report_conflict(access, stamp);
  return false;
}

// A write must come after all reads and writes, a read after all writes.
static bool check_cell(hd_sim_shadow_t *shadow, const hd_sim_cell_t *cell,
                       const hd_sim_access_info_t *access) {
  bool writes = access->touch & HD_SIM_WRITES;
  if (!check_stamp(access, &cell->write))
    return false;
  if (writes && !check_stamp(access, &cell->read))
    return false;
  const hd_sim_readers_t *more = readers_of(shadow, cell);
  for (uint32_t i = 0; more && i < more->count; i++)
    if ((writes || (more->of[i].flags & HD_SIM_STAMP_WRITE)) &&
        !check_stamp(access, &more->of[i]))
      return false;
  return true;
}

static bool same_agent(const hd_sim_stamp_t *a, const hd_sim_stamp_t *b) {
  return a->block == b->block && a->agent == b->agent &&
         (a->flags & HD_SIM_STAMP_WRITE) == (b->flags & HD_SIM_STAMP_WRITE);
}

// Adds to the list. Where it is full, a thread of the same warp makes room: one
// of each warp of the block always stays.
static void remember(hd_sim_shadow_t *shadow, hd_sim_cell_t *cell,
                     hd_sim_fiber_t *fiber, const hd_sim_stamp_t *stamp) {
  if (!cell->more)
    add_readers(hd_sim_run_of(fiber), shadow, cell);
  hd_sim_readers_t *more = readers_of(shadow, cell);
  uint32_t room = more->count, least = 0;
  for (uint32_t i = 0; i < more->count; i++) {
    const hd_sim_stamp_t *old = &more->of[i];
    if (same_agent(old, stamp)) {
      room = i;
      break;
    }
    if (old->block != stamp->block ||
        old->agent / HD_SIM_WARP_SIZE == stamp->agent / HD_SIM_WARP_SIZE)
      least = i;
  }
  if (room == HD_SIM_READERS)
    room = least;
  else if (room == more->count)
    more->count++;
  more->of[room] = *stamp;
}

static void note_read(hd_sim_shadow_t *shadow, hd_sim_cell_t *cell,
                      hd_sim_fiber_t *fiber, const hd_sim_stamp_t *stamp) {
  if (!(cell->read.flags & HD_SIM_VALID) || same_agent(&cell->read, stamp) ||
      (!cell->more && hd_sim_knows(fiber, &cell->read)))
    cell->read = *stamp;
  else
    remember(shadow, cell, fiber, stamp);
}

static void note_write(hd_sim_shadow_t *shadow, hd_sim_cell_t *cell,
                       hd_sim_fiber_t *fiber, const hd_sim_stamp_t *stamp) {
  hd_sim_stamp_t old = cell->write;
  bool both_atomic =
      (old.flags & HD_SIM_STAMP_ATOMIC) && (stamp->flags & HD_SIM_STAMP_ATOMIC);
  if (!both_atomic) {
    drop_readers(shadow, cell);
    cell->read.flags = 0;
  } else if (!same_agent(&old, stamp) && !hd_sim_knows(fiber, &old)) {
    // Both stand; what comes next must be ordered after either.
    remember(shadow, cell, fiber, &old);
  }
  cell->write = *stamp;
}

// --- Accesses ---

static hd_sim_stamp_t stamp_of(const hd_sim_access_info_t *access) {
  hd_sim_fiber_t *fiber = access->fiber;
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  bool copies = access->touch & HD_SIM_COPIES;
  uint32_t agent = (uint32_t)fiber->head.linear;
  unsigned flags = HD_SIM_VALID;
  if (access->touch & HD_SIM_ATOMIC)
    flags |= HD_SIM_STAMP_ATOMIC;
  if (access->touch & HD_SIM_WRITES)
    flags |= HD_SIM_STAMP_WRITE;
  if (access->touch & HD_SIM_PROXY)
    flags |= HD_SIM_STAMP_PROXY;
  hd_sim_agent_t self = {hd_sim_resident_of(fiber)->number, agent,
                         fiber->clock};
  if (copies)
    self = (hd_sim_agent_t){self.block,
                            hd_sim_entry(run, HD_SIM_ENTRY_COPIES, agent),
                            fiber->open_group};
  if (access->agent)
    self = *access->agent;
  return (hd_sim_stamp_t){
      .block = self.block,
      .clock = self.clock,
      .site = hd_sim_site_number(run->sanitizer, access->site),
      .agent = (uint16_t)self.entry,
      .flags = (uint8_t)flags,
      .scope = (uint8_t)access->sync_scope,
  };
}

static void check_written(hd_sim_shadow_t *shadow,
                          const hd_sim_access_info_t *access) {
  size_t from = access->address - shadow->base;
  bool whole = true;
  if (from % 8 == 0 && access->bytes % 8 == 0) { // Bulk copies are large.
    for (size_t i = from / 8; i < (from + access->bytes) / 8; i++) {
      if (access->touch & HD_SIM_READS)
        whole &= shadow->written[i] == 0xff;
      if (access->touch & HD_SIM_WRITES)
        shadow->written[i] = 0xff;
    }
    if (!whole)
      report_unwritten(access);
    return;
  }
  for (size_t i = from; i < from + access->bytes; i++) {
    if (access->touch & HD_SIM_READS)
      whole &= shadow->written[i / 8] >> i % 8 & 1;
    if (access->touch & HD_SIM_WRITES)
      shadow->written[i / 8] |= (uint8_t)(1u << i % 8);
  }
  if (!whole)
    report_unwritten(access);
}

void hd_sim_shadow_access(hd_sim_shadow_t *shadow,
                          const hd_sim_access_info_t *access) {
  if (shadow->written)
    check_written(shadow, access);
  if (!shadow->cells)
    return;
  hd_sim_run_t *run = hd_sim_run_of(access->fiber);
  size_t from = access->address - shadow->base;
  unsigned fine = (unsigned)__builtin_ctzll(from | access->bytes);
  if (fine < shadow->shift)
    refine(run, shadow, fine);
  hd_sim_stamp_t stamp = stamp_of(access);
  size_t last = (from + access->bytes - 1) >> shadow->shift;
  bool good = true;
  for (size_t i = from >> shadow->shift; i <= last; i++) {
    hd_sim_cell_t *cell = &shadow->cells[i];
    // The same again changes nothing.
    if (memcmp(access->touch & HD_SIM_WRITES ? &cell->write : &cell->read,
               &stamp, sizeof stamp) == 0 &&
        !(cell->read.flags & HD_SIM_VALID && access->touch & HD_SIM_WRITES))
      continue;
    good = good && check_cell(shadow, cell, access);
    if (access->touch & HD_SIM_WRITES)
      note_write(shadow, cell, access->fiber, &stamp);
    else
      note_read(shadow, cell, access->fiber, &stamp);
  }
}
