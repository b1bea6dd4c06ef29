// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A group's operands are there once for all of its candidates, in so many sets
// that together they pass the L2 cache: each run takes the next set, so that
// weights come from memory, as in a model. What a launch gives in the model
// comes from a small kernel before the candidate, which may begin while that
// one runs.
#include "Tune/Worker.h"
#include "Fusion/Fuse.h"
#include "Runtime/Storage.h"
#include "Runtime/Tolerance.h"
#include "Support/HostMemory.h"
#include "Tune/Candidate.h"
#include "Tune/Message.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_SETS = 64,
  MAX_RUNS = 512,    // Of a replay,
  REPLAY_US = 400,   // which takes about so long.
  ROUNDS = 11,       // Each candidate is replayed once in each,
  EARLY_ROUNDS = 3,  // and after so many, those that are slow no more.
  HOST_ROUNDS = 3,   // Where a device has no clock.
  PATTERN = 1 << 20, // Random elements; longer tensors repeat them.
};

static const double slow = 1.2; // Over the best: it will not come first.
static const hd_env_t no_sizes;

typedef struct entry {
  uint32_t number;
  hd_tune_program_t p;
  hd_recording_t *recording;
  unsigned runs; // Of the recording.
  bool out;
  unsigned samples;
  double us[ROUNDS];
} entry_t;

typedef struct worker {
  hd_device_t *device;
  hd_context_t *context;
  int socket;
  hd_arena_t arena;          // Of the group.
  HD_VEC(entry_t *) entries; // The first is the reference.
  uint32_t num_params;
  unsigned num_sets;
  hd_slot_t *slots;           // num_sets times the parameters.
  hd_host_tensor_t *expected; // For each parameter that is written.
  const hd_message_t *message;
  hd_message_kind_t answer;
  hd_buffer_t said;
  bool has_ended;
} worker_t;

// --- Ends ---

static void end_entry(worker_t *w, entry_t *e) {
  if (e->recording)
    w->device->ops->recording_free(w->device, e->recording);
  e->recording = NULL;
  hd_tune_program_fini(&e->p);
}

static void end_group(worker_t *w) {
  for (size_t i = 0; i < w->entries.size; i++)
    end_entry(w, w->entries.data[i]);
  for (size_t i = 0; w->slots && i < (size_t)w->num_sets * w->num_params; i++)
    if (w->slots[i].address)
      w->device->ops->free(w->device, w->slots[i].address);
  for (uint32_t i = 0; w->expected && i < w->num_params; i++)
    hd_host_tensor_fini(&w->expected[i]);
  w->slots = NULL;
  w->expected = NULL;
  w->entries.data = NULL;
  w->entries.size = w->entries.capacity = 0;
  hd_arena_fini(&w->arena);
  hd_arena_init(&w->arena, &w->context->budget);
}

// --- Operands ---

static bool is_written(const hd_var_t *param) {
  return param->direction == HD_DIR_OUT;
}

static const entry_t *reference_of(const worker_t *w) {
  return w->entries.data[0];
}

static const hd_var_t *param_of(const worker_t *w, uint32_t i) {
  return reference_of(w)->p.program.entry->params[i];
}

// Floats are random, integers 0: that is inside of whatever they are an index
// of. What is written is all ones before, in floats no number.
static void fill_bytes(worker_t *w, const hd_var_t *param, unsigned char *data,
                       size_t bytes, uint32_t stream) {
  hd_type_t type = param->type;
  hd_scalar_t scalar = (hd_scalar_t)type.scalar;
  bool drawn = hd_storage_is_plain(param->tensor) &&
               (hd_type_is_float(type) || hd_type_is_bool(type));
  memset(data, is_written(param) ? 0xff : 0, bytes);
  if (is_written(param) || !drawn)
    return;
  size_t width = hd_host_element_bytes(scalar);
  int64_t count = (int64_t)(bytes / width);
  int64_t size = count < PATTERN ? count : PATTERN;
  hd_host_tensor_t *pattern = hd_host_tensor_make(&w->arena, scalar, &size, 1);
  hd_host_tensor_fill_random(pattern, 1, stream);
  for (size_t at = 0; at < bytes; at += pattern->bytes) {
    size_t left = bytes - at;
    memcpy(data + at, pattern->data,
           left < pattern->bytes ? left : pattern->bytes);
  }
}

static bool put_constant(worker_t *w, const hd_value_t *value,
                         const hd_var_t *param, unsigned char *data,
                         size_t bytes) {
  const hd_host_tensor_t *tensor =
      hd_constant_load(reference_of(w)->p.text, value);
  return tensor && hd_storage_pack(&no_sizes, &w->arena, param->tensor, tensor,
                                   data, bytes);
}

