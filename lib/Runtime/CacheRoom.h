// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bound of a cache's folder. Entries lie at ab/cdef..., all their names
// lower-case hexadecimal digits, 2 and 30. How many bytes they hold is in the
// file `size`, which whoever changes it locks. Symbolic links are no entries,
// no folders of such and no `size`: nothing behind one is removed or written.
#ifndef HIDET_RUNTIME_CACHEROOM_H
#define HIDET_RUNTIME_CACHEROOM_H

#include <stdbool.h>
#include <stdint.h>

// Counts a file of so many bytes that is about to be written into the folder,
// which is there. Where entries would hold more than `most` with it, those are
// removed first that were written or asked for least recently. -1 where the
// file is not to be written: it is larger than all may be, what is there cannot
// be counted or removed (for a minute nobody tries that again), or another has
// the lock for milliseconds: nobody waits longer for a cache. Else the lock,
// which is kept until the file is there, for whoever looks through the folder
// is to see it. For any thread of any process.
int hd_cache_make_room(const char *dir, int64_t most, int64_t bytes);
void hd_cache_leave_room(int lock);

#endif
