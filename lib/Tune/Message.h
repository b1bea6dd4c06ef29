// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tuner and its worker tell each other, over a socket: a kind, a
// candidate's number and a text each time.
//
//   tuner                            worker
//   GROUP    reference's text        READY, or FAILED and why
//   TRY      i, candidate's text     READY, WRONG or FAILED and why
//   MEASURE                          AT i before each run of a candidate, then
//                                    TIMES: a line "i us samples" each
//
// What GROUP gives stays until the next one. A worker that had a fault says so
// (FAULT) and ends: its device is of no more use.
#ifndef HIDET_TUNE_MESSAGE_H
#define HIDET_TUNE_MESSAGE_H

#include "Support/Budget.h"
#include "Support/Buffer.h"

typedef enum hd_message_kind {
  HD_MESSAGE_GROUP,
  HD_MESSAGE_TRY,
  HD_MESSAGE_MEASURE,
  HD_MESSAGE_READY,
  HD_MESSAGE_WRONG,
  HD_MESSAGE_FAILED,
  HD_MESSAGE_FAULT,
  HD_MESSAGE_AT,
  HD_MESSAGE_TIMES,
} hd_message_kind_t;

typedef struct hd_message {
  hd_message_kind_t kind;
  uint32_t number;
  hd_buffer_t text; // The receiver's to end.
} hd_message_t;

typedef enum hd_received {
  HD_RECEIVED,
  HD_RECEIVED_END,  // The other one has gone, or talks nonsense.
  HD_RECEIVED_LATE, // The time is over.
} hd_received_t;

// False where the other one has gone.
bool hd_message_send(int socket, hd_message_kind_t kind, uint32_t number,
                     const char *text);
// deadline_ns: on the monotonic clock; 0: none. Looks at the budget meanwhile,
// which may be NULL. text is emptied first.
hd_received_t hd_message_receive(int socket, uint64_t deadline_ns,
                                 hd_budget_t *budget, hd_message_t *message);

#endif