// The graph's constants stand behind its inputs.
static const hd_value_t *constant_of(const worker_t *w, uint32_t i) {
  const hd_graph_t *graph = reference_of(w)->p.graph;
  return i >= graph->inputs.size &&
                 i - graph->inputs.size < graph->constants.size
             ? graph->constants.data[i - graph->inputs.size]
             : NULL;
}

typedef struct block {
  hd_budget_t *budget;
  unsigned char *data;
  size_t bytes;
} block_t;

static void free_block(void *argument) {
  const block_t *b = argument;
  hd_host_memory_free(b->budget, b->data, b->bytes);
}

// Parameter i of each set.
static bool make_operand(worker_t *w, uint32_t i) {
  const hd_var_t *param = param_of(w, i);
  int64_t size;
  if (!hd_storage_bytes(&no_sizes, &w->arena, param->tensor, &size))
    return false;
  block_t b = {&w->context->budget, NULL, (size_t)size};
  b.data =
      hd_host_memory_alloc(&w->context->diags, b.budget, param->name, b.bytes);
  if (!b.data)
    return false;
  hd_cleanup_t cleanup;
  hd_budget_defer(b.budget, &cleanup, free_block, &b);
  fill_bytes(w, param, b.data, b.bytes, i);
  const hd_value_t *constant = constant_of(w, i);
  bool ok = !constant || put_constant(w, constant, param, b.data, b.bytes);
  for (unsigned k = 0; ok && k < w->num_sets; k++) {
    hd_slot_t *slot = &w->slots[k * w->num_params + i];
    *slot = (hd_slot_t){.var = param, .bytes = b.bytes};
    ok = w->device->ops->alloc(w->device, param->name, b.bytes,
                               &slot->address) &&
         w->device->ops->upload(w->device, slot->address, b.data, b.bytes);
  }
  hd_budget_clean(b.budget, &cleanup);
  return ok;
}

static unsigned count_sets(worker_t *w) {
  int64_t bytes = 1, size;
  for (uint32_t i = 0; i < w->num_params; i++)
    if (hd_storage_bytes(&no_sizes, &w->arena, param_of(w, i)->tensor, &size))
      bytes += size;
  int64_t sets = w->device->ops->replay
                     ? (2 * w->device->info.l2_bytes + bytes - 1) / bytes
                     : 1;
  return sets < 1 ? 1 : sets > MAX_SETS ? MAX_SETS : (unsigned)sets;
}

static bool make_operands(worker_t *w) {
  w->num_params = reference_of(w)->p.program.entry->num_params;
  w->num_sets = count_sets(w);
  w->slots = HD_ARENA_ARRAY(&w->arena, hd_slot_t,
                            (size_t)w->num_sets * w->num_params + 1);
  w->expected = HD_ARENA_ARRAY(&w->arena, hd_host_tensor_t, w->num_params + 1);
  bool ok = true;
  for (uint32_t i = 0; ok && i < w->num_params; i++)
    ok = make_operand(w, i);
  return ok;
}

// --- Results ---

static bool fetch(worker_t *w, uint32_t i, hd_host_tensor_t *tensor) {
  const hd_slot_t *slot = &w->slots[i];
  const hd_tensor_t *type = slot->var->tensor;
  int64_t shape[HD_TENSOR_MAX_RANK];
  block_t b = {&w->context->budget, NULL, slot->bytes};
  if (!hd_storage_shape(&no_sizes, type, shape) ||
      !hd_host_tensor_init(tensor, &w->context->diags, &w->context->budget,
                           slot->var->name, (hd_scalar_t)type->element.scalar,
                           shape, type->rank))
    return false;
  b.data = hd_host_memory_alloc(&w->context->diags, b.budget, slot->var->name,
                                b.bytes);
  if (!b.data)
    return false;
  hd_cleanup_t cleanup;
  hd_budget_defer(b.budget, &cleanup, free_block, &b);
  bool ok =
      w->device->ops->download(w->device, b.data, slot->address, b.bytes) &&
      hd_storage_unpack(&no_sizes, &w->arena, type, b.data, b.bytes, tensor);
  hd_budget_clean(b.budget, &cleanup);
  return ok;
}

