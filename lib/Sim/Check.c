// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What emitted code and intrinsics ask before an access: bounds, alignment,
// then the shadow.
#include "IR/Intrinsic.h"
#include "IR/Tensor.h"
#include "Sim/Sanitizer.h"

#include <stdio.h>
#include <string.h>

const char *hd_sim_place_name(const hd_sim_site_t *site, const int64_t *indices,
                              char *text) {
  const char *tensor = site && site->tensor ? site->tensor : "memory";
  int length = snprintf(text, HD_SIM_PLACE_SIZE, "'%.64s'", tensor);
  if (!indices || !site || site->rank == 0)
    return text;
  for (uint32_t i = 0; i < site->rank && i < HD_SIM_MAX_RANK; i++) {
    if (length >= HD_SIM_PLACE_SIZE - 24)
      return text;
    length += snprintf(text + length, (size_t)(HD_SIM_PLACE_SIZE - length),
                       "%s%lld", i ? ", " : "[", (long long)indices[i]);
  }
  snprintf(text + length, (size_t)(HD_SIM_PLACE_SIZE - length), "]");
  return text;
}

const char *hd_sim_stamp_name(const hd_sim_run_t *run,
                              const hd_sim_stamp_t *stamp, char *text) {
  const int32_t *grid = run->kernel->grid;
  hd_sim_resident_t block = {0};
  if (stamp->agent >= hd_sim_entry(run, HD_SIM_ENTRY_WARPGROUPS, 0)) {
    snprintf(text, HD_SIM_NAME_SIZE, "wgmma of warpgroup %u of block %u",
             stamp->agent - hd_sim_entry(run, HD_SIM_ENTRY_WARPGROUPS, 0),
             stamp->block);
    return text;
  }
  if (stamp->agent >= hd_sim_entry(run, HD_SIM_ENTRY_MBARRIERS, 0)) {
    const char *what = !(stamp->flags & HD_SIM_STAMP_WRITE) ? "a bulk_push"
                       : stamp->flags & HD_SIM_STAMP_PROXY
                           ? "a bulk copy"
                           : "a store_async_remote";
    snprintf(text, HD_SIM_NAME_SIZE, "%s into block %u", what, stamp->block);
    return text;
  }
  uint32_t x = (uint32_t)grid[0], y = (uint32_t)grid[1];
  block.head.block[0] = (int32_t)(stamp->block % x);
  block.head.block[1] = (int32_t)(stamp->block / x % y);
  block.head.block[2] = (int32_t)(stamp->block / x / y);
  memcpy(block.head.grid_dim, grid, sizeof block.head.grid_dim);
  hd_sim_fiber_t fiber = {0};
  fiber.head.block = &block.head;
  fiber.head.linear = (int32_t)(stamp->agent % run->num_threads);
  return hd_sim_thread_name(&fiber, text);
}

// --- Bounds ---

static const char *verb(const hd_sim_site_t *site) {
  switch ((hd_sim_access_t)site->access) {
  case HD_SIM_LOAD:
    return "reads";
  case HD_SIM_STORE:
    return "writes";
  case HD_SIM_PLACE:
  case HD_SIM_ALIGNED:
    break;
  }
  return "uses";
}

// The first axis whose index is out of bounds; -1: none. A vector lies along
// the last axis; *index is then its last element.
static int bad_axis(const hd_sim_site_t *site, const int64_t *values,
                    int64_t *index) {
  for (uint32_t i = 0; i < site->rank; i++) {
    int64_t extra = i + 1 == site->rank && site->access != HD_SIM_PLACE
                        ? (int64_t)site->lanes - 1
                        : 0;
    int64_t size = values[site->rank + i];
    *index = values[i] < 0 ? values[i] : values[i] + extra;
    if (values[i] < 0 || values[i] >= size - extra)
      return (int)i;
  }
  return -1;
}

static void report_bounds(const hd_sim_fiber_t *fiber,
                          const hd_sim_site_t *site, const int64_t *values,
                          int axis, int64_t index) {
  char name[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  hd_sim_finding(fiber, HD_E0701, site, NULL,
                 "%s %s %s: index %lld of axis %d is not within 0 .. %lld",
                 hd_sim_thread_name(fiber, name), verb(site),
                 hd_sim_place_name(site, values, place), (long long)index, axis,
                 (long long)values[site->rank + (uint32_t)axis] - 1);
}

// --- Memory ---

static hd_sim_shadow_t *find_buffer(hd_sim_sanitizer_t *s, uintptr_t address) {
  uint32_t count = s->run->kernel->num_buffers;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t at = (s->last_buffer + i) % count;
    hd_sim_shadow_t *shadow = &s->buffers[at];
    if (address - shadow->base >= shadow->size)
      continue;
    s->last_buffer = at;
    return shadow;
  }
  return NULL;
}

