// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file of a compiled model: what is loaded of it gives what was saved, and
// whatever happens to its bytes, it gives that, or is refused.
#include "Runtime/Artifact.h"
#include "IR/Text/Parser.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Session.h"
#include "UnitTest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUTPUTS = 5 };

// Outputs of every origin: two kernels', an input, a constant, one again.
static const char text[] = "graph main(x: f32[n, 8]) -> y, z, x, v, y {\n"
                           "  const w: f32[8, 8] = 2\n"
                           "  const b: f32[8] = [1, 2, 3, 4, 5, 6, 7, 8]\n"
                           "  v: f32[8, 8] = add(w, w)\n"
                           "  p: f32[n, 8] = matmul(x, v)\n"
                           "  y: f32[n, 8] = add(p, b)\n"
                           "  q: f32[n, 8] = matmul(x, w)\n"
                           "  z: f32[n, 8] = relu(q)\n"
                           "}\n";

typedef struct world {
  hd_context_t context;
  hd_device_t *device;
  char path[64];
  const char *from; // NULL: the file; else a text.
  bool anew;
  int64_t rows; // Of the input.
  // What a try came to.
  bool ok;
  hd_model_counts_t counts;
  hd_module_t *module;
  hd_session_t *session;
  hd_host_tensor_t outputs[OUTPUTS];
} world_t;

static float element(int64_t i) { return (float)(i * 7 % 11 - 5); }

static void run(world_t *w) {
  hd_host_tensor_t input;
  const int64_t shape[2] = {w->rows, 8};
  assert_true(hd_host_tensor_init(&input, &w->context.diags, NULL, "x", HD_F32,
                                  shape, 2));
  for (int64_t i = 0; i < input.count; i++)
    ((float *)(void *)input.data)[i] = element(i);
  w->ok = hd_session_run(w->session, &input, w->outputs);
  hd_host_tensor_fini(&input);
}

static void try_body(void *argument) {
  world_t *w = argument;
  w->module = w->from ? hd_module_parse(&w->context, "test", w->from,
                                        strlen(w->from), 1)
                      : hd_artifact_open(&w->context, w->path);
  if (!w->module)
    return;
  w->session =
      hd_session_create(w->module, hd_module_find_graph(w->module, "main"),
                        w->device, &(hd_model_options_t){.anew = w->anew});
  run(w);
  w->counts = hd_model_counts(hd_session_model(w->session));
}

// Reads and runs; what is there afterwards is ended by end_try().
static void begin_try(world_t *w, const char *from, bool anew) {
  w->from = from;
  w->anew = anew;
  w->ok = false;
  memset(w->outputs, 0, sizeof(w->outputs));
  hd_diagnostics_clear(&w->context.diags);
  assert_int_equal(hd_budget_guard(&w->context.budget, try_body, w),
                   HD_EXHAUSTED_NOTHING);
}

static void end_try(world_t *w) {
  for (int i = 0; i < OUTPUTS; i++)
    hd_host_tensor_fini(&w->outputs[i]);
  hd_session_destroy(w->session);
  hd_module_destroy(w->module);
  w->session = NULL;
  w->module = NULL;
}

static void save_body(void *argument) {
  world_t *w = argument;
  w->ok = hd_model_save(hd_session_model(w->session), w->path);
}

static void begin_world(world_t *w) {
  *w = (world_t){.rows = 3};
  hd_context_init(&w->context);
  snprintf(w->path, sizeof(w->path), "/tmp/hidet-artifact-%d", (int)getpid());
  w->device =
      hd_device_open_sim(&w->context, &(hd_device_options_t){.threads = 1});
  assert_non_null(w->device);
  begin_try(w, text, false);
  assert_true(w->ok);
  hd_budget_guard(&w->context.budget, save_body, w);
  assert_true(w->ok);
  end_try(w);
}

static void end_world(world_t *w) {
  unlink(w->path);
  assert_null(w->device->memory);
  hd_device_close(w->device);
  hd_context_fini(&w->context);
}

// x is small integers, w is 2, v is 4, so all is exact.
static void check_outputs(const world_t *w) {
  const float *y = (const float *)(const void *)w->outputs[0].data;
  const float *z = (const float *)(const void *)w->outputs[1].data;
  const float *x = (const float *)(const void *)w->outputs[2].data;
  const float *v = (const float *)(const void *)w->outputs[3].data;
  for (int64_t i = 0; i < w->rows; i++) {
    float sum = 0;
    for (int64_t k = 0; k < 8; k++)
      sum += element(i * 8 + k);
    for (int64_t k = 0; k < 8; k++) {
      assert_true(y[i * 8 + k] == 4 * sum + (float)(k + 1));
      assert_true(z[i * 8 + k] == (sum > 0 ? 2 * sum : 0));
      assert_true(x[i * 8 + k] == element(i * 8 + k));
    }
  }
  for (int i = 0; i < 64; i++)
    assert_true(v[i] == 4);
  assert_memory_equal(w->outputs[4].data, y, w->outputs[4].bytes);
}

