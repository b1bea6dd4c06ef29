// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers in shared memory. The word in shared memory holds a mark and the
// number of the barrier's state, so that what is no mbarrier is known.
//   slots: [result,] address, site [, count | bytes | rank | parity]
#include "Sim/Bulk.h"
#include "Sim/Functions.h"
#include "Sim/Sanitizer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t mark = 0x6d626172ull << 32;
enum { MOST_COUNT = (1 << 20) - 1 };

void hd_sim_refuse(hd_sim_fiber_t *fiber, hd_diagnostic_code_t code,
                   const hd_sim_site_t *site, const char *text, ...) {
  char message[400];
  va_list args;
  va_start(args, text);
  vsnprintf(message, sizeof message, text, args);
  va_end(args);
  hd_sim_finding(fiber, code, site, NULL, "%s", message);
  hd_sim_fail(hd_sim_run_of(fiber));
  hd_sim_leave();
}

void hd_sim_no_room(hd_sim_run_t *run) {
  hd_error(run->diags, (hd_loc_t){0}, HD_E0904, "no memory for the simulator");
  hd_sim_fail(run);
  hd_sim_leave();
}

const char *hd_sim_mbarrier_name(const hd_sim_mbarrier_t *m, char *text) {
  if (m->site && m->site->tensor)
    snprintf(text, HD_SIM_PLACE_SIZE, "mbarrier '%.64s' at byte %u",
             m->site->tensor, m->offset);
  else
    snprintf(text, HD_SIM_PLACE_SIZE, "the mbarrier at byte %u", m->offset);
  return text;
}

// --- Finding them ---

static bool in_bounds(hd_sim_fiber_t *fiber, const uint64_t *slots) {
  if (slots[0])
    return true;
  hd_sim_touch(fiber, fiber, hd_sim_site_of(slots), 0, 8, HD_SIM_READS, 0);
  return false;
}

static uint32_t offset_of(const hd_sim_fiber_t *fiber, const uint64_t *slots) {
  return (uint32_t)((const char *)(uintptr_t)slots[0] -
                    fiber->head.block->shared);
}

static hd_sim_mbarrier_t *state_at(hd_sim_resident_t *block, uint32_t offset) {
  uint64_t word;
  memcpy(&word, block->head.shared + offset, sizeof word);
  uint32_t index = (uint32_t)word;
  if ((word & ~(uint64_t)UINT32_MAX) != mark || index >= block->num_mbarriers ||
      block->mbarriers[index].offset != offset)
    return NULL;
  return &block->mbarriers[index];
}

// Whoever uses it must come after the thread that made it.
static void check_made(hd_sim_fiber_t *fiber, const hd_sim_resident_t *block,
                       const hd_sim_mbarrier_t *m, const hd_sim_site_t *site) {
  hd_sim_stamp_t made = {.block = block->number,
                         .clock = m->made_at,
                         .agent = (uint16_t)m->made_by,
                         .flags = HD_SIM_VALID};
  char me[HD_SIM_NAME_SIZE], you[HD_SIM_NAME_SIZE], name[HD_SIM_PLACE_SIZE];
  bool is_told = m->told_round > 0 && fiber->cluster_waited >= m->told_round;
  if (!is_told && !hd_sim_knows(fiber, &made))
    hd_sim_finding(fiber, HD_E0703, site, NULL,
                   "%s uses %s, which %s has initialized; nothing orders the "
                   "two",
                   hd_sim_thread_name(fiber, me), hd_sim_mbarrier_name(m, name),
                   hd_sim_stamp_name(hd_sim_run_of(fiber), &made, you));
}

