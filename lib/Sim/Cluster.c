// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clusters: the barrier of all their threads, and other blocks' shared memory.
// A place is the same offset in the block of the rank.
//   load_remote        slots: result (1 or 2), address, site, rank
//   store_remote       slots: address, site, rank, value (1 or 2)
//   atomic_add_remote  slots: result, address, site, rank, value
//   store_async_remote slots: address, site, rank, value (1 or 2), mbarrier
#include "Sim/Bulk.h"
#include "Sim/Functions.h"

#include "IR/Intrinsic.h"

#include <string.h>

hd_sim_resident_t *hd_sim_peer(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                               int32_t rank) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  char me[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  if (rank < 0 || rank >= block->head.cluster_dim)
    hd_sim_refuse(fiber, HD_E0714, site,
                  "%s goes to %s in the block of rank %d of a cluster of %d",
                  hd_sim_thread_name(fiber, me),
                  hd_sim_place_name(site, NULL, place), rank,
                  block->head.cluster_dim);
  hd_sim_resident_t *peer = block->unit[rank];
  if (peer->num_live == 0)
    hd_sim_refuse(fiber, HD_E0714, site,
                  "%s goes to %s in block %u of its cluster, which has ended: "
                  "no cluster_sync stands between this and its end",
                  hd_sim_thread_name(fiber, me),
                  hd_sim_place_name(site, NULL, place), peer->number);
  if (peer != block && hd_sim_sanitizer_of(fiber) &&
      !hd_sim_knows_block(fiber, peer->number))
    hd_sim_finding(fiber, HD_E0714, site, NULL,
                   "%s goes to %s in block %u of its cluster, which may not "
                   "have begun: no cluster_sync stands before this",
                   hd_sim_thread_name(fiber, me),
                   hd_sim_place_name(site, NULL, place), peer->number);
  return peer;
}

// --- The barrier ---

static uint32_t come(const hd_sim_resident_t *block) {
  uint32_t come = 0;
  for (int32_t i = 0; i < block->head.cluster_dim; i++)
    come += block->unit[i]->cluster.arrived + block->unit[i]->cluster.ended;
  return come;
}

static uint32_t expected(const hd_sim_resident_t *block) {
  return block->num_threads * (uint32_t)block->head.cluster_dim;
}

// Threads that have ended count as come.
static void end_round(hd_sim_resident_t *block) {
  if (come(block) < expected(block))
    return;
  uint32_t size = (uint32_t)block->head.cluster_dim;
  block->unit[0]->cluster.round++;
  for (uint32_t i = 0; i < size; i++)
    block->unit[i]->cluster.arrived = 0;
  if (!block->worker->run->sanitizer)
    return;
  hd_sim_check_event(&block->threads[0]);
  hd_sim_sync_cluster(block->unit, size);
}

static void tell(hd_sim_fiber_t *fiber, bool orders) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  if (orders) {
    hd_sim_sync_give(fiber, &block->cluster.joined);
  } else {
    hd_sim_sync_give_phases(fiber, &block->cluster.joined);
    hd_sim_mbarriers_tell(fiber);
  }
}

static void arrive(hd_sim_fiber_t *fiber, bool orders) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  char me[HD_SIM_NAME_SIZE];
  if (fiber->at_cluster)
    hd_sim_refuse(fiber, HD_E0714, fiber->head.site,
                  "%s arrives at the cluster's barrier twice without a "
                  "cluster_wait between",
                  hd_sim_thread_name(fiber, me));
  fiber->at_cluster = true;
  fiber->cluster_round = block->unit[0]->cluster.round;
  if (hd_sim_sanitizer_of(fiber))
    tell(fiber, orders);
  block->cluster.arrived++;
  end_round(block);
}