static hd_sim_shadow_t *find_shadow(const hd_sim_fiber_t *fiber,
                                    uintptr_t address) {
  const hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  hd_sim_shadow_t *shared = block->shadow;
  if (address - shared->base < shared->size)
    return shared;
  for (int32_t i = 0; i < block->head.cluster_dim; i++) {
    shared = block->unit[i]->shadow;
    if (address - shared->base < shared->size)
      return shared;
  }
  return find_buffer(hd_sim_sanitizer_of(fiber), address);
}

// What hardware asks for: the size, where it is a power of two. A vector of
// more than 16 bytes is several accesses of 16.
static bool is_aligned(uintptr_t address, uint32_t bytes) {
  uint32_t unit = bytes < 16 ? bytes : 16;
  return (unit & (unit - 1)) || address % unit == 0;
}

static bool access_memory(hd_sim_access_info_t *access) {
  hd_sim_fiber_t *fiber = access->fiber;
  hd_sim_sanitizer_t *s = hd_sim_sanitizer_of(fiber);
  char name[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  if (access->bytes == 0) // A copy of nothing: there is no last byte.
    return true;
  hd_sim_shadow_t *shadow = find_shadow(fiber, access->address);
  if (!shadow ||
      access->bytes > shadow->size - (access->address - shadow->base)) {
    hd_sim_finding(fiber, HD_E0701, access->site, NULL,
                   "%s touches %u bytes at %s, past the end of %s",
                   hd_sim_thread_name(fiber, name), access->bytes,
                   hd_sim_place_name(access->site, access->indices, place),
                   shadow && !shadow->buffer ? "shared memory" : "the tensor");
    return false;
  }
  // The copy engine's rules are checked where it is called.
  if (!(access->touch & HD_SIM_PROXY) &&
      !is_aligned(access->address, access->bytes)) {
    hd_sim_finding(fiber, HD_E0707, access->site, NULL,
                   "%s touches %u bytes at %s, whose address %u does not "
                   "divide",
                   hd_sim_thread_name(fiber, name), access->bytes,
                   hd_sim_place_name(access->site, access->indices, place),
                   access->bytes < 16 ? access->bytes : 16);
    return false;
  }
  if ((access->touch & HD_SIM_WRITES) && !(access->touch & HD_SIM_ATOMIC))
    s->events++;
  if (shadow == hd_sim_resident_of(fiber)->shadow &&
      !(access->touch & HD_SIM_BY_ROWS))
    hd_sim_banks_note(s, fiber, access->site, access->address, access->bytes);
  access->in_global = shadow->buffer != NULL;
  if (shadow->buffer && shadow->buffer->before)
    hd_sim_dependent_access(access, shadow->buffer);
  hd_sim_shadow_access(shadow, access);
  return true;
}

// --- Asked by emitted code ---

// The operand of an intrinsic: it does the access, of so many bytes as it
// likes, and reports what is wrong with it then.
static bool note_place(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                       const int64_t *values) {
  memmove(fiber->places + 1, fiber->places,
          (HD_SIM_PLACES - 1) * sizeof *fiber->places);
  hd_sim_place_t *place = &fiber->places[0];
  place->site = site;
  int64_t index;
  place->bad_axis = bad_axis(site, values, &index);
  uint32_t rank = site->rank < HD_SIM_MAX_RANK ? site->rank : HD_SIM_MAX_RANK;
  memcpy(place->indices, values, rank * sizeof *values);
  if (place->bad_axis >= 0)
    place->bound = values[site->rank + (uint32_t)place->bad_axis];
  return place->bad_axis < 0;
}

bool hd_sim_check(hd_sim_thread_t *thread, const hd_sim_site_t *site,
                  const int64_t *values, const void *address) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  if (!hd_sim_sanitizer_of(fiber))
    return true;
  if (site->access == HD_SIM_PLACE)
    return note_place(fiber, site, values);
  int64_t index;
  int axis = bad_axis(site, values, &index);
  if (axis >= 0) {
    report_bounds(fiber, site, values, axis, index);
    return false;
  }
  if (site->scope == HD_SIM_CONSTANT)
    return true;
  if (site->scope == HD_SCOPE_REGISTER) {
    for (uint32_t i = 0; site->rank == 1 && i < site->lanes; i++)
      hd_sim_check_registers(fiber, site, values[0] + i);
    return true;
  }
  hd_sim_access_info_t access = {
      .fiber = fiber,
      .site = site,
      .indices = values,
      .address = (uintptr_t)address,
      .bytes = (site->element_bits * site->lanes + 7) / 8,
      .touch = site->access == HD_SIM_STORE ? HD_SIM_WRITES : HD_SIM_READS,
  };
  return access_memory(&access);
}

