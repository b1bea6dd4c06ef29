// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder of machine code, found again by what it was made from. Entries are
// written atomically; one that is damaged is a miss. All functions may be
// called from several threads and processes at once; a cache that cannot be
// read or written is one without entries.
//
// Entries together hold so many bytes at the most, in pages of 4 KiB: before
// one is written that would make it more, those that were asked for least
// recently are removed, and a tenth beside them. All processes that use a
// folder count together, each by its own bound. Files that are no entries
// (tune.db) are neither counted nor removed.
#ifndef HIDET_RUNTIME_CACHE_H
#define HIDET_RUNTIME_CACHE_H

#include "Support/Buffer.h"

#include <stdint.h>

typedef struct hd_cache hd_cache_t;

typedef struct hd_cache_key {
  uint64_t low, high;
} hd_cache_key_t;

// $HIDET_CACHE_DIR, else $XDG_CACHE_HOME/hidet, else ~/.cache/hidet; NULL where
// none of them is set. The caller frees it.
char *hd_cache_default_dir(void);

// Whether a folder is there or may be made; else errno says why not.
bool hd_cache_may_be(const char *dir);
// And whether anything may be kept there: entries may be read where it is not.
bool hd_cache_may_keep(const char *dir);

// What a cache holds where nobody says how much.
#define HD_CACHE_BYTES ((int64_t)4 << 30)

// Folders are made at the first put. bytes: the most that entries hold; 0: as
// many as HD_CACHE_BYTES. NULL where memory runs out.
hd_cache_t *hd_cache_open(const char *dir, int64_t bytes);
void hd_cache_close(hd_cache_t *cache); // NULL is allowed, here and below.

// salt: what else the entry depends on (kind, target, versions).
hd_cache_key_t hd_cache_key(const char *salt, const void *data, size_t size);

// Appends the entry to out, and notes that it was asked for; false where there
// is none.
bool hd_cache_get(const hd_cache_t *cache, hd_cache_key_t key,
                  hd_buffer_t *out);
// One that is larger than the bound is not kept, nor one for which there is no
// room within a few milliseconds: others write, or entries cannot be removed.
void hd_cache_put(const hd_cache_t *cache, hd_cache_key_t key,
                  const hd_buffer_t *entry);

#endif