hd_sim_mbarrier_t *hd_sim_mbarrier_at(hd_sim_fiber_t *fiber,
                                      hd_sim_resident_t *block,
                                      const uint64_t *slots) {
  if (!in_bounds(fiber, slots))
    return NULL;
  uint32_t offset = offset_of(fiber, slots);
  hd_sim_mbarrier_t *m = state_at(block, offset);
  const hd_sim_site_t *site = hd_sim_site_of(slots);
  char name[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  if (!m)
    hd_sim_refuse(fiber, HD_E0704, site,
                  "%s uses %s (byte %u of shared memory), which is no mbarrier "
                  "(yet, or no more): there was no mbarrier_init, or its bytes "
                  "were overwritten",
                  hd_sim_thread_name(fiber, name),
                  hd_sim_place_name(site, NULL, place), offset);
  if (hd_sim_sanitizer_of(fiber)) {
    check_made(fiber, block, m, site);
    if (!m->site)
      m->site = site;
  }
  return m;
}

// --- Phases ---

static void note_loads_left(const hd_sim_resident_t *block,
                            const hd_sim_mbarrier_t *m) {
  uint32_t left = 0;
  for (const hd_sim_load_t *load = m->first; load; load = load->next)
    left += load->phase == m->phase ? load->piece.bytes : 0;
  char name[HD_SIM_PLACE_SIZE];
  if (left)
    hd_sim_finding(&block->threads[0], HD_E0705, m->site, NULL,
                   "a phase of %s in block %u ends too early: %lld bytes were "
                   "expected and have arrived, and copies of %u more are under "
                   "way",
                   hd_sim_mbarrier_name(m, name), block->number,
                   (long long)m->expected, left);
}

static void end_phase(hd_sim_resident_t *block, hd_sim_mbarrier_t *m) {
  hd_sim_run_t *run = block->worker->run;
  if (m->pending > 0 || m->expected != m->arrived)
    return;
  if (run->sanitizer)
    note_loads_left(block, m);
  m->phase++;
  m->pending = m->count;
  m->expected = m->arrived = 0;
  if (!run->sanitizer)
    return;
  hd_sim_check_event(&block->threads[0]);
  hd_sim_sync_drop(&m->complete);
  hd_sim_memo_drop(&m->memo);
  if (!m->joined)
    m->joined = hd_sim_clocks_create(run, block->number);
  uint32_t number = (uint32_t)(m - block->mbarriers);
  m->joined->at[hd_sim_entry(run, HD_SIM_ENTRY_MBARRIERS, number)] = m->phase;
  m->complete = m->joined;
  m->complete->refs++; // Later arrivals go on from here.
}

void hd_sim_mbarrier_arrived(hd_sim_resident_t *block, hd_sim_mbarrier_t *m,
                             uint32_t bytes) {
  m->arrived += bytes;
  end_phase(block, m);
}

static void arrive(hd_sim_fiber_t *fiber, hd_sim_resident_t *block,
                   hd_sim_mbarrier_t *m, const hd_sim_site_t *site,
                   int32_t bytes) {
  char me[HD_SIM_NAME_SIZE], name[HD_SIM_PLACE_SIZE];
  if (m->pending == 0)
    hd_sim_refuse(fiber, HD_E0704, site,
                  "%s arrives at %s once too often: its phase takes %u "
                  "arrivals, which have come, and still waits for %lld bytes",
                  hd_sim_thread_name(fiber, me), hd_sim_mbarrier_name(m, name),
                  m->count, (long long)(m->expected - m->arrived));
  m->pending--;
  m->expected += bytes;
  if (hd_sim_sanitizer_of(fiber))
    hd_sim_sync_arrive(fiber, block, &m->joined);
  end_phase(block, m);
}

// Whether the phase of that parity is over; at the latest moment the copies
// that are left land for it.
static bool is_over(hd_sim_resident_t *block, hd_sim_mbarrier_t *m,
                    uint32_t parity) {
  while ((m->phase & 1) == (parity & 1)) {
    hd_sim_load_t *load = m->first;
    if (m->pending > 0 || !load)
      return false;
    m->first = load->next;
    if (!m->first)
      m->last = &m->first;
    hd_sim_load_land(&load->piece);
    uint32_t bytes = load->piece.bytes;
    free(load);
    hd_sim_mbarrier_arrived(block, m, bytes);
  }
  return true;
}

// --- The functions ---

static hd_sim_mbarrier_t *make_mbarrier(hd_sim_fiber_t *fiber,
                                        uint32_t offset) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  for (uint32_t i = 0; i < block->num_mbarriers; i++)
    if (block->mbarriers[i].offset == offset)
      return &block->mbarriers[i];
  if (block->num_mbarriers == block->cap_mbarriers) {
    uint32_t capacity = block->cap_mbarriers ? block->cap_mbarriers * 2 : 8;
    hd_sim_mbarrier_t *all = malloc(capacity * sizeof *all);
    if (!all)
      hd_sim_no_room(run);
    for (uint32_t i = 0; i < block->num_mbarriers; i++) {
      all[i] = block->mbarriers[i];
      if (!all[i].first)
        all[i].last = &all[i].first;
    }
    free(block->mbarriers);
    block->mbarriers = all;
    block->cap_mbarriers = capacity;
  }
  hd_sim_mbarrier_t *m = &block->mbarriers[block->num_mbarriers++];
  *m = (hd_sim_mbarrier_t){.offset = offset};
  return m;
}

