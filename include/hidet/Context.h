// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The context: what a piece of work shares. Modules and programs belong to one
// and are destroyed before it; calls of several threads on what belongs to one
// context wait for each other. Devices, models and sessions take its limits and
// have worlds of their own: hidet/Model.h says who may work side by side.

#ifndef HIDET_CONTEXT_H
#define HIDET_CONTEXT_H

#include "hidet/Export.h"

#include <stddef.h>
#include <stdint.h>

HIDET_C_BEGIN

typedef struct hidet_context hidet_context_t;

// How a call ended. The values are the exit codes of the tools. A call that
// gets NULL for what it needs (all but what its comment says may be NULL, and
// data of no elements) ends with HIDET_USAGE. One that returns no status does
// nothing then, and gives 0, NULL or "".
typedef enum hidet_status {
  HIDET_OK = 0,
  HIDET_USAGE = 2,       // An argument is wrong: unknown names, wrong shapes.
  HIDET_INVALID = 3,     // The program is wrong.
  HIDET_UNSUPPORTED = 4, // It is right, but we cannot do it.
  HIDET_RESOURCE = 5,    // A limit was hit: memory, time.
  HIDET_DEVICE = 6,      // The device failed or lacks something.
  HIDET_INTERNAL = 70,   // A fault of ours.
  HIDET_CANCELLED = 130  // hidet_context_cancel()
} hidet_status_t;

// Returns NULL where memory runs out.
HIDET_API hidet_context_t *hidet_context_create(void);
HIDET_API void hidet_context_destroy(hidet_context_t *context);

// Bounds for what follows: bytes for the IR and the tensors of devices that are
// the host, milliseconds for each call. 0, the default, is no bound. A call
// that would pass one ends with HIDET_RESOURCE. Devices and sessions have the
// bounds that there were when they were made, each for itself. What LLVM and a
// device's driver take is not counted, and they are not cut short:
// docs/ARCHITECTURE.md, "Limits".
HIDET_API void hidet_context_limit(hidet_context_t *context, size_t bytes,
                                   unsigned milliseconds);

// Cancels: from here on calls on the context, and on the devices, models and
// sessions that were made under it, end with HIDET_CANCELLED at the next place
// where they look (as often as for a limit on time), those that are at work,
// too, until it is called with 0. What they had made by then is gone, as after
// an error. A launch that a GPU has is not cut short. For any thread.
HIDET_API void hidet_context_cancel(hidet_context_t *context, int cancelled);

typedef enum hidet_event_kind {
  HIDET_EVENT_MESSAGE, // A call has ended, and this is what it reported.
  HIDET_EVENT_PROGRESS // So many of the kernels of a plan are compiled.
} hidet_event_kind_t;

typedef struct hidet_event {
  hidet_event_kind_t kind;
  const char *text;   // A message's, as hidet_messages() has it.
  size_t done, total; // A progress's; at last they are equal.
} hidet_event_t;

// Has watcher(argument, event) called for what calls on the context, and on the
// devices, models and sessions that were made under it, report, and how far
// they are: on any thread, one at a time, while the call is at work. (Of a call
// that is refused for its arguments alone the caller is told.) The event
// lasts as long as the call of the watcher, which may call
// hidet_context_cancel() and nothing else of the library. NULL: no longer. When
// this returns, nobody is in the watcher before. Not to be called by one.
typedef void (*hidet_watcher_t)(void *argument, const hidet_event_t *event);
HIDET_API void hidet_context_watch(hidet_context_t *context,
                                   hidet_watcher_t watcher, void *argument);

// What the calling thread's last call that returns a status reported: lines
// such as `file:line:col: error[E0201]: ...`, "" where there is nothing. The
// text is valid until the thread's next such call.
HIDET_API const char *hidet_messages(void);

// Frees a text that a call returned. NULL is allowed.
HIDET_API void hidet_text_free(char *text);

HIDET_C_END

#endif
