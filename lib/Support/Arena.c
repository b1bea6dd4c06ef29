// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#define HD_ARENA_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HD_ARENA_CHECKED 1
#endif
#endif
#ifndef HD_ARENA_CHECKED
#define HD_ARENA_CHECKED 0
#endif

struct hd_arena_chunk {
  hd_arena_chunk_t *next;
  size_t size;
  alignas(max_align_t) char data[];
};

enum { FIRST_CHUNK = 4096, LAST_CHUNK = 1 << 20, ZEROED_AT_ONCE = 4096 };

void hd_arena_init(hd_arena_t *arena, hd_budget_t *budget) {
  *arena = (hd_arena_t){.budget = budget};
}

static void unwind(void *arena) { hd_arena_fini(arena); }

void hd_arena_init_local(hd_arena_t *arena, hd_budget_t *budget) {
  hd_arena_init(arena, budget);
  hd_budget_defer(budget, &arena->cleanup, unwind, arena);
}

void hd_arena_fini(hd_arena_t *arena) {
  if (arena->cleanup.run)
    hd_budget_keep(arena->budget, &arena->cleanup);
  while (arena->chunks) {
    hd_arena_chunk_t *chunk = arena->chunks;
    arena->chunks = chunk->next;
    if (arena->budget)
      arena->budget->bytes_used -= chunk->size;
    free(chunk);
  }
  arena->next = arena->end = arena->zeroed = NULL;
}

size_t hd_arena_bytes(const hd_arena_t *arena) {
  size_t bytes = 0;
  for (const hd_arena_chunk_t *chunk = arena->chunks; chunk;
       chunk = chunk->next)
    bytes += chunk->size;
  return bytes;
}

static void check_time(hd_budget_t *budget, size_t taken) {
  budget->bytes_used -= taken; // If it unwinds, this was not given.
  hd_budget_check(budget);
  budget->bytes_used += taken;
}

static void grow(hd_arena_t *arena, size_t size) {
  size_t chunk_size = arena->chunks  ? arena->chunks->size * 2
                      : arena->first ? arena->first
                                     : FIRST_CHUNK;
  if (chunk_size > LAST_CHUNK)
    chunk_size = LAST_CHUNK;
  // Under AddressSanitizer each allocation has a chunk of its own, so that an
  // overrun is found.
  if (chunk_size < size || HD_ARENA_CHECKED)
    chunk_size = size;
  if (chunk_size > SIZE_MAX - sizeof(hd_arena_chunk_t))
    hd_budget_exhausted(arena->budget, HD_EXHAUSTED_MEMORY);
  hd_budget_take(arena->budget, chunk_size);
  if (arena->budget && arena->budget->recovery)
    check_time(arena->budget, chunk_size);
  // Of what is larger than a chunk the system has pages of zeros.
  bool is_zeroed = chunk_size > LAST_CHUNK;
  hd_arena_chunk_t *chunk = is_zeroed ? calloc(1, sizeof(*chunk) + chunk_size)
                                      : malloc(sizeof(*chunk) + chunk_size);
  if (!chunk) {
    if (arena->budget)
      arena->budget->bytes_used -= chunk_size;
    hd_budget_exhausted(arena->budget, HD_EXHAUSTED_MEMORY);
  }
  chunk->size = chunk_size;
  chunk->next = arena->chunks;
  arena->chunks = chunk;
  arena->next = chunk->data;
  arena->end = chunk->data + chunk_size;
  arena->zeroed = is_zeroed ? arena->end : chunk->data;
}

// A chunk is filled with zeros as it is used: half of the last one never is,
// and what has just been filled is in the cache when it is written.
static void fill_zeros(hd_arena_t *arena) {
  size_t left = (size_t)(arena->end - arena->zeroed);
  size_t size = (size_t)(arena->next - arena->zeroed);
  if (size < ZEROED_AT_ONCE)
    size = left < ZEROED_AT_ONCE ? left : ZEROED_AT_ONCE;
  memset(arena->zeroed, 0, size);
  arena->zeroed += size;
}

void *hd_arena_alloc(hd_arena_t *arena, size_t size) {
  const size_t unit = alignof(max_align_t);
  if (size > SIZE_MAX - unit)
    hd_budget_exhausted(arena->budget, HD_EXHAUSTED_MEMORY);
  if (!HD_ARENA_CHECKED)
    size = (size + unit - 1) / unit * unit;
  if (HD_ARENA_CHECKED || (size_t)(arena->end - arena->next) < size)
    grow(arena, size);
  void *result = arena->next;
  arena->next += size;
  if (arena->next > arena->zeroed)
    fill_zeros(arena);
  return result;
}

char *hd_arena_strndup(hd_arena_t *arena, const char *text, size_t size) {
  char *copy = hd_arena_alloc(arena, size + 1);
  if (size)
    memcpy(copy, text, size);
  return copy;
}

char *hd_arena_vprintf(hd_arena_t *arena, const char *format, va_list args) {
  va_list again;
  char some[256];
  va_copy(again, args);
  int size = vsnprintf(some, sizeof some, format, again);
  va_end(again);
  char *text = hd_arena_alloc(arena, (size_t)size + 1);
  if ((size_t)size < sizeof some)
    memcpy(text, some, (size_t)size);
  else
    vsnprintf(text, (size_t)size + 1, format, args);
  return text;
}

char *hd_arena_printf(hd_arena_t *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = hd_arena_vprintf(arena, format, args);
  va_end(args);
  return text;
}
