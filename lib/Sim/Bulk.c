// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The copy engine. Loads belong to an mbarrier (Mbarrier.c); stores to
// groups of their thread: a store reads shared memory at once or where
// bulk_wait_read lets it be written again, and reaches the tensor at once or
// where bulk_wait waits for it, or the block ends. A place is two slots,
// address and site; a map is one.
//   bulk_load           slots: to, from, bytes, mbarrier, policy
//   bulk_push           slots: to, rank, from, bytes, mbarrier
//   bulk_store          slots: to, from, bytes, policy
//   tma_load            slots: to, map, mbarrier, coordinates .., policy
//   tma_load_multicast  slots: to, map, mbarrier, mask, coordinates .., policy
//   tma_load_im2col     slots: to, map, mbarrier, coordinates .., offsets ..,
//                       policy
//   tma_store, tma_reduce_add  slots: map, from, coordinates .., policy
#include "Sim/Bulk.h"
#include "Sim/Functions.h"
#include "Sim/Sanitizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN_BYTES = 16, ALIGN_BOX = 128 };

static char *address_of(const uint64_t *slots) {
  return (char *)(uintptr_t)slots[0];
}

static void check_divides(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                          uint64_t value, unsigned unit, const char *what) {
  char me[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  if (value % unit)
    hd_sim_refuse(fiber, HD_E0712, site,
                  "%s gives %s of %s (%s %llu), which %u does not divide",
                  hd_sim_thread_name(fiber, me), what,
                  hd_sim_place_name(site, NULL, place),
                  unit == ALIGN_BOX ? "byte" : "low bits",
                  (unsigned long long)(value % 1024), unit);
}

// --- What the sanitizer asks ---

typedef struct walk {
  hd_sim_fiber_t *fiber;
  const hd_sim_site_t *site;
  unsigned touch;
  const hd_sim_agent_t *agent;
} walk_t;

static void touch_run(void *argument, char *address, uint32_t bytes) {
  const walk_t *walk = argument;
  hd_sim_touch_as(walk->fiber, walk->site, (uintptr_t)address, bytes,
                  walk->touch, walk->agent);
}

static void check_box(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                      const hd_sim_piece_t *piece) {
  const hd_sim_map_t *map = piece->map;
  char me[HD_SIM_NAME_SIZE], at[96] = "";
  if (map->im2col || hd_sim_box_meets(piece)) // Windows lie in the padding.
    return;
  for (uint32_t i = 0, used = 0; i < map->rank; i++)
    used += (uint32_t)snprintf(at + used, sizeof at - used, "%s%d",
                               i ? ", " : "", piece->at[i]);
  hd_sim_finding(fiber, HD_E0701, site, NULL,
                 "%s asks for the box of map '%s' at [%s], all of which is "
                 "outside of tensor '%s'",
                 hd_sim_thread_name(fiber, me), map->name, at, map->tensor);
}

// The tensor's side of a copy.
static void touch_global(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                         const hd_sim_piece_t *piece, unsigned touch,
                         const hd_sim_agent_t *agent) {
  if (!piece->map) {
    hd_sim_touch_as(fiber, site, (uintptr_t)piece->global, piece->bytes, touch,
                    agent);
    return;
  }
  const hd_sim_site_t *own =
      hd_sim_map_site(hd_sim_sanitizer_of(fiber), site, piece->map->tensor);
  walk_t walk = {fiber, own, touch, agent};
  check_box(fiber, site, piece);
  hd_sim_box_walk(piece, touch_run, &walk);
}

// Bytes that a piece has in shared memory.
static uint32_t span(const hd_sim_piece_t *piece) {
  return piece->map ? hd_sim_box_span(piece->map) : piece->bytes;
}

// --- Loads ---

static hd_sim_agent_t agent_of(const hd_sim_run_t *run,
                               const hd_sim_resident_t *block,
                               const hd_sim_mbarrier_t *m) {
  uint32_t number = (uint32_t)(m - block->mbarriers);
  return (hd_sim_agent_t){block->number,
                          hd_sim_entry(run, HD_SIM_ENTRY_MBARRIERS, number),
                          m->phase + 1};
}

static bool touch_load(hd_sim_fiber_t *fiber, hd_sim_resident_t *block,
                       const hd_sim_mbarrier_t *m, const hd_sim_site_t *to,
                       const hd_sim_site_t *from, const hd_sim_piece_t *piece) {
  char me[HD_SIM_NAME_SIZE], name[HD_SIM_PLACE_SIZE];
  hd_sim_resident_t *own = hd_sim_resident_of(fiber);
  hd_sim_agent_t agent = agent_of(hd_sim_run_of(fiber), block, m);
  bool is_held = !piece->map && !piece->global;
  if (!m->fenced)
    hd_sim_finding(fiber, HD_E0711, to, NULL,
                   "%s gives the copy engine %s, which was initialized without "
                   "a fence_mbarrier_init after it",
                   hd_sim_thread_name(fiber, me),
                   hd_sim_mbarrier_name(m, name));
  if (!is_held)
    touch_global(fiber, from, piece, HD_SIM_READS | HD_SIM_ENGINE, &agent);
  if (block != own) {
    hd_sim_check_visit(fiber, to, block, &agent);
    if ((uintptr_t)piece->global - own->shadow->base < own->shadow->size)
      hd_sim_check_visit(fiber, from, own, &agent); // It must not end before.
  }
  return hd_sim_touch_as(
      fiber, to, (uintptr_t)piece->shared, span(piece),
      HD_SIM_WRITES | (is_held ? HD_SIM_BY_ROWS : HD_SIM_ENGINE), &agent);
}

void hd_sim_load_into(hd_sim_fiber_t *fiber, hd_sim_resident_t *block,
                      const uint64_t *mbarrier, const hd_sim_site_t *to,
                      const hd_sim_site_t *from, hd_sim_piece_t piece) {
  hd_sim_mbarrier_t *m = hd_sim_mbarrier_at(fiber, block, mbarrier);
  if (!m || (!piece.map && !piece.bytes)) // Of nothing nothing is under way.
    return;
  piece.shared += block->head.shared - fiber->head.block->shared;
  if (hd_sim_sanitizer_of(fiber) &&
      !touch_load(fiber, block, m, to, from, &piece))
    return;
  hd_sim_load_begin(fiber, block, m, &piece);
}

// Whether the two places of a copy are in bounds, and as it takes them.
static bool check_bytes(hd_sim_fiber_t *fiber, const uint64_t *to,
                        const uint64_t *from, uint64_t bytes) {
  const hd_sim_site_t *there = hd_sim_site_of(to), *here = hd_sim_site_of(from);
  bool may_write =
      to[0] || hd_sim_touch(fiber, fiber, there, 0, 16, HD_SIM_WRITES, 0);
  bool may_read =
      from[0] || hd_sim_touch(fiber, fiber, here, 0, 16, HD_SIM_READS, 0);
  if (!may_write || !may_read)
    return false;
  check_divides(fiber, there, to[0], ALIGN_BYTES, "an address");
  check_divides(fiber, here, from[0], ALIGN_BYTES, "an address");
  check_divides(fiber, there, bytes, ALIGN_BYTES, "a number of bytes");
  return true;
}

void hd_sim_bulk_load(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_piece_t piece = {.shared = address_of(slots),
                          .global = address_of(slots + 2),
                          .bytes = (uint32_t)slots[4]};
  if (check_bytes(fiber, slots, slots + 2, slots[4]))
    hd_sim_load_into(fiber, hd_sim_resident_of(fiber), slots + 5,
                     hd_sim_site_of(slots), hd_sim_site_of(slots + 2), piece);
}

void hd_sim_bulk_push(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_piece_t piece = {.shared = address_of(slots),
                          .global = address_of(slots + 3),
                          .bytes = (uint32_t)slots[5]};
  const hd_sim_site_t *to = hd_sim_site_of(slots);
  if (check_bytes(fiber, slots, slots + 3, slots[5]))
    hd_sim_load_into(fiber, hd_sim_peer(fiber, to, (int32_t)slots[2]),
                     slots + 6, to, hd_sim_site_of(slots + 3), piece);
}

static bool begin_box(hd_sim_fiber_t *fiber, const uint64_t *place,
                      uint64_t map, const uint64_t *at, unsigned touch,
                      hd_sim_piece_t *piece) {
  if (!place[0]) {
    hd_sim_touch(fiber, fiber, hd_sim_site_of(place), 0, 16, touch, 0);
    return false;
  }
  check_divides(fiber, hd_sim_site_of(place), place[0], ALIGN_BOX,
                "an address");
  *piece = (hd_sim_piece_t){.map = (const hd_sim_map_t *)(uintptr_t)map,
                            .shared = address_of(place)};
  piece->bytes = hd_sim_box_bytes(piece->map);
  for (uint32_t i = 0; i < piece->map->rank; i++)
    piece->at[i] = (int32_t)at[i];
  return true;
}

void hd_sim_tma_load(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_piece_t piece;
  if (begin_box(fiber, slots, slots[2], slots + 5, HD_SIM_WRITES, &piece))
    hd_sim_load_into(fiber, hd_sim_resident_of(fiber), slots + 3,
                     hd_sim_site_of(slots), hd_sim_site_of(slots), piece);
}

// The instruction packs the window's offsets: 16 bits of one, 8 each of two, 5
// each of three (PTX ISA, im2col mode).
static void check_offsets(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                          const hd_sim_piece_t *piece) {
  static const uint16_t most[] = {0, 0xffff, 0xff, 0x1f};
  uint32_t count = piece->map->rank - 2;
  char me[HD_SIM_NAME_SIZE];
  for (uint32_t i = 0; i < count; i++)
    if (piece->offsets[i] > most[count])
      hd_sim_finding(fiber, HD_E0712, site, NULL,
                     "%s moves the window by %u along axis %u of map '%s', and "
                     "%u is the most of a tensor of %u axes",
                     hd_sim_thread_name(fiber, me), piece->offsets[i], i + 1,
                     piece->map->name, most[count], piece->map->rank);
}

void hd_sim_tma_load_im2col(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_piece_t piece;
  if (!begin_box(fiber, slots, slots[2], slots + 5, HD_SIM_WRITES, &piece))
    return;
  for (uint32_t i = 0; i + 2 < piece.map->rank; i++)
    piece.offsets[i] = (uint16_t)slots[5 + piece.map->rank + i];
  if (hd_sim_run_of(fiber)->sanitizer)
    check_offsets(fiber, hd_sim_site_of(slots), &piece);
  hd_sim_load_into(fiber, hd_sim_resident_of(fiber), slots + 3,
                   hd_sim_site_of(slots), hd_sim_site_of(slots), piece);
}

void hd_sim_tma_load_multicast(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_piece_t piece;
  if (!begin_box(fiber, slots, slots[2], slots + 6, HD_SIM_WRITES, &piece))
    return;
  for (int32_t rank = 0; rank < 16; rank++)
    if (slots[5] >> rank & 1)
      hd_sim_load_into(fiber, hd_sim_peer(fiber, hd_sim_site_of(slots), rank),
                       slots + 3, hd_sim_site_of(slots), hd_sim_site_of(slots),
                       piece);
}

// --- Stores ---

// Takes what lies in shared memory now.
static void take_bytes(hd_sim_fiber_t *fiber, hd_sim_bulk_t *store) {
  if (store->taken)
    return;
  uint32_t bytes = span(&store->piece);
  store->taken = malloc(bytes ? bytes : 1);
  if (!store->taken)
    hd_sim_no_room(hd_sim_run_of(fiber));
  memcpy(store->taken, store->piece.shared, bytes);
}

static void finish(hd_sim_fiber_t *fiber, hd_sim_bulk_t *store) {
  take_bytes(fiber, store);
  if (store->piece.map)
    hd_sim_box_write(&store->piece, store->taken, store->adds);
  else
    memcpy(store->piece.global, store->taken, store->piece.bytes);
}

static void touch_store(hd_sim_fiber_t *fiber, const hd_sim_site_t *from,
                        const hd_sim_site_t *to, const hd_sim_piece_t *piece,
                        bool adds) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  uint32_t block = hd_sim_resident_of(fiber)->number;
  uint32_t self = (uint32_t)fiber->head.linear;
  hd_sim_agent_t reader = {block,
                           hd_sim_entry(run, HD_SIM_ENTRY_BULK_READS, self),
                           fiber->open_bulk};
  hd_sim_agent_t writer = {block,
                           hd_sim_entry(run, HD_SIM_ENTRY_BULK_WRITES, self),
                           fiber->open_bulk};
  hd_sim_touch_as(fiber, from, (uintptr_t)piece->shared, span(piece),
                  HD_SIM_READS | HD_SIM_ENGINE, &reader);
  touch_global(fiber, to, piece,
               HD_SIM_WRITES | HD_SIM_ENGINE |
                   (adds ? HD_SIM_READS | HD_SIM_ATOMIC : 0),
               &writer);
}

