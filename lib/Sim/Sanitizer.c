// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Sim/Sanitizer.h"
#include "Sim/Bulk.h"

#include <stdlib.h>
#include <string.h>

_Noreturn void hd_sim_no_memory(hd_sim_run_t *run) {
  hd_sim_report_memory(run, "no memory for the sanitizer");
  hd_sim_fail(run);
  hd_sim_leave();
}

// --- Beginning and end ---

static unsigned granule(const hd_sim_buffer_t *buffer) {
  uint32_t bytes = buffer->element_bytes ? buffer->element_bytes : 1;
  return (unsigned)__builtin_ctz(bytes);
}

hd_sim_sanitizer_t *hd_sim_sanitizer_create(hd_sim_run_t *run) {
  hd_sim_sanitizer_t *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->run = run;
  uint32_t count = run->kernel->num_buffers;
  s->buffers = calloc(count + 1, sizeof *s->buffers);
  bool good = s->buffers != NULL;
  for (uint32_t i = 0; good && i < count; i++) {
    const hd_sim_buffer_t *buffer = &run->kernel->buffers[i];
    good = hd_sim_shadow_init(run, &s->buffers[i], (uintptr_t)buffer->data,
                              buffer->size, granule(buffer), buffer);
  }
  if (good)
    return s;
  hd_sim_sanitizer_destroy(s);
  return NULL;
}

void hd_sim_sanitizer_destroy(hd_sim_sanitizer_t *s) {
  if (!s)
    return;
  for (uint32_t i = 0; s->buffers && i < s->run->kernel->num_buffers; i++)
    hd_sim_shadow_fini(&s->buffers[i]);
  hd_sim_locations_fini(s);
  free(s->buffers);
  for (uint32_t i = 1; i <= s->num_sites; i++)
    free(s->sites[i].turns);
  free(s->sites);
  for (hd_sim_map_site_t *m = s->map_sites, *next; m; m = next) {
    next = m->next;
    free(m);
  }
  free(s->numbers.table.entries);
  free(s);
}

bool hd_sim_sanitizer_conclude(hd_sim_sanitizer_t *s, hd_sim_stats_t *stats) {
  hd_sim_dependent_conclude(s);
  if (stats) {
    stats->findings = s->total_findings;
    hd_sim_banks_conclude(s, stats);
  }
  return s->total_findings == 0;
}

// --- Sites ---

static bool grow_sites(hd_sim_sanitizer_t *s) {
  uint32_t capacity = s->cap_sites ? s->cap_sites * 2 : 64;
  void *sites = realloc(s->sites, capacity * sizeof *s->sites);
  if (!sites)
    return false;
  s->sites = sites;
  s->cap_sites = capacity;
  if (s->num_sites == 0) // Number 0 stands for no site.
    memset(&s->sites[0], 0, sizeof *s->sites);
  return true;
}

static bool grow_numbers(hd_sim_sanitizer_t *s) {
  void *zeros = calloc(1, hd_ptr_map_growth(&s->numbers));
  if (!zeros)
    return false;
  free(hd_ptr_map_grow(&s->numbers, zeros));
  return true;
}

// A site of the same place in the text. 0: there is none yet.
static uint32_t find_twin(const hd_sim_sanitizer_t *s,
                          const hd_sim_site_t *site) {
  for (uint32_t i = 1; i <= s->num_sites; i++) {
    const hd_sim_site_t *other = s->sites[i].site;
    if (other->source == site->source && other->offset == site->offset &&
        other->access == site->access &&
        other->declaration == site->declaration && site->source)
      return i;
  }
  return 0;
}

uint32_t hd_sim_site_number(hd_sim_sanitizer_t *s, const hd_sim_site_t *site) {
  if (!site)
    return 0;
  uint32_t number = (uint32_t)(uintptr_t)hd_ptr_map_get(&s->numbers, site);
  if (number || (hd_ptr_map_is_full(&s->numbers) && !grow_numbers(s)))
    return number;
  number = find_twin(s, site);
  if (!number) {
    if (s->num_sites + 1 >= s->cap_sites && !grow_sites(s))
      return 0;
    number = ++s->num_sites;
    s->sites[number] = (hd_sim_text_site_t){.site = site};
  }
  hd_ptr_map_set(NULL, &s->numbers, site, (void *)(uintptr_t)number);
  return number;
}

const hd_sim_site_t *hd_sim_map_site(hd_sim_sanitizer_t *s,
                                     const hd_sim_site_t *site,
                                     const char *tensor) {
  if (!site)
    return NULL;
  for (hd_sim_map_site_t *m = s->map_sites; m; m = m->next)
    if (m->of == site && m->site.tensor == tensor)
      return &m->site;
  hd_sim_map_site_t *m = malloc(sizeof *m);
  if (!m)
    hd_sim_no_memory(s->run);
  *m = (hd_sim_map_site_t){s->map_sites, site, *site};
  m->site.tensor = tensor;
  m->site.rank = 0;
  m->site.declaration = UINT32_MAX; // No tensor that is declared.
  s->map_sites = m;
  return &m->site;
}

