// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/Program.h"
#include "Runtime/LaunchDims.h"
#include "Runtime/Lifetimes.h"
#include "Runtime/Storage.h"
#include "Support/Float.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

// What a tensor in global memory begins at a multiple of, as cuMemAlloc() has
// it.
enum { WORKSPACE_ALIGN = 256 };

// A launch, or (kernel NULL) a fill of a workspace. A tensor is named by its
// slot: the entry's parameters first, then the workspaces.
struct hd_step {
  hd_kernel_t *kernel;
  hd_kernel_launch_t launch;
  uint32_t num_args;
  int *slots;       // For each argument; -1: a scalar.
  uint64_t *values; // For each argument.
  void **args;      // args[i] points at values[i].
  int *tensor_args; // For each of launch.tensors: its argument.
  hd_launch_tensor_t *tensors;
  hd_tensor_map_t *maps;
  uint32_t *map_args; // For each of maps: its tensor's argument.
  int slot;           // FILL
  uint64_t bits;
  unsigned element_bytes;
  size_t count;
};

static hd_diagnostics_t *diags_of(const hd_program_t *p) {
  return &p->device->context->diags;
}

static bool fail(const hd_program_t *p, const hd_func_t *kernel,
                 const char *why) {
  return hd_error(diags_of(p), nowhere, HD_E0608, kernel->name, why);
}

static uint64_t encode(hd_type_t type, hd_number_t value) {
  if (!hd_type_is_float(type))
    return (uint64_t)value.i;
  return hd_float_encode((hd_float_format_t)(type.scalar - HD_F4E2M1), value.f);
}

// The bytes of slot number i, as the entry's sizes say.
static bool slot_bytes(hd_program_t *p, int slot, int64_t *bytes) {
  uint32_t count = p->entry->num_params;
  if ((uint32_t)slot >= count) {
    *bytes = (int64_t)p->workspaces.data[(uint32_t)slot - count].bytes;
    return true;
  }
  return hd_storage_bytes(&p->env, &p->arena, p->entry->params[slot]->tensor,
                          bytes);
}

static const char *slot_name(const hd_program_t *p, int slot) {
  uint32_t count = p->entry->num_params;
  return (uint32_t)slot < count
             ? p->entry->params[slot]->name
             : p->workspaces.data[(uint32_t)slot - count].var->name;
}

// A tensor argument must hold what the kernel takes it for.
static bool add_tensor(hd_program_t *p, hd_step_t *step, const hd_env_t *env,
                       uint32_t arg) {
  const hd_func_t *kernel = step->kernel->func;
  const hd_var_t *param = kernel->params[arg];
  int64_t needed, present;
  char text[300];
  int64_t shape[HD_TENSOR_MAX_RANK];
  if (!hd_storage_shape(env, param->tensor, shape)) {
    hd_storage_shape_why(env, param, text, sizeof(text));
    return fail(p, kernel, text);
  }
  if (!hd_storage_bytes(env, &p->arena, param->tensor, &needed))
    return hd_error(diags_of(p), param->loc, HD_E0309, param->name);
  if (!slot_bytes(p, step->slots[arg], &present) || present < needed) {
    snprintf(text, sizeof(text),
             "'%.80s' needs %lld bytes, and '%.80s' has %lld", param->name,
             (long long)needed, slot_name(p, step->slots[arg]),
             (long long)present);
    return fail(p, kernel, text);
  }
  unsigned bits = hd_type_bits(param->type);
  step->tensor_args[step->launch.num_tensors] = (int)arg;
  step->tensors[step->launch.num_tensors++] = (hd_launch_tensor_t){
      .name = param->name,
      .bytes = (size_t)needed,
      .element_bytes = bits < 8 ? 1 : bits / 8,
      .read_only = param->direction == HD_DIR_IN,
  };
  return true;
}