// A few roundings of the type are a difference of order, no fault.
static hd_tolerance_t tolerance_for(const hd_host_tensor_t *expected) {
  hd_tolerance_t t = hd_tolerance_for((hd_tolerance_t){NAN, NAN}, expected);
  if (hd_scalar_class(expected->type) != HD_CLASS_FLOAT)
    return t;
  double unit = ldexp(4, -(int)hd_scalar_digits(expected->type));
  if (unit > t.relative) {
    t.absolute *= unit / t.relative;
    t.relative = unit;
  }
  return t;
}

static bool compare(worker_t *w, uint32_t i, const hd_host_tensor_t *found) {
  const hd_host_tensor_t *expected = &w->expected[i];
  hd_tolerance_t tolerance = tolerance_for(expected);
  for (int64_t k = 0; k < expected->count; k++) {
    double x = hd_host_tensor_get(found, k);
    double y = hd_host_tensor_get(expected, k);
    if (hd_tolerance_holds(tolerance, x, y))
      continue;
    char place[100];
    hd_buffer_printf(
        &w->said, "element %s is %g, and %g by the rules",
        hd_index_text(expected->shape, expected->rank, k, place, sizeof place),
        x, y);
    return false;
  }
  return true;
}

static bool wipe_results(worker_t *w) {
  for (uint32_t i = 0; i < w->num_params; i++)
    if (is_written(w->slots[i].var) &&
        !w->device->ops->fill(w->device, w->slots[i].address, UINT64_MAX, 1,
                              w->slots[i].bytes))
      return false;
  return true;
}

// --- What is asked ---

static entry_t *add_entry(worker_t *w) {
  entry_t *e = HD_ARENA_NEW(&w->arena, entry_t);
  e->number = w->message->number;
  hd_vec_push(&w->arena, &w->entries, e);
  return e;
}

static bool load(worker_t *w, entry_t *e) {
  return hd_tune_program_init(&e->p, w->device,
                              hd_buffer_text(&w->message->text),
                              w->message->text.size) &&
         hd_program_load(&e->p.program);
}

// A launch that the device refuses is a candidate that does not fit; any other
// error of a run leaves the device behind as it is.
static bool run(worker_t *w, entry_t *e) {
  if (hd_program_run(&e->p.program, w->slots))
    return true;
  const hd_diagnostic_t *d = w->context->diags.first;
  while (d && d->severity != HD_ERROR)
    d = d->next;
  w->has_ended = !d || d->code != HD_E0606;
  return false;
}

static bool begin_group(worker_t *w) {
  end_group(w);
  entry_t *e = add_entry(w);
  if (!load(w, e) || !make_operands(w) || !run(w, e))
    return false;
  for (uint32_t i = 0; i < w->num_params; i++)
    if (is_written(w->slots[i].var) && !fetch(w, i, &w->expected[i]))
      return false;
  return true;
}

static void drop_last(worker_t *w) {
  end_entry(w, w->entries.data[w->entries.size - 1]);
  w->entries.size--;
}

static bool try_candidate(worker_t *w) {
  entry_t *e = add_entry(w);
  if (!load(w, e) || e->p.program.entry->num_params != w->num_params ||
      !wipe_results(w) || !run(w, e))
    return false;
  for (uint32_t i = 0; i < w->num_params; i++) {
    hd_host_tensor_t found = {0};
    if (!is_written(w->slots[i].var))
      continue;
    bool ok = fetch(w, i, &found);
    bool same = ok && compare(w, i, &found);
    hd_host_tensor_fini(&found);
    if (!same) {
      w->answer = ok ? HD_MESSAGE_WRONG : w->answer;
      return false;
    }
  }
  return true;
}

// --- Times ---

static bool record(worker_t *w, entry_t *e, unsigned runs) {
  hd_device_t *device = w->device;
  if (e->recording)
    device->ops->recording_free(device, e->recording);
  e->recording = NULL;
  e->runs = runs;
  if (!device->ops->record_begin(device))
    return false;
  bool ok = true;
  for (unsigned i = 0; ok && i < runs; i++)
    ok = hd_program_run(&e->p.program,
                        w->slots + (size_t)(i % w->num_sets) * w->num_params);
  e->recording = device->ops->record_end(device);
  return ok && e->recording;
}

static bool replay(worker_t *w, entry_t *e, double *us) {
  double ms, host_us;
  uint64_t start = hd_clock_ns();
  if (!w->device->ops->replay) {
    bool ok = hd_program_run(&e->p.program, w->slots);
    *us = (double)(hd_clock_ns() - start) * 1e-3;
    return ok;
  }
  if (!w->device->ops->replay(w->device, e->recording, &ms, &host_us))
    return false;
  *us = ms * 1e3 / e->runs;
  return true;
}

