// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the sanitizer asks of wgmma: reads of shared memory in place of the
// warpgroup's agent, whose time is the group's number, and accumulators that
// nobody may touch before a wait has named them, nor between a fence and the
// product that it stands before.
#include "Sim/Functions.h"
#include "Sim/Sanitizer.h"
#include "Sim/Wgmma.h"

#include <stdlib.h>
#include <string.h>

// --- Registers ---

void hd_sim_wgmma_forget_used(hd_sim_warpgroup_t *group, uint32_t warp) {
  for (hd_sim_used_t *used = group->used; used; used = used->next)
    memset(used->elements[warp], 0, sizeof used->elements[warp]);
}

static hd_sim_used_t *find_used(const hd_sim_warpgroup_t *group,
                                uint64_t declaration) {
  hd_sim_used_t *used = group->used;
  while (used && used->declaration != declaration)
    used = used->next;
  return used;
}

static void note_used(hd_sim_fiber_t *fiber, hd_sim_warpgroup_t *group,
                      const hd_sim_site_t *site, int64_t element) {
  uint32_t warp = hd_sim_group_warp(fiber);
  hd_sim_used_t *used = find_used(group, site->declaration);
  if (element < 0 || element >= 64 * HD_SIM_USED_WORDS)
    return;
  if (!used) {
    used = calloc(1, sizeof *used);
    if (!used)
      hd_sim_no_room(hd_sim_run_of(fiber));
    used->declaration = site->declaration;
    used->next = group->used;
    group->used = used;
  }
  used->elements[warp][element / 64] |= UINT64_C(1) << element % 64;
  used->site[warp] = site;
}

static uint32_t fragment_size(const hd_sim_product_t *p) {
  return HD_SIM_FRAGMENT / (uint32_t)hd_sim_operand_bytes(p->shape.a);
}

// What a product reads stays as it is until that is done.
static void check_fragments(hd_sim_fiber_t *fiber,
                            const hd_sim_warpgroup_t *group,
                            const hd_sim_site_t *site, int64_t element) {
  uint32_t warp = hd_sim_group_warp(fiber);
  char me[HD_SIM_NAME_SIZE];
  for (const hd_sim_product_t *p = group->first; p; p = p->next) {
    int64_t first = (int64_t)(uint32_t)p->which[warp];
    if (!p->in_registers || !(p->asked >> warp & 1) ||
        p->which[warp] >> 32 != site->declaration || element < first ||
        element >= first + fragment_size(p))
      continue;
    if (hd_sim_finding(fiber, HD_E0705, site, p->sums[warp]->site,
                       "%s writes register %lld of '%s', which a wgmma may "
                       "still be reading: no wgmma_wait for it stands between",
                       hd_sim_thread_name(fiber, me), (long long)element,
                       site->tensor))
      hd_note(hd_sim_run_of(fiber)->diags, hd_sim_site_loc(p->sums[warp]->site),
              "the wgmma");
    return;
  }
}

// Registers that threads have used are a product's after a fence only.
static void check_used(hd_sim_fiber_t *fiber, const hd_sim_warpgroup_t *group,
                       uint64_t which, uint32_t count) {
  uint32_t warp = hd_sim_group_warp(fiber);
  const hd_sim_used_t *used = find_used(group, which >> 32);
  char me[HD_SIM_NAME_SIZE];
  for (uint32_t i = (uint32_t)which; used && i < (uint32_t)which + count; i++) {
    if (i >= 64 * HD_SIM_USED_WORDS ||
        !(used->elements[warp][i / 64] >> i % 64 & 1))
      continue;
    if (hd_sim_finding(fiber, HD_E0711, fiber->head.site, used->site[warp],
                       "%s begins a product with register %u of '%s', which "
                       "its warp has used since its last wgmma_fence",
                       hd_sim_thread_name(fiber, me), i,
                       used->site[warp]->tensor))
      hd_note(hd_sim_run_of(fiber)->diags, hd_sim_site_loc(used->site[warp]),
              "the last use");
    return;
  }
}

void hd_sim_check_registers(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                            int64_t element) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  hd_sim_warpgroup_t *group = block->warpgroups[hd_sim_group_of(fiber)];
  char me[HD_SIM_NAME_SIZE];
  if (group)
    note_used(fiber, group, site, element);
  if (group && site->access == HD_SIM_STORE)
    check_fragments(fiber, group, site, element);
  for (const hd_sim_sums_t *s = group ? group->sums[hd_sim_group_warp(fiber)]
                                      : NULL;
       s; s = s->next) {
    int64_t first = (int64_t)(uint32_t)s->which;
    if (s->which >> 32 != site->declaration || element < first ||
        element >= first + s->count)
      continue;
    if (hd_sim_finding(fiber, HD_E0705, site, s->site,
                       "%s %s register %lld of '%s', an accumulator that a "
                       "wgmma may still be writing: no wgmma_wait that names "
                       "it stands between",
                       hd_sim_thread_name(fiber, me),
                       site->access == HD_SIM_STORE ? "writes" : "reads",
                       (long long)element, site->tensor))
      hd_note(hd_sim_run_of(fiber)->diags, hd_sim_site_loc(s->site),
              "the wgmma");
    return;
  }
}

// --- Shared memory ---

typedef struct look {
  hd_sim_fiber_t *fiber;
  const hd_sim_site_t *site;
  hd_sim_agent_t agent;
  const hd_sim_view_t *view;
  uint32_t first, end; // Rows of a.
} look_t;