static void drop(hd_sim_mbarrier_t *m) {
  while (m->first) {
    hd_sim_load_t *load = m->first;
    m->first = load->next;
    free(load);
  }
  m->last = &m->first;
  hd_sim_sync_drop(&m->joined);
  hd_sim_sync_drop(&m->complete);
  hd_sim_memo_drop(&m->memo);
}

void hd_sim_mbarrier_init(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  int32_t count = (int32_t)slots[2];
  if (!in_bounds(fiber, slots))
    return;
  char me[HD_SIM_NAME_SIZE];
  if (count < 1 || count > MOST_COUNT)
    hd_sim_refuse(fiber, HD_E0704, hd_sim_site_of(slots),
                  "%s makes an mbarrier for %d arrivals; it can take 1 to %d",
                  hd_sim_thread_name(fiber, me), count, MOST_COUNT);
  hd_sim_mbarrier_t *m = make_mbarrier(fiber, offset_of(fiber, slots));
  uint32_t index = (uint32_t)(m - block->mbarriers);
  if (run->sanitizer && index >= HD_SIM_MBARRIERS)
    hd_sim_refuse(fiber, HD_E0704, hd_sim_site_of(slots),
                  "a block has more than %d mbarriers, the most that "
                  "--sanitize follows",
                  HD_SIM_MBARRIERS);
  uint32_t offset = m->offset;
  drop(m);
  *m = (hd_sim_mbarrier_t){.offset = offset,
                           .count = (uint32_t)count,
                           .pending = (uint32_t)count,
                           .made_by = (uint32_t)fiber->head.linear,
                           .made_at = fiber->clock,
                           .site = hd_sim_site_of(slots)};
  m->last = &m->first;
  uint64_t word = mark | index;
  memcpy(block->head.shared + offset, &word, sizeof word);
}

void hd_sim_mbarrier_arrive(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  hd_sim_mbarrier_t *m = hd_sim_mbarrier_at(fiber, block, slots);
  if (m)
    arrive(fiber, block, m, hd_sim_site_of(slots), 0);
}

void hd_sim_mbarrier_arrive_expect(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  hd_sim_mbarrier_t *m = hd_sim_mbarrier_at(fiber, block, slots);
  if (m)
    arrive(fiber, block, m, hd_sim_site_of(slots), (int32_t)slots[2]);
}

void hd_sim_mbarrier_arrive_remote(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  if (!in_bounds(fiber, slots))
    return;
  hd_sim_resident_t *block =
      hd_sim_peer(fiber, hd_sim_site_of(slots), (int32_t)slots[2]);
  hd_sim_mbarrier_t *m = hd_sim_mbarrier_at(fiber, block, slots);
  if (!m)
    return;
  if (hd_sim_sanitizer_of(fiber))
    hd_sim_check_visit(fiber, hd_sim_site_of(slots), block, NULL);
  arrive(fiber, block, m, hd_sim_site_of(slots), 0);
}

static void learn(hd_sim_fiber_t *fiber, hd_sim_mbarrier_t *m) {
  if (hd_sim_sanitizer_of(fiber))
    hd_sim_sync_learn(fiber, m->complete, &m->memo);
}

void hd_sim_mbarrier_test(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  hd_sim_mbarrier_t *m = hd_sim_mbarrier_at(fiber, block, slots + 1);
  slots[0] = !m || is_over(block, m, (uint32_t)slots[3]);
  if (m && slots[0])
    learn(fiber, m);
}

bool hd_sim_mbarrier_wait(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  hd_sim_mbarrier_t *m = hd_sim_mbarrier_at(fiber, block, slots);
  if (m && !is_over(block, m, (uint32_t)slots[2]))
    return false;
  if (m)
    learn(fiber, m);
  return true;
}

// Barriers that this thread has made.
void hd_sim_fence_mbarrier_init(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  for (uint32_t i = 0; i < block->num_mbarriers; i++)
    if (block->mbarriers[i].made_by == (uint32_t)fiber->head.linear)
      block->mbarriers[i].fenced = true;
}

