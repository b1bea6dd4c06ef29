// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The actions of a program, in a list: those of a loop stand between two that
// begin and end it. Everything but what is another in each turn is worked out
// here.
#include "IR/Rewrite.h"
#include "IR/SharedPlan.h"
#include "Runtime/LaunchDims.h"
#include "Runtime/ProgramState.h"
#include "Runtime/Storage.h"
#include "Support/Float.h"

#include <stdio.h>
#include <string.h>

static const hd_loc_t nowhere;

bool hd_program_fail(const hd_program_t *p, const hd_func_t *kernel,
                     const char *why) {
  return hd_error(hd_program_diags(p), nowhere, HD_E0608, kernel->name, why);
}

uint64_t hd_program_encode(hd_type_t type, hd_number_t value) {
  if (!hd_type_is_float(type))
    return (uint64_t)value.i;
  return hd_float_encode((hd_float_format_t)(type.scalar - HD_F4E2M1), value.f);
}

// The bytes of slot number i, as the entry's sizes say.
bool hd_program_slot_bytes(hd_program_t *p, int slot, int64_t *bytes) {
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
static bool add_tensor(hd_program_t *p, hd_action_t *action,
                       const hd_env_t *env, uint32_t arg) {
  const hd_func_t *kernel = action->kernel->func;
  const hd_var_t *param = kernel->params[arg];
  int64_t needed, present;
  char text[300];
  int64_t shape[HD_TENSOR_MAX_RANK];
  if (!hd_storage_shape(env, param->tensor, shape)) {
    hd_storage_shape_why(env, param, text, sizeof(text));
    return hd_program_fail(p, kernel, text);
  }
  if (!hd_storage_bytes(env, &p->arena, param->tensor, &needed))
    return hd_error(hd_program_diags(p), param->loc, HD_E0309, param->name);
  if (!hd_program_slot_bytes(p, action->slots[arg], &present) ||
      present < needed) {
    snprintf(text, sizeof(text),
             "'%.80s' needs %lld bytes, and '%.80s' has %lld", param->name,
             (long long)needed, slot_name(p, action->slots[arg]),
             (long long)present);
    return hd_program_fail(p, kernel, text);
  }
  unsigned bits = hd_type_bits(param->type);
  action->tensor_args[action->launch.num_tensors] = (int)arg;
  action->tensors[action->launch.num_tensors++] = (hd_launch_tensor_t){
      .name = param->name,
      .bytes = (size_t)needed,
      .element_bytes = bits < 8 ? 1 : bits / 8,
      .read_only = param->direction == HD_DIR_IN,
  };
  return true;
}

static hd_action_t *new_launch(hd_program_t *p, const hd_call_site_t *site) {
  hd_action_t *action = HD_ARENA_NEW(&p->arena, hd_action_t);
  action->kernel = p->kernels[site->variant];
  uint32_t count = action->kernel->func->num_params;
  action->num_args = count;
  action->slots = HD_ARENA_ARRAY(&p->arena, int, count + 1);
  action->values = HD_ARENA_ARRAY(&p->arena, uint64_t, count + 1);
  uint32_t maps = action->kernel->func->num_maps;
  action->args = HD_ARENA_ARRAY(&p->arena, void *, count + maps + 1);
  action->tensor_args = HD_ARENA_ARRAY(&p->arena, int, count + 1);
  action->tensors = HD_ARENA_ARRAY(&p->arena, hd_launch_tensor_t, count + 1);
  for (uint32_t i = 0; i < count; i++)
    action->args[i] = &action->values[i];
  action->maps = HD_ARENA_ARRAY(&p->arena, hd_tensor_map_t, maps + 1);
  action->map_args = HD_ARENA_ARRAY(&p->arena, uint32_t, maps + 1);
  for (uint32_t i = 0; i < maps; i++)
    action->args[count + i] = &action->maps[i];
  action->launch.room =
      hd_arena_alloc(&p->arena, action->kernel->room_bytes + 1);
  action->launch.maps = action->maps;
  action->launch.args = action->args;
  action->launch.tensors = action->tensors;
  return action;
}

static bool add_maps(hd_program_t *p, hd_action_t *action,
                     const hd_env_t *env) {
  const hd_func_t *kernel = action->kernel->func;
  for (uint32_t i = 0; i < kernel->num_maps; i++) {
    if (!hd_tensor_map_make(hd_program_diags(p), env, kernel, i,
                            &action->maps[i]))
      return false;
    for (uint32_t k = 0; k < kernel->num_params; k++)
      if (kernel->params[k] == kernel->maps[i]->map->tensor)
        action->map_args[i] = k;
  }
  action->launch.num_maps = kernel->num_maps;
  return true;
}

static void push(hd_program_t *p, hd_action_t *action) {
  action->loop = p->open_loop;
  hd_vec_push(&p->arena, &p->actions, action);
}

// What is settled of a launch by sizes alone, and whether the device has room
// for it.
static bool size_launch(hd_program_t *p, const hd_kernel_t *kernel,
                        const hd_env_t *env, hd_kernel_launch_t *launch) {
  if (!hd_launch_dims(hd_program_diags(p), env, kernel->func, launch->grid,
                      launch->block, launch->cluster))
    return false;
  const hd_shared_plan_t *shared = hd_shared_plan(&p->arena, kernel->func);
  if (!hd_eval_int(env, shared->size, &launch->shared_bytes))
    return hd_program_fail(p, kernel->func,
                           "the size of its shared memory is not known");
  return hd_launch_check(p->device, kernel, launch);
}

bool hd_program_fits(hd_program_t *p, const hd_call_site_t *site) {
  hd_kernel_launch_t launch = {0};
  hd_kernel_t *kernel = p->kernels[site->variant];
  const hd_device_ops_t *ops = p->device->ops;
  return size_launch(p, kernel, &site->env, &launch) &&
         (!ops->fits || ops->fits(p->device, kernel, &launch));
}

// action->slots are set; env holds the kernel's own parameters.
static bool finish_launch(hd_program_t *p, hd_action_t *action,
                          const hd_env_t *env) {
  const hd_func_t *kernel = action->kernel->func;
  hd_kernel_launch_t *launch = &action->launch;
  for (uint32_t i = 0; i < action->num_args; i++) {
    const hd_var_t *param = kernel->params[i];
    if (param->tensor) {
      if (!add_tensor(p, action, env, i))
        return false;
    } else {
      action->values[i] =
          hd_program_encode(param->type, *hd_env_find(env, param));
    }
  }
  if (!size_launch(p, action->kernel, env, launch))
    return false;
  // No blocks, nothing to do: as a loop that does not run.
  if (!launch->grid[0] || !launch->grid[1] || !launch->grid[2]) {
    p->num_launches++;
    return true;
  }
  push(p, action);
  return add_maps(p, action, env);
}

// The slot of a tensor variable of the entry.
static int find_slot(const hd_program_t *p, const hd_var_t *var) {
  return (int)(uintptr_t)hd_ptr_map_get(&p->slots, var) - 1;
}

static void set_slot(hd_program_t *p, const hd_var_t *var, size_t slot) {
  hd_ptr_map_set(&p->arena, &p->slots, var, (const void *)(slot + 1));
}

static bool is_no_turn(void *argument, const hd_expr_t *e) {
  (void)argument;
  return e->kind != HD_EXPR_VAR || e->u.var->kind != HD_VAR_LOOP;
}

// Whether an expression of a plan is another in each turn of a loop.
static bool moves(const hd_expr_t *e) {
  return !hd_walk_expr(e, is_no_turn, NULL);
}

// Sizes decide on code, and on memory: they are the same in each turn.
static bool find_moving(hd_program_t *p, hd_action_t *action,
                        const hd_stmt_t *stmt) {
  const hd_func_t *kernel = stmt->u.launch.kernel;
  char text[200];
  action->moving = HD_ARENA_ARRAY(&p->arena, hd_moving_t, action->num_args + 1);
  for (uint32_t i = 0; i < action->num_args; i++) {
    const hd_expr_t *arg = stmt->u.launch.args[i];
    if (kernel->params[i]->tensor || !moves(arg))
      continue;
    if (hd_func_is_size(kernel, kernel->params[i])) {
      snprintf(text, sizeof(text),
               "'%.80s' is a size, and another in each turn of a loop",
               kernel->params[i]->name);
      return hd_program_fail(p, kernel, text);
    }
    action->moving[action->num_moving++] = (hd_moving_t){i, arg};
  }
  return true;
}

static bool plan_launch(hd_program_t *p, const hd_call_site_t *site) {
  hd_action_t *action = new_launch(p, site);
  const hd_func_t *kernel = action->kernel->func;
  for (uint32_t i = 0; i < action->num_args; i++)
    action->slots[i] = !kernel->params[i]->tensor ? -1
                       : !site->stmt
                           ? (int)i
                           : find_slot(p, site->stmt->u.launch.args[i]->u.var);
  action->programmatic = site->stmt && site->stmt->u.launch.programmatic;
  return (!site->stmt || find_moving(p, action, site->stmt)) &&
         finish_launch(p, action, &site->env);
}

static bool add_fill(hd_program_t *p, const hd_slot_t *slot, int index,
                     const hd_expr_t *init) {
  hd_number_t value;
  if (!hd_eval(&p->env, init, &value))
    return hd_error(hd_program_diags(p), init->loc, HD_E0210, "");
  unsigned bits = hd_type_bits(slot->var->type);
  hd_action_t *action = HD_ARENA_NEW(&p->arena, hd_action_t);
  action->does = HD_ACTION_FILLS;
  action->slot = index;
  action->bits = hd_program_encode(slot->var->type, value);
  // Below a byte: whole bytes of copies.
  for (; bits < 8; bits *= 2)
    action->bits = (action->bits & ((1u << bits) - 1)) * (1 + (1u << bits));
  action->element_bytes = bits / 8;
  action->count = slot->bytes / action->element_bytes;
  push(p, action);
  return true;
}

// A view's offset in bytes, if it lies in its base and is aligned.
bool hd_program_place_view(hd_program_t *p, const hd_stmt_t *stmt,
                           const hd_slot_t *slot, hd_view_t *view) {
  const hd_expr_t *of = stmt->u.declare.init;
  int64_t elements, bytes, bits = (int64_t)hd_type_bits(slot->var->type);
  char text[300];
  view->base = find_slot(p, of->u.var);
  if (!hd_eval_int(&p->env, of->operands[0], &elements) || elements < 0 ||
      __builtin_mul_overflow(elements, bits, &bits) ||
      !hd_program_slot_bytes(p, view->base, &bytes) || bits / 8 > bytes ||
      (int64_t)slot->bytes > bytes - bits / 8) {
    snprintf(text, sizeof(text), "view '%.80s' does not lie in '%.80s'",
             slot->var->name, of->u.var->name);
    return hd_program_fail(p, p->entry, text);
  }
  view->offset = (size_t)bits / 8;
  if (bits % 8 == 0 && view->offset % hd_tensor_align(slot->var->tensor) == 0)
    return true;
  snprintf(text, sizeof(text),
           "view '%.80s' does not begin at a multiple of %u bytes",
           slot->var->name, hd_tensor_align(slot->var->tensor));
  return hd_program_fail(p, p->entry, text);
}

static void add_place(hd_program_t *p, const hd_stmt_t *stmt, int index) {
  hd_action_t *action = HD_ARENA_NEW(&p->arena, hd_action_t);
  action->does = HD_ACTION_PLACES;
  action->slot = index;
  action->stmt = stmt;
  push(p, action);
}

static bool plan_workspace(hd_program_t *p, const hd_stmt_t *stmt) {
  hd_slot_t slot = {.var = stmt->u.declare.var};
  int64_t bytes;
  int64_t shape[HD_TENSOR_MAX_RANK];
  if (!hd_storage_shape(&p->env, slot.var->tensor, shape)) {
    char text[200];
    hd_storage_shape_why(&p->env, slot.var, text, sizeof(text));
    return hd_program_fail(p, p->entry, text);
  }
  if (!hd_storage_bytes(&p->env, &p->arena, slot.var->tensor, &bytes))
    return hd_error(hd_program_diags(p), slot.var->loc, HD_E0309,
                    slot.var->name);
  slot.bytes = (size_t)bytes;
  hd_view_t view = {.base = -1, .loop = p->open_loop};
  bool is_view = hd_stmt_is_view(stmt);
  const hd_expr_t *init = stmt->u.declare.init;
  if (is_view && moves(init->operands[0]))
    view = (hd_view_t){
        .base = find_slot(p, init->u.var), .loop = p->open_loop, .moves = true};
  else if (is_view && !hd_program_place_view(p, stmt, &slot, &view))
    return false;
  hd_vec_push(&p->arena, &p->workspaces, slot);
  hd_vec_push(&p->arena, &p->views, view);
  int index = (int)(p->entry->num_params + p->workspaces.size - 1);
  set_slot(p, slot.var, (size_t)index);
  if (view.moves)
    add_place(p, stmt, index);
  return is_view || !init || add_fill(p, &slot, index, init);
}

static bool plan_block(hd_program_t *p, hd_block_t block, size_t *site);

static bool plan_loop(hd_program_t *p, const hd_stmt_t *stmt, size_t *site) {
  hd_action_t *begin = HD_ARENA_NEW(&p->arena, hd_action_t);
  hd_action_t *end = HD_ARENA_NEW(&p->arena, hd_action_t);
  begin->does = HD_ACTION_BEGINS_LOOP;
  begin->stmt = stmt;
  end->does = HD_ACTION_ENDS_LOOP;
  push(p, begin);
  end->other = p->actions.size - 1;
  p->open_loop = (int64_t)end->other;
  if (!plan_block(p, stmt->u.loop.body, site))
    return false;
  push(p, end);
  begin->other = p->actions.size - 1;
  p->open_loop = begin->loop;
  return true;
}

static bool plan_block(hd_program_t *p, hd_block_t block, size_t *site) {
  for (uint32_t i = 0; i < block.size; i++) {
    const hd_stmt_t *stmt = block.stmts[i];
    bool ok = stmt->kind == HD_STMT_LAUNCH
                  ? plan_launch(p, &p->sites.data[(*site)++])
              : stmt->kind == HD_STMT_FOR ? plan_loop(p, stmt, site)
                                          : plan_workspace(p, stmt);
    if (!ok)
      return false;
  }
  return true;
}

bool hd_program_plan(hd_program_t *p) {
  size_t site = 0;
  p->open_loop = -1;
  for (uint32_t i = 0; i < p->entry->num_params; i++)
    set_slot(p, p->entry->params[i], i);
  return (p->entry->kind == HD_FUNC_KERNEL
              ? plan_launch(p, &p->sites.data[0])
              : plan_block(p, p->entry->body, &site)) &&
         hd_program_check_turns(p);
}