static bool wait(hd_sim_fiber_t *fiber) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  char me[HD_SIM_NAME_SIZE];
  if (!fiber->at_cluster)
    hd_sim_refuse(fiber, HD_E0714, fiber->head.site,
                  "%s waits at the cluster's barrier and has not arrived there",
                  hd_sim_thread_name(fiber, me));
  if (block->unit[0]->cluster.round == fiber->cluster_round)
    return false;
  fiber->at_cluster = false;
  fiber->cluster_waited = fiber->cluster_round + 1;
  // It may have learned something since it arrived.
  if (hd_sim_sanitizer_of(fiber))
    hd_sim_sync_learn(fiber, block->cluster.complete, &block->cluster.memo);
  return true;
}

void hd_sim_cluster_arrive(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  arrive(hd_sim_fiber(thread), true);
}

void hd_sim_cluster_arrive_relaxed(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  arrive(hd_sim_fiber(thread), false);
}

bool hd_sim_cluster_wait(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  return wait(hd_sim_fiber(thread));
}

bool hd_sim_cluster_sync(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  if (!fiber->at_cluster)
    arrive(fiber, true);
  return wait(fiber);
}

bool hd_sim_cluster_explain(const hd_sim_fiber_t *fiber) {
  if (fiber->head.function != (void *)(uintptr_t)hd_sim_cluster_sync &&
      fiber->head.function != (void *)(uintptr_t)hd_sim_cluster_wait)
    return false;
  const hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  char me[HD_SIM_NAME_SIZE];
  hd_sim_finding(fiber, HD_E0706, fiber->head.site, NULL,
                 "%s waits for ever at the cluster's barrier: %u of %u threads "
                 "of the cluster's %d blocks have come or ended",
                 hd_sim_thread_name(fiber, me), come(block), expected(block),
                 block->head.cluster_dim);
  return true;
}

void hd_sim_thread_ended(hd_sim_fiber_t *fiber) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  if (fiber->at_cluster &&
      fiber->cluster_round == block->unit[0]->cluster.round)
    block->cluster.arrived--;
  block->cluster.ended++;
  bool checked = hd_sim_sanitizer_of(fiber) != NULL;
  if (block->num_live == 0) {
    hd_sim_stores_end(block);
    if (checked) {
      hd_sim_mbarriers_end(fiber);
      hd_sim_warpgroups_end(fiber);
      hd_sim_check_visits(fiber);
    }
  }
  if (come(block) > block->cluster.ended)
    end_round(block);
}

// --- Shared memory of other blocks ---

// Where the place is there; NULL: it must not be touched.
static char *reach(hd_sim_thread_t *thread, const uint64_t *slots,
                   uint32_t bytes, unsigned touch) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  const hd_sim_site_t *site = (const hd_sim_site_t *)(uintptr_t)slots[1];
  if (!slots[0]) {
    hd_sim_touch(fiber, fiber, site, 0, bytes, touch, 0);
    return NULL;
  }
  hd_sim_resident_t *peer = hd_sim_peer(fiber, site, (int32_t)slots[2]);
  char *address =
      (char *)(uintptr_t)slots[0] - thread->block->shared + peer->head.shared;
  if (!hd_sim_sanitizer_of(fiber))
    return address;
  hd_sim_check_visit(fiber, site, peer, NULL);
  bool allowed = hd_sim_touch(fiber, fiber, site, (uintptr_t)address, bytes,
                              touch | HD_SIM_BY_ROWS, HD_SYNC_CLUSTER);
  return allowed ? address : NULL;
}

static void load(hd_sim_thread_t *thread, uint64_t *slots, uint32_t bytes) {
  unsigned words = bytes > 8 ? 2 : 1;
  const char *from = reach(thread, slots + words, bytes, HD_SIM_READS);
  slots[0] = slots[words - 1] = 0;
  if (from)
    memcpy(slots, from, bytes);
}

static void store(hd_sim_thread_t *thread, uint64_t *slots, uint32_t bytes) {
  char *to = reach(thread, slots, bytes, HD_SIM_WRITES);
  if (to)
    memcpy(to, slots + 3, bytes);
}

