// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the fake driver share.
#ifndef HIDET_UNITTESTS_FAKECUDA_H
#define HIDET_UNITTESTS_FAKECUDA_H

#include "Runtime/CudaDriver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  FAKE_MAX_DEVICES = 4,
  FAKE_CAPTURING = 900,
  FAKE_INVALIDATED = 901,
  FAKE_ISOLATED = 905,
};
struct hd_cu_context {
  int retained;
};
struct hd_cu_library {
  char *text;
  struct hd_cu_kernel *kernels; // They end with it.
};
struct hd_cu_kernel {
  struct hd_cu_library *library;
  struct hd_cu_kernel *next;
  char name[128];
};
struct hd_cu_function {
  char name[128];
  int params, maps; // Of its entry; a map is a parameter of 128 bytes.
  int dynamic_shared, local;
  hd_cu_context_t context;
  struct hd_cu_function *next;
};
struct hd_cu_stream {
  hd_cu_context_t context;
  int capturing;
};
struct hd_cu_event {
  hd_cu_context_t context;
  int recorded, captured; // In a stream that was being captured.
};
struct hd_cu_node {
  hd_cu_function_t function;
};
enum { FAKE_MAX_NODES = 1024 };
struct hd_cu_graph {
  int launches, programmatic;
  struct hd_cu_node nodes[FAKE_MAX_NODES];
};
struct hd_cu_exec {
  hd_cu_context_t context;
  int launches;
};
struct hd_cu_link {
  char *ptx, *error_log;
  size_t error_log_size;
};

// Allocations by number, so that logs do not depend on addresses.
enum { FAKE_MAX_ALLOCATIONS = 4096 };

typedef struct fake_state {
  struct hd_cu_context contexts[FAKE_MAX_DEVICES]; // The primary ones.
  uint64_t addresses[FAKE_MAX_ALLOCATIONS];        // 0: free.
  hd_cu_context_t owners[FAKE_MAX_ALLOCATIONS];
  int allocated, encoded; // So far.
  int allocations, streams, events, graphs, execs;
  atomic_int links, libraries; // Code is made and loaded by several threads.
  int calls;
  int captured, programmatic; // Launches in the capture under way,
  hd_cu_graph_t capture;      // what becomes of it, and whether it is of
  int of_all, invalid;        // all threads, and has come to nothing.
  hd_cu_node_t last;
  struct hd_cu_function *functions;
  pthread_mutex_t lock; // Of calls, the log and functions.
} fake_state_t;

extern fake_state_t fake;

// The calling thread's; NULL: none.
hd_cu_context_t fake_context(void);

// What the driver would say of an object of another context, or without one.
#define NEEDS(context_)                                                        \
  do {                                                                         \
    if (!fake_context())                                                       \
      return 201;                                                              \
    if ((context_) != fake_context())                                          \
      return 400;                                                              \
  } while (0)

// What is no work of a stream's may not be asked for while a capture of all
// threads is under way: it is refused, and the capture comes to nothing.
#define ENDS_CAPTURES()                                                        \
  do {                                                                         \
    if (fake.capture && fake.of_all) {                                         \
      fake.invalid = 1;                                                        \
      return FAKE_CAPTURING;                                                   \
    }                                                                          \
  } while (0)

// Appends to the log.
void fake_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The error that FAKE_CUDA_FAIL asks of this call, or 0. Calls are counted from
// when it asks for another than before.
int fake_fault(const char *name);

// What a variable of the environment says.
int fake_number(const char *variable, int otherwise);

#define FAKE(name, ...)                                                        \
  __attribute__((visibility("default"))) int name(__VA_ARGS__);                \
  int name(__VA_ARGS__)
#define MAY_FAIL(name)                                                         \
  do {                                                                         \
    int error_ = fake_fault(name);                                             \
    if (error_)                                                                \
      return error_;                                                           \
  } while (0)

#endif
