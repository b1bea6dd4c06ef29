// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bump allocation. Everything in an arena lives until the arena ends; nothing
// is freed one by one.
#ifndef HIDET_SUPPORT_ARENA_H
#define HIDET_SUPPORT_ARENA_H

#include "Support/Budget.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

typedef struct hd_arena_chunk hd_arena_chunk_t;

typedef struct hd_arena {
  hd_arena_chunk_t *chunks;
  char *next, *end;
  char *zeroed; // What lies behind, up to the end, is still to be filled.
  size_t first; // Bytes of the first chunk, set after init; 0: 4096.
  hd_budget_t *budget;  // May be NULL: then only the system limits it.
  hd_cleanup_t cleanup; // Of one that unwinding ends.
} hd_arena_t;

void hd_arena_init(hd_arena_t *arena, hd_budget_t *budget);
// The same for an arena that nobody beyond this frame owns: unwinding past it
// frees it.
void hd_arena_init_local(hd_arena_t *arena, hd_budget_t *budget);
void hd_arena_fini(hd_arena_t *arena);
// That it has taken, in use or not.
size_t hd_arena_bytes(const hd_arena_t *arena);

// Returns zeroed memory aligned for any type. Never returns NULL: where memory
// or the budget is used up it unwinds through hd_budget_exhausted(). So it does
// now and then where time is: work that is long takes memory, and ends in time
// wherever it is. Without a recovery point time is not looked at: what went
// wrong can be reported.
void *hd_arena_alloc(hd_arena_t *arena, size_t size);

char *hd_arena_strndup(hd_arena_t *arena, const char *text, size_t size);
char *hd_arena_printf(hd_arena_t *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *hd_arena_vprintf(hd_arena_t *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#define HD_ARENA_NEW(arena, type)                                              \
  ((type *)hd_arena_alloc((arena), sizeof(type)))
// Another one like *from, to be changed.
#define HD_ARENA_COPY(arena, type, from)                                       \
  ((type *)memcpy(HD_ARENA_NEW(arena, type), 1 ? (from) : (const type *)NULL,  \
                  sizeof(type)))
#define HD_ARENA_ARRAY(arena, type, count)                                     \
  ((type *)hd_arena_alloc((arena), sizeof(type) * (size_t)(count)))

#endif
