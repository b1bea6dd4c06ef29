// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ScheduleHelp.h"
#include "TensorText.h"

#include "Graph/Reference/Reference.h"
#include "IR/Text/Library.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Storage.h"
#include "TaskMapping/Passes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fail_with(hd_task_run_t *run, const char *what) {
  hd_buffer_t said = {0};
  hd_diagnostics_print(&run->context.diags, false, &said);
  fail_msg("%s\n%s\n%s", what, hd_buffer_text(&said),
           run->printed.data ? hd_buffer_text(&run->printed) : "");
}

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

// name=value up to a space: an integer, a float, a type or a list of integers.
static hd_attribute_t *read_attribute(hd_arena_t *arena, const char **at) {
  hd_attribute_t *a = HD_ARENA_NEW(arena, hd_attribute_t);
  size_t size = strcspn(*at, "=");
  a->name = hd_arena_strndup(arena, *at, size);
  *at += size + 1;
  char word[32];
  snprintf(word, sizeof word, "%.*s", (int)strcspn(*at, " "), *at);
  hd_type_t type;
  char *end;
  if (**at == '[') {
    int64_t *values = HD_ARENA_ARRAY(arena, int64_t, 32);
    a->kind = HD_ATTRIBUTE_INTS;
    a->u.ints = values;
    for (++*at; **at != ']'; *at = end + strspn(end, ", "))
      values[a->count++] = strtoll(*at, &end, 10);
    ++*at;
  } else if (hd_type_parse(word, &type)) {
    a->kind = HD_ATTRIBUTE_TYPE;
    a->u.type = (hd_scalar_t)type.scalar;
    *at += strlen(word);
  } else if (strpbrk(word, ".e")) {
    a->kind = HD_ATTRIBUTE_FLOAT;
    a->u.f = strtod(*at, &end);
    *at = end;
  } else {
    a->kind = HD_ATTRIBUTE_INT;
    a->u.i = strtoll(*at, &end, 10);
    *at = end;
  }
  *at += strspn(*at, " ");
  return a;
}

static void make_tensor(hd_task_run_t *run, hd_host_tensor_t *tensor,
                        const hd_tensor_type_t *type) {
  assert_true(hd_host_tensor_init(tensor, &run->context.diags, NULL, "tensor",
                                  type->type, type->shape, type->rank));
}

void hd_run_prepare(hd_task_run_t *run, const char *text, const char *inputs,
                    const char *attributes) {
  *run = (hd_task_run_t){0};
  hd_context_init(&run->context);
  const hd_task_t *task;
  if (strchr(text, '{')) {
    run->tasks =
        hd_module_parse(&run->context, "task.hir", text, strlen(text), 1);
    if (!run->tasks || !hd_module_verify(run->tasks))
      fail_with(run, text);
    task = run->tasks->items.data[0].u.task;
  } else {
    run->tasks = hd_module_create(&run->context);
    task = hd_library_task(&run->context, text);
    if (!task)
      fail_with(run, text);
  }
  hd_arena_t *arena = &run->tasks->arena;
  hd_tensor_type_t types[MAX_TENSORS];
  while (*inputs)
    types[run->num_inputs++] = hd_test_read_type(&inputs);
  task = hd_task_for(task, run->num_inputs);
  const hd_attribute_t *list[16];
  uint32_t count = 0;
  while (*attributes)
    list[count++] = read_attribute(arena, &attributes);
  run->binding = hd_task_bind(&run->context, arena, task, types,
                              run->num_inputs, list, count, task->loc, "test");
  if (!run->binding)
    fail_with(run, text);
  for (unsigned i = 0; i < run->num_inputs; i++) {
    make_tensor(run, &run->inputs[i], &types[i]);
    hd_host_tensor_fill_random(&run->inputs[i], 1, i);
  }
  run->num_outputs = (unsigned)task->outputs.size;
  for (unsigned i = 0; i < run->num_outputs; i++)
    make_tensor(run, &run->outputs[i], &run->binding->outputs[i]);
}

// What is printed is parsed, and prints the same again.
static void check_text(hd_task_run_t *run) {
  hd_module_print(run->made, &run->printed);
  const char *text = hd_buffer_text(&run->printed);
  if (!hd_module_verify(run->made))
    fail_with(run, "what was scheduled breaks a rule");
  hd_module_t *again =
      hd_module_parse(&run->context, "made.hir", text, strlen(text), 1);
  if (!again || !hd_module_verify(again))
    fail_with(run, "what was scheduled does not parse");
  hd_buffer_t second = {0};
  hd_module_print(again, &second);
  assert_string_equal(text, hd_buffer_text(&second));
  hd_buffer_fini(&second);
}

static const hd_func_t *schedule(hd_task_run_t *run) {
  run->made = hd_module_create(&run->context);
  hd_scheduler_t *s = hd_scheduler_create(run->made, &run->made->arena);
  hd_flattened_t *flattened =
      hd_scheduler_flatten_binding(s, run->binding, (hd_loc_t){0, 0});
  if (!flattened)
    fail_with(run, "not scheduled");
  const hd_surroundings_t around = {0};
  return hd_scheduler_schedule(s, flattened, &around, run->binding->task->name,
                               (hd_loc_t){0, 0});
}