static hd_step_t *new_launch(hd_program_t *p, const hd_call_site_t *site) {
  hd_step_t *step = HD_ARENA_NEW(&p->arena, hd_step_t);
  step->kernel = p->kernels[site->variant];
  uint32_t count = step->kernel->func->num_params;
  step->num_args = count;
  step->slots = HD_ARENA_ARRAY(&p->arena, int, count + 1);
  step->values = HD_ARENA_ARRAY(&p->arena, uint64_t, count + 1);
  uint32_t maps = step->kernel->func->num_maps;
  step->args = HD_ARENA_ARRAY(&p->arena, void *, count + maps + 1);
  step->tensor_args = HD_ARENA_ARRAY(&p->arena, int, count + 1);
  step->tensors = HD_ARENA_ARRAY(&p->arena, hd_launch_tensor_t, count + 1);
  for (uint32_t i = 0; i < count; i++)
    step->args[i] = &step->values[i];
  step->maps = HD_ARENA_ARRAY(&p->arena, hd_tensor_map_t, maps + 1);
  step->map_args = HD_ARENA_ARRAY(&p->arena, uint32_t, maps + 1);
  for (uint32_t i = 0; i < maps; i++)
    step->args[count + i] = &step->maps[i];
  step->launch.maps = step->maps;
  step->launch.args = step->args;
  step->launch.tensors = step->tensors;
  return step;
}

static bool add_maps(hd_program_t *p, hd_step_t *step, const hd_env_t *env) {
  const hd_func_t *kernel = step->kernel->func;
  for (uint32_t i = 0; i < kernel->num_maps; i++) {
    if (!hd_tensor_map_make(diags_of(p), env, kernel, i, &step->maps[i]))
      return false;
    for (uint32_t k = 0; k < kernel->num_params; k++)
      if (kernel->params[k] == kernel->maps[i]->map->tensor)
        step->map_args[i] = k;
  }
  step->launch.num_maps = kernel->num_maps;
  return true;
}

// step->slots are set; env holds the kernel's own parameters.
static bool finish_launch(hd_program_t *p, hd_step_t *step,
                          const hd_env_t *env) {
  const hd_func_t *kernel = step->kernel->func;
  hd_kernel_launch_t *launch = &step->launch;
  for (uint32_t i = 0; i < step->num_args; i++) {
    const hd_var_t *param = kernel->params[i];
    if (param->tensor) {
      if (!add_tensor(p, step, env, i))
        return false;
    } else {
      step->values[i] = encode(param->type, *hd_env_find(env, param));
    }
  }
  if (!hd_launch_dims(diags_of(p), env, kernel, launch->grid, launch->block,
                      launch->cluster))
    return false;
  const hd_shared_plan_t *shared = hd_shared_plan(&p->arena, kernel);
  if (!hd_eval_int(env, shared->size, &launch->shared_bytes))
    return fail(p, kernel, "the size of its shared memory is not known");
  if (!hd_launch_check(p->device, step->kernel, launch))
    return false;
  p->num_launches++;
  // No blocks, nothing to do: as a loop that does not run.
  if (!launch->grid[0] || !launch->grid[1] || !launch->grid[2])
    return true;
  // Before the first launch, and after a fill, there is none to overlap.
  size_t count = p->steps.size;
  launch->programmatic &= count > 0 && p->steps.data[count - 1]->kernel;
  hd_vec_push(&p->arena, &p->steps, step);
  return add_maps(p, step, env);
}

// The slot of a tensor variable of the entry.
static int find_slot(const hd_program_t *p, const hd_var_t *var) {
  return (int)(uintptr_t)hd_ptr_map_get(&p->slots, var) - 1;
}

static void set_slot(hd_program_t *p, const hd_var_t *var, size_t slot) {
  hd_ptr_map_set(&p->arena, &p->slots, var, (const void *)(slot + 1));
}

static bool plan_launch(hd_program_t *p, const hd_call_site_t *site) {
  hd_step_t *step = new_launch(p, site);
  const hd_func_t *kernel = step->kernel->func;
  for (uint32_t i = 0; i < step->num_args; i++)
    step->slots[i] = !kernel->params[i]->tensor ? -1
                     : !site->stmt
                         ? (int)i
                         : find_slot(p, site->stmt->u.launch.args[i]->u.var);
  step->launch.programmatic = site->stmt && site->stmt->u.launch.programmatic;
  return finish_launch(p, step, &site->env);
}

static bool add_fill(hd_program_t *p, const hd_slot_t *slot, int index,
                     const hd_expr_t *init) {
  hd_number_t value;
  if (!hd_eval(&p->env, init, &value))
    return hd_error(diags_of(p), init->loc, HD_E0210, "");
  unsigned bits = hd_type_bits(slot->var->type);
  hd_step_t *step = HD_ARENA_NEW(&p->arena, hd_step_t);
  step->slot = index;
  step->bits = encode(slot->var->type, value);
  // Below a byte: whole bytes of copies.
  for (; bits < 8; bits *= 2)
    step->bits = (step->bits & ((1u << bits) - 1)) * (1 + (1u << bits));
  step->element_bytes = bits / 8;
  step->count = slot->bytes / step->element_bytes;
  hd_vec_push(&p->arena, &p->steps, step);
  return true;
}