static void store(hd_sim_fiber_t *fiber, const hd_sim_site_t *from,
                  const hd_sim_site_t *to, const hd_sim_piece_t *piece,
                  bool adds) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  if (run->sanitizer)
    touch_store(fiber, from, to, piece, adds);
  hd_sim_bulk_t *store = malloc(sizeof *store);
  if (!store)
    hd_sim_no_room(run);
  *store = (hd_sim_bulk_t){
      .piece = *piece, .site = from, .group = fiber->open_bulk, .adds = adds};
  hd_sim_bulk_t **end = &fiber->stores;
  while (*end)
    end = &(*end)->next;
  *end = store;
  if (run->options->async == HD_SIM_ASYNC_EARLIEST) {
    finish(fiber, store);
    store->piece.bytes = 0; // It is done; the group is waited for all the same.
  }
}

void hd_sim_bulk_store(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_piece_t piece = {.shared = address_of(slots + 2),
                          .global = address_of(slots),
                          .bytes = (uint32_t)slots[4]};
  if (check_bytes(fiber, slots, slots + 2, slots[4]))
    store(fiber, hd_sim_site_of(slots + 2), hd_sim_site_of(slots), &piece,
          false);
}

static void store_box(hd_sim_thread_t *thread, uint64_t *slots, bool adds) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  hd_sim_piece_t piece;
  if (begin_box(fiber, slots + 1, slots[0], slots + 3, HD_SIM_READS, &piece))
    store(fiber, hd_sim_site_of(slots + 1), hd_sim_site_of(slots + 1), &piece,
          adds);
}

