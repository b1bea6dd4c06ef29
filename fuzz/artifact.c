// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file of a compiled model, with hashes that are right, is loaded or
// refused with a diagnostic: its graph, its plan and its table are any bytes.
// They are the parts of the input, between lines of "// -----"; the table is
// numbers. The device stores, and runs nothing: code is not what is looked at.

#include "Runtime/Saved.h"
#include "Support/Buffer.h"
#include "Support/HostMemory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARTS = 3, WORDS = 256, BYTES = 256 };

// --- A device ---

static bool alloc_memory(hd_device_t *device, const char *name, size_t bytes,
                         hd_address_t *address) {
  void *data = hd_host_memory_alloc(&device->context->diags,
                                    &device->context->budget, name, bytes);
  *address = (uintptr_t)data;
  if (data && !hd_device_remember(device, *address, bytes))
    abort();
  return data != NULL;
}

static void free_memory(hd_device_t *device, hd_address_t address) {
  hd_memory_t memory;
  if (hd_device_forget(device, address, &memory))
    hd_host_memory_free(&device->context->budget, (void *)(uintptr_t)address,
                        memory.bytes);
}

static bool upload(hd_device_t *device, hd_address_t to, const void *from,
                   size_t bytes) {
  hd_memory_t *memory = hd_device_find(device, to);
  if (!memory || bytes > memory->bytes)
    abort();
  if (bytes)
    memcpy((void *)(uintptr_t)to, from, bytes);
  return true;
}

static bool load_kernels(hd_device_t *device, const hd_func_t *const *funcs,
                         const hd_code_t *codes, unsigned count,
                         hd_kernel_t **kernels, hd_failure_t *failures) {
  (void)failures;
  if (!codes)
    return hd_error(&device->context->diags, (hd_loc_t){0}, HD_E0606, "k",
                    "this device makes no code");
  for (unsigned i = 0; i < count; i++) {
    kernels[i] = calloc(1, sizeof(hd_kernel_t));
    if (!kernels[i])
      abort();
    *kernels[i] =
        (hd_kernel_t){.func = funcs[i], .max_threads = 1024, .code = codes[i]};
  }
  return true;
}

static void unload(hd_device_t *device, hd_kernel_t *kernel) {
  (void)device;
  free(kernel);
}

static void describe(hd_device_t *device, hd_buffer_t *out) {
  (void)device, (void)out;
}

static bool wait(hd_device_t *device, void *stream) {
  (void)device, (void)stream;
  return true;
}

static const hd_device_ops_t ops = {.kind = "stub",
                                    .alloc = alloc_memory,
                                    .free = free_memory,
                                    .upload = upload,
                                    .load = load_kernels,
                                    .unload = unload,
                                    .describe = describe,
                                    .wait = wait};

// --- A file ---

// The parts of the input; what is missing is empty.
static void split(const uint8_t *data, size_t size, hd_artifact_part_t *parts) {
  static const char mark[] = "// -----\n";
  const char *at = (const char *)data, *end = at + size;
  for (int i = 0; i < PARTS; i++) {
    const char *next =
        i + 1 < PARTS ? memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1)
                      : NULL;
    parts[i].data = at;
    parts[i].size = (size_t)((next ? next : end) - at);
    at = next ? next + sizeof(mark) - 1 : end;
  }
}

// Numbers as a table has them.
static size_t read_words(const hd_artifact_part_t *part, int64_t *words) {
  char *text = strndup(part->data, part->size), *at = text;
  size_t count = 0;
  for (char *end; text && count < WORDS; at = end) {
    words[count] = strtoll(at, &end, 10);
    if (end == at)
      break;
    count++;
  }
  free(text);
  return count;
}

typedef struct work {
  hd_context_t context;
  hd_device_t *device;
  hd_model_t *model;
  hd_session_t *session;
  hd_artifact_part_t parts[PARTS];
  char path[64];
  bool ok;
} work_t;

static bool write_file(work_t *w, const char *made_for) {
  static const char zeros[BYTES];
  static const char names[] = "k\0k";
  int64_t words[WORDS];
  size_t count = read_words(&w->parts[2], words);
  hd_artifact_part_t rows[] = {
      {HD_SECTION_ENTRY, "main", 4},
      {HD_SECTION_GRAPH, w->parts[0].data, w->parts[0].size},
      {HD_SECTION_WEIGHT, zeros, BYTES},
      {HD_SECTION_MADE_FOR, made_for, strlen(made_for)},
      {HD_SECTION_PLAN, w->parts[1].data, w->parts[1].size},
      {HD_SECTION_NAMES, names, sizeof(names)},
      {HD_SECTION_CODE, zeros, BYTES},
      {HD_SECTION_CODE, zeros, BYTES},
      {HD_SECTION_DATA, zeros, BYTES},
      {HD_SECTION_DATA, zeros, 32},
      {HD_SECTION_TABLE, words, count * sizeof(*words)},
  };
  hd_artifact_parts_t parts = {.data = rows,
                               .size = sizeof(rows) / sizeof(rows[0])};
  return hd_artifact_write(&w->context, w->path, 0, &parts);
}

// What it is made for is what is here.
static hd_module_t *make_module(work_t *w) {
  hd_buffer_t text = {0};
  hd_cleanup_t cleanup;
  hd_model_t here = {.device = w->device};
  hd_budget_defer(&w->context.budget, &cleanup, hd_buffer_end, &text);
  hd_saved_describe(&here, &text);
  bool ok = write_file(w, hd_buffer_text(&text));
  hd_budget_clean(&w->context.budget, &cleanup);
  return ok ? hd_artifact_open(&w->context, w->path) : NULL;
}

// Has a session have launches worked out for each executable that there is.
static bool ready_all(work_t *w) {
  hd_tensor_type_t *outputs =
      HD_ARENA_ARRAY(&w->model->constants.arena, hd_tensor_type_t,
                     w->model->graph->outputs.size + 1);
  for (const hd_turn_t *turn = w->model->kept; turn; turn = turn->next)
    if (!hd_session_describe(w->session, turn->inputs, outputs, NULL))
      return false;
  return true;
}

static void load_body(void *argument) {
  work_t *w = argument;
  hd_module_t *module = make_module(w);
  if (!module)
    return;
  w->model = hd_model_create(module, hd_module_find_graph(module, "main"),
                             w->device, &(hd_model_options_t){.anew = false});
  w->session = hd_session_join(w->model, &w->context, w->device);
  w->ok = hd_saved_take_all(w->model) && ready_all(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  work_t w = {.ok = false};
  split(data, size, w.parts);
  hd_context_init(&w.context);
  w.context.budget.bytes_limit = (size_t)256 << 20;
  snprintf(w.path, sizeof(w.path), "/tmp/hidet-fuzz-%d.hidet", (int)getpid());
  w.device = hd_device_create(sizeof(*w.device), &ops, &w.context,
                              &(hd_device_options_t){.verbose = false});
  if (!w.device)
    abort();
  w.device->info.target = hd_target_find("sm_90a");
  w.device->info.max_shared_bytes = w.device->info.target->max_shared_bytes;
  hd_exhausted_t what = hd_budget_guard(&w.context.budget, load_body, &w);
  if (!w.ok && what == HD_EXHAUSTED_NOTHING && w.context.diags.num_errors == 0)
    abort(); // Refused, but nothing said.
  hd_session_destroy(w.session);
  hd_model_destroy(w.model);
  hd_context_fini(&w.context);
  if (w.device->memory)
    abort();
  hd_device_destroy(w.device);
  unlink(w.path);
  return 0;
}