// A view's offset in bytes, if it lies in its base and is aligned.
static bool place_view(hd_program_t *p, const hd_stmt_t *stmt,
                       const hd_slot_t *slot, hd_view_t *view) {
  const hd_expr_t *of = stmt->u.declare.init;
  int64_t elements, bytes, bits = (int64_t)hd_type_bits(slot->var->type);
  char text[300];
  view->base = find_slot(p, of->u.var);
  if (!hd_eval_int(&p->env, of->operands[0], &elements) || elements < 0 ||
      __builtin_mul_overflow(elements, bits, &bits) ||
      !slot_bytes(p, view->base, &bytes) || bits / 8 > bytes ||
      (int64_t)slot->bytes > bytes - bits / 8) {
    snprintf(text, sizeof(text), "view '%.80s' does not lie in '%.80s'",
             slot->var->name, of->u.var->name);
    return fail(p, p->entry, text);
  }
  view->offset = (size_t)bits / 8;
  if (bits % 8 == 0 && view->offset % hd_tensor_align(slot->var->tensor) == 0)
    return true;
  snprintf(text, sizeof(text),
           "view '%.80s' does not begin at a multiple of %u bytes",
           slot->var->name, hd_tensor_align(slot->var->tensor));
  return fail(p, p->entry, text);
}

static bool plan_workspace(hd_program_t *p, const hd_stmt_t *stmt) {
  hd_slot_t slot = {.var = stmt->u.declare.var};
  int64_t bytes;
  int64_t shape[HD_TENSOR_MAX_RANK];
  if (!hd_storage_shape(&p->env, slot.var->tensor, shape)) {
    char text[200];
    hd_storage_shape_why(&p->env, slot.var, text, sizeof(text));
    return fail(p, p->entry, text);
  }
  if (!hd_storage_bytes(&p->env, &p->arena, slot.var->tensor, &bytes))
    return hd_error(diags_of(p), slot.var->loc, HD_E0309, slot.var->name);
  slot.bytes = (size_t)bytes;
  hd_view_t view = {.base = -1};
  bool is_view = hd_stmt_is_view(stmt);
  if (is_view && !place_view(p, stmt, &slot, &view))
    return false;
  hd_vec_push(&p->arena, &p->workspaces, slot);
  hd_vec_push(&p->arena, &p->views, view);
  int index = (int)(p->entry->num_params + p->workspaces.size - 1);
  set_slot(p, slot.var, (size_t)index);
  return is_view || !stmt->u.declare.init ||
         add_fill(p, &slot, index, stmt->u.declare.init);
}

static bool plan_steps(hd_program_t *p) {
  size_t site = 0;
  for (uint32_t i = 0; i < p->entry->num_params; i++)
    set_slot(p, p->entry->params[i], i);
  if (p->entry->kind == HD_FUNC_KERNEL)
    return plan_launch(p, &p->sites.data[0]);
  for (uint32_t i = 0; i < p->entry->body.size; i++) {
    const hd_stmt_t *stmt = p->entry->body.stmts[i];
    bool ok = stmt->kind == HD_STMT_LAUNCH
                  ? plan_launch(p, &p->sites.data[site++])
                  : plan_workspace(p, stmt);
    if (!ok)
      return false;
  }
  return true;
}

// When each workspace lives: from the step that uses it first to the last.
static hd_lifetime_t *find_lifetimes(hd_program_t *p) {
  size_t count = p->workspaces.size;
  uint32_t params = p->entry->num_params;
  hd_lifetime_t *lives = HD_ARENA_ARRAY(&p->arena, hd_lifetime_t, count + 1);
  for (size_t i = 0; i < count; i++)
    lives[i] =
        (hd_lifetime_t){.bytes = p->views.data[i].base < 0
                                     ? (int64_t)p->workspaces.data[i].bytes
                                     : 0,
                        .first = SIZE_MAX};
  for (size_t i = 0; i < p->steps.size; i++) {
    const hd_step_t *step = p->steps.data[i];
    for (uint32_t k = 0; k < (step->kernel ? step->num_args : 1); k++) {
      int slot = step->kernel ? step->slots[k] : step->slot;
      if (slot >= (int)params &&
          p->views.data[(uint32_t)slot - params].base >= 0)
        slot = p->views.data[(uint32_t)slot - params].base;
      if (slot < (int)params)
        continue;
      hd_lifetime_t *life = &lives[(uint32_t)slot - params];
      life->first = i < life->first ? i : life->first;
      life->last = i;
    }
  }
  return lives;
}