void hd_sim_unwritten(hd_sim_thread_t *thread, const hd_sim_site_t *site,
                      const int64_t *values, int64_t which) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  char name[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  int64_t indices[HD_SIM_CHECK_VALUES] = {0};
  bool is_operand = site->access == HD_SIM_PLACE && site->lanes > 1;
  memcpy(indices, values, site->rank * sizeof *indices);
  if (!is_operand && site->rank)
    indices[site->rank - 1] += which;
  hd_sim_thread_name(fiber, name);
  hd_sim_place_name(site, indices, place);
  if (is_operand)
    hd_sim_finding(fiber, HD_E0702, site, NULL,
                   "%s uses %u registers from %s on, and has not written the "
                   "one at %lld",
                   name, site->lanes, place, (long long)which);
  else
    hd_sim_finding(fiber, HD_E0702, site, NULL,
                   "%s reads %s, a register that it has not written", name,
                   place);
}

void hd_sim_wrapped(hd_sim_thread_t *thread, const hd_sim_site_t *site,
                    const int64_t *values, int64_t axis) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  char name[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  hd_sim_finding(fiber, HD_E0716, site, NULL,
                 "%s %s %s: without wrapping, the index of axis %lld would be "
                 "%lld",
                 hd_sim_thread_name(fiber, name), verb(site),
                 hd_sim_place_name(site, values, place), (long long)axis,
                 (long long)values[HD_SIM_CHECK_VALUES - 1]);
}

// --- Asked by intrinsics ---

static const hd_sim_place_t *place_of(const hd_sim_fiber_t *giver,
                                      const hd_sim_site_t *site) {
  for (int i = 0; i < HD_SIM_PLACES; i++)
    if (site && giver->places[i].site == site)
      return &giver->places[i];
  return NULL;
}

static bool touch_memory(hd_sim_fiber_t *fiber, const hd_sim_fiber_t *giver,
                         const hd_sim_site_t *site, uintptr_t address,
                         uint32_t bytes, unsigned touch, unsigned sync_scope,
                         const hd_sim_agent_t *agent) {
  const hd_sim_place_t *place = place_of(giver, site);
  const int64_t *indices = place ? place->indices : NULL;
  if (address == 0) {
    char name[HD_SIM_NAME_SIZE], where[HD_SIM_PLACE_SIZE];
    bool known = place && place->bad_axis >= 0;
    hd_sim_finding(giver, HD_E0701, site, NULL,
                   "%s uses %s: index %lld of axis %d is not within 0 .. %lld",
                   hd_sim_thread_name(giver, name),
                   hd_sim_place_name(site, indices, where),
                   known ? (long long)place->indices[place->bad_axis] : -1,
                   known ? place->bad_axis : 0,
                   known ? (long long)place->bound - 1 : 0);
    return false;
  }
  hd_sim_access_info_t access = {
      .fiber = fiber,
      .site = site,
      .indices = indices,
      .address = address,
      .bytes = bytes,
      .touch = touch,
      .sync_scope = sync_scope,
      .agent = agent,
  };
  return access_memory(&access);
}

bool hd_sim_touch(hd_sim_fiber_t *fiber, const hd_sim_fiber_t *giver,
                  const hd_sim_site_t *site, uintptr_t address, uint32_t bytes,
                  unsigned touch, unsigned sync_scope) {
  return touch_memory(fiber, giver, site, address, bytes, touch, sync_scope,
                      NULL);
}

bool hd_sim_touch_as(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                     uintptr_t address, uint32_t bytes, unsigned touch,
                     const hd_sim_agent_t *agent) {
  return touch_memory(fiber, fiber, site, address, bytes, touch, HD_SYNC_DEVICE,
                      agent);
}