#define REMOTE(type, bytes)                                                    \
  void hd_sim_load_remote_##type(hd_sim_thread_t *thread, uint64_t *slots) {   \
    load(thread, slots, bytes);                                                \
  }                                                                            \
  void hd_sim_store_remote_##type(hd_sim_thread_t *thread, uint64_t *slots) {  \
    store(thread, slots, bytes);                                               \
  }
REMOTE(f16, 2)
REMOTE(bf16, 2)
REMOTE(f32, 4)
REMOTE(i32, 4)
REMOTE(u32, 4)
REMOTE(f32x2, 8)
REMOTE(i32x2, 8)
REMOTE(u32x2, 8)
REMOTE(f64, 8)
REMOTE(u64, 8)
REMOTE(f32x4, 16)
REMOTE(i32x4, 16)
REMOTE(u32x4, 16)

// A cluster's blocks have one worker: nobody else is there at the same time.
static uint32_t *begin_add(hd_sim_thread_t *thread, uint64_t *slots) {
  char *at =
      reach(thread, slots + 1, 4, HD_SIM_READS | HD_SIM_WRITES | HD_SIM_ATOMIC);
  slots[0] = 0;
  if (at && hd_sim_sanitizer_of(hd_sim_fiber(thread)))
    hd_sim_check_event(hd_sim_fiber(thread));
  return (uint32_t *)(void *)at;
}

static void add_word(hd_sim_thread_t *thread, uint64_t *slots) {
  uint32_t *at = begin_add(thread, slots);
  if (!at)
    return;
  slots[0] = *at;
  *at += (uint32_t)slots[4];
}

void hd_sim_atomic_add_remote_i32(hd_sim_thread_t *thread, uint64_t *slots) {
  add_word(thread, slots);
}
void hd_sim_atomic_add_remote_u32(hd_sim_thread_t *thread, uint64_t *slots) {
  add_word(thread, slots);
}
void hd_sim_atomic_add_remote_f32(hd_sim_thread_t *thread, uint64_t *slots) {
  uint32_t *at = begin_add(thread, slots);
  float a, b;
  if (!at)
    return;
  slots[0] = *at;
  memcpy(&a, at, sizeof a);
  memcpy(&b, &slots[4], sizeof b);
  a += b;
  memcpy(at, &a, sizeof a);
}

// --- Values on their way ---

static void send(hd_sim_thread_t *thread, const uint64_t *slots,
                 uint32_t bytes) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  const hd_sim_site_t *site = (const hd_sim_site_t *)(uintptr_t)slots[1];
  if (!slots[0]) {
    hd_sim_touch(fiber, fiber, site, 0, bytes, HD_SIM_WRITES, 0);
    return;
  }
  hd_sim_piece_t piece = {.shared = (char *)(uintptr_t)slots[0],
                          .bytes = bytes};
  memcpy(piece.held, slots + 3, bytes);
  hd_sim_load_into(fiber, hd_sim_peer(fiber, site, (int32_t)slots[2]),
                   slots + (bytes > 8 ? 5 : 4), site, NULL, piece);
}

#define SEND(type, bytes)                                                      \
  void hd_sim_store_async_remote_##type(hd_sim_thread_t *thread,               \
                                        uint64_t *slots) {                     \
    send(thread, slots, bytes);                                                \
  }
SEND(f32, 4)
SEND(i32, 4)
SEND(u32, 4)
SEND(f16x2, 4)
SEND(bf16x2, 4)
SEND(f32x2, 8)
SEND(i32x2, 8)
SEND(u32x2, 8)
SEND(f64, 8)
SEND(u64, 8)
SEND(f16x4, 8)
SEND(bf16x4, 8)
SEND(f32x4, 16)
SEND(i32x4, 16)
SEND(u32x4, 16)
SEND(f64x2, 16)
SEND(f16x8, 16)
SEND(bf16x8, 16)