static bool place_apart(hd_program_t *p) {
  for (size_t i = 0; i < p->workspaces.size; i++) {
    hd_slot_t *slot = &p->workspaces.data[i];
    if (p->views.data[i].base >= 0)
      continue;
    if (!p->device->ops->alloc(p->device, slot->var->name, slot->bytes,
                               &slot->address))
      return false;
  }
  return true;
}

// Gives the workspaces their memory.
static bool place_workspaces(hd_program_t *p) {
  size_t count = p->workspaces.size;
  if (count == 0)
    return true;
  hd_lifetime_t *lives = find_lifetimes(p);
  p->block_bound = hd_lifetimes_bound(&p->arena, lives, count, p->steps.size,
                                      WORKSPACE_ALIGN);
  p->block_bytes = hd_lifetimes_place(&p->arena, lives, count, WORKSPACE_ALIGN);
  if (p->apart)
    return place_apart(p);
  if (!p->device->ops->alloc(p->device, "the workspaces",
                             (size_t)p->block_bytes, &p->block))
    return false;
  for (size_t i = 0; i < count; i++)
    p->workspaces.data[i].address = p->block + (uint64_t)lives[i].offset;
  return true;
}

bool hd_program_init(hd_program_t *program, hd_device_t *device,
                     const hd_module_t *module, const hd_func_t *entry,
                     const hd_env_t *env, const hd_program_options_t *options) {
  *program =
      (hd_program_t){.device = device, .entry = entry, .apart = options->apart};
  hd_arena_init(&program->arena, &device->context->budget);
  program->env.sms = device->info.sms;
  for (size_t i = 0; i < env->values.size; i++)
    hd_vec_push(&program->arena, &program->env.values, env->values.data[i]);
  hd_times_t *times = &device->context->times;
  size_t part = hd_times_enter(times, "specialize");
  bool ok = hd_program_make_variants(program, module, options);
  hd_times_leave(times, part);
  return ok;
}

bool hd_program_load(hd_program_t *program) {
  hd_device_t *device = program->device;
  hd_times_t *times = &device->context->times;
  unsigned count = (unsigned)program->variants.size;
  const hd_func_t **funcs =
      HD_ARENA_ARRAY(&program->arena, const hd_func_t *, count + 1);
  for (unsigned i = 0; i < count; i++)
    funcs[i] = program->variants.data[i].func;
  program->kernels = HD_ARENA_ARRAY(&program->arena, hd_kernel_t *, count + 1);
  size_t part = hd_times_enter(times, "load");
  bool ok = hd_device_load(device, funcs, count, program->kernels) &&
            plan_steps(program) && place_workspaces(program);
  hd_times_leave(times, part);
  return ok;
}

void hd_program_fini(hd_program_t *program) {
  hd_device_t *device = program->device;
  if (!device)
    return;
  for (size_t i = 0; program->apart && i < program->workspaces.size; i++)
    if (program->workspaces.data[i].address)
      device->ops->free(device, program->workspaces.data[i].address);
  if (program->block)
    device->ops->free(device, program->block);
  for (size_t i = 0; program->kernels && i < program->variants.size; i++)
    if (program->kernels[i])
      device->ops->unload(device, program->kernels[i]);
  hd_module_destroy(program->module);
  hd_arena_fini(&program->arena);
  *program = (hd_program_t){0};
}

static hd_address_t address_of(const hd_program_t *p, const hd_slot_t *params,
                               int slot) {
  uint32_t count = p->entry->num_params;
  if ((uint32_t)slot < count)
    return params[slot].address;
  const hd_view_t *view = &p->views.data[(uint32_t)slot - count];
  return view->base >= 0 ? address_of(p, params, view->base) + view->offset
                         : p->workspaces.data[(uint32_t)slot - count].address;
}