static hd_slot_t upload(hd_task_run_t *run, const hd_func_t *plan, uint32_t i,
                        const hd_host_tensor_t *tensor) {
  const hd_env_t none = {0};
  hd_arena_t *arena = &run->made->arena;
  int64_t bytes;
  hd_slot_t slot = {.var = plan->params[i]};
  assert_true(hd_storage_bytes(&none, arena, plan->params[i]->tensor, &bytes));
  slot.bytes = (size_t)bytes;
  char *storage = calloc(1, slot.bytes);
  if (tensor->count)
    assert_true(hd_storage_pack(&none, arena, plan->params[i]->tensor, tensor,
                                (unsigned char *)storage, slot.bytes));
  assert_true(
      run->device->ops->alloc(run->device, "x", slot.bytes, &slot.address));
  assert_true(
      run->device->ops->upload(run->device, slot.address, storage, slot.bytes));
  free(storage);
  return slot;
}

static void download(hd_task_run_t *run, const hd_slot_t *slot,
                     hd_host_tensor_t *tensor) {
  const hd_env_t none = {0};
  unsigned char *storage = calloc(1, slot->bytes);
  assert_true(run->device->ops->download(run->device, storage, slot->address,
                                         slot->bytes));
  if (tensor->count)
    assert_true(hd_storage_unpack(&none, &run->made->arena, slot->var->tensor,
                                  storage, slot->bytes, tensor));
  free(storage);
}

static void run_task(hd_task_run_t *run, bool checked) {
  hd_device_options_t device = {.threads = 2, .sanitize = checked};
  run->device = hd_device_open_sim(&run->context, &device);
  const hd_func_t *plan = schedule(run);
  check_text(run);
  hd_program_t program;
  hd_env_t none = {0};
  hd_program_options_t options = {.specialize = true, .apart = checked};
  hd_pass_args_t args = {.options = checked ? "layouts=keep" : NULL};
  size_t lower = 0;
  while (strcmp(hd_task_mapping_passes[lower].name, "lower") != 0)
    lower++;
  hd_pass_config_t config = {.verify_each = true};
  double start = now_ms();
  if (!hd_program_init(&program, run->device, run->made, plan, &none,
                       &options) ||
      !hd_pass_run(program.module, &hd_task_mapping_passes[lower], &args,
                   &config)
           .ok ||
      !hd_program_load(&program))
    fail_with(run, "not compiled");
  run->compile_ms = now_ms() - start;
  hd_slot_t slots[2 * MAX_TENSORS];
  for (unsigned i = 0; i < run->num_inputs; i++)
    slots[i] = upload(run, plan, i, &run->inputs[i]);
  for (unsigned i = 0; i < run->num_outputs; i++)
    slots[run->num_inputs + i] =
        upload(run, plan, run->num_inputs + i, &run->outputs[i]);
  start = now_ms();
  if (!hd_program_run(&program, slots))
    fail_with(run, "not run");
  run->run_ms = now_ms() - start;
  for (unsigned i = 0; i < run->num_outputs; i++)
    download(run, &slots[run->num_inputs + i], &run->outputs[i]);
  for (unsigned i = 0; i < run->num_inputs + run->num_outputs; i++)
    run->device->ops->free(run->device, slots[i].address);
  hd_program_fini(&program);
  hd_device_close(run->device);
  for (const hd_diagnostic_t *d = run->context.diags.first; d; d = d->next)
    if (d->severity != HD_REMARK)
      fail_with(run, "something was said");
  hd_diagnostics_clear(&run->context.diags);
}

void hd_run_task(hd_task_run_t *run) { run_task(run, false); }

void hd_run_task_checked(hd_task_run_t *run) {
  hd_buffer_fini(&run->printed);
  run->printed = (hd_buffer_t){0};
  run_task(run, true);
}

void hd_run_end(hd_task_run_t *run) {
  for (unsigned i = 0; i < run->num_inputs; i++)
    hd_host_tensor_fini(&run->inputs[i]);
  for (unsigned i = 0; i < run->num_outputs; i++)
    hd_host_tensor_fini(&run->outputs[i]);
  hd_buffer_fini(&run->printed);
  hd_context_fini(&run->context);
}

void hd_run_evaluate(hd_task_run_t *run, hd_host_tensor_t *outputs) {
  const hd_host_tensor_t *inputs[MAX_TENSORS];
  for (unsigned i = 0; i < run->num_inputs; i++)
    inputs[i] = &run->inputs[i];
  if (!hd_task_evaluate(&run->context, run->binding, inputs, outputs,
                        (hd_loc_t){0, 0}))
    fail_with(run, "not evaluated");
}

unsigned hd_run_kernels(const hd_task_run_t *run) {
  unsigned count = 0;
  for (size_t i = 0; i < run->made->items.size; i++)
    count += run->made->items.data[i].kind == HD_ITEM_FUNC &&
             run->made->items.data[i].u.func->kind == HD_FUNC_KERNEL;
  return count;
}

bool hd_run_has(const hd_task_run_t *run, const char *part) {
  hd_buffer_t copy = run->printed;
  return strstr(hd_buffer_text(&copy), part) != NULL;
}

void hd_expect_close(const hd_host_tensor_t *got, const double *expected,
                     double tolerance) {
  double most = 0;
  for (int64_t i = 0; i < got->count; i++)
    most = fmax(most, fabs(expected[i]));
  for (int64_t i = 0; i < got->count; i++) {
    double value = hd_host_tensor_get(got, i);
    if (!(fabs(value - expected[i]) <= tolerance * most))
      fail_msg("element %lld is %.9g and not %.9g", (long long)i, value,
               expected[i]);
  }
}
