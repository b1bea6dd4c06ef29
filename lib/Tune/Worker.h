// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The process that runs candidates, so that a hang or a fault is its end and
// nobody else's. It keeps its device from one group to the next.
#ifndef HIDET_TUNE_WORKER_H
#define HIDET_TUNE_WORKER_H

#include "Runtime/Device.h"

// Answers what comes over the socket (Message.h) until the other side has gone
// or the device had a fault.
void hd_tune_work(hd_device_t *device, int socket);

#endif