// A tensor parameter of the entry, in the order of addresses.
typedef struct span {
  const hd_var_t *param;
  hd_address_t begin, end;
} span_t;

static int by_address(const void *a, const void *b) {
  const span_t *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

static bool is_written(const span_t *span) {
  return span->param->direction != HD_DIR_IN;
}

static bool fail_overlap(const hd_program_t *p, const span_t *a,
                         const span_t *b) {
  char text[300];
  const span_t *written = is_written(a) ? a : b;
  snprintf(text, sizeof(text),
           "'%.80s', which '%.80s' writes, lies in the same memory as '%.80s'",
           written->param->name, p->entry->name,
           (written == a ? b : a)->param->name);
  return hd_error(diags_of(p), nowhere, HD_E0809, text);
}

// Code is made for parameters that do not overlap: an `in` is read ahead of
// what is written. Of those that begin before a tensor, one that reaches into
// it is the one that reaches farthest; of those that are written, likewise.
static bool check_disjoint(const hd_program_t *p, span_t *spans, size_t count) {
  const span_t *far = NULL, *far_written = NULL;
  qsort(spans, count, sizeof(*spans), by_address);
  for (size_t i = 0; i < count; i++) {
    const span_t *span = &spans[i];
    const span_t *before = is_written(span) ? far : far_written;
    if (before && before->end > span->begin)
      return fail_overlap(p, before, span);
    if (!far || span->end > far->end)
      far = span;
    if (is_written(span) && (!far_written || span->end > far_written->end))
      far_written = span;
  }
  return true;
}

static bool check_params(hd_program_t *p, const hd_slot_t *params) {
  const hd_func_t *entry = p->entry;
  hd_arena_t scratch;
  hd_arena_init_local(&scratch, &p->device->context->budget);
  span_t *spans = HD_ARENA_ARRAY(&scratch, span_t, entry->num_params + 1);
  size_t count = 0;
  for (uint32_t i = 0; i < entry->num_params; i++)
    if (entry->params[i]->tensor && params[i].bytes)
      spans[count++] = (span_t){entry->params[i], params[i].address,
                                params[i].address + params[i].bytes};
  bool ok = check_disjoint(p, spans, count);
  hd_arena_fini(&scratch);
  return ok;
}

static bool run_steps(hd_program_t *program, const hd_slot_t *params) {
  hd_device_t *device = program->device;
  if (!check_params(program, params))
    return false;
  for (size_t i = 0; i < program->steps.size; i++) {
    hd_step_t *step = program->steps.data[i];
    if (!step->kernel) {
      if (!device->ops->fill(device, address_of(program, params, step->slot),
                             step->bits, step->element_bytes, step->count))
        return false;
      continue;
    }
    for (uint32_t k = 0; k < step->launch.num_tensors; k++) {
      int arg = step->tensor_args[k];
      hd_address_t address = address_of(program, params, step->slots[arg]);
      step->values[arg] = address;
      step->tensors[k].address = address;
    }
    for (uint32_t k = 0; k < step->launch.num_maps; k++)
      if (!hd_tensor_map_place(diags_of(program), step->kernel->func,
                               &step->maps[k], step->values[step->map_args[k]]))
        return false;
    if (!device->ops->launch(device, step->kernel, &step->launch))
      return false;
  }
  return true;
}

bool hd_program_run(hd_program_t *program, const hd_slot_t *params) {
  hd_times_t *times = &program->device->context->times;
  size_t part = hd_times_enter(times, "run");
  bool ok = run_steps(program, params);
  hd_times_leave(times, part);
  return ok;
}

hd_moved_t hd_program_moved(const hd_program_t *program, uint32_t first,
                            uint32_t end) {
  hd_moved_t moved = {0};
  for (size_t i = 0; i < program->steps.size; i++) {
    const hd_step_t *step = program->steps.data[i];
    if (!step->kernel)
      continue;
    for (uint32_t k = 0; k < step->launch.num_tensors; k++) {
      int arg = step->tensor_args[k], slot = step->slots[arg];
      const hd_var_t *param = step->kernel->func->params[arg];
      int times = param->direction == HD_DIR_INOUT ? 2 : 1;
      bool constant = slot >= (int)first && slot < (int)end;
      *(constant ? &moved.constants : &moved.activations) +=
          times * (int64_t)step->tensors[k].bytes;
    }
  }
  return moved;
}