static void look_at(void *argument, uint32_t line, uint32_t offset) {
  const look_t *look = argument;
  const hd_sim_view_t *view = look->view;
  uint32_t row = line / 2;
  if (view->mn_major) {
    uint32_t each = HD_SIM_LINE / hd_sim_operand_bytes(view->type);
    row = line % (view->extent / each) * each;
  }
  if (row < look->first || row >= look->end)
    return;
  hd_sim_touch_as(look->fiber, look->site,
                  (uintptr_t)look->fiber->head.block->shared + offset,
                  HD_SIM_LINE, HD_SIM_READS | HD_SIM_ENGINE, &look->agent);
}

static void check_reads(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                        const hd_sim_view_t *view, uint32_t group,
                        uint32_t first, uint32_t end) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  look_t look = {.fiber = fiber,
                 .site = site,
                 .agent = {hd_sim_resident_of(fiber)->number,
                           hd_sim_entry(run, HD_SIM_ENTRY_WARPGROUPS,
                                        hd_sim_group_of(fiber)),
                           group},
                 .view = view,
                 .first = first,
                 .end = end};
  hd_sim_view_walk(view, look_at, &look);
}

// A descriptor can lead anywhere.
typedef struct reach {
  uint32_t most;
} reach_t;

static void reach_to(void *argument, uint32_t line, uint32_t offset) {
  (void)line;
  reach_t *reach = argument;
  if (reach->most < offset)
    reach->most = offset;
}

// The hardware takes no lower bits of an address than a line's.
static void check_start(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                        const hd_sim_view_t *view) {
  char me[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  if (view->start % HD_SIM_LINE)
    hd_sim_refuse(fiber, HD_E0707, site,
                  "%s has a product read %s, which does not begin at a "
                  "multiple of 16 bytes",
                  hd_sim_thread_name(fiber, me),
                  hd_sim_place_name(site, NULL, place));
}

void hd_sim_wgmma_check_reach(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                              const hd_sim_view_t *view) {
  check_start(fiber, site, view);
  size_t size = hd_sim_run_of(fiber)->kernel->shared_bytes;
  reach_t reach = {0};
  hd_sim_view_walk(view, reach_to, &reach);
  char me[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  if (reach.most + HD_SIM_LINE > size)
    hd_sim_refuse(fiber, HD_E0701, site,
                  "%s has a product read %s as far as byte %u of shared "
                  "memory, which has %zu",
                  hd_sim_thread_name(fiber, me),
                  hd_sim_place_name(site, NULL, place),
                  reach.most + HD_SIM_LINE, size);
}

void hd_sim_wgmma_check(hd_sim_fiber_t *fiber, const hd_sim_warpgroup_t *group,
                        const hd_sim_product_t *p) {
  const uint64_t *slots = fiber->head.slots;
  uint32_t warp = hd_sim_group_warp(fiber);
  char me[HD_SIM_NAME_SIZE];
  if (!group->fenced[warp])
    hd_sim_finding(fiber, HD_E0711, fiber->head.site, NULL,
                   "%s begins products without a wgmma_fence",
                   hd_sim_thread_name(fiber, me));
  else
    check_used(fiber, group, slots[2], p->n / 2);
  if (group->fenced[warp] && p->in_registers)
    check_used(fiber, group, slots[4], fragment_size(p));
  if (!p->in_registers)
    check_reads(fiber, (const hd_sim_site_t *)(uintptr_t)slots[4], &p->a,
                p->group, warp * HD_SIM_PRODUCT_ROWS,
                (warp + 1) * HD_SIM_PRODUCT_ROWS);
  check_reads(fiber,
              (const hd_sim_site_t *)(uintptr_t)slots[p->in_registers ? 6 : 7],
              &p->b, p->group, 0, HD_SIM_PRODUCT_N);
}

// --- The end ---

bool hd_sim_wgmma_explain(const hd_sim_fiber_t *fiber) {
  if (fiber->head.function != (void *)(uintptr_t)hd_sim_wgmma_wait)
    return false;
  const hd_sim_warpgroup_t *group =
      hd_sim_resident_of(fiber)->warpgroups[hd_sim_group_of(fiber)];
  char me[HD_SIM_NAME_SIZE];
  uint32_t self = hd_sim_group_warp(fiber), behind = self;
  for (uint32_t i = 0; group && i < HD_SIM_GROUP_WARPS; i++)
    if (group->open[i] < group->open[behind])
      behind = i;
  if (!group || behind == self)
    return false;
  hd_sim_finding(
      fiber, HD_E0710, fiber->head.site, NULL,
      "%s waits for ever for products of its warpgroup: its warp has "
      "committed %u groups, warp %u of the warpgroup %u",
      hd_sim_thread_name(fiber, me), group->open[self] - 1, behind,
      group->open[behind] - 1);
  return true;
}

void hd_sim_warpgroups_end(hd_sim_fiber_t *last) {
  hd_sim_resident_t *block = hd_sim_resident_of(last);
  for (uint32_t i = 0; i < HD_SIM_WARPGROUPS; i++) {
    const hd_sim_warpgroup_t *group = block->warpgroups[i];
    const hd_sim_sums_t *sums =
        group && group->first ? group->first->sums[0] : NULL;
    if (group && group->first)
      hd_sim_finding(last, HD_E0705, sums ? sums->site : NULL, NULL,
                     "block %u ends while products of warpgroup %u are under "
                     "way: there is no wgmma_wait for them",
                     block->number, i);
  }
}
