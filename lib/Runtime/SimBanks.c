// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bank conflicts. The simulator runs the threads of a warp one after another;
// the n-th time that each comes by one place of the text is one access of the
// warp. Shared memory has 32 banks of 4 bytes; accesses of 8 and 16 bytes go in
// two and four parts of the warp.
#include "Runtime/SimSanitizer.h"

#include <stdlib.h>
#include <string.h>

enum { BANKS = 32, BANK_BYTES = 4, LOG_LIMIT = 1 << 20 };

void hd_sim_banks_note(hd_sim_sanitizer_t *s, const hd_sim_task_t *task,
                       const hd_sim_site_t *site, uintptr_t address,
                       uint32_t bytes) {
  const hd_sim_resident_t *block = hd_sim_resident_of(task);
  uint32_t number = hd_sim_site_number(s, site);
  if (!number)
    return;
  if (s->num_bank_log == s->cap_bank_log) {
    uint32_t capacity = s->cap_bank_log ? s->cap_bank_log * 2 : 4096;
    if (capacity > LOG_LIMIT)
      return;
    void *log = realloc(s->bank_log, capacity * sizeof *s->bank_log);
    if (!log)
      return;
    s->bank_log = log;
    s->cap_bank_log = capacity;
  }
  uint32_t lane = (uint32_t)task->head.linear % HD_SIM_WARP_SIZE;
  s->bank_log[s->num_bank_log++] = (hd_sim_bank_entry_t){
      .site = number,
      .order = s->sites[number].seen[lane]++,
      .offset = (uint32_t)(address - (uintptr_t)block->head.shared),
      .bytes = (uint16_t)bytes,
      .lane = (uint8_t)lane,
  };
}

static int compare(const void *left, const void *right) {
  const hd_sim_bank_entry_t *a = left, *b = right;
  if (a->site != b->site)
    return a->site < b->site ? -1 : 1;
  if (a->order != b->order)
    return a->order < b->order ? -1 : 1;
  return (int)a->lane - (int)b->lane;
}

// Cycles for lanes that are served together: the most words of one bank.
static uint32_t passes_of(const hd_sim_bank_entry_t *entries, uint32_t count) {
  uint32_t words[BANKS][HD_SIM_WARP_SIZE], used[BANKS] = {0}, most = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t first = entries[i].offset / BANK_BYTES;
    uint32_t last = (entries[i].offset + entries[i].bytes - 1) / BANK_BYTES;
    for (uint32_t word = first; word <= last; word++) {
      uint32_t bank = word % BANKS, known = 0;
      while (known < used[bank] && words[bank][known] != word)
        known++;
      if (known == used[bank] && known < HD_SIM_WARP_SIZE)
        words[bank][used[bank]++] = word;
      if (used[bank] > most)
        most = used[bank];
    }
  }
  return most;
}

// One access of the warp.
static void settle_access(hd_sim_text_site_t *site,
                          const hd_sim_bank_entry_t *entries, uint32_t count) {
  uint32_t bytes = entries[0].bytes;
  uint32_t together = bytes <= 4   ? HD_SIM_WARP_SIZE
                      : bytes <= 8 ? HD_SIM_WARP_SIZE / 2
                                   : HD_SIM_WARP_SIZE / 4;
  site->accesses++;
  for (uint32_t i = 0, next; i < count; i = next) {
    uint32_t part = entries[i].lane / together;
    for (next = i; next < count && entries[next].lane / together == part;)
      next++;
    site->passes += passes_of(&entries[i], next - i);
    site->least++;
  }
}

void hd_sim_banks_settle(hd_sim_sanitizer_t *s, hd_sim_resident_t *block,
                         uint32_t first, uint32_t lanes) {
  (void)block;
  (void)first;
  (void)lanes;
  if (s->num_bank_log == 0)
    return;
  qsort(s->bank_log, s->num_bank_log, sizeof *s->bank_log, compare);
  for (uint32_t i = 0, next; i < s->num_bank_log; i = next) {
    const hd_sim_bank_entry_t *entry = &s->bank_log[i];
    hd_sim_text_site_t *site = &s->sites[entry->site];
    for (next = i; next < s->num_bank_log &&
                   s->bank_log[next].site == entry->site &&
                   s->bank_log[next].order == entry->order;)
      next++;
    settle_access(site, entry, next - i);
    memset(site->seen, 0, sizeof site->seen);
  }
  s->num_bank_log = 0;
}

static int worse(const void *left, const void *right) {
  const hd_sim_bank_site_t *a = left, *b = right;
  uint64_t x = a->passes - a->least, y = b->passes - b->least;
  return x < y ? 1 : x > y ? -1 : 0;
}

void hd_sim_banks_conclude(const hd_sim_sanitizer_t *s, hd_sim_stats_t *stats) {
  for (uint32_t i = 1; i <= s->num_sites; i++) {
    const hd_sim_text_site_t *site = &s->sites[i];
    if (site->passes <= site->least)
      continue;
    hd_sim_bank_site_t row = {hd_sim_site_loc(site->site), site->site->tensor,
                              site->accesses, site->passes, site->least};
    if (stats->num_bank_sites < HD_SIM_BANK_SITES) {
      stats->bank_sites[stats->num_bank_sites++] = row;
    } else if (worse(&row, &stats->bank_sites[HD_SIM_BANK_SITES - 1]) < 0) {
      stats->bank_sites[HD_SIM_BANK_SITES - 1] = row;
    }
    qsort(stats->bank_sites, stats->num_bank_sites, sizeof row, worse);
  }
}
