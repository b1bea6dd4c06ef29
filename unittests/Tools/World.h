// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A session of one graph, and all that it needs. What fails fails the test.
#ifndef HIDET_UNITTESTS_TOOLS_WORLD_H
#define HIDET_UNITTESTS_TOOLS_WORLD_H

#include "UnitTest.h"

#include <hidet/Session.h>

typedef struct world {
  hidet_context_t *context;
  hidet_device_t *device;
  hidet_module_t *module;
  hidet_model_t *model;
  hidet_session_t *session;
} world_t;

// A context, which the world has already or gets, and a device.
void world_open(world_t *world, const char *device);
// A module of this text, its model and a session.
void world_load(world_t *world, const char *text);
void world_end(world_t *world);

#endif
