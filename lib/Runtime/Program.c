// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program from its making to its end, and the memory that it has.
#include "Runtime/Lifetimes.h"
#include "Runtime/ProgramState.h"

// What a tensor in global memory begins at a multiple of, as cuMemAlloc() has
// it.
enum { WORKSPACE_ALIGN = 256 };

// An action uses a workspace: that lives then, and if it was there before the
// loop that the action is in, until the last turn has ended.
static void use_workspace(const hd_program_t *p, hd_lifetime_t *life,
                          size_t action, int64_t declared) {
  size_t first = action, last = action;
  for (int64_t loop = p->actions.data[action]->loop;
       loop != declared && loop >= 0; loop = p->actions.data[loop]->loop) {
    first = (size_t)loop;
    last = p->actions.data[loop]->other;
  }
  life->first = first < life->first ? first : life->first;
  life->last = last > life->last ? last : life->last;
}

// When each workspace lives: from the action that uses it first to the last.
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
  for (size_t i = 0; i < p->actions.size; i++) {
    const hd_action_t *action = p->actions.data[i];
    if (action->does != HD_ACTION_LAUNCHES && action->does != HD_ACTION_FILLS)
      continue;
    for (uint32_t k = 0; k < (action->kernel ? action->num_args : 1); k++) {
      int slot = action->kernel ? action->slots[k] : action->slot;
      if (slot >= (int)params &&
          p->views.data[(uint32_t)slot - params].base >= 0)
        slot = p->views.data[(uint32_t)slot - params].base;
      if (slot >= (int)params)
        use_workspace(p, &lives[(uint32_t)slot - params], i,
                      p->views.data[(uint32_t)slot - params].loop);
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
  p->block_bound = hd_lifetimes_bound(&p->arena, lives, count, p->actions.size,
                                      WORKSPACE_ALIGN);
  p->block_bytes = hd_lifetimes_place(&p->arena, lives, count, WORKSPACE_ALIGN);
  if (p->apart)
    return place_apart(p);
  for (size_t i = 0; i < count; i++)
    p->workspaces.data[i].address = (uint64_t)lives[i].offset;
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

bool hd_program_load_kernels(hd_program_t *program, const hd_code_t *codes,
                             hd_failure_t *failures) {
  hd_device_t *device = program->device;
  hd_times_t *times = &device->context->times;
  unsigned count = (unsigned)program->variants.size;
  const hd_func_t **funcs =
      HD_ARENA_ARRAY(&program->arena, const hd_func_t *, count + 1);
  for (unsigned i = 0; i < count; i++)
    funcs[i] = program->variants.data[i].func;
  program->kernels = HD_ARENA_ARRAY(&program->arena, hd_kernel_t *, count + 1);
  size_t part = hd_times_enter(times, "load");
  bool ok =
      hd_device_load(device, funcs, codes, count, program->kernels, failures);
  hd_times_leave(times, part);
  return ok;
}

bool hd_program_load(hd_program_t *program) {
  return hd_program_load_kernels(program, NULL, NULL) &&
         hd_program_make_ready(program);
}

bool hd_program_make_ready(hd_program_t *program) {
  hd_device_t *device = program->device;
  hd_times_t *times = &device->context->times;
  size_t part = hd_times_enter(times, "load");
  bool ok = hd_program_plan(program) && place_workspaces(program);
  if (ok && program->workspaces.size && !program->apart)
    program->owns_block = ok =
        device->ops->alloc(device, "the workspaces",
                           (size_t)program->block_bytes, &program->block);
  hd_times_leave(times, part);
  return ok;
}

bool hd_program_share(hd_program_t *program, const hd_program_t *of,
                      hd_device_t *device) {
  *program = (hd_program_t){.device = device,
                            .entry = of->entry,
                            .kernels = of->kernels,
                            .apart = of->apart,
                            .borrows = true};
  hd_arena_init(&program->arena, &device->context->budget);
  program->env.sms = of->env.sms;
  for (size_t i = 0; i < of->env.values.size; i++)
    hd_vec_push(&program->arena, &program->env.values, of->env.values.data[i]);
  for (size_t i = 0; i < of->sites.size; i++)
    hd_vec_push(&program->arena, &program->sites, of->sites.data[i]);
  for (size_t i = 0; i < of->variants.size; i++)
    hd_vec_push(&program->arena, &program->variants, of->variants.data[i]);
  return hd_program_plan(program) && place_workspaces(program);
}

void hd_program_place(hd_program_t *program, hd_address_t block) {
  program->block = block;
}

void hd_program_fini(hd_program_t *program) {
  hd_device_t *device = program->device;
  if (!device)
    return;
  for (size_t i = 0; program->apart && i < program->workspaces.size; i++)
    if (program->workspaces.data[i].address)
      device->ops->free(device, program->workspaces.data[i].address);
  if (program->owns_block)
    device->ops->free(device, program->block);
  size_t kernels =
      program->kernels && !program->borrows ? program->variants.size : 0;
  for (size_t i = 0; i < kernels; i++)
    if (program->kernels[i])
      device->ops->unload(device, program->kernels[i]);
  hd_module_destroy(program->module);
  hd_arena_fini(&program->arena);
  *program = (hd_program_t){0};
}
