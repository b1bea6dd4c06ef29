// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs of an executable of bounds (Fusion/Bucket/Bucket.h). Its tensors have
// room for the bounds; the elements of the shapes at hand are the first ones.
#include "Runtime/SessionState.h"

#include "Support/HostMemory.h"

#include <string.h>

bool hd_session_fit(hd_session_t *s, hd_ready_t *r,
                    const hd_tensor_type_t *types) {
  r->fit = r->turn->bucket ? hd_turn_fit(s->model, r->turn, types) : NULL;
  return true;
}

static hd_slot_t *slot_of(hd_ready_t *r, const hd_value_t *value) {
  return &hd_store_find(&r->values, value)->slot;
}

static bool upload(hd_session_t *s, hd_ready_t *r, const hd_value_t *value,
                   int param, const void *data, size_t bytes) {
  return param < 0 || !bytes ||
         s->device->ops->upload(s->device, slot_of(r, value)->address, data,
                                bytes);
}

static bool clear(hd_session_t *s, hd_ready_t *r, int param) {
  if (param < 0 || !r->slots[param].bytes)
    return true;
  size_t bytes = r->slots[param].bytes;
  hd_budget_t *budget = &s->context->budget;
  void *zeros = hd_host_memory_alloc(&s->context->diags, budget,
                                     r->slots[param].var->name, bytes);
  if (!zeros)
    return false;
  memset(zeros, 0, bytes);
  bool ok =
      s->device->ops->upload(s->device, r->slots[param].address, zeros, bytes);
  hd_host_memory_free(budget, zeros, bytes);
  return ok;
}

bool hd_session_clear_bucket(hd_session_t *s, hd_ready_t *r) {
  size_t inputs = s->model->graph->inputs.size;
  bool ok = true;
  for (size_t i = 0; ok && i < r->turn->bucket->graph->inputs.size; i++)
    ok = (i < inputs && hd_session_has_state(s, i, true)) ||
         clear(s, r, i < inputs ? r->inputs[i] : r->extras[i - inputs]);
  return ok;
}

// Extents, and constants that depend on them.
static bool fill_extras(hd_session_t *s, hd_ready_t *r) {
  const hd_bucket_t *bucket = r->turn->bucket;
  size_t first = s->model->graph->inputs.size, n = 0;
  if (bucket->extents) {
    if (!upload(s, r, bucket->extents, r->extras[n], r->fit->extents,
                bucket->num_extents * sizeof(int64_t)))
      return false;
    n++;
  }
  for (size_t i = 0; i < bucket->given.size; i++, n++)
    if (!upload(s, r, bucket->graph->inputs.data[first + n], r->extras[n],
                r->fit->given[i]->data, r->fit->given[i]->bytes))
      return false;
  return true;
}

bool hd_session_fill_extents(hd_session_t *s, hd_ready_t *r) {
  if (r->staged == r->fit)
    return true;
  r->staged = NULL;
  if (!hd_session_wait(s) || !fill_extras(s, r))
    return false;
  r->staged = r->fit;
  return true;
}

bool hd_session_fill_bucket(hd_session_t *s, hd_ready_t *r,
                            const hd_host_tensor_t *inputs) {
  for (size_t i = 0; i < s->model->graph->inputs.size; i++) {
    const hd_value_t *value = hd_turn_input(r->turn, i);
    if (hd_session_has_state(s, i, true))
      continue;
    hd_store_find(&r->values, value)->data = &inputs[i];
    if (!upload(s, r, value, r->inputs[i], inputs[i].data, inputs[i].bytes))
      return false;
  }
  return hd_session_fill_extents(s, r);
}

// What a run gives is on the device; inputs that come out, and constants, are
// in the host's memory.
static bool fetch(hd_session_t *s, hd_ready_t *r, size_t i,
                  hd_host_tensor_t *outputs) {
  const hd_graph_t *last = r->turn->last;
  const hd_value_t *value = last->outputs.data[i];
  hd_host_tensor_t *to = &outputs[i];
  for (size_t k = 0; !r->turn->planned[i] && k < i; k++)
    if (last->outputs.data[k] == value) {
      memcpy(to->data, outputs[k].data, to->bytes);
      return true;
    }
  if (!r->turn->planned[i]) {
    memcpy(to->data, hd_store_find(&r->values, value)->data->data, to->bytes);
    return true;
  }
  return !to->bytes ||
         s->device->ops->download(s->device, to->data,
                                  slot_of(r, value)->address, to->bytes);
}

bool hd_session_take_bucket(hd_session_t *s, hd_ready_t *r,
                            hd_host_tensor_t *outputs) {
  for (size_t i = 0; i < r->turn->last->outputs.size; i++)
    if (!hd_session_make_output(s, r, i, &outputs[i]) ||
        (!hd_session_has_state(s, i, false) && !fetch(s, r, i, outputs)))
      return false;
  return true;
}
