// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model of the public interface, for its sessions.
#ifndef HIDET_TOOLS_APIMODEL_H
#define HIDET_TOOLS_APIMODEL_H

#include "Runtime/Session.h"
#include "Tools/Api.h"
#include "Tune/Tune.h"
#include "hidet/Session.h"

// The model on a device, once it has a session there.
typedef struct hd_api_placed {
  hidet_device_t *on;  // A user of it; NULL: the reference evaluator.
  hd_device_t *device; // A fork of it, in the module's context.
  hd_tuner_t *tuner;   // That knows what was measured; NULL: nobody does.
  hd_model_t *model;
  struct hd_api_placed *next;
} hd_api_placed_t;

struct hidet_model {
  hidet_module_t *module;
  hidet_context_t *own; // The module's, of a model that was loaded; else NULL.
  const hd_graph_t *graph;
  hd_precision_t precision;
  bool untrusted, explained;
  char *measured; // The file; NULL: none.
  hd_bucket_policy_t buckets[HD_MAX_RANK];
  size_t num_buckets;
  hd_inouts_t inouts;      // In the module's arena.
  hd_api_placed_t *placed; // Under the lock of the module's context.
};

static inline hidet_context_t *hd_api_world(const hidet_model_t *model) {
  return model->module->owner;
}

// In a call on the model's world: the model on a device; NULL after an error.
hd_model_t *hd_api_place(hidet_model_t *model, hidet_device_t *device);

// The size of an axis; -1: not a constant.
int64_t hd_api_axis(const hd_value_t *value, int axis);

#endif
