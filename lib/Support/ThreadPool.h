// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fixed set of threads that run the pieces of one job at a time; jobs of
// several threads take turns.
#ifndef HIDET_SUPPORT_THREADPOOL_H
#define HIDET_SUPPORT_THREADPOOL_H

#include <stdbool.h>

typedef struct hd_thread_pool hd_thread_pool_t;

// threads: how many run at once, the caller of hd_thread_pool_run among them;
// 0: one for each core that this process may use. NULL where memory runs out;
// where the system gives fewer threads, the pool is smaller.
hd_thread_pool_t *hd_thread_pool_create(unsigned threads);
// No job may be running. NULL is allowed.
void hd_thread_pool_destroy(hd_thread_pool_t *pool);

// 1 for NULL.
unsigned hd_thread_pool_size(const hd_thread_pool_t *pool);

// Calls body(argument, piece, worker) once for each piece in 0 .. pieces - 1,
// lower ones first, on the pool's threads and the caller's; returns when all
// are done. worker < hd_thread_pool_size() and no two calls run under the same
// number at once. It waits for the jobs that other threads have begun; a body
// must not call it on the same pool. A NULL pool runs all on the caller's.
void hd_thread_pool_run(hd_thread_pool_t *pool, unsigned pieces,
                        void (*body)(void *argument, unsigned piece,
                                     unsigned worker),
                        void *argument);

#endif