void hd_sim_tma_store(hd_sim_thread_t *thread, uint64_t *slots) {
  store_box(thread, slots, false);
}
void hd_sim_tma_reduce_add(hd_sim_thread_t *thread, uint64_t *slots) {
  store_box(thread, slots, true);
}

void hd_sim_bulk_commit(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_fiber(thread)->open_bulk++;
}

// The last group that a wait for all but `left` covers; 0: none.
static uint32_t waited_group(const hd_sim_fiber_t *fiber, uint64_t left) {
  uint32_t closed = fiber->open_bulk - 1;
  return closed > left ? closed - (uint32_t)left : 0;
}

void hd_sim_bulk_wait_read(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  uint32_t group = waited_group(fiber, slots[0]);
  for (hd_sim_bulk_t *s = fiber->stores; s && s->group <= group; s = s->next)
    take_bytes(fiber, s);
  if (fiber->bulk_read < group)
    fiber->bulk_read = group;
}

void hd_sim_bulk_wait(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  uint32_t group = waited_group(fiber, slots[0]);
  while (fiber->stores && fiber->stores->group <= group) {
    hd_sim_bulk_t *first = fiber->stores;
    if (first->piece.bytes)
      finish(fiber, first);
    fiber->stores = first->next;
    free(first->taken);
    free(first);
  }
  if (fiber->bulk_read < group)
    fiber->bulk_read = group;
  if (fiber->bulk_wrote < group)
    fiber->bulk_wrote = group;
}

// What was not waited for is written when the block ends; shared memory must
// have been read by then.
void hd_sim_stores_end(hd_sim_resident_t *block) {
  for (uint32_t i = 0; i < block->num_threads; i++) {
    hd_sim_fiber_t *fiber = &block->threads[i];
    char me[HD_SIM_NAME_SIZE];
    for (hd_sim_bulk_t *s = fiber->stores; s; s = s->next) {
      if (s->group > fiber->bulk_read && block->worker->run->sanitizer)
        hd_sim_finding(fiber, HD_E0705, s->site, NULL,
                       "block %u ends while a bulk store of %s may still read "
                       "its shared memory: there is no bulk_wait_read for it",
                       block->number, hd_sim_thread_name(fiber, me));
      if (s->piece.bytes)
        finish(fiber, s);
    }
    hd_sim_stores_forget(fiber);
  }
}

void hd_sim_stores_forget(hd_sim_fiber_t *fiber) {
  while (fiber->stores) {
    hd_sim_bulk_t *first = fiber->stores;
    fiber->stores = first->next;
    free(first->taken);
    free(first);
  }
}

void hd_sim_prefetch_map(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)thread;
  (void)slots;
}