// As many runs as take REPLAY_US, whole rounds of the sets.
static bool prepare(worker_t *w, entry_t *e) {
  double us;
  if (!w->device->ops->replay)
    return true;
  if (!record(w, e, w->num_sets) || !replay(w, e, &us) || !replay(w, e, &us))
    return false;
  double rounds = ceil(REPLAY_US / (us * w->num_sets));
  if (rounds * w->num_sets > MAX_RUNS)
    rounds = MAX_RUNS / w->num_sets;
  return rounds <= 1 || record(w, e, (unsigned)rounds * w->num_sets);
}

static double least(const entry_t *e) {
  double us = INFINITY;
  for (unsigned i = 0; i < e->samples; i++)
    us = e->us[i] < us ? e->us[i] : us;
  return us;
}

static void leave_slow_ones(worker_t *w) {
  double best = INFINITY;
  for (size_t i = 0; i < w->entries.size; i++)
    best = fmin(best, least(w->entries.data[i]));
  for (size_t i = 0; i < w->entries.size; i++)
    w->entries.data[i]->out |= least(w->entries.data[i]) > slow * best;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Each candidate once; first: to be prepared.
static bool measure_round(worker_t *w, bool first) {
  for (size_t i = 0; i < w->entries.size; i++) {
    entry_t *e = w->entries.data[i];
    if (e->out)
      continue;
    hd_budget_check(&w->context->budget);
    if (!hd_message_send(w->socket, HD_MESSAGE_AT, e->number, "") ||
        !(first ? prepare(w, e) : replay(w, e, &e->us[e->samples])))
      return false;
    e->samples += !first;
  }
  return true;
}

static bool measure(worker_t *w) {
  unsigned rounds = w->device->ops->replay ? ROUNDS : HOST_ROUNDS;
  for (unsigned n = 0; n <= rounds; n++) {
    if (!measure_round(w, n == 0)) {
      w->has_ended = true;
      return false;
    }
    if (n == EARLY_ROUNDS)
      leave_slow_ones(w);
  }
  for (size_t i = 0; i < w->entries.size; i++) {
    entry_t *e = w->entries.data[i];
    qsort(e->us, e->samples, sizeof(double), by_value);
    hd_buffer_printf(&w->said, "%u %.4f %u\n", e->number, e->us[e->samples / 2],
                     e->samples);
  }
  return true;
}

static void answer(void *argument) {
  worker_t *w = argument;
  bool ok = false;
  w->answer = HD_MESSAGE_FAILED;
  if (w->message->kind == HD_MESSAGE_GROUP)
    ok = begin_group(w);
  else if (w->message->kind == HD_MESSAGE_TRY && w->entries.size)
    ok = try_candidate(w);
  else if (w->message->kind == HD_MESSAGE_MEASURE && w->entries.size)
    ok = measure(w);
  if (ok)
    w->answer = w->message->kind == HD_MESSAGE_MEASURE ? HD_MESSAGE_TIMES
                                                       : HD_MESSAGE_READY;
}

void hd_tune_work(hd_device_t *device, int socket) {
  hd_context_t *context = device->context;
  hd_message_t message = {0};
  worker_t w = {.device = device,
                .context = context,
                .socket = socket,
                .message = &message};
  hd_arena_init(&w.arena, &context->budget);
  while (!w.has_ended &&
         hd_message_receive(socket, 0, NULL, &message) == HD_RECEIVED) {
    size_t entries = w.entries.size;
    w.said.size = 0;
    hd_exhausted_t exhausted = hd_budget_guard(&context->budget, answer, &w);
    if (exhausted != HD_EXHAUSTED_NOTHING) {
      w.answer = HD_MESSAGE_FAILED;
      w.has_ended = true;
      hd_buffer_puts(&w.said, "it takes too much memory or time");
    }
    if (w.answer == HD_MESSAGE_FAILED && !w.said.size)
      hd_tune_take_error(context, &w.said);
    hd_diagnostics_clear(&context->diags);
    if (w.has_ended && w.answer == HD_MESSAGE_FAILED)
      w.answer = HD_MESSAGE_FAULT;
    else if (message.kind == HD_MESSAGE_TRY && w.answer != HD_MESSAGE_READY &&
             w.entries.size > entries)
      drop_last(&w);
    hd_message_send(socket, w.answer, message.number, hd_buffer_text(&w.said));
  }
  hd_buffer_fini(&message.text);
  hd_buffer_fini(&w.said);
  if (!w.has_ended)
    end_group(&w);
  hd_arena_fini(&w.arena);
}