void hd_sim_mbarriers_tell(const hd_sim_fiber_t *fiber) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  for (uint32_t i = 0; i < block->num_mbarriers; i++) {
    hd_sim_mbarrier_t *m = &block->mbarriers[i];
    if (m->fenced && !m->told_round &&
        m->made_by == (uint32_t)fiber->head.linear)
      m->told_round = fiber->cluster_round + 1;
  }
}

// --- Loads under way ---

void hd_sim_load_land(const hd_sim_piece_t *piece) {
  if (piece->map)
    hd_sim_box_read(piece);
  else
    memcpy(piece->shared, piece->global ? piece->global : piece->held,
           piece->bytes);
}

void hd_sim_load_begin(hd_sim_fiber_t *fiber, hd_sim_resident_t *block,
                       hd_sim_mbarrier_t *m, const hd_sim_piece_t *piece) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  if (run->options->async == HD_SIM_ASYNC_EARLIEST) {
    hd_sim_load_land(piece);
    hd_sim_mbarrier_arrived(block, m, piece->bytes);
    return;
  }
  hd_sim_load_t *load = malloc(sizeof *load);
  if (!load)
    hd_sim_no_room(run);
  *load = (hd_sim_load_t){.piece = *piece, .phase = m->phase};
  *m->last = load;
  m->last = &load->next;
}

// --- The end ---

// Of a thread that waits at an mbarrier; NULL where it does not.
static const hd_sim_mbarrier_t *awaited(const hd_sim_fiber_t *fiber) {
  if (fiber->state != HD_SIM_AT_BLOCK ||
      fiber->head.function != (void *)(uintptr_t)hd_sim_mbarrier_wait)
    return NULL;
  return state_at(hd_sim_resident_of(fiber),
                  offset_of(fiber, fiber->head.slots));
}

const hd_sim_fiber_t *hd_sim_mbarrier_short(const hd_sim_resident_t *block) {
  for (uint32_t i = 0; i < block->num_threads; i++) {
    const hd_sim_mbarrier_t *m = awaited(&block->threads[i]);
    if (m && m->pending == 0 && m->expected != m->arrived)
      return &block->threads[i];
  }
  return NULL;
}

bool hd_sim_mbarrier_explain(const hd_sim_fiber_t *fiber) {
  if (fiber->head.function != (void *)(uintptr_t)hd_sim_mbarrier_wait)
    return false;
  const uint64_t *slots = fiber->head.slots;
  const hd_sim_mbarrier_t *m = awaited(fiber);
  char me[HD_SIM_NAME_SIZE], name[HD_SIM_PLACE_SIZE];
  const char *what = "it is no mbarrier any more";
  char text[160];
  if (m) {
    snprintf(text, sizeof text,
             "%u of %u arrivals have come, %lld of %lld bytes expected have "
             "arrived, %u phases are over",
             m->count - m->pending, m->count, (long long)m->arrived,
             (long long)m->expected, m->phase);
    what = text;
  }
  hd_sim_finding(fiber, HD_E0706, fiber->head.site, NULL,
                 "%s waits for ever for the phase of parity %u of %s: %s",
                 hd_sim_thread_name(fiber, me), (unsigned)slots[2] & 1,
                 m ? hd_sim_mbarrier_name(m, name) : "an mbarrier", what);
  return true;
}

// Copies that nobody has waited for may still write to what is another block's
// memory by then.
void hd_sim_mbarriers_end(hd_sim_fiber_t *last) {
  hd_sim_resident_t *block = hd_sim_resident_of(last);
  for (uint32_t i = 0; i < block->num_mbarriers; i++) {
    const hd_sim_mbarrier_t *m = &block->mbarriers[i];
    char name[HD_SIM_PLACE_SIZE];
    if (m->first)
      hd_sim_finding(last, HD_E0705, m->site, NULL,
                     "block %u ends while copies that %s counts are under way",
                     block->number, hd_sim_mbarrier_name(m, name));
    else if (m->expected != m->arrived)
      hd_sim_finding(last, HD_E0705, m->site, NULL,
                     "block %u ends while %s has %lld bytes expected and %lld "
                     "arrived",
                     block->number, hd_sim_mbarrier_name(m, name),
                     (long long)m->expected, (long long)m->arrived);
  }
}

void hd_sim_mbarriers_forget(hd_sim_resident_t *block) {
  for (uint32_t i = 0; i < block->num_mbarriers; i++)
    drop(&block->mbarriers[i]);
  block->num_mbarriers = 0;
}