// --- Blocks ---

void hd_sim_check_begin_block(hd_sim_sanitizer_t *s, hd_sim_resident_t *block) {
  s->events++;
  if (block->shadow) {
    hd_sim_shadow_clear(block->shadow);
    return;
  }
  block->shadow = calloc(1, sizeof *block->shadow);
  if (!block->shadow ||
      !hd_sim_shadow_init(s->run, block->shadow, (uintptr_t)block->head.shared,
                          s->run->kernel->shared_bytes, 2, NULL))
    hd_sim_no_memory(s->run);
}

void hd_sim_check_end_block(hd_sim_sanitizer_t *s, hd_sim_resident_t *block) {
  s->events++;
  for (uint32_t i = 0; i < block->num_threads; i++) {
    hd_sim_fiber_t *fiber = &block->threads[i];
    hd_sim_sync_drop(&fiber->clocks);
    hd_sim_sync_drop(&fiber->released);
    hd_sim_sync_drop(&fiber->acquiring);
  }
  hd_sim_sync_drop(&block->cluster.joined);
  hd_sim_sync_drop(&block->cluster.complete);
  hd_sim_memo_drop(&block->cluster.memo);
  hd_sim_mbarriers_forget(block);
  hd_sim_warpgroups_forget(block);
  for (int i = 0; i < HD_SIM_BARRIERS; i++) {
    hd_sim_sync_drop(&block->barriers[i].joined);
    hd_sim_sync_drop(&block->barriers[i].complete);
  }
}

void hd_sim_check_drop_block(hd_sim_sanitizer_t *s, hd_sim_resident_t *block) {
  hd_sim_check_end_block(s, block);
  if (block->shadow)
    hd_sim_shadow_fini(block->shadow);
  free(block->shadow);
  block->shadow = NULL;
}

// --- Deadlock ---

void hd_sim_check_event(const hd_sim_fiber_t *fiber) {
  hd_sim_sanitizer_of(fiber)->events++;
}

static const char *waits_for(const hd_sim_fiber_t *fiber) {
  switch (fiber->state) {
  case HD_SIM_YIELDED:
    return "spins";
  case HD_SIM_AT_WARP:
    return "waits for the other threads of its warp";
  case HD_SIM_AT_BLOCK:
    return "waits at a barrier";
  case HD_SIM_UNBORN:
  case HD_SIM_READY:
  case HD_SIM_ENDED:
    break;
  }
  return NULL;
}

enum { MAX_NOTES = 4 };

static void note_waiting(const hd_sim_resident_t *block, uint32_t *notes,
                         const hd_sim_fiber_t *reported) {
  const hd_sim_fiber_t *last = reported;
  for (uint32_t i = 0; i < block->num_threads && *notes < MAX_NOTES; i++) {
    const hd_sim_fiber_t *fiber = &block->threads[i];
    if (!waits_for(fiber) || fiber == reported ||
        (fiber->state == last->state && fiber->head.site == last->head.site))
      continue;
    char name[HD_SIM_NAME_SIZE];
    hd_note(hd_sim_run_of(fiber)->diags, hd_sim_site_loc(fiber->head.site),
            "%s %s", hd_sim_thread_name(fiber, name), waits_for(fiber));
    last = fiber;
    ++*notes;
  }
}

static void report_deadlock(hd_sim_worker_t *worker) {
  hd_sim_run_t *run = worker->run;
  const hd_sim_fiber_t *first = NULL;
  uint32_t live = 0, notes = 0;
  for (hd_sim_resident_t *block = run->residents; block; block = block->next) {
    for (uint32_t i = 0; block->active && i < block->num_threads; i++) {
      const hd_sim_fiber_t *fiber = &block->threads[i];
      live += fiber->state != HD_SIM_ENDED;
      if (!first && fiber->state == HD_SIM_YIELDED)
        first = fiber;
    }
  }
  if (!first)
    return;
  uint32_t left = run->num_units - atomic_load(&run->next_unit);
  char name[HD_SIM_NAME_SIZE];
  if (!hd_sim_finding(first, HD_E0706, first->head.site, NULL,
                      "%s spins for ever: nothing changes any more; %u "
                      "threads wait%s",
                      hd_sim_thread_name(first, name), live,
                      left ? " and not all blocks have room to start" : ""))
    return;
  for (hd_sim_resident_t *block = run->residents; block; block = block->next)
    if (block->active)
      note_waiting(block, &notes, first);
}

bool hd_sim_check_spinning(hd_sim_sanitizer_t *s, hd_sim_worker_t *worker) {
  if (s->events != s->last_events) {
    s->last_events = s->events;
    s->idle = 0;
    return false;
  }
  if (++s->idle < 3)
    return false;
  report_deadlock(worker);
  hd_sim_fail(s->run);
  return true;
}
