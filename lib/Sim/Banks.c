// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bank conflicts. The simulator runs the threads of a warp one after another;
// the n-th time that each comes by one place of the text is one access of the
// warp. Shared memory has 32 banks of 4 bytes; accesses of 8 and 16 bytes go in
// two and four parts of the warp.
#include "Sim/Sanitizer.h"

#include <stdlib.h>
#include <string.h>

enum { BANKS = 32, BANK_BYTES = 4, MOST_TURNS = 1 << 14 };

// What the lanes of a warp touch, the n-th time that they come by.
struct hd_sim_bank_turn {
  uint32_t lanes, bytes; // A bit for each lane.
  uint32_t offset[HD_SIM_WARP_SIZE];
};

static bool grow(hd_sim_text_site_t *site) {
  uint32_t capacity = site->cap_turns ? site->cap_turns * 2 : 8;
  if (capacity > MOST_TURNS)
    return false;
  void *turns = realloc(site->turns, capacity * sizeof *site->turns);
  if (!turns)
    return false;
  site->turns = turns;
  site->cap_turns = capacity;
  return true;
}

// The turns past what there is room for are not counted.
static hd_sim_bank_turn_t *turn_of(hd_sim_text_site_t *site, uint32_t lane) {
  if (site->seen[lane] == site->cap_turns && !grow(site))
    return NULL;
  uint32_t number = site->seen[lane]++;
  if (number >= site->num_turns) {
    site->turns[number].lanes = 0;
    site->num_turns = number + 1;
  }
  return &site->turns[number];
}

void hd_sim_banks_note(hd_sim_sanitizer_t *s, const hd_sim_fiber_t *fiber,
                       const hd_sim_site_t *at, uintptr_t address,
                       uint32_t bytes) {
  const hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  uint32_t number = hd_sim_site_number(s, at);
  if (!number)
    return;
  hd_sim_text_site_t *site = &s->sites[number];
  uint32_t lane = (uint32_t)fiber->head.linear % HD_SIM_WARP_SIZE;
  hd_sim_bank_turn_t *turn = turn_of(site, lane);
  if (!turn)
    return;
  if (site->num_turns == 1 && turn->lanes == 0) {
    site->next_touched = s->first_touched;
    s->first_touched = number;
  }
  turn->lanes |= 1u << lane;
  turn->bytes = bytes;
  turn->offset[lane] = (uint32_t)(address - (uintptr_t)block->head.shared);
}

// Cycles for lanes that are served together: the most words of one bank.
static uint32_t passes_of(const hd_sim_bank_turn_t *turn, uint32_t lanes) {
  uint32_t words[BANKS][HD_SIM_WARP_SIZE], used[BANKS] = {0}, most = 0;
  for (; lanes; lanes &= lanes - 1) {
    uint32_t offset = turn->offset[__builtin_ctz(lanes)];
    uint32_t last = (offset + turn->bytes - 1) / BANK_BYTES;
    for (uint32_t word = offset / BANK_BYTES; word <= last; word++) {
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
static void settle_turn(hd_sim_text_site_t *site,
                        const hd_sim_bank_turn_t *turn) {
  uint32_t parts = turn->bytes <= 4 ? 1 : turn->bytes <= 8 ? 2 : 4;
  uint32_t size = HD_SIM_WARP_SIZE / parts;
  uint32_t part = size == 32 ? ~0u : (1u << size) - 1;
  site->accesses++;
  for (uint32_t i = 0; i < parts; i++, part <<= size % 32) {
    if (!(turn->lanes & part))
      continue;
    site->passes += passes_of(turn, turn->lanes & part);
    site->least++;
  }
}

void hd_sim_banks_settle(hd_sim_sanitizer_t *s) {
  while (s->first_touched) {
    hd_sim_text_site_t *site = &s->sites[s->first_touched];
    s->first_touched = site->next_touched;
    for (uint32_t i = 0; i < site->num_turns; i++)
      settle_turn(site, &site->turns[i]);
    site->num_turns = 0;
    memset(site->seen, 0, sizeof site->seen);
  }
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