static void loads_without_compiling(void **state) {
  (void)state;
  world_t w;
  begin_world(&w);
  begin_try(&w, NULL, false);
  assert_true(w.ok);
  check_outputs(&w);
  assert_int_equal(w.counts.compiled, 0);
  assert_int_equal(w.counts.loaded, 1);
  w.rows = 5; // Of sizes that it has not.
  for (int i = 0; i < OUTPUTS; i++)
    hd_host_tensor_fini(&w.outputs[i]);
  run(&w);
  assert_true(w.ok);
  check_outputs(&w);
  assert_int_equal(hd_model_counts(hd_session_model(w.session)).compiled, 1);
  end_try(&w);
  w.rows = 3;
  begin_try(&w, NULL, true); // Untrusted.
  assert_true(w.ok);
  check_outputs(&w);
  assert_int_equal(w.counts.compiled, 1);
  assert_int_equal(w.counts.loaded, 0);
  end_try(&w);
  end_world(&w);
}

static size_t read_file(const char *path, unsigned char **bytes) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  size_t size = (size_t)ftell(file);
  rewind(file);
  *bytes = malloc(size);
  assert_int_equal(fread(*bytes, 1, size, file), size);
  fclose(file);
  return size;
}

// Right, or refused, with a reason.
static bool try_damaged(world_t *w) {
  begin_try(w, NULL, false);
  bool ok = w->ok;
  if (ok)
    check_outputs(w);
  else
    assert_true(w->context.diags.num_errors > 0);
  end_try(w);
  return ok;
}

static void flips_every_byte(void **state) {
  (void)state;
  world_t w;
  begin_world(&w);
  unsigned char *bytes;
  size_t size = read_file(w.path, &bytes), right = 0;
  int fd = open(w.path, O_WRONLY);
  assert_true(size > 4096 && fd >= 0);
  for (size_t i = 0; i < size; i++) {
    unsigned char flipped = bytes[i] ^ (unsigned char)(1u << i % 8);
    assert_int_equal(pwrite(fd, &flipped, 1, (off_t)i), 1);
    right += try_damaged(&w);
    assert_int_equal(pwrite(fd, &bytes[i], 1, (off_t)i), 1);
  }
  // What lies between sections is nobody's: less than 256 bytes each time.
  assert_true(right < size / 2);
  assert_true(try_damaged(&w)); // As it was.
  close(fd);
  free(bytes);
  end_world(&w);
}

static void cuts_everywhere(void **state) {
  (void)state;
  world_t w;
  begin_world(&w);
  unsigned char *bytes;
  size_t size = read_file(w.path, &bytes);
  for (size_t i = 0; i < 1000; i++) {
    assert_int_equal(truncate(w.path, (off_t)(size * (1000 - i) / 1000) - 1),
                     0);
    assert_false(try_damaged(&w));
  }
  free(bytes);
  end_world(&w);
}

// Writes the file anew, as another build of the compiler would have.
static void age_body(void *argument) {
  world_t *w = argument;
  char made_for[1024];
  w->module = hd_artifact_open(&w->context, w->path);
  assert_non_null(w->module);
  const hd_artifact_t *file = w->module->artifact;
  hd_artifact_part_t rows[64];
  hd_artifact_parts_t parts = {.data = rows};
  for (uint32_t i = 0; i < file->num_sections; i++) {
    const hd_section_t *s = &file->sections[i];
    hd_artifact_part_t part = {(hd_section_kind_t)s->kind,
                               file->data + s->offset, s->size};
    assert_true(parts.size < 64);
    if (s->kind == HD_SECTION_MADE_FOR) {
      assert_true(s->size < sizeof(made_for));
      memcpy(made_for, part.data, s->size);
      assert_memory_equal(made_for, "build ", 6);
      memset(made_for + 6, '0', 8);
      part.data = made_for;
    }
    rows[parts.size++] = part;
  }
  w->ok = hd_artifact_write(&w->context, w->path, file->precision, &parts);
}

static void makes_code_of_other_builds_anew(void **state) {
  (void)state;
  world_t w;
  begin_world(&w);
  hd_budget_guard(&w.context.budget, age_body, &w);
  assert_true(w.ok);
  end_try(&w);
  begin_try(&w, NULL, false);
  assert_true(w.ok);
  check_outputs(&w);
  assert_int_equal(w.counts.compiled, 1);
  assert_int_equal(w.counts.loaded, 0);
  assert_non_null(w.context.diags.first);
  assert_int_equal(w.context.diags.first->severity, HD_REMARK);
  assert_non_null(strstr(w.context.diags.first->message,
                         "made for another place; it is made anew (there: "
                         "build 00000000"));
  end_try(&w);
  end_world(&w);
}

HD_UNIT_TESTS(cmocka_unit_test(loads_without_compiling),
              cmocka_unit_test(makes_code_of_other_builds_anew),
              cmocka_unit_test(flips_every_byte),
              cmocka_unit_test(cuts_everywhere))
