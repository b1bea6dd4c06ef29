// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What atomics and fences release and acquire, by place.
#include "Sim/Sanitizer.h"

#include "IR/Intrinsic.h"

#include <stdlib.h>

static bool releases(unsigned order) {
  return order == HD_RELEASE || order == HD_ACQ_REL || order == HD_SEQ_CST;
}
static bool acquires(unsigned order) {
  return order == HD_ACQUIRE || order == HD_ACQ_REL || order == HD_SEQ_CST;
}

static void grow_locations(hd_sim_sanitizer_t *s) {
  size_t bytes = hd_ptr_map_growth(&s->locations);
  void *zeros = hd_sim_alloc(s->run, 0, bytes);
  if (!zeros)
    hd_sim_no_memory(s->run);
  void *old = hd_ptr_map_grow(&s->locations, zeros);
  if (old)
    hd_sim_refund(s->run, bytes / 2);
  free(old);
}

static hd_sim_location_t *find_location(const hd_sim_sanitizer_t *s,
                                        uintptr_t address) {
  return hd_ptr_map_find(&s->locations, (const void *)address);
}

static hd_sim_location_t *make_location(hd_sim_sanitizer_t *s,
                                        uintptr_t address) {
  hd_sim_location_t *location = find_location(s, address);
  if (location)
    return location;
  if (hd_ptr_map_is_full(&s->locations))
    grow_locations(s);
  location = hd_sim_alloc(s->run, 0, sizeof *location);
  if (!location)
    hd_sim_no_memory(s->run);
  location->next = s->all_locations;
  s->all_locations = location;
  hd_ptr_map_set(NULL, &s->locations, (const void *)address, location);
  return location;
}

static uint32_t cluster_of(const hd_sim_run_t *run, uint32_t block) {
  const int32_t *grid = run->kernel->grid, *size = run->kernel->cluster;
  uint32_t x = block % (uint32_t)grid[0] / (uint32_t)size[0];
  uint32_t y =
      block / (uint32_t)grid[0] % (uint32_t)grid[1] / (uint32_t)size[1];
  uint32_t z =
      block / (uint32_t)grid[0] / (uint32_t)grid[1] / (uint32_t)size[2];
  return x + (uint32_t)grid[0] * (y + (uint32_t)grid[1] * z);
}

bool hd_sim_scope_reaches(const hd_sim_run_t *run, uint32_t a, uint32_t b,
                          unsigned scope) {
  if (a == b || scope >= HD_SYNC_DEVICE)
    return true;
  return scope == HD_SYNC_CLUSTER && cluster_of(run, a) == cluster_of(run, b);
}

static void forget_releases(hd_sim_location_t *location) {
  while (location->releases) {
    hd_sim_release_t *release = location->releases;
    location->releases = release->next;
    hd_sim_sync_drop(&release->clocks);
    free(release);
  }
}

// Takes over clocks.
static void add_release(hd_sim_run_t *run, hd_sim_location_t *location,
                        hd_sim_clocks_t *clocks, unsigned scope) {
  for (hd_sim_release_t *r = location->releases; r; r = r->next) {
    if (r->scope != scope || r->clocks->block != clocks->block)
      continue;
    if (r->clocks->refs == 1 && clocks->refs == 1) {
      hd_sim_clocks_learn(run, clocks, r->clocks);
      hd_sim_sync_drop(&r->clocks);
      r->clocks = clocks;
    } else {
      hd_sim_clocks_t *both = hd_sim_clocks_copy(run, r->clocks);
      hd_sim_clocks_learn(run, both, clocks);
      hd_sim_sync_drop(&r->clocks);
      hd_sim_sync_drop(&clocks);
      r->clocks = both;
    }
    return;
  }
  hd_sim_release_t *release = malloc(sizeof *release);
  if (!release)
    hd_sim_no_memory(run);
  *release = (hd_sim_release_t){location->releases, clocks, scope};
  location->releases = release;
}

void hd_sim_sync_release(hd_sim_fiber_t *fiber, uintptr_t address,
                         unsigned order, unsigned scope,
                         bool read_modify_write) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  hd_sim_sanitizer_t *s = run->sanitizer;
  bool by_itself = releases(order), by_fence = fiber->released != NULL;
  hd_sim_location_t *location = by_itself || by_fence
                                    ? make_location(s, address)
                                    : find_location(s, address);
  if (location && !read_modify_write)
    forget_releases(location);
  if (by_itself) {
    add_release(run, location, hd_sim_clocks_snapshot(fiber), scope);
    fiber->clock++;
  } else if (by_fence) {
    if (scope > fiber->release_scope)
      scope = fiber->release_scope;
    fiber->released->refs++;
    add_release(run, location, fiber->released, scope);
  }
}

// Teaches *clocks (owned; copied where shared) what the place has to give.
static void take_releases(hd_sim_fiber_t *fiber, hd_sim_clocks_t **clocks,
                          const hd_sim_location_t *location, unsigned scope) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  for (hd_sim_release_t *r = location->releases; r; r = r->next) {
    unsigned width = r->scope < scope ? r->scope : scope;
    uint32_t self = hd_sim_resident_of(fiber)->number;
    if (!hd_sim_scope_reaches(run, self, r->clocks->block, width))
      continue;
    if ((*clocks)->refs > 1) {
      hd_sim_clocks_t *own = hd_sim_clocks_copy(run, *clocks);
      hd_sim_sync_drop(clocks);
      *clocks = own;
    }
    hd_sim_clocks_learn(run, *clocks, r->clocks);
  }
}

void hd_sim_sync_acquire(hd_sim_fiber_t *fiber, uintptr_t address,
                         unsigned order, unsigned scope) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  const hd_sim_location_t *location = find_location(run->sanitizer, address);
  if (!location || !location->releases)
    return;
  if (acquires(order)) {
    hd_sim_clocks_of(fiber);
    take_releases(fiber, &fiber->clocks, location, scope);
    return;
  }
  if (!fiber->acquiring)
    fiber->acquiring =
        hd_sim_clocks_create(run, hd_sim_resident_of(fiber)->number);
  take_releases(fiber, &fiber->acquiring, location, scope);
}

void hd_sim_sync_fence(hd_sim_fiber_t *fiber, unsigned order, unsigned scope) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  if (acquires(order) && fiber->acquiring) {
    hd_sim_clocks_t *own = hd_sim_clocks_copy(run, hd_sim_clocks_of(fiber));
    if (scope >= HD_SYNC_CLUSTER)
      hd_sim_clocks_learn(run, own, fiber->acquiring);
    else
      hd_sim_clocks_raise(own, fiber->acquiring);
    hd_sim_sync_drop(&fiber->clocks);
    fiber->clocks = own;
  }
  if (releases(order)) {
    hd_sim_sync_drop(&fiber->released);
    fiber->released = hd_sim_clocks_snapshot(fiber);
    fiber->release_scope = scope;
    fiber->clock++;
  }
}

void hd_sim_locations_fini(hd_sim_sanitizer_t *s) {
  while (s->all_locations) {
    hd_sim_location_t *location = s->all_locations;
    s->all_locations = location->next;
    forget_releases(location);
    free(location);
  }
  free(s->locations.table.entries);
}
